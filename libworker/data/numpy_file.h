/* numpy_file.h - arrays by name: NumPy's in a folder (NAME.npy) or an archive (.npz), or the
 * tensors of a file (.safetensors) */
#ifndef DATA_NUMPY_FILE_H
#define DATA_NUMPY_FILE_H

#include "libworker/data/npy.h"
#include "libworker/data/stored.h"

struct safetensors;
struct numpy_place {             /* where the arrays are */
    const char *path;            /* expanded; borrowed */
    int archive;                 /* descriptor of the .npz; -1: all others */
    int is_array;                /* path is one array itself, whatever name is asked for */
    struct safetensors *tensors; /* owned; NULL: others */
};

struct numpy_array {
    char *name; /* for errors: path/x.npy, or path/all.npz: x */
    int fd;     /* -1: the place's */
    struct npy_head head;
    struct stored *bytes; /* the elements */
};

/* Opens what path is, a folder, an archive or one array; MS_E_INVALID where it is none of them. */
int numpy_place_open(const char *path, struct numpy_place *ret, struct ms_err *err);
/* A file of tensors. */
int numpy_place_open_tensors(const char *path, struct numpy_place *ret, struct ms_err *err);
void numpy_place_close(struct numpy_place *place);
/* 0: there is none of that name; < 0: what is wrong with the archive. */
int numpy_place_has(const struct numpy_place *place, const char *name, struct ms_err *err);
/* What there is, as keys want it: "x, y". */
void numpy_place_list(const struct numpy_place *place, char *buf, int size);

/* Opens the array and reads its head, or makes one of what the tensor is. ret is of use to
 * numpy_array_close even where it fails. */
int numpy_array_open(const struct numpy_place *place, const char *name, struct numpy_array *ret,
                     struct ms_err *err);
void numpy_array_close(struct numpy_array *array);

#endif
