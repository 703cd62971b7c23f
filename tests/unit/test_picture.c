/* test_picture.c - JPEG and PNG files as Pillow decodes, turns and resizes them, to the bit;
 * damaged, truncated and huge ones are named */
#include "libworker/data/picture.h"
#include "tests/unit/image_files.h"

#include <jpeglib.h>

/* The files of tests/fuzz/corpus/picture and the CRC-32 of their pixels were made by Pillow 13.0.0
 * and torchvision 0.29.2, from base, 37 x 23 pixels:
 *     c = ImageOps.exif_transpose(Image.open(file)).convert('RGB')
 *     crc32(c), crc32(c.convert('L')), and of (channels, height, width):
 *     CenterCrop((10, 14))(c resized until it covers that), CenterCrop(31)(Resize(31)(c)) */
static const struct {
    const char *name;
    int64_t height, width;
    uint32_t colours, grey, cover, square;
} files[] = {
    {"alpha.png", 23, 37, 0x8966DFF7, 0x95E861B2, 0x35FE58D6, 0xDFAC109F},
    {"bits.png", 23, 37, 0xA61B21D0, 0x50DDA235, 0x160FE324, 0x118C7F19},
    {"cmyk.jpg", 23, 37, 0x8BF8E481, 0x23FAF130, 0x5D54D235, 0xDCE8C806},
    {"grey.jpg", 23, 37, 0xEADB2B1F, 0x0503F9EC, 0x81830CFB, 0xEA9321BC},
    {"grey.png", 23, 37, 0x02EDF76F, 0x95E861B2, 0xF0E7725D, 0xA2969E98},
    {"grey_alpha.png", 23, 37, 0x02EDF76F, 0x95E861B2, 0xF0E7725D, 0xA2969E98},
    {"palette.png", 23, 37, 0x196AEB6F, 0xF80AD49F, 0xE28505A0, 0x51631F30},
    {"progressive.jpg", 23, 37, 0x453B8EE0, 0x8F84B568, 0xB71F8346, 0x65A2517E},
    {"rgb.jpg", 23, 37, 0x6892FEFE, 0x7835DA84, 0xACE602A0, 0x8EA6819B},
    {"rgb.png", 23, 37, 0x8966DFF7, 0x95E861B2, 0x35FE58D6, 0xDFAC109F},
    {"turned.png", 37, 23, 0x95730534, 0x4DDEA638, 0x6486ECBB, 0xDDCA440E},
    {"turned2.jpg", 23, 37, 0x5E40D77E, 0xDD328354, 0x5CC092BE, 0x1D92AD6F},
    {"turned3.jpg", 23, 37, 0xFE092330, 0x043E9032, 0x76862A02, 0x00506685},
    {"turned4.jpg", 23, 37, 0xE9176F89, 0x0F8AC389, 0x3B8BA210, 0x04B72573},
    {"turned5.jpg", 37, 23, 0x0F98EBF2, 0x25D22459, 0x9FB73329, 0xCA7F9A83},
    {"turned6.jpg", 37, 23, 0x37C45E23, 0xC8F7D9EA, 0xE0E270A9, 0x28FC3BFF},
    {"turned7.jpg", 37, 23, 0x41A7566E, 0x352A51C7, 0x34E21C09, 0x3354E04A},
    {"turned8.jpg", 37, 23, 0xD13BC83C, 0x45F17BDF, 0xA1E42ADB, 0x1420BA62},
};

static struct bytes read_corpus(const char *name)
{
    char path[512];
    struct bytes b = {malloc(1 << 16), 0};
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/picture/%s", root, name);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    b.size = fread(b.at, 1, 1 << 16, file);
    fclose(file);
    return b;
}

static uint32_t crc_of(const void *bytes, int64_t size)
{
    return (uint32_t)crc32_z(0, bytes, (size_t)size);
}

START_TEST(pixels_are_those_of_pillow)
{
    struct bytes b = read_corpus(files[_i].name);
    struct picture picture = {.bytes = NULL};
    int64_t height = 0;
    int64_t width = 0;

    ck_ms_ok(picture_measure(b.at, b.size, "f", &height, &width, err));
    ck_assert_int_eq(height, files[_i].height);
    ck_assert_int_eq(width, files[_i].width);
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
    ck_assert_int_eq(picture.height, height);
    ck_assert_uint_eq(crc_of(picture.bytes, height * width * 3), files[_i].colours);
    ck_ms_ok(picture_decode(b.at, b.size, "f", 1, &picture, err)); /* in the room of the first */
    ck_assert_uint_eq(crc_of(picture.bytes, height * width), files[_i].grey);

    picture_free(&picture);
    free(b.at);
}
END_TEST

/* Pillow 13.0.0 takes the inks as inverted whether a marker says so or not. */
START_TEST(inks_are_the_same_without_the_marker_of_adobe)
{
    struct bytes b = read_corpus("cmyk.jpg");
    struct picture picture = {.bytes = NULL};
    enum { MARKER = 16 };
    uint8_t *at = memmem(b.at, b.size,
                         "\xFF\xEE\0\x0E"
                         "Adobe",
                         9);
    ck_assert_ptr_nonnull(at);
    b.size -= MARKER;
    memmove(at, at + MARKER, b.size - (size_t)(at - b.at));

    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));

    ck_assert_uint_eq(crc_of(picture.bytes, (int64_t)23 * 37 * 3), 0x8BF8E481);
    picture_free(&picture);
    free(b.at);
}
END_TEST

START_TEST(sizes_are_made_as_pillow_and_torchvision_make_them)
{
    struct bytes b = read_corpus(files[_i].name);
    struct picture picture = {.bytes = NULL};
    struct picture_work work = {NULL, 0};
    uint8_t made[3 * 31 * 31];
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));

    ck_ms_ok(picture_cover(&picture, "f", 10, 14, &work, made, err));
    ck_assert_uint_eq(crc_of(made, 3 * 10 * 14), files[_i].cover);
    ck_ms_ok(picture_cover(&picture, "f", 31, 31, &work, made, err));
    ck_assert_uint_eq(crc_of(made, 3 * 31 * 31), files[_i].square);

    free(work.bytes);
    picture_free(&picture);
    free(b.at);
}
END_TEST

START_TEST(the_same_size_is_the_same_bytes)
{
    struct bytes b = read_corpus("rgb.png");
    struct picture picture = {.bytes = NULL};
    struct picture_work work = {NULL, 0};
    uint8_t made[3 * 23 * 37];
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
    ck_ms_ok(picture_cover(&picture, "f", 23, 37, &work, made, err));
    for (int i = 0; i < 23 * 37; i++) {
        for (int c = 0; c < 3; c++) {
            ck_assert_uint_eq(made[c * 23 * 37 + i], picture.bytes[3 * i + c]);
        }
    }
    ck_assert_ptr_null(work.bytes);
    picture_free(&picture);
    free(b.at);
}
END_TEST

START_TEST(sixteen_bits_and_interlaced_files_are_read)
{
    /* 0x8080 is 128 of 255; 0x00FF rounds to 1 */
    static const uint8_t deep[] = {0, 0x80, 0x80, 0x00, 0xFF, 0xFF, 0xFF};
    /* Adam7 of 2 x 2: the first pixel, its right neighbour, the second row */
    static const uint8_t laced[] = {0, 10, 0, 20, 0, 30, 40};
    struct picture picture = {.bytes = NULL};
    struct bytes b = png_make(1, 1, 16, 2, 0, deep, sizeof(deep));
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
    ck_assert_uint_eq(picture.bytes[0], 128);
    ck_assert_uint_eq(picture.bytes[1], 1);
    ck_assert_uint_eq(picture.bytes[2], 255);
    free(b.at);
    b = png_make(2, 2, 8, 0, 1, laced, sizeof(laced));
    ck_ms_ok(picture_decode(b.at, b.size, "f", 1, &picture, err));
    ck_assert_mem_eq(picture.bytes, "\x0A\x14\x1E\x28", 4);
    free(b.at);
    picture_free(&picture);
}
END_TEST

/* Cut anywhere, it is no image, and is named. */
START_TEST(a_truncated_file_is_named)
{
    struct bytes b = read_corpus(files[_i].name);
    struct picture picture = {.bytes = NULL};
    /* a JPEG's last two bytes are a marker that nothing depends on */
    const size_t whole = b.size - (strstr(files[_i].name, ".jpg") != NULL ? 2 : 1);
    for (size_t size = 0; size < whole; size += 1 + size / 40) {
        uint8_t *part = malloc(size + 1); /* of its own size, for sanitizers */
        memcpy(part, b.at, size);
        ck_ms_fails(picture_decode(part, size, "dir/f.x", 3, &picture, err), MS_E_INVALID,
                    "dir/f.x");
        free(part);
    }
    picture_free(&picture);
    free(b.at);
}
END_TEST

START_TEST(a_damaged_file_is_named)
{
    struct bytes b = read_corpus("rgb.png");
    struct picture picture = {.bytes = NULL};
    b.at[b.size / 2] ^= 1;
    ck_ms_fails(picture_decode(b.at, b.size, "f.png", 3, &picture, err), MS_E_INVALID,
                "f.png is truncated or damaged (PNG)");
    picture_free(&picture);
    free(b.at);
}
END_TEST

/* A few bytes that say they are 60,000 x 60,000 pixels: refused before a byte of them is there. */
START_TEST(a_bomb_is_refused_with_its_size)
{
    static const uint8_t line[] = {0, 0, 0, 0};
    struct picture picture = {.bytes = NULL};
    struct bytes b = png_make(60000, 60000, 8, 2, 0, line, sizeof(line));
    ck_ms_fails(picture_decode(b.at, b.size, "f.png", 3, &picture, err), MS_E_INVALID,
                "60000 x 60000 pixels; at most");
    ck_assert_ptr_null(picture.bytes);
    free(b.at);
    b = read_corpus("rgb.jpg");
    for (size_t i = 0; i + 8 < b.size; i++) { /* the frame's head: its height and width */
        if (b.at[i] == 0xFF && b.at[i + 1] == 0xC0) {
            memcpy(b.at + i + 5, "\xFF\xDC\xFF\xDC", 4);
        }
    }
    ck_ms_fails(picture_decode(b.at, b.size, "f.jpg", 3, &picture, err), MS_E_INVALID,
                "65500 x 65500 pixels; at most");
    free(b.at);
}
END_TEST

enum where { BEHIND_HEAD, BEHIND_PIXELS };

/* 2 x 1 with n such chunks. Returns owned. */
static struct bytes make_with(const char *kind, const uint8_t *data, size_t size, int n,
                              enum where where)
{
    enum { HEAD = 8 + 12 + 13, END = 12 };
    static const uint8_t line[] = {0, 1, 2, 3, 4, 5, 6};
    struct bytes plain = png_make(2, 1, 8, 2, 0, line, sizeof(line));
    struct bytes b = {NULL, 0};
    const size_t at = where == BEHIND_HEAD ? HEAD : plain.size - END;
    bytes_add(&b, plain.at, at);
    for (int i = 0; i < n; i++) {
        png_chunk(&b, kind, data, size);
    }
    bytes_add(&b, plain.at + at, plain.size - at);
    free(plain.at);
    return b;
}

/* 7 MiB each, once unpacked, 100 times: libpng would keep them all. */
START_TEST(texts_take_no_memory)
{
    enum { TEXT = 7 << 20, TIMES = 100, KIB_MAX = 64 << 10 };
    static const struct {
        const char *kind, *head;
        size_t size;
    } texts[] = {{"zTXt", "k\0\0", 3}, {"iTXt", "k\0\1\0\0\0", 6}};
    struct picture picture = {.bytes = NULL};
    uint8_t *text = malloc(TEXT);
    uLongf packed_size = compressBound(TEXT);
    uint8_t *packed = malloc(packed_size);
    struct bytes data = {NULL, 0};
    int64_t sides[2] = {0, 0};
    ck_assert(text != NULL && packed != NULL);
    memset(text, 'A', TEXT);
    ck_assert_int_eq(compress2(packed, &packed_size, text, TEXT, 9), Z_OK);
    bytes_add(&data, texts[_i].head, texts[_i].size);
    bytes_add(&data, packed, packed_size);
    free(text);
    free(packed);
    struct bytes b = make_with(texts[_i].kind, data.at, data.size, TIMES, BEHIND_HEAD);
    const long before = peak_kib();

    ck_ms_ok(picture_measure(b.at, b.size, "f", &sides[0], &sides[1], err));
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));

    ck_assert_int_lt(peak_kib() - before, KIB_MAX);
    ck_assert_mem_eq(picture.bytes, "\1\2\3\4\5\6", 6);
    picture_free(&picture);
    free(data.at);
    free(b.at);
}
END_TEST

/* Before the pixels or behind them: measured and decoded alike; a damaged one is none. */
START_TEST(an_orientation_is_found_wherever_it_stands)
{
    static const uint8_t turned[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                                     3,   0,   0, 0,  1, 0, 6, 0, 0, 0, 0, 0,    0};
    for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
        struct bytes b = make_with("eXIf", turned, sizeof(turned), 1, (enum where)_i);
        struct picture picture = {.bytes = NULL};
        int64_t height = 0;
        int64_t width = 0;
        const size_t end = _i == BEHIND_HEAD ? 8 + 12 + 13 + 12 + sizeof(turned) : b.size - 12;
        b.at[end - 1] ^= (uint8_t)is_damaged; /* its checksum */
        ck_ms_ok(picture_measure(b.at, b.size, "f", &height, &width, err));
        ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
        ck_assert_int_eq(height, is_damaged ? 1 : 2);
        ck_assert_int_eq(picture.height, height);
        ck_assert_int_eq(picture.width, width);
        picture_free(&picture);
        free(b.at);
    }
}
END_TEST

/* 1 x 65,500, where 60 times as many rows would be made for 64 that are kept. */
START_TEST(a_narrow_image_takes_no_more_memory_than_it_needs)
{
    enum { LONG = 65500, SIDE = 64, ROOM_MAX = 1 << 20, KIB_MAX = 32 << 10 };
    uint8_t *lines = calloc(LONG, 4);
    uint8_t made[3 * SIDE * SIDE];
    struct picture picture = {.bytes = NULL};
    struct picture_work work = {NULL, 0};
    ck_assert_ptr_nonnull(lines);
    for (int wide = 0; wide < 2; wide++) {
        const uint32_t height = wide ? 1 : LONG;
        const uint32_t width = wide ? LONG : 1;
        struct bytes b = png_make(width, height, 8, 2, 0, lines, height * (1 + 3 * (size_t)width));
        const long before = peak_kib();
        ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
        ck_ms_ok(picture_cover(&picture, "f", SIDE, SIDE, &work, made, err));
        ck_assert_uint_lt(work.room, ROOM_MAX);
        ck_assert_int_lt(peak_kib() - before, KIB_MAX);
        free(b.at);
    }
    struct bytes b = png_make(1, LONG + 1, 8, 2, 0, lines, 4);
    ck_ms_fails(picture_decode(b.at, b.size, "f.png", 3, &picture, err), MS_E_INVALID,
                "f.png says that it has 65501 x 1 pixels");
    ck_ms_fails(picture_decode(b.at, b.size, "f.png", 3, &picture, err), MS_E_INVALID,
                "sides of at most 65500");
    free(b.at);
    free(work.bytes);
    free(lines);
    picture_free(&picture);
}
END_TEST

START_TEST(a_damaged_arithmetic_code_is_named)
{
    struct bytes b = read_corpus("arithmetic.jpg");
    struct picture picture = {.bytes = NULL};
    ck_ms_ok(picture_decode(b.at, b.size, "f", 3, &picture, err));
    free(b.at);
    b = read_corpus("arithmetic_bad.jpg");
    ck_ms_fails(picture_decode(b.at, b.size, "f.jpg", 3, &picture, err), MS_E_INVALID,
                "f.jpg is truncated or damaged (JPEG): Corrupt JPEG data: bad arithmetic code");
    picture_free(&picture);
    free(b.at);
}
END_TEST

/* side x side of one grey, progressive, and its last scan `more` times again. Returns owned. */
static struct bytes jpeg_with_scans(uint32_t side, int more)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *file = NULL;
    unsigned long size = 0;
    uint8_t *row = calloc(1, side);
    ck_assert_ptr_nonnull(row);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &file, &size);
    c.image_width = side;
    c.image_height = side;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    for (uint32_t y = 0; y < side; y++) {
        jpeg_write_scanlines(&c, (JSAMPROW[]){row}, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    size_t last = size - 2; /* the marker of the last scan; the end's has two bytes */
    while (file[last] != 0xFF || file[last + 1] != 0xDA) {
        last--;
    }
    struct bytes b = {NULL, 0};
    bytes_add(&b, file, size - 2);
    for (int i = 0; i < more; i++) {
        bytes_add(&b, file + last, size - 2 - last);
    }
    bytes_add(&b, file + size - 2, 2);
    free(file);
    return b;
}

/* Half a megabyte of scans over 67,108,864 pixels took 12 s. */
START_TEST(many_scans_of_a_large_image_are_refused)
{
    struct picture picture = {.bytes = NULL};
    struct bytes b = jpeg_with_scans(4096, 130);
    ck_ms_fails(picture_decode(b.at, b.size, "f.jpg", 1, &picture, err), MS_E_INVALID,
                "f.jpg is truncated or damaged (JPEG): more than 128 scans of so many pixels");
    free(b.at);
    b = jpeg_with_scans(64, 130);
    ck_ms_ok(picture_decode(b.at, b.size, "f.jpg", 1, &picture, err));
    free(b.at);
    b = jpeg_with_scans(64, 500);
    ck_ms_fails(picture_decode(b.at, b.size, "f.jpg", 1, &picture, err), MS_E_INVALID,
                "more than 500 scans");
    free(b.at);
    picture_free(&picture);
}
END_TEST

START_TEST(what_is_no_image_is_said_to_be_what_it_is)
{
    static const struct {
        const char *text, *part;
    } cases[] = {{"GIF89a", "a GIF image"},   {"BM......", "a BMP image"},
                 {"<html>", "a web page"},    {"RIFF....WEBP", "a WebP image"},
                 {"hello", "something else"}, {"", "empty"}};
    struct picture picture = {.bytes = NULL};
    for (size_t i = 0; i < MS_ARRAY_SIZE(cases); i++) {
        ck_ms_fails(picture_decode((const uint8_t *)cases[i].text, strlen(cases[i].text), "f", 3,
                                   &picture, err),
                    MS_E_INVALID, cases[i].part);
    }
}
END_TEST

START_TEST(an_orientation_that_makes_no_sense_is_none)
{
    static const uint8_t good[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                                   3,   0,   0, 0,  1, 0, 6, 0, 0, 0, 0, 0,    0};
    uint8_t bad[sizeof(good)];
    ck_assert_int_eq(picture_orientation(good, sizeof(good)), 6);
    for (size_t size = 0; size < 22; size++) {
        ck_assert_int_eq(picture_orientation(good, size), 1);
    }
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{19, 9}, {19, 0}, {7, 200}, {4, 0xFF}, {13, 4}, {0, 'X'}};
    for (size_t i = 0; i < MS_ARRAY_SIZE(changes); i++) {
        memcpy(bad, good, sizeof(good));
        bad[changes[i].at] = changes[i].value;
        ck_assert_int_eq(picture_orientation(bad, sizeof(bad)), 1);
    }
}
END_TEST

int main(void)
{
    const int n = (int)MS_ARRAY_SIZE(files);
    Suite *suite = suite_create("picture");
    TCase *tc = test_case_create("picture");
    tcase_add_loop_test(tc, pixels_are_those_of_pillow, 0, n);
    tcase_add_test(tc, inks_are_the_same_without_the_marker_of_adobe);
    tcase_add_loop_test(tc, sizes_are_made_as_pillow_and_torchvision_make_them, 0, n);
    tcase_add_test(tc, the_same_size_is_the_same_bytes);
    tcase_add_test(tc, sixteen_bits_and_interlaced_files_are_read);
    tcase_add_loop_test(tc, a_truncated_file_is_named, 0, n);
    tcase_add_test(tc, a_damaged_file_is_named);
    tcase_add_test(tc, a_bomb_is_refused_with_its_size);
    tcase_add_loop_test(tc, texts_take_no_memory, 0, 2);
    tcase_add_loop_test(tc, an_orientation_is_found_wherever_it_stands, 0, 2);
    tcase_add_test(tc, a_narrow_image_takes_no_more_memory_than_it_needs);
    tcase_add_test(tc, a_damaged_arithmetic_code_is_named);
    tcase_add_test(tc, many_scans_of_a_large_image_are_refused);
    tcase_add_test(tc, what_is_no_image_is_said_to_be_what_it_is);
    tcase_add_test(tc, an_orientation_that_makes_no_sense_is_none);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
