/* resume.c - checkpoints from which a training goes on where no rank holds its state */
#include "libworker/train/checkpoint.h"
#include "libworker/train/train_impl.h"

#include <stdio.h>

static int load(struct train *train, const struct train_checkpoint *from, struct ms_err *err)
{
    return checkpoint_load(train, &train->found.infos[from->place], err);
}

int train_find_checkpoints(struct train *train, struct ms_err *err)
{
    struct checkpoint_list list;
    int rc = checkpoint_find(train, &list, err);
    if (rc == 0) {
        checkpoint_list_fini(&train->found);
        train->found = list;
    }
    return rc;
}

struct train_checkpoint train_checkpoint_at(const struct train *train, size_t place)
{
    struct train_checkpoint checkpoint = {.step = 0};
    if (place < train->found.n) {
        const struct checkpoint_info *info = &train->found.infos[place];
        checkpoint.step = info->step;
        checkpoint.place = place;
        checkpoint.is_own = info->owner == CHECKPOINT_OWN;
        checkpoint.loss = info->manifest.loss;
        checkpoint.seconds = info->manifest.seconds;
        checkpoint.load = load;
        checkpoint.watch = checkpoint_manifest_watch(&info->manifest, train->cfg.job);
        snprintf(checkpoint.first_tag, sizeof(checkpoint.first_tag), "%s",
                 checkpoint_manifest_first_tag(&info->manifest));
    }
    return checkpoint;
}
