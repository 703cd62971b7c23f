/* test_cli_submit_resume.c - is a job one that may go on, and does it get a node that has the
 * checkpoint? */
#include "cli/resume.h"
#include "cli/submit_resume.h"
#include "proto/macros.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *golden(const char *name)
{
    static char path[1100];
    const char *root = getenv("MSCHED_SOURCE_ROOT");
    snprintf(path, sizeof(path), "%s/tests/golden/checkpoint/%s", root != NULL ? root : ".", name);
    return path;
}

/* By a plan with one thread, and the job that it is of. */
static void read_golden(struct checkpoint_manifest *ret, const struct job_override *override,
                        struct job *ret_job)
{
    ck_ms_ok(checkpoint_read(golden("linear-13.json"), CHECKPOINT_NAMED, ret, err));
    ck_ms_ok(job_parse(ret->job, strlen(ret->job), "m.json", NULL, override, override != NULL, 0,
                       ret_job, err));
    ret_job->epochs = 2;
}

START_TEST(job_with_other_threads_than_the_plan_is_refused_by_key_with_both)
{
    static struct job job;
    struct checkpoint_manifest m;
    const struct job_override threads = {.key_value = "threads=2"};
    read_golden(&m, &threads, &job);

    ck_ms_fails(resume_check(&job, &m, "checkpoint linear-13", err), MS_E_REFUSED,
                "checkpoint linear-13 is of a plan with threads: 1, and this job has threads: 2");
    job.threads = 1;
    ck_ms_ok(resume_check(&job, &m, "checkpoint linear-13", err));
    job.threads = 0;
    ck_ms_ok(resume_check(&job, &m, "checkpoint linear-13", err));
    checkpoint_manifest_fini(&m);
}
END_TEST

/* As the golden one, of a job whose rates go by its length. */
START_TEST(another_end_of_a_schedule_without_length_is_evaluated_and_not_trained)
{
    static struct job job;
    struct checkpoint_manifest m;
    const struct job_override cosine = {.key_value = "optimizer.schedule={kind: cosine, by: step}"};
    read_golden(&m, &cosine, &job);
    free(m.job);
    m.job = checkpoint_job_text(&job);

    job.steps = 13;
    ck_ms_ok(resume_check(&job, &m, "checkpoint linear-13", err));
    job.steps = 14;
    ck_ms_fails(resume_check(&job, &m, "checkpoint linear-13", err), MS_E_REFUSED,
                "checkpoint linear-13 is of a job with steps: 0, and this one has 14: "
                "optimizer.schedule has no length and goes by the job's, so its rates would be "
                "others; give the job that key, or begin anew with optimizer.schedule.length");
    job.steps = 0;
    job.epochs = 3;
    ck_ms_fails(resume_check(&job, &m, "checkpoint linear-13", err), MS_E_REFUSED,
                "with epochs: 2, and this one has 3: optimizer.schedule has no length");
    job.steps = 13;
    job.seed++;
    ck_ms_fails(resume_check(&job, &m, "checkpoint linear-13", err), MS_E_REFUSED, "with seed: ");
    checkpoint_manifest_fini(&m);
}
END_TEST

static int may_miss(const char *const (*rows)[2], size_t n, uint32_t workers)
{
    Ms__NodeInfo infos[8];
    Ms__NodeInfo *nodes[8];
    for (size_t i = 0; i < n; i++) {
        ms__node_info__init(&infos[i]);
        infos[i].host_name = (char *)rows[i][0];
        infos[i].state = (char *)rows[i][1];
        nodes[i] = &infos[i];
    }
    return submit_resume_may_miss(nodes, n, "h1", workers);
}

START_TEST(job_that_takes_all_nodes_has_one_there)
{
    static const char *const rows[][2] = {
        {"h1", "REGISTERED"}, {"h2", "REGISTERED"}, {"h3", "REGISTERED"}};
    ck_assert(!may_miss(rows, 3, 3));
    ck_assert(may_miss(rows, 3, 2));
    ck_assert(may_miss(rows, 3, 1));
}
END_TEST

START_TEST(nodes_that_are_not_there_do_not_count)
{
    static const char *const rows[][2] = {
        {"h1", "REGISTERED"}, {"h1", "REGISTERED"}, {"h2", "LOST"}, {"h3", "LEFT"}};
    ck_assert(!may_miss(rows, 4, 1));
}
END_TEST

/* A run directory with the golden one in its folder of checkpoints. */
static const char *make_run(void)
{
    static const char *const names[] = {"linear-13.json", "linear-13.safetensors"};
    static char bytes[1 << 16];
    static char run[200];
    char path[300];
    snprintf(run, sizeof(run), "%s", test_dir_make());
    snprintf(path, sizeof(path), "%s/checkpoints", run);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        FILE *from = fopen(golden(names[i]), "rb");
        snprintf(path, sizeof(path), "%s/checkpoints/%s", run, names[i]);
        FILE *to = fopen(path, "wb");
        ck_assert(from != NULL && to != NULL);
        const size_t n = fread(bytes, 1, sizeof(bytes), from);
        ck_assert(n < sizeof(bytes) && fwrite(bytes, 1, n, to) == n);
        fclose(from);
        fclose(to);
    }
    return run;
}

START_TEST(checkpoint_of_a_run_is_found_by_its_name_in_the_run_directory)
{
    static const char *const names[] = {"linear-13", "linear-13.json", "checkpoints/linear-13"};
    static struct job job;
    const struct cli cli = {.out = stdout, .err = stderr};
    struct checkpoint_manifest m;
    const char *run = make_run();
    read_golden(&m, NULL, &job);
    for (size_t i = 0; i < MS_ARRAY_SIZE(names); i++) {
        char place[300];
        struct resume_point point;
        snprintf(place, sizeof(place), "%s/%s", run, names[i]);
        ck_ms_ok(resume_find(&cli, place, &job, &point, err));
        ck_assert_uint_eq(point.step, 13);
        free(point.plan);
    }
    checkpoint_manifest_fini(&m);
    test_dir_remove(run);
}
END_TEST

/* Ranks refuse any other name, and look for its data beside it. */
START_TEST(manifest_that_is_a_link_keeps_its_own_name_and_place)
{
    static const char *const others[] = {"checkpoints/kept.json", "kept.json"};
    static struct job job;
    const struct cli cli = {.out = stdout, .err = stderr};
    struct checkpoint_manifest m;
    struct resume_point point;
    char path[300];
    char other[300];
    char linked[300];
    const char *run = make_run();
    char *real = realpath(run, NULL);
    read_golden(&m, NULL, &job);
    snprintf(linked, sizeof(linked), "%s-linked", run);
    ck_assert_int_eq(symlink(run, linked), 0); /* a folder that is one is resolved */
    snprintf(path, sizeof(path), "%s/checkpoints/linear-13.json", real);
    snprintf(other, sizeof(other), "%s/%s", real, others[_i]);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);

    ck_ms_ok(resume_find(&cli, linked, &job, &point, err));

    ck_assert_str_eq(point.path, path);
    free(point.plan);
    free(real);
    checkpoint_manifest_fini(&m);
    ck_assert_int_eq(unlink(linked), 0);
    test_dir_remove(run);
}
END_TEST

START_TEST(name_that_is_not_there_is_answered_with_those_that_are)
{
    static struct job job;
    const struct cli cli = {.out = stdout, .err = stderr};
    struct checkpoint_manifest m;
    struct resume_point point;
    char place[300];
    char other[300];
    char words[400];
    const char *run = make_run();
    read_golden(&m, NULL, &job);

    snprintf(place, sizeof(place), "%s/linear-850", run);
    snprintf(words, sizeof(words),
             "linear-850; in that folder, or below it, there is %s/checkpoints/linear-13.json",
             run);
    ck_ms_fails(resume_find(&cli, place, &job, &point, err), MS_E_REFUSED, words);
    snprintf(other, sizeof(other), "%s/checkpoints/linear-7.json", run);
    fclose(fopen(other, "w"));
    snprintf(words, sizeof(words),
             "there are 2 checkpoints, from linear-7.json to %s/checkpoints/linear-13.json", run);
    ck_ms_fails(resume_find(&cli, place, &job, &point, err), MS_E_REFUSED, words);
    snprintf(place, sizeof(place), "%s/nowhere/linear-13", run);
    ck_ms_fails(resume_find(&cli, place, &job, &point, err), MS_E_REFUSED, "/nowhere/linear-13");
    checkpoint_manifest_fini(&m);
    test_dir_remove(run);
}
END_TEST

/* Of a name without a folder in front of it, too: a path that can be typed. */
START_TEST(name_that_is_not_there_is_answered_with_a_path_from_here)
{
    static struct job job;
    const struct cli cli = {.out = stdout, .err = stderr};
    struct checkpoint_manifest m;
    struct resume_point point;
    const char *run = make_run();
    read_golden(&m, NULL, &job);
    const int before = open(".", O_PATH);
    ck_assert_int_eq(chdir(run), 0);

    ck_ms_fails(resume_find(&cli, "nowhere", &job, &point, err), MS_E_REFUSED,
                "there is no nowhere; in that folder, or below it, there is "
                "checkpoints/linear-13.json");
    ck_ms_ok(resume_find(&cli, "checkpoints/linear-13.json", &job, &point, err));

    ck_assert_int_eq(fchdir(before), 0);
    close(before);
    free(point.plan);
    checkpoint_manifest_fini(&m);
    test_dir_remove(run);
}
END_TEST

START_TEST(colon_with_nothing_behind_it_is_no_wish_for_the_newest)
{
    struct submit_resume resume;
    ck_ms_fails(submit_resume_open(NULL, "1:", &resume, err), MS_E_INVALID,
                "--resume 1: names no checkpoint behind the colon: --resume 1 takes the newest");
}
END_TEST

/* A scheduler's word, which the terminal must not obey. */
START_TEST(what_a_job_goes_on_from_is_a_line_of_text)
{
    static const struct {
        const char *spec, *said;
    } rows[] = {
        {"{\"resume\": \"/srv/1/checkpoints/net-5.json\"}", "/srv/1/checkpoints/net-5.json"},
        {"{\"resume\": \"/a\\u001b[2J\\nb\"}", "/a?[2J b"},
        {"{\"resume\": \"\"}", NULL},
        {"{\"resume\": 7}", NULL},
        {"{\"name\": \"net\"}", NULL},
        {"no job", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < MS_ARRAY_SIZE(rows); i++) {
        char text[64];
        Ms__JobInfo job;
        ms__job_info__init(&job);
        job.job_json.data = (uint8_t *)rows[i].spec;
        job.job_json.len = strlen(rows[i].spec);
        const char *said = resume_of(text, sizeof(text), &job);
        ck_assert_pstr_eq(said, rows[i].said);
    }
}
END_TEST

/* What is said on the way goes into *ret_said, to be freed. */
static int take_place(const char *set, struct job *job, char **ret_said, struct ms_err *err)
{
    static const struct cli_option options[] = {{"resume", 0, "DIR", "", NULL},
                                                {"set", 0, "KEY=VALUE", "", NULL},
                                                {NULL, 0, NULL, NULL, NULL}};
    const struct cli_option *const tables[] = {options};
    static struct cli_args args;
    char resume[] = "--resume=b";
    char key[64];
    char *argv[] = {resume, key};
    size_t size = 0;
    FILE *said = open_memstream(ret_said, &size);
    const struct cli cli = {.err = said};
    ck_assert_ptr_nonnull(said);
    snprintf(key, sizeof(key), "--set=%s", set);
    memset(&args, 0, sizeof(args));
    ck_assert_int_eq(
        cli_options_parse(tables, 1, set[0] != '\0' ? 2 : 1, argv, 0, NULL, &args, NULL), MS_OK);
    int rc = resume_takes_place(&cli, &args, job, err);
    fclose(said);
    return rc;
}

/* As in the job.json of a run that was resumed. */
START_TEST(key_of_the_file_gives_way_and_is_said)
{
    static const char *const sets[] = {"", "epochs=4"};
    static struct job job;
    char *said = NULL;
    for (size_t i = 0; i < MS_ARRAY_SIZE(sets); i++) {
        snprintf(job.resume, sizeof(job.resume), "/runs/a/checkpoints/linear-120.json");
        ck_ms_ok(take_place(sets[i], &job, &said, err));
        ck_assert_str_eq(job.resume, "");
        ck_assert_str_eq(said, "msctl: --resume takes the place of the key resume in the job's "
                               "file, which is /runs/a/checkpoints/linear-120.json\n");
        free(said);
    }
    ck_ms_ok(take_place("resume=null", &job, &said, err));
    ck_assert_str_eq(said, "");
    free(said);
}
END_TEST

START_TEST(key_of_the_command_line_is_refused_with_both_places)
{
    static struct job job;
    char *said = NULL;
    snprintf(job.resume, sizeof(job.resume), "/runs/a");
    ck_ms_fails(take_place("resume=/runs/a", &job, &said, err), MS_E_INVALID,
                "--resume b: the job has the key resume, too, by --set resume=/runs/a; leave one "
                "of them out");
    ck_assert_str_eq(said, "");
    free(said);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("submit_resume");
    TCase *tc = tcase_create("submit_resume");
    tcase_add_test(tc, job_with_other_threads_than_the_plan_is_refused_by_key_with_both);
    tcase_add_test(tc, another_end_of_a_schedule_without_length_is_evaluated_and_not_trained);
    tcase_add_test(tc, job_that_takes_all_nodes_has_one_there);
    tcase_add_test(tc, nodes_that_are_not_there_do_not_count);
    tcase_add_test(tc, colon_with_nothing_behind_it_is_no_wish_for_the_newest);
    tcase_add_test(tc, checkpoint_of_a_run_is_found_by_its_name_in_the_run_directory);
    tcase_add_test(tc, key_of_the_file_gives_way_and_is_said);
    tcase_add_test(tc, key_of_the_command_line_is_refused_with_both_places);
    tcase_add_test(tc, what_a_job_goes_on_from_is_a_line_of_text);
    tcase_add_loop_test(tc, manifest_that_is_a_link_keeps_its_own_name_and_place, 0, 2);
    tcase_add_test(tc, name_that_is_not_there_is_answered_with_those_that_are);
    tcase_add_test(tc, name_that_is_not_there_is_answered_with_a_path_from_here);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
