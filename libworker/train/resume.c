/* resume.c - checkpoints from which a training goes on where no rank holds its state */
#include "libworker/train/checkpoint.h"
#include "libworker/train/train_impl.h"

#include <stdio.h>

/* The first of its step: the job's own before such as it names. */
static const struct checkpoint_info *info_of(const struct train *train, uint64_t step)
{
    for (size_t i = 0; i < train->found.n; i++) {
        if (train->found.infos[i].step == step) {
            return &train->found.infos[i];
        }
    }
    return NULL;
}

static int load(struct train *train, const struct train_checkpoint *from, struct ms_err *err)
{
    return checkpoint_load(train, info_of(train, from->step), err);
}

static int look(struct train *train, struct ms_err *err)
{
    struct checkpoint_list list;
    int rc = checkpoint_find(train, &list, err);
    if (rc == 0) {
        checkpoint_list_fini(&train->found);
        train->found = list;
    }
    return rc;
}

int train_find_checkpoint(struct train *train, uint64_t below, struct train_checkpoint *ret,
                          struct ms_err *err)
{
    int rc = below == UINT64_MAX ? look(train, err) : 0;
    *ret = (struct train_checkpoint){.step = 0};
    for (size_t i = 0; rc == 0 && ret->step == 0 && i < train->found.n; i++) {
        const struct checkpoint_info *info = &train->found.infos[i];
        if (info->step < below) {
            *ret = (struct train_checkpoint){.step = info->step,
                                             .loss = info->manifest.loss,
                                             .seconds = info->manifest.seconds,
                                             .load = load};
            snprintf(ret->first_tag, sizeof(ret->first_tag), "%s",
                     checkpoint_manifest_first_tag(&info->manifest));
        }
    }
    return rc;
}
