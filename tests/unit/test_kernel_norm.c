/* test_kernel_norm.c - layer and group normalisation: PyTorch's numbers, the formulas in every
 * layout, and the same bits in all of them, on any team */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/ref.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

/* A tensor in a layout, with what a call reads and writes. */
struct tensors {
    struct kernel_norm m;
    size_t count, n_affine, n_scratch;
    float *all[8]; /* x, gamma, beta, stats, y, dy, dx, dgamma and dbeta */
};
enum { X, GAMMA, BETA, STATS, Y, DY, DX, D_AFFINE, BUFFERS };

static float *floats(size_t n, uint64_t seed)
{
    float *p = aligned_alloc(64, (n * sizeof(*p) / 64 + 1) * 64);
    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < n; i++) {
        p[i] = (float)(2 * ms_rng_unit(seed, i) - 0.9);
    }
    return p;
}

/* Value (n, c, s) in memory. */
static int64_t place(const struct kernel_layout *l, int64_t n, int64_t c, int64_t s)
{
    return ((n * l->n_blocks + c / l->block) * l->spatial + s) * l->block + c % l->block;
}

struct form { /* of a norm, whatever its layout */
    int64_t n, channels, spatial, groups;
    int is_per_value, has_gamma, has_beta;
};

static struct kernel_layout layout_of(const struct form *f, int64_t block)
{
    return (struct kernel_layout){f->n, (f->channels + block - 1) / block, f->spatial, block,
                                  f->channels};
}

/* x of (n, c, s) goes to its place; padding is zero. */
static void put(const struct kernel_layout *l, const float *logical, float *to)
{
    memset(to, 0, (size_t)(l->n * l->n_blocks * l->block * l->spatial) * sizeof(*to));
    for (int64_t i = 0; i < l->n * l->channels * l->spatial; i++) {
        const int64_t s = i % l->spatial, c = i / l->spatial % l->channels;
        to[place(l, i / l->spatial / l->channels, c, s)] = logical[i];
    }
}

static void take(const struct kernel_layout *l, const float *from, float *logical)
{
    for (int64_t i = 0; i < l->n * l->channels * l->spatial; i++) {
        const int64_t s = i % l->spatial, c = i / l->spatial % l->channels;
        logical[i] = from[place(l, i / l->spatial / l->channels, c, s)];
    }
}

static void tensors_init(struct tensors *t, const struct form *f, int64_t block)
{
    const struct kernel_layout l = layout_of(f, block);
    t->count = (size_t)(l.n * l.n_blocks * l.block * l.spatial);
    t->n_affine = (size_t)(f->channels * (f->is_per_value ? f->spatial : 1));
    for (int i = 0; i < BUFFERS; i++) {
        const size_t size = i == GAMMA || i == BETA ? t->n_affine
                            : i == D_AFFINE         ? 2 * t->n_affine
                            : i == STATS            ? (size_t)(2 * f->n * f->groups)
                                                    : t->count;
        t->all[i] = floats(size, (uint64_t)i);
    }
    t->m = (struct kernel_norm){.layout = l,
                                .groups = f->groups,
                                .is_per_value = f->is_per_value,
                                .epsilon = 1e-5,
                                .x = t->all[X],
                                .gamma = f->has_gamma ? t->all[GAMMA] : NULL,
                                .beta = f->has_beta ? t->all[BETA] : NULL,
                                .stats = t->all[STATS],
                                .y = t->all[Y],
                                .dy = t->all[DY],
                                .dx = t->all[DX],
                                .dgamma = f->has_gamma ? t->all[D_AFFINE] : NULL,
                                .dbeta = f->has_beta ? t->all[D_AFFINE] + t->n_affine : NULL};
}

static void tensors_fini(struct tensors *t)
{
    for (int i = 0; i < BUFFERS; i++) {
        free(t->all[i]);
    }
}

/* With as much scratch as is asked for, and a mark behind it. */
static void run(const struct kernel_norm *norm, int is_backward, int threads)
{
    static const unsigned char mark[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct kernel_norm m = *norm;
    const size_t bytes = kernel_norm_scratch(&m, is_backward, threads);
    char *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64 + sizeof(mark));
    ck_assert_ptr_nonnull(scratch);
    memset(scratch, 0xff, bytes); /* NaN */
    memcpy(scratch + bytes, mark, sizeof(mark));
    m.scratch = scratch;
    if (is_backward) {
        kernel_norm_backward(&m, threads);
    } else {
        kernel_norm_forward(&m, threads);
    }
    ck_assert_mem_eq(scratch + bytes, mark, sizeof(mark));
    free(scratch);
}

/* ---- PyTorch ------------------------------------------------------------------------------------
 */

/* PyTorch 2.15 in float64, with f = torch.nn.functional and
 *   def seq(n, a, m, q): return torch.tensor([a * i % m / q for i in range(n)],
 * dtype=torch.float64) x = (seq(48, 7, 11, 4) - 1.25).reshape(2, 4, 2, 3), dy = (seq(48, 5, 7, 2)
 * - 1.5).reshape(...) gamma = seq(k, 3, 5, 4) + 0.5, beta = seq(k, 2, 5, 2) - 1, k = 24 where each
 * value has its own, else 4 f.group_norm(x, 2, gamma, beta, 1e-3) f.layer_norm(x, (4, 2, 3),
 * gamma.reshape(4, 2, 3), beta.reshape(4, 2, 3), 1e-3) f.layer_norm(x.permute(0, 2, 3, 1), (4,),
 * gamma, beta, 1e-3).permute(0, 3, 1, 2) y.backward(dy) */
enum { TORCH_N = 2, TORCH_C = 4, TORCH_S = 6, TORCH_COUNT = TORCH_N * TORCH_C * TORCH_S };
static const struct torch_norm {
    int64_t groups;
    int is_per_value, of_pixels;
    double y[TORCH_COUNT], dx[TORCH_COUNT], dgamma[24], dbeta[24];
} torch[] = {
    {2,
     0,
     0,
     {-1.68807995,  -0.637194207, -1.23770035,  -0.186814602, -0.787320742, -1.38782688,
      1.65764716,   0.156381807,  -1.34488354,  1.28233082,   -0.21893453,  -1.72019988,
      1.4463857,    0.472453263,  2.17683503,   1.20290259,   0.228970153,  1.93335192,
      -0.581161037, -2.52902591,  0.879737621,  -1.06812726,  -3.01599213,  0.392771402,
      -1.29759047,  -0.161335956, -0.810624248, -1.45991254,  -0.323658029, -0.972946321,
      -1.55558653,  1.28504974,   -0.338170985, -1.96139172,  0.879244562,  -0.743976168,
      2.03211993,   1.13136072,   0.230601508,  1.80693013,   0.906170916,  0.00541170608,
      0.663480646,  -1.13803777,  -2.93955619,  0.213101041,  -1.58841738,  1.56423986},
     {-1.42280538,   0.933087886,  -0.155777061, 0.0983447115, 1.11125125,   0.0223863076,
      -0.173871525,  -2.16349568,  1.10130889,   0.454671448,  -1.53495271,  1.72985186,
      0.800539754,   -0.946092437, -0.567800308, 1.09433104,   -0.652301156, -0.274009027,
      2.84902097,    0.128456344,  -0.467183965, -3.18774859,  0.909213844,  0.313573535,
      -0.591559162,  1.32772058,   0.509255708,  -0.30920916,  -0.662438444, 0.79160571,
      -0.0268591575, -1.35402088,  2.53485437,   0.742457064,  -0.584704659, -2.37710197,
      0.745409228,   -0.183546218, -1.11250166,  1.18873977,   0.259784328,  -0.669171117,
      -2.87172573,   1.60387408,   -0.225840572, -1.97801558,  2.49758423,   0.745409228},
     {3.19923434, -5.49304418, 1.93807674, -4.79119366},
     {0.5, -1.5, 0, 1.5}},
    {1,
     1,
     0,
     {-1.75673309,  0.82464503,    0.563423219,  1.88661974,   0.849261425,   -1.44627849,
      1.60078153,   1.02910512,    -2.30451736,  1.47017062,   -1.13582389,   -1.89183272,
      1.49478702,   -1.37315356,   2.09107982,   -0.825369288, -1.11569622,   1.96046892,
      -0.441789763, -0.703011574,  -0.514914688, -0.339559718, -0.13509963,   0.489574037,
      -1.32985801,  1.89183272,    1.20373583,   -1.95525594,  1.70301157,    -1.01940341,
      -1.60078153,  1.66941773,    -1.02389214,  -1.09107982,  -0.708948813,  -0.82464503,
      2.13509963,   -0.0925283379, -0.470170624, -0.398494213, -0.0485085312, 0.0395310822,
      0.838835461,  0.150738575,   -1.79553991,  0.727627968,  0.505212982,   1.77019926},
     {-1.72158807,  1.8131458,     -0.339754096, -1.15138462,  1.97344368,   -0.179456221,
      -0.214950247, -1.43648635,   1.22266005,   0.411029527,  -0.810506571, 1.53818523,
      0.726554702,  -1.2711179,    -1.15138462,  0.731625277,  -0.489910821, -0.370177547,
      2.75465075,   -0.0191583461, 0.100574927,  -2.51800687,  0.141139529,  0.260872802,
      -0.559973777, 2.18861647,    0.440590843,  -0.841752884, -1.97384513,  0.624493636,
      0.118286408,  -1.01380584,   2.82635133,   0.7678711,    -0.364221149, -2.26747408,
      0.791570772,  -0.0250910562, -1.15220748,  0.820246264,  0.779720936,  -0.347395492,
      -2.87653344,  1.27407833,    0.146961901,  -1.60603955,  1.45798112,   0.791570772},
     {2.92991528,   2.92991528,   0.135823887,  -1.10599451,  -1.28062522,   -0.485085312,
      -0.640312612, -0.950767212, -1.72690371,  -0.795539912, -0.0194034125, -1.28062522,
      1.84332419,   0.291051187,  -1.41644911,  2.15377879,   -0.0194034125, -0.640312612,
      -1.28062522,  -0.950767212, -0.485085312, -0.174630712, -2.50304021,   0.756733087},
     {-2.5, 2.5,  0.5,  -1.5, 0,   1.5,  -0.5, -2.5, 2.5,  0.5,  -1.5, 0,
      1.5,  -0.5, -2.5, 2.5,  0.5, -1.5, 0,    1.5,  -0.5, -2.5, 2.5,  0.5}},
    {1,
     0,
     1,
     {-1.78424625,  -0.33025035,  -1.34319426, -0.33025035, -0.33025035,  -1.34319426, 1.40043972,
      0.558124708,  -1.54437417,  0.558124708, 0.558124708, -1.54437417,  1.39212312,  0.665125175,
      1.9266245,    0.665125175,  0.665125175, 1.9266245,   -0.612035178, -2.50924895, 0.529582782,
      -2.50924895,  -2.50924895,  0.529582782, -1.34319426, -0.33025035,  -0.33025035, -1.34319426,
      -0.33025035,  -0.962654941, -1.54437417, 0.558124708, 0.558124708,  -1.54437417, 0.558124708,
      -0.653538538, 1.9266245,    0.665125175, 0.665125175, 1.9266245,    0.665125175, 0.159736165,
      0.529582782,  -2.50924895,  -2.50924895, 0.529582782, -2.50924895,  1.85273874},
     {-1.03348164,    1.94035126,   -0.478392,      -1.20170392,  1.82765814,   -0.746479855,
      -1.28910205,    -2.7019645,   0.374393739,    0.492431561,  -2.36744573,  0.52331304,
      -0.00406000645, -0.423533869, 0.106078226,    2.6330668,    -0.758052634, -0.0428410746,
      2.3266437,      1.18514711,   -0.00207996522, -1.92379445,  1.29784023,   0.26600789,
      -0.0517404283,  1.82765814,   -1.06871535,    -0.319828283, 0.772829141,  0.837947998,
      0.455978046,    -2.36744573,  2.43438509,     0.604897347,  -0.784223075, -1.5336091,
      1.46590981,     -0.758052634, -1.6530105,     1.31699051,   -0.778526108, 0.725621153,
      -1.87014743,    1.29784023,   0.287340759,    -1.60205958,  0.789920041,  -0.0299600476},
     {5.79281598, -4.59867708, 0.821591305, -4.73570275},
     {0.5, -1.5, 0, 1.5}},
};

static double seq(int64_t i, int64_t a, int64_t m, double q)
{
    return (double)(a * i % m) / q;
}

/* Pixels stand one behind the other as rows: (n, s, c). */
static int64_t torch_place(const struct torch_norm *t, int64_t i)
{
    const int64_t s = i % TORCH_S, c = i / TORCH_S % TORCH_C, n = i / (TORCH_S * TORCH_C);
    return t->of_pixels ? (n * TORCH_S + s) * TORCH_C + c : i;
}

static void ck_near(double got, double want, double tolerance)
{
    ck_assert_double_eq_tol(got, want, tolerance * (1 + fabs(want)));
}

START_TEST(formulas_and_kernels_are_those_of_torch)
{
    const struct torch_norm *t = &torch[_i];
    const struct form form = {t->of_pixels ? TORCH_N * TORCH_S : TORCH_N,
                              TORCH_C,
                              t->of_pixels ? 1 : TORCH_S,
                              t->groups,
                              t->is_per_value,
                              1,
                              1};
    const struct ref_norm ref = {form.n,      form.channels,     form.spatial,
                                 form.groups, form.is_per_value, 1e-3};
    double x[TORCH_COUNT], dy[TORCH_COUNT], y[TORCH_COUNT], dx[TORCH_COUNT];
    double affine[2][24], d_affine[2][24];
    struct tensors k;
    tensors_init(&k, &form, 1);
    k.m.epsilon = 1e-3;
    for (int64_t i = 0; i < TORCH_COUNT; i++) {
        const int64_t at = torch_place(t, i);
        x[at] = seq(i, 7, 11, 4) - 1.25;
        dy[at] = seq(i, 5, 7, 2) - 1.5;
        k.all[X][at] = (float)x[at];
        k.all[DY][at] = (float)dy[at];
    }
    for (size_t i = 0; i < k.n_affine; i++) {
        affine[0][i] = seq((int64_t)i, 3, 5, 4) + 0.5;
        affine[1][i] = seq((int64_t)i, 2, 5, 2) - 1;
        k.all[GAMMA][i] = (float)affine[0][i];
        k.all[BETA][i] = (float)affine[1][i];
    }

    ref_norm(&ref, x, affine[0], affine[1], y);
    ref_norm_bwd(&ref, x, dy, affine[0], dx, d_affine[0], d_affine[1]);
    run(&k.m, 0, 1);
    run(&k.m, 1, 1);

    for (int64_t i = 0; i < TORCH_COUNT; i++) {
        const int64_t at = torch_place(t, i);
        ck_near(y[at], t->y[i], 1e-8);
        ck_near(dx[at], t->dx[i], 1e-8);
        ck_near((double)k.all[Y][at], t->y[i], 1e-6);
        ck_near((double)k.all[DX][at], t->dx[i], 2e-6);
    }
    for (size_t i = 0; i < k.n_affine; i++) {
        ck_near(d_affine[0][i], t->dgamma[i], 1e-8);
        ck_near(d_affine[1][i], t->dbeta[i], 1e-8);
        ck_near((double)k.all[D_AFFINE][i], t->dgamma[i], 1e-6);
        ck_near((double)k.all[D_AFFINE][k.n_affine + i], t->dbeta[i], 1e-6);
    }
    tensors_fini(&k);
}
END_TEST

/* ---- layouts and teams --------------------------------------------------------------------------
 */

static const struct form forms[] = {
    {3, 24, 20, 1, 0, 1, 1}, /* groups that are not cut where blocks are */
    {3, 24, 20, 3, 0, 1, 1},   {5, 24, 7, 24, 0, 0, 0}, /* a channel each, as instance norm has */
    {2, 20, 49, 5, 0, 1, 0},                            /* padding; no beta */
    {1, 150, 130, 2, 0, 1, 1},                          /* slices of one sample are shared */
    {3, 24, 20, 1, 1, 1, 1}, /* each value has its gamma: several parts */
    {2, 20, 49, 1, 1, 1, 0},   {7, 70, 300, 1, 1, 1, 1}, /* ... one part, several ranges */
    {40, 1030, 1, 1, 1, 1, 1},                           /* rows; several parts and ranges */
    {40, 60, 1, 4, 0, 1, 1},   {5, 37, 1, 1, 1, 0, 0},   {6, 16500, 1, 1, 1, 1, 1},
};
/* nchw, nChw8c, nChw16c, nhwc */
static const int64_t blocks[] = {1, 8, 16, 0};
enum { FORMS = sizeof(forms) / sizeof(forms[0]), BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };

struct results { /* logical */
    float *y, *dx, *d_affine;
    size_t count, n_affine;
};

static void results_fini(struct results *r)
{
    free(r->y);
    free(r->dx);
    free(r->d_affine);
}

static void check_padding(const struct kernel_layout *l, const float *y)
{
    for (int64_t c = l->channels; c < l->n_blocks * l->block; c++) {
        for (int64_t i = 0; i < l->n * l->spatial; i++) {
            ck_assert_float_eq(y[place(l, i / l->spatial, c, i % l->spatial)], 0);
        }
    }
}

/* Forward and backward, in place or not. */
static struct results results_of(const struct form *f, int64_t block, int threads, int in_place,
                                 const float *x, const float *dy)
{
    struct tensors t;
    tensors_init(&t, f, block > 0 ? block : f->channels);
    struct results r = {.count = (size_t)(f->n * f->channels * f->spatial), .n_affine = t.n_affine};
    r.y = floats(r.count, 1);
    r.dx = floats(r.count, 1);
    r.d_affine = floats(2 * r.n_affine, 7);
    put(&t.m.layout, x, t.all[X]);
    put(&t.m.layout, dy, t.all[DY]);
    t.m.dx = in_place ? t.all[DY] : t.m.dx;
    t.m.y = in_place ? t.all[X] : t.m.y;

    run(&t.m, 0, threads);
    take(&t.m.layout, t.m.y, r.y);
    check_padding(&t.m.layout, t.m.y);
    put(&t.m.layout, x, t.all[X]);
    run(&t.m, 1, threads);
    take(&t.m.layout, t.m.dx, r.dx);
    check_padding(&t.m.layout, t.m.dx);
    memcpy(r.d_affine, t.all[D_AFFINE], 2 * r.n_affine * sizeof(float));
    tensors_fini(&t);
    return r;
}

static double *doubles(const float *from, size_t n)
{
    double *to = calloc(n + 1, sizeof(*to));
    ck_assert_ptr_nonnull(to);
    for (size_t i = 0; i < n && from != NULL; i++) {
        to[i] = (double)from[i];
    }
    return to;
}

/* Largest distance, in parts of the largest value. */
static double off_by(const float *got, const double *want, size_t n)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - want[i]);
        worst = d <= worst ? worst : d;
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    }
    return worst / largest;
}

START_TEST(every_layout_and_team_has_the_bits_of_the_first_and_those_are_right)
{
    const struct form *f = &forms[_i];
    const size_t count = (size_t)(f->n * f->channels * f->spatial);
    float *x = floats(count, 11), *dy = floats(count, 12);
    struct results first = results_of(f, 1, 1, 0, x, dy);

    for (int b = 0; b < BLOCKS; b++) {
        for (int threads = 1; threads <= 4; threads++) {
            struct results r = results_of(f, blocks[b], threads, threads % 2, x, dy);
            ck_assert_mem_eq(r.y, first.y, count * sizeof(float));
            ck_assert_mem_eq(r.dx, first.dx, count * sizeof(float));
            ck_assert_mem_eq(r.d_affine, first.d_affine, 2 * r.n_affine * sizeof(float));
            results_fini(&r);
        }
    }

    struct tensors t; /* for its gamma and beta */
    tensors_init(&t, f, 1);
    const struct ref_norm ref = {f->n, f->channels, f->spatial, f->groups, f->is_per_value, 1e-5};
    double *gamma = doubles(t.m.gamma, t.n_affine), *beta = doubles(t.m.beta, t.n_affine);
    double *d_affine = doubles(NULL, 2 * t.n_affine);
    double *dx_ = doubles(x, count), *ddy = doubles(dy, count);
    double *want = doubles(NULL, count);
    ref_norm(&ref, dx_, f->has_gamma ? gamma : NULL, f->has_beta ? beta : NULL, want);
    ck_assert_double_le(off_by(first.y, want, count), 1e-6);
    ref_norm_bwd(&ref, dx_, ddy, f->has_gamma ? gamma : NULL, want, d_affine,
                 d_affine + t.n_affine);
    ck_assert_double_le(off_by(first.dx, want, count), 2e-6);
    if (f->has_gamma) {
        ck_assert_double_le(off_by(first.d_affine, d_affine, t.n_affine), 2e-6);
    }
    if (f->has_beta) {
        ck_assert_double_le(off_by(first.d_affine + t.n_affine, d_affine + t.n_affine, t.n_affine),
                            2e-6);
    }
    free(gamma);
    free(beta);
    free(d_affine);
    free(dx_);
    free(ddy);
    free(want);
    free(x);
    free(dy);
    tensors_fini(&t);
    results_fini(&first);
}
END_TEST

/* A variance that is all rounding when squares are summed up, where floats still resolve it. */
START_TEST(values_far_from_zero_keep_their_variance)
{
    const struct form f = {2, 16, 64, 2, 0, 0, 0};
    for (int b = 0; b < BLOCKS; b++) {
        struct tensors t;
        tensors_init(&t, &f, blocks[b] > 0 ? blocks[b] : f.channels);
        for (size_t i = 0; i < t.count; i++) {
            t.all[X][i] = 1e6F + (float)(i % 2) - 0.5F;
        }
        t.m.epsilon = 1e-12;

        run(&t.m, 0, 2);

        for (int64_t i = 0; i < f.n * f.groups; i++) {
            ck_assert_float_eq_tol(t.all[STATS][2 * i], 1e6F, 0.1F);
            ck_assert_float_eq_tol(t.all[STATS][2 * i + 1], 2.0F, 1e-5F);
        }
        tensors_fini(&t);
    }
}
END_TEST

START_TEST(a_nan_stays_in_its_group)
{
    const struct form f = {2, 16, 9, 2, 0, 1, 1};
    struct tensors t;
    tensors_init(&t, &f, 16);
    t.all[X][place(&t.m.layout, 1, 3, 4)] = NAN;

    run(&t.m, 0, 1);

    for (int64_t c = 0; c < 16; c++) {
        ck_assert(isfinite(t.all[Y][place(&t.m.layout, 0, c, 4)]));
        ck_assert_int_eq(isnan(t.all[Y][place(&t.m.layout, 1, c, 0)]), c < 8);
    }
    tensors_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_norm");
    TCase *tc = tcase_create("norm");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, formulas_and_kernels_are_those_of_torch, 0, (int)MS_ARRAY_SIZE(torch));
    tcase_add_loop_test(tc, every_layout_and_team_has_the_bits_of_the_first_and_those_are_right, 0,
                        FORMS);
    tcase_add_test(tc, values_far_from_zero_keep_their_variance);
    tcase_add_test(tc, a_nan_stays_in_its_group);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
