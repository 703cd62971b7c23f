/* test_job_group.c - groups of parameters by name: patterns, which group holds, text, refusals */
#include "libworker/job/job.h"
#include "proto/rng.h"
#include "tests/test.h"

static const char minimal[] = "network: cifar_small\n"
                              "dataset: {kind: shapes}\n"
                              "optimizer:\n"
                              "  kind: momentum\n"
                              "  learning_rate: 0.1\n"
                              "  groups: ";

static int parse(const char *groups, struct job *ret, struct ms_err *err)
{
    char text[8192];
    snprintf(text, sizeof(text), "%s%s\n", minimal, groups);
    return job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, 0, ret, err);
}

static const struct {
    const char *pattern, *name;
    int matches;
} globs[] = {
    {"*", "", 1},
    {"*", "fc.weight", 1},
    {"", "", 1},
    {"", "a", 0},
    {"fc.weight", "fc.weight", 1},
    {"fc.weight", "fc.weights", 0},
    {"fc.weights", "fc.weight", 0},
    {"*.bias", "layer1.a.conv1.bias", 1},
    {"*.bias", "bias", 0},
    {"*.bias", "fc.bias2", 0},
    {"layer?.*", "layer1.a.bn1.gamma", 1},
    {"layer?.*", "layer10.a", 0},
    {"?", "", 0},
    {"*?", "", 0},
    {"*a*b", "xxaxxbxb", 1},
    {"*a*b", "xxbxxa", 0},
    {"**.gamma*", "bn.gamma", 1},
    {"fc.[w]eight", "fc.weight", 0},
    {"*aab", "aaaab", 1}, /* comes back to its star */
};

START_TEST(a_star_is_any_text_and_a_question_mark_one_character)
{
    ck_assert_msg(job_glob(globs[_i].pattern, globs[_i].name) == globs[_i].matches, "%s of %s",
                  globs[_i].pattern, globs[_i].name);
}
END_TEST

/* As one would write it down without a thought for time. */
static int slow_glob(const char *pattern, const char *name)
{
    if (*pattern == '*') {
        return slow_glob(pattern + 1, name) || (*name != '\0' && slow_glob(pattern, name + 1));
    }
    return *name == '\0' ? *pattern == '\0'
                         : (*pattern == '?' || *pattern == *name) && *pattern != '\0' &&
                               slow_glob(pattern + 1, name + 1);
}

START_TEST(patterns_of_all_kinds_match_as_their_definition_says)
{
    int n_matched = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        char pattern[8] = "";
        char name[10] = "";
        const uint64_t n_pattern = ms_rng_below(1, i, 7);
        const uint64_t n_name = ms_rng_below(2, i, 9);
        for (uint64_t k = 0; k < n_pattern; k++) {
            pattern[k] = "ab*?"[ms_rng_below(3, 16 * i + k, 4)];
        }
        for (uint64_t k = 0; k < n_name; k++) {
            name[k] = "ab"[ms_rng_below(4, 16 * i + k, 2)];
        }
        const int is = job_glob(pattern, name);
        n_matched += is;
        ck_assert_msg(is == slow_glob(pattern, name), "%s of %s", pattern, name);
    }
    ck_assert_int_gt(n_matched, 1000);
}
END_TEST

START_TEST(the_first_group_that_matches_holds)
{
    struct job job;
    ck_ms_ok(parse("[{match: fc.bias}, {match: ['*.bias', '*.gamma', '*.beta'], weight_decay: 0},"
                   " {match: conv?.*, frozen: true}, {match: '*', learning_rate: 0.5}]",
                   &job, err));
    ck_assert_int_eq(job.n_groups, 4);
    ck_assert_ptr_eq(job_group_of(&job, "fc.bias"), &job.groups[0]);
    ck_assert_ptr_eq(job_group_of(&job, "bn2.gamma"), &job.groups[1]);
    ck_assert_ptr_eq(job_group_of(&job, "bn2.beta"), &job.groups[1]);
    ck_assert_ptr_eq(job_group_of(&job, "conv3.weight"), &job.groups[2]);
    ck_assert_ptr_eq(job_group_of(&job, "fc.weight"), &job.groups[3]);
    ck_assert(!job.groups[0].has_weight_decay && !job.groups[0].frozen);
    ck_assert(job.groups[1].has_weight_decay && !job.groups[1].has_learning_rate);
    ck_assert(job.groups[2].frozen && !job.groups[1].frozen);
    ck_assert(job.groups[3].has_learning_rate && job.groups[3].learning_rate == 0.5);
    ck_ms_ok(parse("[{match: fc.weight}]", &job, err));
    ck_assert_ptr_null(job_group_of(&job, "conv1.weight"));
    ck_ms_ok(parse("null", &job, err));
    ck_assert_ptr_null(job_group_of(&job, "conv1.weight"));
}
END_TEST

static void check_round_trip(const struct job *job, const char *part)
{
    static struct job again;
    size_t size = 0;
    char *text = job_format(job, &size);
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, part) != NULL, "%s", text);
    ck_ms_ok(job_parse(text, size, "again", NULL, NULL, 0, 0, &again, err));
    ck_assert_mem_eq(&again, job, sizeof(again));
    free(text);
}

START_TEST(a_job_s_text_has_what_was_given_and_no_more)
{
    struct job job;
    char *text = NULL;
    ck_ms_ok(parse("[{match: '*.bias', weight_decay: 0, learning_rate: null, frozen: false},"
                   " {match: [conv1.*], frozen: true}, {match: fc.*, learning_rate: 0.25}]",
                   &job, err));
    check_round_trip(&job, "\"groups\":[{\"match\":[\"*.bias\"],\"weight_decay\":0.0},"
                           "{\"frozen\":true,\"match\":[\"conv1.*\"]},"
                           "{\"learning_rate\":0.25,\"match\":[\"fc.*\"]}],");
    ck_ms_ok(parse("[]", &job, err));
    text = job_format(&job, NULL);
    ck_assert_ptr_null(strstr(text, "groups")); /* older releases and checkpoints know none */
    free(text);
}
END_TEST

static const struct {
    const char *groups, *part;
} refused[] = {
    {"'*.bias'", "job.yaml:6:11: optimizer.groups must be a list: each line begins with \"- \""},
    {"['*.bias']", "job.yaml:6:12: optimizer.groups[0] must hold keys; write it as - {match: "},
    {"[{weight_decay: 0}]", "optimizer.groups[0].match is missing (names of parameters"},
    {"[{match: fc.*}, {match: }]", "optimizer.groups[1].match has no value; give a name of"},
    {"[{match: []}]", "optimizer.groups[0].match has 0 patterns; give 1 to 16"},
    {"[{match: [[a]]}]", "optimizer.groups[0].match: a list is no pattern; give a name of"},
    {"[{match: fc.*, weight_decay: -1}]", "optimizer.groups[0].weight_decay: '-1' is out of range"},
    {"[{match: fc.*, learning_rate: x}]", "optimizer.groups[0].learning_rate: 'x' is no number"},
    {"[{match: fc.*, freeze: true}]",
     "optimizer.groups[0].freeze is no key of a group of parameters; known here: match"},
    {"[{match: fc.*, frozen: true, weight_decay: 0}]",
     "optimizer.groups[0].weight_decay has no meaning with frozen: true"},
    {"[{match: fc.*, frozen: true, learning_rate: 1}]",
     "optimizer.groups[0].learning_rate has no meaning with frozen: true"},
    {"[{match: fc.*}, {match: ['*.gamma', bn1.gama]}]",
     "job.yaml:6:47: optimizer.groups[1].match: 'bn1.gama' matches no parameter of network "
     "cifar_small; nearest: bn1.gamma, bn2.gamma, bn3.gamma"},
    {"[{match: '*.moving_mean'}]", "'*.moving_mean' matches no parameter"},
    {"[{match: 'head.*'}]", "'head.*' matches no parameter of network cifar_small; nearest: "},
    {"[{match: fc.*}, {match: '*', frozen: true}, {match: 'bn?.*'}]\n  schedule: {kind: cosine}\n"
     "  learning_rate: 0",
     "stands twice"},
    {"[{match: '*'}, {match: fc.*, frozen: true}]",
     "job.yaml:6:26: optimizer.groups[1]: every parameter that it matches belongs to a group "
     "before "
     "it (fc.weight to optimizer.groups[0]), and the first that matches holds; put it before that"},
    {"[{match: ['bn*', 'conv*', 'fc*'], frozen: true}]",
     "optimizer.groups: all parameters of network cifar_small are frozen: nothing is left"},
    {"[{match: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]",
     "is longer than any name"},
    {"[{match: \"fc\\n\"}]", "has a control character in it"},
};

START_TEST(what_is_wrong_with_a_group_is_refused_with_its_place)
{
    struct job job;
    ck_ms_fails(parse(refused[_i].groups, &job, err), MS_E_INVALID, refused[_i].part);
}
END_TEST

START_TEST(a_rate_of_its_own_wants_one_that_the_schedule_scales)
{
    struct job job;
    static const char text[] = "network: cifar_small\ndataset: {kind: shapes}\n"
                               "optimizer: {kind: sgd, learning_rate: 0, schedule: {kind: cosine},"
                               " groups: [{match: fc.*, learning_rate: 1}]}\n";
    struct job_override none = {"optimizer.schedule=null"};
    ck_ms_fails(job_parse(text, strlen(text), "job.yaml", NULL, NULL, 0, 0, &job, err),
                MS_E_INVALID,
                "job.yaml:3:77: optimizer.groups[0].learning_rate: the schedule scales it as");
    ck_ms_ok(job_parse(text, strlen(text), "job.yaml", NULL, &none, 1, 0, &job, err));
}
END_TEST

START_TEST(there_may_be_sixty_four)
{
    static struct job job;
    char text[8192] =
        "network: [flatten, repeat: {name: r, times: 70, layers: [dense: {name: d, out: 10}]}]\n"
        "dataset: {kind: shapes}\noptimizer:\n  kind: sgd\n  learning_rate: 0.1\n  groups: [";
    for (int i = 0; i < MS_GROUPS_MAX; i++) { /* a parameter each */
        const size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s{match: r.%d.d.weight}", i > 0 ? ", " : "",
                 i);
    }
    const size_t n = strlen(text);
    snprintf(text + n, sizeof(text) - n, "]\n");
    ck_ms_ok(job_parse(text, n + 2, "job.yaml", "/base", NULL, 0, 0, &job, err));
    ck_assert_int_eq(job.n_groups, 64);
    snprintf(text + n, sizeof(text) - n, ", {match: fc.*}]\n");
    ck_ms_fails(job_parse(text, strlen(text), "job.yaml", "/base", NULL, 0, 0, &job, err),
                MS_E_INVALID, "optimizer.groups has 65 entries; at most 64");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_group");
    TCase *tc = tcase_create("job_group");
    tcase_add_loop_test(tc, a_star_is_any_text_and_a_question_mark_one_character, 0,
                        (int)MS_ARRAY_SIZE(globs));
    tcase_add_test(tc, patterns_of_all_kinds_match_as_their_definition_says);
    tcase_add_test(tc, the_first_group_that_matches_holds);
    tcase_add_test(tc, a_job_s_text_has_what_was_given_and_no_more);
    tcase_add_loop_test(tc, what_is_wrong_with_a_group_is_refused_with_its_place, 0,
                        (int)MS_ARRAY_SIZE(refused));
    tcase_add_test(tc, a_rate_of_its_own_wants_one_that_the_schedule_scales);
    tcase_add_test(tc, there_may_be_sixty_four);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
