/* fuzz_picture.c - a JPEG or PNG file out of any bytes; its pixels turned, resized and cut */
#include "libworker/data/picture.h"
#include "tests/fuzz/fuzz.h"

/* What a few bytes may promise costs time, not safety. */
enum { PIXELS_MAX = 1 << 20, SIDE = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_err err = {0, ""};
    int64_t height = 0;
    int64_t width = 0;
    int rc = picture_measure(data, size, "f", &height, &width, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc < 0 || height * width > PIXELS_MAX) {
        return 0;
    }
    struct picture picture = {.bytes = NULL};
    struct picture_work work = {NULL, 0};
    uint8_t made[3 * SIDE * SIDE];
    rc = picture_decode(data, size, "f", size % 2 == 0 ? 3 : 1, &picture, &err);
    FUZZ_CHECK(rc == MS_OK || (rc == MS_E_INVALID && err.text[0] != '\0'));
    if (rc == MS_OK) {
        FUZZ_CHECK(picture.height == height && picture.width == width);
        FUZZ_CHECK(picture_cover(&picture, "f", SIDE, SIDE, &work, made, &err) == MS_OK);
    }
    free(work.bytes);
    picture_free(&picture);
    return 0;
}
