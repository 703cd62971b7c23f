/* beside.c - opens what a network is tested on: its classes are those of the training */
#include "libworker/data/image_list.h"
#include "libworker/data/path.h"
#include "libworker/data/source.h"

#include <stdlib.h>

static int find_classes(const struct data_spec *train, struct image_list *ret, struct ms_err *err)
{
    char path[MS_PATH_MAX + 1] = "";
    struct ms_err why = {0, ""};
    *ret = (struct image_list){.n = 0};
    int rc = MS_OK;
    if (train->class_names[0] == '\0') {
        rc = data_path_expand(train->path, path, sizeof(path), &why);
        rc = rc < 0 ? rc : data_path_check(path, &why);
    }
    rc = rc < 0 ? rc : image_list_classes(train, path, ret, &why);
    if (rc < 0) {
        data_path_hide(path, train->path, &why);
        return ms_fail(err, rc,
                       "which classes were trained is not known (%.160s): name them in "
                       "dataset.class_names, or put dataset.path back",
                       why.text);
    }
    return MS_OK;
}

int data_open_beside(const struct data_spec *spec, const struct data_spec *train,
                     struct data_source **ret, struct ms_err *err)
{
    struct image_list classes;
    if (spec->kind != DATA_IMAGE_FOLDER || train->kind != DATA_IMAGE_FOLDER) {
        return data_open(spec, ret, err);
    }
    int rc = find_classes(train, &classes, err);
    struct data_spec *of = rc < 0 ? NULL : malloc(sizeof(*of)); /* too large for a stack */
    if (of != NULL) {
        *of = *spec;
        of->trained = (const char *const *)classes.classes;
        of->n_trained = (int64_t)classes.n_classes;
        rc = data_open(of, ret, err);
    } else if (rc == MS_OK) {
        rc = ms_fail(err, MS_E_NOMEM, "no memory for a data set");
    }
    free(of);
    image_list_free(&classes);
    return rc;
}
