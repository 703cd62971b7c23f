/* test_kernel_loss.c - losses and their gradients against the reference in double */
#include "libworker/kernel/kernel.h"
#include "libworker/kernel/ref.h"
#include "proto/rng.h"
#include "tests/test.h"

#include <math.h>

enum { N = 37, K = 11 };

static float a[N * K], b[N * K], grad[N * K];
static double da[N * K], db[N * K], want[N * K];
static int32_t labels[N];

static void setup(void)
{
    for (uint64_t i = 0; i < (uint64_t)N * K; i++) {
        a[i] = (float)(2 * ms_rng_unit(1, i) - 1) * 9;
        b[i] = (float)(2 * ms_rng_unit(2, i) - 1);
        da[i] = (double)a[i];
        db[i] = (double)b[i];
    }
    for (uint64_t i = 0; i < N; i++) {
        labels[i] = (int32_t)ms_rng_below(3, i, K);
    }
}

/* Of labels that count alike. */
static double ce(const float *logits, const int32_t *of, int64_t n, int64_t k, double smoothing,
                 float *dlogits, int threads)
{
    const struct kernel_labels alike = {.labels = of, .smoothing = smoothing};
    double weight = 0;
    const double loss = kernel_softmax_ce(logits, &alike, n, k, dlogits, threads, &weight);
    ck_assert_double_eq(weight, 1);
    return loss;
}

static void ck_grad(void)
{
    for (int i = 0; i < N * K; i++) {
        ck_assert_msg(fabs((double)grad[i] - want[i]) < 1e-7 * fabs(want[i]) + 1e-12,
                      "[%d] %.9g, want %.9g", i, (double)grad[i], want[i]);
    }
}

START_TEST(cross_entropy_agrees_with_the_reference)
{
    double loss = ref_softmax_ce(da, labels, N, K, 0, want);

    ck_assert_double_eq_tol(ce(a, labels, N, K, 0, grad, 1), loss, 1e-13);
    ck_grad();
    ck_assert_double_eq_tol(ce(a, labels, N, K, 0, NULL, 1), loss, 1e-13);
}
END_TEST

START_TEST(cross_entropy_agrees_beyond_the_exponentials_that_are_kept)
{
    ck_assert_int_gt(N * K, 256); /* one row of so many classes */
    double loss = ref_softmax_ce(da, labels, 1, N * K, 0, want);

    ck_assert_double_eq_tol(ce(a, labels, 1, N * K, 0, grad, 1), loss, 1e-13);
    ck_grad();
}
END_TEST

/* Short rows and one that is computed in pieces. */
START_TEST(smoothed_labels_agree_with_the_reference)
{
    for (int as_one = 0; as_one < 2; as_one++) {
        const int n = as_one ? 1 : N;
        const int k = as_one ? N * K : K;
        const double plain = ce(a, labels, n, k, 0, NULL, 1);
        const double loss = ref_softmax_ce(da, labels, n, k, 0.1, want);

        ck_assert_double_eq_tol(ce(a, labels, n, k, 0.1, grad, 1), loss, 1e-13);
        ck_grad();
        ck_assert_double_eq_tol(ce(a, labels, n, k, 0.1, NULL, 3), loss, 1e-13);
        ck_assert_double_ne(loss, plain);
    }
}
END_TEST

/* torch.nn.functional.cross_entropy of these logits, in double, and its gradient. */
enum { TORCH_ROWS = 5, TORCH_CLASSES = 4 };
static const float torch_logits[TORCH_ROWS * TORCH_CLASSES] = {
    0.5F, -1.25F, 2,     0,     1.5F,  0.25F, -0.75F, 3,     -2, 0.125F,
    1,    0.5F,   0.75F, 0.75F, -1.5F, 0.25F, 2.5F,   -0.5F, 0,  1};
static const double torch_weights[TORCH_CLASSES] = {0.5, 2, 1, 0.25};
static const int32_t torch_labels[TORCH_ROWS] = {2, 3, -100, 1, 0};
static const int32_t torch_within[TORCH_ROWS] = {2, 3, 2, 1,
                                                 0}; /* without one beyond the classes */
static const int32_t torch_first[TORCH_ROWS] = {2, 3, 0, 1, 0};
static const int32_t torch_second[TORCH_ROWS] = {0, 3, 1, 2, 1};
static const float torch_shares[TORCH_ROWS] = {0.75F, 0.5F, 1, 0.25F, 0.125F};
static const float torch_soft[TORCH_ROWS * TORCH_CLASSES] = {
    0.25F,  0,      0.75F, 0, 0,    0,    0,      1,      0.5F, 0.25F,
    0.125F, 0.125F, 0,     0, 0.5F, 0.5F, 0.125F, 0.875F, 0,    0};
static const struct {
    struct kernel_labels labels;
    double loss, gradient[TORCH_ROWS * TORCH_CLASSES];
} torch_says[] = {
    {{.labels = torch_labels, .weights = torch_weights, .has_ignored = 1, .ignored = -100},
     0.67982342205857982,
     {0.042584946675228864,
      0.007400154115381443,
      -0.075814176591364177,
      0.02582907580075388,
      0.011350235813950282,
      0.0032518970061910799,
      0.0011963060533846607,
      -0.015798438873526017,
      0,
      0,
      0,
      0,
      0.19666191829882504,
      -0.33667141503450831,
      0.020728013689544876,
      0.11928148304613838,
      -0.034932511059601178,
      0.0048990884659963329,
      0.0080772313609298145,
      0.021956191232675039}},
    {{.labels = torch_labels, .has_ignored = 1, .ignored = -100},
     0.47660719601289248,
     {0.039923387508027063,
      0.0069376444831701026,
      -0.071075790554403911,
      0.024214758563206762,
      0.042563384302313559,
      0.01219461377321655,
      0.004486147700192478,
      -0.059244145775722568,
      0,
      0,
      0,
      0,
      0.092185274202574233,
      -0.15781472579742578,
      0.0097162564169741613,
      0.055913195177877364,
      -0.065498458236752211,
      0.009185790873743124,
      0.015144808801743403,
      0.041167858561265695}},
    {{.labels = torch_labels,
      .weights = torch_weights,
      .has_ignored = 1,
      .ignored = -100,
      .smoothing = 0.1},
     0.85283513278734446,
     {0.038985457425175354,
      -0.0059794301811730254,
      -0.057007004654334809,
      0.024000977410332504,
      0.011138217329453278,
      -0.0091871646504397067,
      -0.0051413764486012243,
      0.0031903237695876632,
      0,
      0,
      0,
      0,
      0.18288092055586666,
      -0.30711907944413336,
      0.012960171295621143,
      0.11127798759264564,
      -0.016322439110649626,
      -0.0080055746265623225,
      0.0021173224383445061,
      0.022210691298867435}},
    {{.labels = torch_within,
      .weights = torch_weights,
      .has_ignored = 1,
      .ignored = 3,
      .smoothing = 0.1},
     0.81573828873188359,
     {0.032487881187646131,
      -0.0049828584843108533,
      -0.047505837211945685,
      0.02000081450861042,
      0,
      0,
      0,
      0,
      0.0025254981569088138,
      0.033292674641272037,
      -0.099036410955555418,
      0.063218238157374609,
      0.15240076712988884,
      -0.25593256620344451,
      0.010800142746350948,
      0.092731656327204676,
      -0.013602032592208022,
      -0.0066713121888019346,
      0.0017644353652870894,
      0.018508909415722863}},
    {{.labels = torch_first, .others = torch_second, .shares = torch_shares},
     2.0646024645494343,
     {-0.018061289993578349, 0.0055501155865360823, -0.0068606324435231437, 0.019371806850565412,
      0.034050707441850847,  0.0097556910185732405, 0.0035889181601539825,  -0.047395316620578054,
      -0.19519703311575556,  0.040214749360648887,  0.096470168694339761,   0.058512115060766937,
      0.073748219362059386,  0.023748219362059387,  -0.14222699486642068,   0.044730556142301897,
      0.12260123341059824,   -0.16765136730100552,  0.012115847041394723,   0.032934286849012555}},
    {{.labels = torch_first, .others = torch_second, .shares = torch_shares, .smoothing = 0.1},
     2.0552274645494348,
     {-0.018061289993578349, 0.00055011558653608142, 0.0031393675564768656,  0.014371806850565409,
      0.029050707441850853,  0.0047556910185732404,  -0.0014110818398460178, -0.032395316620578048,
      -0.18019703311575558,  0.035214749360648889,   0.091470168694339771,   0.053512115060766946,
      0.068748219362059396,  0.023748219362059387,   -0.13222699486642067,   0.039730556142301893,
      0.12010123341059824,   -0.15515136730100551,   0.0071158470413947225,  0.027934286849012557}},
    {{.soft = torch_soft},
     1.7583524645494346,
     {-0.018061289993578349, 0.0055501155865360823,  -0.0068606324435231437, 0.019371806850565412,
      0.034050707441850847,  0.0097556910185732405,  0.0035889181601539825,  -0.047395316620578054,
      -0.095197033115755544, -0.0097852506393511177, 0.071470168694339753,   0.033512115060766935,
      0.073748219362059386,  0.073748219362059386,   -0.092226994866420678,  -0.055269443857698108,
      0.12260123341059824,   -0.16765136730100552,   0.012115847041394723,   0.032934286849012555}},
    {{.soft = torch_soft, .weights = torch_weights, .smoothing = 0.1},
     2.0154922036280141,
     {0.0031459881931590805, -0.0051089606393650792, -0.013858432340854758,  0.015821404787060768,
      0.008353662997089957,  -0.0068903734878297818, -0.0038560323364509189, 0.0023927428271907397,
      -0.043132301989640201, -0.063429712300159924,  0.060227559656415214,   0.046334454633384932,
      0.045897268956351475,  0.038397268956351475,   -0.089898965381088575,  0.0056044274683856136,
      0.24086212763328194,   -0.31232360859423453,   0.015899836146405895,   0.055561644814546653}},
};

/* Means are what the kernel returns by the weight that it returns. */
START_TEST(labels_with_weights_have_the_numbers_of_torch)
{
    for (size_t i = 0; i < MS_ARRAY_SIZE(torch_says); i++) {
        double weight = 0;
        const double loss = kernel_softmax_ce(torch_logits, &torch_says[i].labels, TORCH_ROWS,
                                              TORCH_CLASSES, grad, 1, &weight);

        ck_assert_double_eq_tol(loss / weight, torch_says[i].loss, 1e-13);
        for (int j = 0; j < TORCH_ROWS * TORCH_CLASSES; j++) {
            ck_assert_msg(fabs((double)grad[j] / weight - torch_says[i].gradient[j]) < 3e-8,
                          "case %zu [%d] %.9g, want %.9g", i, j, (double)grad[j] / weight,
                          torch_says[i].gradient[j]);
        }
    }
}
END_TEST

static double class_weights[N * K], parts[N * K];

/* What each class counts in each row, written out; the mean weight of rows. */
static double write_parts(const struct kernel_labels *of, int64_t n, int64_t k)
{
    double weight = 0;
    memset(parts, 0, sizeof(parts));
    for (int64_t i = 0; i < n; i++) {
        for (int which = 0; which < 2; which++) {
            const int32_t label = (which == 0 ? of->labels : of->others)[i];
            const double share = which == 0 ? (double)of->shares[i] : 1 - (double)of->shares[i];
            if (of->has_ignored && label == of->ignored) {
                continue;
            }
            weight += share * of->weights[label];
            for (int64_t j = 0; j < k; j++) {
                parts[i * k + j] +=
                    of->weights[j] * share *
                    (of->smoothing / (double)k + (j == label ? 1 - of->smoothing : 0));
            }
        }
    }
    return weight / (double)n;
}

/* Rows of few classes, and one that is computed in pieces; by one thread and by three. */
START_TEST(two_labels_with_weights_agree_with_their_targets_written_out)
{
    int32_t others[N];
    float shares[N];
    for (uint64_t i = 0; i < (uint64_t)N * K; i++) {
        class_weights[i] = 3 * ms_rng_unit(5, i);
    }
    for (uint64_t i = 0; i < N; i++) {
        others[i] = (int32_t)ms_rng_below(6, i, K);
        shares[i] = (float)ms_rng_unit(7, i);
    }
    const struct kernel_labels of = {.labels = labels,
                                     .others = others,
                                     .shares = shares,
                                     .weights = class_weights,
                                     .has_ignored = 1,
                                     .ignored = others[0],
                                     .smoothing = 0.2};
    for (int as_one = 0; as_one < 2; as_one++) {
        const int n = as_one ? 1 : N;
        const int k = as_one ? N * K : K;
        const double want_weight = write_parts(&of, n, k);
        const double loss = ref_soft_ce(da, parts, n, k, want);
        double weight = 0;
        float one[N * K];

        ck_assert_double_eq_tol(kernel_softmax_ce(a, &of, n, k, grad, 3, &weight), loss, 1e-12);
        ck_assert_double_eq_tol(weight, want_weight, 1e-13);
        for (int i = 0; i < n * k; i++) {
            ck_assert_double_eq_tol((double)grad[i], want[i], 1e-7);
        }
        (void)kernel_softmax_ce(a, &of, n, k, one, 1, &weight);
        ck_assert_mem_eq(one, grad, (size_t)(n * k) * sizeof(*one));
    }
}
END_TEST

START_TEST(rows_that_do_not_count_have_neither_loss_nor_gradient)
{
    const int32_t out[] = {-100, -100};
    const float logits[] = {INFINITY, 3, -INFINITY, NAN};
    const struct kernel_labels of = {.labels = out, .has_ignored = 1, .ignored = -100};
    double weight = -1;

    const float nothing[] = {0, 0, 0, 0};
    const struct kernel_labels soft = {.soft = nothing, .smoothing = 0.1};

    grad[3] = 1;
    ck_assert_double_eq(kernel_softmax_ce(logits, &soft, 2, 2, grad, 1, &weight), 0);
    ck_assert_double_eq(weight, 1);
    ck_assert_float_eq(grad[3], 0);
    ck_assert_double_eq(kernel_softmax_ce(logits, &of, 2, 2, grad, 1, &weight), 0);
    ck_assert_double_eq(weight, 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_float_eq(grad[i], 0);
    }
}
END_TEST

START_TEST(cross_entropy_survives_huge_logits_and_one_class)
{
    const float huge[] = {3e38F, -3e38F, 0};
    const int32_t second[] = {1}, first[] = {0};

    double loss = ce(huge, second, 1, 3, 0, grad, 1);

    ck_assert_double_eq_tol(loss, 6e38, 1e32);
    ck_assert_float_eq(grad[0], 1);
    ck_assert_float_eq(grad[1], -1);
    ck_assert_float_eq(grad[2], 0);
    ck_assert_double_eq(ce(huge, first, 1, 1, 0, grad, 1), 0);
    ck_assert_float_eq(grad[0], 0);
}
END_TEST

START_TEST(a_nan_in_the_logits_shows_in_the_loss)
{
    a[5] = NAN;
    ck_assert(isnan(ce(a, labels, N, K, 0, grad, 1)));
    ck_assert(isnan(kernel_mse(a, b, N, K, grad)));
    ck_assert(isnan(kernel_l1(a, b, N, K, grad)) && isnan(grad[5]));
    ck_assert(isnan(kernel_huber(a, b, N, K, 1, grad)) && isnan(grad[5]));
    ck_assert(isnan(kernel_bce(a, b, N, K, grad)) && isnan(grad[5]));
}
END_TEST

START_TEST(mean_squared_error_agrees_with_the_reference)
{
    double loss = ref_mse(da, db, N, K, want);

    ck_assert_double_eq_tol(kernel_mse(a, b, N, K, grad), loss, 1e-11);
    ck_grad();
    ck_assert_double_eq_tol(kernel_mse(a, b, N, K, NULL), loss, 1e-11);
}
END_TEST

START_TEST(losses_of_targets_agree_with_the_reference)
{
    a[7] = b[7]; /* a kink */
    da[7] = db[7];
    double loss = ref_l1(da, db, N, K, want);
    ck_assert_double_eq(want[7], 0);
    ck_assert_double_eq_tol(kernel_l1(a, b, N, K, grad), loss, 1e-12);
    ck_grad();
    ck_assert_double_eq_tol(kernel_l1(a, b, N, K, NULL), loss, 1e-12);
    for (int i = 0; i < 3; i++) {
        const double delta = i == 0 ? 0.1 : i == 1 ? 1 : 30;
        loss = ref_huber(da, db, N, K, delta, want);
        ck_assert_double_eq_tol(kernel_huber(a, b, N, K, delta, grad), loss, 1e-11);
        ck_grad();
        ck_assert_double_eq_tol(kernel_huber(a, b, N, K, delta, NULL), loss, 1e-11);
    }
    loss = ref_bce(da, db, N, K, want);
    ck_assert_double_eq_tol(kernel_bce(a, b, N, K, grad), loss, 1e-12);
    ck_grad();
    ck_assert_double_eq_tol(kernel_bce(a, b, N, K, NULL), loss, 1e-12);
}
END_TEST

/* torch 2.15, float64: torch.nn.L1Loss(), HuberLoss(delta=0.5), HuberLoss(delta=2.0),
 * BCEWithLogitsLoss() of y and t, and y.grad after backward(). */
START_TEST(losses_of_targets_are_those_of_torch)
{
    enum { L1, HUBER_HALF, HUBER_TWO, BCE, LOSSES };
    static const float y[] = {2.5F, -1.25F, 0, 40, -60, 0.75F};
    static const float t[] = {1, 0, 1, 0.25F, 0, 1};
    static const struct {
        double loss, grad[6];
    } torch[LOSSES] = {
        {17.291666666666668, {1 / 6.0, -1 / 6.0, -1 / 6.0, 1 / 6.0, -1 / 6.0, -1 / 6.0}},
        {8.526041666666666,
         {0.08333333333333333, -0.08333333333333333, -0.08333333333333333, 0.08333333333333333,
          -0.08333333333333333, -0.041666666666666664}},
        {32.989583333333336,
         {0.25, -0.20833333333333331, -0.16666666666666666, 0.3333333333333333, -0.3333333333333333,
          -0.041666666666666664}},
        {5.235139500385461,
         {-0.012643030003540575, 0.03711668980421814, -0.08333333333333333, 0.125,
          1.45941846044942e-27, -0.05347021680410117}}};
    for (int i = 0; i < LOSSES; i++) {
        const double loss = i == L1           ? kernel_l1(y, t, 2, 3, grad)
                            : i == HUBER_HALF ? kernel_huber(y, t, 2, 3, 0.5, grad)
                            : i == HUBER_TWO  ? kernel_huber(y, t, 2, 3, 2, grad)
                                              : kernel_bce(y, t, 2, 3, grad);
        ck_assert_double_eq_tol(loss, torch[i].loss, 1e-14 * torch[i].loss);
        for (int j = 0; j < 6; j++) {
            ck_assert_msg(fabs((double)grad[j] - torch[i].grad[j]) <= 1e-7 * fabs(torch[i].grad[j]),
                          "loss %d, [%d]: %.9g, want %.17g", i, j, (double)grad[j],
                          torch[i].grad[j]);
        }
    }
}
END_TEST

START_TEST(huge_logits_have_a_finite_entropy)
{
    static const float y[] = {3e38F, -3e38F, INFINITY};
    static const float t[] = {0, 1, 1};
    ck_assert_double_eq_tol(kernel_bce(y, t, 1, 2, grad), 3e38, 1e32);
    ck_assert_float_eq(grad[0], 0.5F);
    ck_assert_float_eq(grad[1], -0.5F);
    ck_assert(isnan(kernel_bce(y + 2, t + 2, 1, 1, grad))); /* inf - inf: it shows */
}
END_TEST

START_TEST(sides_of_all_values_of_a_row_count)
{
    static const float logits[] = {1, -1, 0, 2, -0.5F, 3};
    static const float targets[] = {1, 0, 0.5F, 0.9F, 1, 1};
    ck_assert_int_eq(kernel_count_sides(logits, targets, 3, 2), 2);
    ck_assert_int_eq(kernel_count_sides(logits, targets, 2, 3), 1);
    ck_assert_int_eq(kernel_count_sides(logits, targets, 6, 1), 5);
}
END_TEST

static void ck_count(const float *rows, const struct kernel_labels *of, int64_t n,
                     int64_t want_correct, int64_t want_counted)
{
    int64_t counted = -1;
    ck_assert_int_eq(kernel_count_correct(rows, of, n, 3, &counted), want_correct);
    ck_assert_int_eq(counted, want_counted);
}

START_TEST(correct_answers_are_first_maxima)
{
    const float rows[] = {1, 3, 3, 5, 2, 1, 0, 0, 0, -1, -2, -0.5F};
    const int32_t right[] = {1, 0, 0, 2}, wrong[] = {2, 1, 1, 0};
    const int32_t none[] = {-100, -100, -100, -100};
    const float soft[] = {0.25F, 0.5F, 0.25F, 1, 0, 0, 0.5F, 0.5F, 0, 0.5F, 0.3F, 0.2F};

    ck_count(rows, &(struct kernel_labels){.labels = right}, 4, 4, 4);
    ck_count(rows, &(struct kernel_labels){.labels = wrong}, 4, 0, 4);
    ck_count(rows, &(struct kernel_labels){.soft = soft}, 4, 3, 4);
    ck_count(rows, &(struct kernel_labels){.labels = right}, 0, 0, 0);
    ck_count(rows, &(struct kernel_labels){.labels = right, .has_ignored = 1, .ignored = 0}, 4, 2,
             2);
    ck_count(rows, &(struct kernel_labels){.labels = none, .has_ignored = 1, .ignored = -100}, 4, 0,
             0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_loss");
    TCase *tc = tcase_create("loss");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, cross_entropy_agrees_with_the_reference);
    tcase_add_test(tc, cross_entropy_agrees_beyond_the_exponentials_that_are_kept);
    tcase_add_test(tc, smoothed_labels_agree_with_the_reference);
    tcase_add_test(tc, labels_with_weights_have_the_numbers_of_torch);
    tcase_add_test(tc, two_labels_with_weights_agree_with_their_targets_written_out);
    tcase_add_test(tc, rows_that_do_not_count_have_neither_loss_nor_gradient);
    tcase_add_test(tc, cross_entropy_survives_huge_logits_and_one_class);
    tcase_add_test(tc, a_nan_in_the_logits_shows_in_the_loss);
    tcase_add_test(tc, mean_squared_error_agrees_with_the_reference);
    tcase_add_test(tc, losses_of_targets_agree_with_the_reference);
    tcase_add_test(tc, losses_of_targets_are_those_of_torch);
    tcase_add_test(tc, huge_logits_have_a_finite_entropy);
    tcase_add_test(tc, sides_of_all_values_of_a_row_count);
    tcase_add_test(tc, correct_answers_are_first_maxima);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
