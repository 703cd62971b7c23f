/* shapes.c - ten classes of drawn shapes on 32 x 32 colour images: data that need no download
 *
 * A record is a pure function of (seed, part, row): shape by its signed distance (negative inside,
 * in pixels), so that edges are anti-aliased; position, scale, rotation, both colours, a gradient
 * in the background, thin lines as distraction and noise vary independently of the class. */
#include "libworker/data/source.h"

#include "proto/rng.h"

#include <math.h>
#include <stdlib.h>

struct point {
    float x, y;
};

/* ---- signed distances of shapes of radius about 1, at (x, y) ---- */

static float box(float x, float y, float half_w, float half_h)
{
    return fmaxf(fabsf(x) - half_w, fabsf(y) - half_h);
}

static float circle(float x, float y)
{
    return sqrtf(x * x + y * y) - 0.85F;
}

static float ring(float x, float y)
{
    return fabsf(sqrtf(x * x + y * y) - 0.68F) - 0.2F;
}

static float square(float x, float y)
{
    return box(x, y, 0.75F, 0.75F);
}

static float frame(float x, float y)
{
    return fabsf(box(x, y, 0.62F, 0.62F)) - 0.17F;
}

static float triangle(float x, float y)
{
    return fmaxf(y, fabsf(x) * 0.8660254F - y * 0.5F) - 0.5F; /* three sides, 0.5 from the middle */
}

/* Five points: fold the plane along the two mirror lines, then one edge is left. */
static float star(float x, float y)
{
    static const struct point mirror[2] = {{0.809017F, -0.587785F}, {-0.809017F, -0.587785F}};
    x = fabsf(x);
    for (int i = 0; i < 2; i++) {
        float along = 2 * fmaxf(mirror[i].x * x + mirror[i].y * y, 0.0F);
        x -= along * mirror[i].x;
        y -= along * mirror[i].y;
    }
    x = fabsf(x);
    y -= 1.0F; /* tip at distance 1 */
    const struct point edge = {0.45F * 0.587785F,
                               0.45F * 0.809017F - 1.0F}; /* to the inner corner */
    float length = sqrtf(edge.x * edge.x + edge.y * edge.y);
    return (x * -edge.y + y * edge.x) / length;
}

static float cross(float x, float y)
{
    return fminf(box(x, y, 0.9F, 0.28F), box(x, y, 0.28F, 0.9F));
}

static float stripes(float x, float y)
{
    float bars = fminf(fabsf(y), fabsf(fabsf(y) - 0.62F)) - 0.18F;
    return fmaxf(fabsf(x) - 0.85F, bars);
}

static float half(float x, float y)
{
    y += 0.4F;
    return fmaxf(sqrtf(x * x + y * y) - 0.95F, -y);
}

static float angle(float x, float y)
{
    return fminf(box(x + 0.5F, y, 0.27F, 0.85F), box(x, y - 0.58F, 0.77F, 0.27F));
}

static const struct {
    const char *name;
    float (*distance)(float x, float y);
} classes[] = {
    {"circle", circle},     {"ring", ring},   {"square", square}, {"frame", frame},
    {"triangle", triangle}, {"star", star},   {"cross", cross},   {"stripes", stripes},
    {"half", half},         {"angle", angle},
};

const char *shapes_class_name(int label)
{
    return label >= 0 && (size_t)label < MS_ARRAY_SIZE(classes) ? classes[label].name : NULL;
}

/* ---- one picture ---- */

enum { CHANNELS = 3, LINES_MAX = 2 };

struct draws {
    uint64_t stream, next;
};

static float draw_between(struct draws *draws, float low, float high)
{
    return low + (high - low) * (float)ms_rng_unit(draws->stream, draws->next++);
}

struct line { /* a thin bar through (x, y) along the normal's other direction */
    struct point at, normal;
    float half_width, half_length;
    float colour[CHANNELS];
};

struct picture {
    int label;
    struct point centre, turn; /* turn: cosine and sine */
    float radius;
    float front[CHANNELS], back[CHANNELS], slope_x[CHANNELS], slope_y[CHANNELS]; /* 0 .. 1 */
    float noise;
    int n_lines;
    struct line line[LINES_MAX];
};

/* Two colours that can be told apart: at least one channel differs by `least`. */
static void draw_colours(struct draws *draws, struct picture *p, float least)
{
    float apart = 0;
    for (int c = 0; c < CHANNELS; c++) {
        p->back[c] = draw_between(draws, 0.1F, 0.9F);
        p->front[c] = draw_between(draws, 0.0F, 1.0F);
        apart = fmaxf(apart, fabsf(p->back[c] - p->front[c]));
        p->slope_x[c] = draw_between(draws, -0.15F, 0.15F);
        p->slope_y[c] = draw_between(draws, -0.15F, 0.15F);
    }
    int c = (int)ms_rng_below(draws->stream, draws->next++, CHANNELS);
    if (apart < least) {
        p->front[c] = p->back[c] + (p->back[c] < 0.5F ? least : -least);
    }
}

static void draw_lines(struct draws *draws, struct picture *p)
{
    p->n_lines = (int)ms_rng_below(draws->stream, draws->next++, LINES_MAX + 1);
    for (int i = 0; i < p->n_lines; i++) {
        struct line *line = &p->line[i];
        float turn = draw_between(draws, 0.0F, 6.2831853F);
        line->at.x = draw_between(draws, 0.0F, CIFAR_SIDE);
        line->at.y = draw_between(draws, 0.0F, CIFAR_SIDE);
        line->normal.x = cosf(turn);
        line->normal.y = sinf(turn);
        line->half_width = draw_between(draws, 0.4F, 1.0F);
        line->half_length = draw_between(draws, 3.0F, 9.0F);
        for (int c = 0; c < CHANNELS; c++) {
            line->colour[c] = draw_between(draws, 0.0F, 1.0F);
        }
    }
}

static void draw_picture(struct draws *draws, struct picture *p)
{
    p->label = (int)ms_rng_below(draws->stream, draws->next++, MS_ARRAY_SIZE(classes));
    p->radius = draw_between(draws, 8.0F, 13.0F);
    float margin = p->radius;
    p->centre.x = draw_between(draws, margin, CIFAR_SIDE - margin);
    p->centre.y = draw_between(draws, margin, CIFAR_SIDE - margin);
    float turn = draw_between(draws, -0.3F, 0.3F); /* 17 degrees either way */
    p->turn.x = cosf(turn);
    p->turn.y = sinf(turn);
    p->noise = draw_between(draws, 0.02F, 0.09F);
    draw_colours(draws, p, 0.4F);
    draw_lines(draws, p);
}

/* How much of a pixel lies inside an edge at that distance. */
static float coverage(float distance)
{
    return fminf(fmaxf(0.5F - distance, 0.0F), 1.0F);
}

/* Share of the pixel (x, y) that the shape covers. */
static float shape_at(const struct picture *p, float x, float y)
{
    float dx = (x - p->centre.x) / p->radius;
    float dy = (y - p->centre.y) / p->radius;
    float u = dx * p->turn.x + dy * p->turn.y;
    float v = dy * p->turn.x - dx * p->turn.y;
    return coverage(classes[p->label].distance(u, v) * p->radius);
}

static float line_at(const struct line *line, float x, float y)
{
    float dx = x - line->at.x;
    float dy = y - line->at.y;
    float across = dx * line->normal.x + dy * line->normal.y;
    float along = dy * line->normal.x - dx * line->normal.y;
    return coverage(box(across, along, line->half_width, line->half_length));
}

/* About normal with standard deviation 1: the sum of four uniform 16-bit numbers of one word. */
static float draw_noise(uint64_t stream, uint64_t i)
{
    uint64_t bits = ms_rng_u64(stream, i);
    uint64_t sum = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
    return ((float)sum / 65536.0F - 2.0F) * 1.7320508F; /* variance of the sum is 4 / 12 */
}

static void paint(const struct picture *p, uint64_t noise_stream, uint8_t *planes)
{
    for (int i = 0; i < CIFAR_SIDE * CIFAR_SIDE; i++) {
        float x = (float)(i % CIFAR_SIDE) + 0.5F;
        float y = (float)(i / CIFAR_SIDE) + 0.5F;
        float shape = shape_at(p, x, y);
        float line[LINES_MAX] = {0};
        for (int l = 0; l < p->n_lines; l++) {
            line[l] = line_at(&p->line[l], x, y);
        }
        for (int c = 0; c < CHANNELS; c++) {
            float value = p->back[c] + p->slope_x[c] * (x / CIFAR_SIDE - 0.5F) +
                          p->slope_y[c] * (y / CIFAR_SIDE - 0.5F);
            for (int l = 0; l < p->n_lines; l++) {
                value += line[l] * (p->line[l].colour[c] - value);
            }
            value += shape * (p->front[c] - value);
            int plane = c * CIFAR_SIDE * CIFAR_SIDE;
            value += p->noise * draw_noise(noise_stream, (uint64_t)(plane + i));
            planes[plane + i] = (uint8_t)(fminf(fmaxf(value, 0.0F), 1.0F) * 255.0F + 0.5F);
        }
    }
}

void shapes_draw(uint64_t seed, int is_test, int64_t row, uint8_t record[CIFAR_RECORD])
{
    uint64_t part = ms_rng_mix(seed) ^ (uint64_t)(is_test != 0);
    struct draws draws = {ms_rng_stream(part, (uint64_t)row, 0), 0};
    struct picture picture;
    draw_picture(&draws, &picture);
    record[0] = (uint8_t)picture.label;
    paint(&picture, ms_rng_stream(part, (uint64_t)row, 1), record + 1);
}

/* ---- the same without files ---- */

struct shapes {
    struct data_source base;
    uint64_t seed;
    int is_test;
    uint8_t record[CIFAR_RECORD]; /* that was read last */
};

static int shapes_read(struct data_source *source, int64_t row, struct data_record *ret,
                       struct ms_err *err)
{
    (void)err;
    struct shapes *set = (struct shapes *)source;
    shapes_draw(set->seed, set->is_test, row, set->record);
    *ret = (struct data_record){.values = set->record + 1, .label = set->record[0]};
    return MS_OK;
}

static void shapes_close(struct data_source *source)
{
    free(source);
}

/* A thousand drawings take longer than what they are drawn from. */
static int shapes_identify(struct data_source *source, struct sum *sum, struct ms_err *err)
{
    (void)err;
    const struct shapes *set = (const struct shapes *)source;
    const uint64_t drawing[] = {set->seed, (uint64_t)set->is_test};
    sum_add(sum, drawing, sizeof(drawing));
    return MS_OK;
}

int shapes_open(const struct data_spec *spec, const char *path, struct data_source **ret,
                struct ms_err *err)
{
    (void)path;
    struct shapes *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return ms_fail(err, MS_E_NOMEM, "data set shapes: no memory");
    }
    set->is_test = spec->usage == DATA_TEST;
    set->seed = spec->seed;
    int64_t usual = set->is_test ? DATA_SHAPES_TEST_ROWS : DATA_SHAPES_ROWS;
    set->base = (struct data_source){
        .info = {.rows = spec->samples > 0 ? spec->samples : usual,
                 .channels = CHANNELS,
                 .height = CIFAR_SIDE,
                 .width = CIFAR_SIDE,
                 .dtype = MS_U8,
                 .classes = MS_ARRAY_SIZE(classes)},
        .read = shapes_read,
        .identify = shapes_identify,
        .close = shapes_close,
    };
    *ret = &set->base;
    return MS_OK;
}
