/* image_list.h - the images below a folder of classes: which files, in which order, of which class
 *
 * Classes are the folders, in the order of their names' bytes, as torchvision's ImageFolder has
 * them; of each, all images below it, in the order of their paths. Parts lie in train/ and test/
 * (or val/), or the folder has one part only, and holds the classes itself. Where there is a
 * train/, it says which classes there are, for each part; what is tested on has those of its
 * training, by their names, wherever it lies (data_spec.trained). A part has no images but those of
 * its folders: a folder of images that is called train is a class, and an image beside them, which
 * would be left out without a word, an error. */
#ifndef DATA_IMAGE_LIST_H
#define DATA_IMAGE_LIST_H

#include "libworker/data/data.h"

struct image_list_entry {
    size_t path; /* place in names: below root */
    int32_t label;
};

struct image_list {
    char root[MS_PATH_MAX + 16]; /* with the part */
    char *names;                 /* owned; NUL behind each */
    size_t names_size, names_room;
    struct image_list_entry *entries; /* owned */
    size_t n, room;
    char **classes; /* owned, as are they */
    size_t n_classes, classes_room;
};

/* Reads names, and opens no image. Errors name a folder without images, one that is no class, and
 * files of formats that are not read. ret is of use to image_list_free even where it fails. */
int image_list_make(const struct data_spec *spec, const char *path, struct image_list *ret,
                    struct ms_err *err);
/* Its classes alone: those that the spec names, or the folders. Likewise. */
int image_list_classes(const struct data_spec *spec, const char *path, struct image_list *ret,
                       struct ms_err *err);
void image_list_free(struct image_list *list);
/* "root/path" in buf of size bytes, which hold every such path. */
void image_list_path(const struct image_list *list, size_t i, char *buf, size_t size);

#endif
