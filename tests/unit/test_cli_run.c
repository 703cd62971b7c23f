/* test_cli_run.c - run directories, children and metrics of `msctl run` */
#include "cli/child.h"
#include "cli/metrics.h"
#include "cli/run.h"
#include "cli/run_dir.h"
#include "cli/watch.h"
#include "tests/test.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char root[64];

static void setup(void)
{
    snprintf(root, sizeof(root), "%s", test_dir_make());
}

static void teardown(void)
{
    test_dir_remove(root);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static unsigned mode_of(const char *dir, const char *name)
{
    struct stat st;
    char path[MS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return lstat(path, &st) == 0 ? st.st_mode & 0777U : 0;
}

/* ---- the job ---- */

/* It lies in the folder of the run, and what --resume names is below it. */
START_TEST(who_resumes_without_a_job_hears_which_it_is)
{
    static const char *const below[] = {"", "/checkpoints", "/checkpoints/net-13",
                                        "/checkpoints/net-13.json"};
    static const struct cli_option resume = {.name = "resume", .value = "DIR"};
    struct cli cli = {.out = stdout, .err = stderr};
    char path[128];
    char words[200];
    snprintf(path, sizeof(path), "%s/checkpoints", root);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    write_file("checkpoints/net-13.json", "");
    snprintf(path, sizeof(path), "%s%s", root, below[_i]);
    const struct cli_args args = {
        .command = "msctl run", .n_given = 1, .given = {{.option = &resume, .value = path}}};

    ck_ms_fails(cmd_run(&cli, &args, err), MS_E_INVALID,
                "msctl run: --resume takes no job from there, and JOB.yaml is missing; see: ");
    write_file("job.json", "{}");
    snprintf(words, sizeof(words), "JOB.yaml is missing; that of this run is %s%sjob.json", root,
             _i == 0 ? "/" : "/checkpoints/../");
    ck_ms_fails(cmd_run(&cli, &args, err), MS_E_INVALID, words);
}
END_TEST

/* ---- directories ---- */

START_TEST(a_directory_is_named_after_job_and_time)
{
    struct tm tm = {
        .tm_year = 126, .tm_mon = 10, .tm_mday = 21, .tm_hour = 7, .tm_min = 34, .tm_sec = 9};
    char name[MS_PATH_MAX];

    run_dir_name(name, sizeof(name), "resnet50", &tm, 1);
    ck_assert_str_eq(name, "./resnet50-20261121-073409");
    run_dir_name(name, sizeof(name), "a/../b c", &tm, 3);
    ck_assert_str_eq(name, "./a-..-b-c-20261121-073409-3");
}
END_TEST

START_TEST(runs_of_the_same_second_get_different_directories)
{
    struct run_dir a;
    struct run_dir b;
    ck_assert_int_eq(chdir(root), 0);

    ck_ms_ok(run_dir_make(NULL, "job", &a, err));
    ck_ms_ok(run_dir_make(NULL, "job", &b, err));

    ck_assert_str_ne(a.path, b.path);
    ck_assert_int_eq(strncmp(a.path, root, strlen(root)), 0);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(a_directory_that_is_not_empty_is_refused)
{
    struct run_dir dir;
    ck_ms_ok(run_dir_make(root, "job", &dir, err)); /* empty: taken */
    run_dir_clean(&dir);
    write_file("precious", "x");

    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_EXISTS, "not empty");
    ck_assert_uint_eq(mode_of(root, "run.lock"), 0); /* no mark on what is not ours */
}
END_TEST

START_TEST(what_keeps_a_directory_from_being_made_is_said)
{
    enum { NOBODY = 65534 };
    struct run_dir dir;
    char wanted[128];
    snprintf(wanted, sizeof(wanted), "%s/x/y", root);
    ck_assert_int_eq(chmod(root, 0555), 0);
    ck_assert(geteuid() != 0 || seteuid(NOBODY) == 0);

    ck_ms_fails(run_dir_make(wanted, "job", &dir, err), MS_E_IO, "/x: Permission denied");

    ck_assert(getuid() != 0 || seteuid(0) == 0);
    ck_assert_int_eq(chmod(root, 0755), 0);
}
END_TEST

START_TEST(a_look_refuses_in_the_same_words_and_makes_nothing)
{
    char missing[128];
    struct run_dir first;
    snprintf(missing, sizeof(missing), "%s/none", root);
    ck_ms_ok(run_dir_look(NULL, err));
    ck_ms_ok(run_dir_look(missing, err));
    ck_ms_ok(run_dir_look(root, err));
    ck_assert_uint_eq(mode_of(root, "none"), 0);
    ck_assert_uint_eq(mode_of(root, "run.lock"), 0);

    ck_ms_ok(run_dir_make(root, "job", &first, err));
    write_file("metrics.jsonl", "x");
    ck_ms_fails(run_dir_look(root, err), MS_E_EXISTS, "a run is under way");
    run_dir_clean(&first);
    ck_ms_fails(run_dir_look(root, err), MS_E_EXISTS, "is not empty: name another one");

    snprintf(missing, sizeof(missing), "%s/checkpoints", root);
    ck_assert_int_eq(mkdir(missing, 0755), 0);
    write_file("checkpoints/job-7.json", "x");
    ck_ms_fails(run_dir_look(root, err), MS_E_EXISTS, "go on from its checkpoints with --resume");
    write_file("run.lock", "");
    ck_ms_fails(run_dir_look(root, err), MS_E_EXISTS, "with --resume /");
    ck_assert_uint_eq(mode_of(root, "run.lock"), 0);
}
END_TEST

START_TEST(a_run_that_is_under_way_is_left_alone)
{
    struct run_dir first;
    struct run_dir second;
    ck_ms_ok(run_dir_make(root, "job", &first, err));
    ck_ms_ok(run_dir_make_tls(&first, err));

    ck_ms_fails(run_dir_make(root, "job", &second, err), MS_E_EXISTS, "a run is under way");

    ck_assert_uint_ne(mode_of(root, "tls/worker.p12"), 0);
    run_dir_clean(&first);
    ck_assert_uint_eq(mode_of(root, "run.lock"), 0);
}
END_TEST

/* Takes the folder and gives it back, again and again; how often somebody else was in it, too. */
static int come_and_go(int times)
{
    int met = 0;
    for (int i = 0; i < times; i++) {
        struct run_dir dir;
        if (run_dir_make(root, "job", &dir, NULL) != MS_OK) {
            continue;
        }
        int mark = openat(dir.fd, "mark", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        met += mark < 0 || mode_of(root, "run.lock") == 0;
        if (mark >= 0) {
            close(mark);
            unlinkat(dir.fd, "mark", 0);
        }
        run_dir_clean(&dir);
    }
    return met;
}

START_TEST(two_runs_are_never_in_one_folder_however_close_one_follows_the_other)
{
    enum { RUNNERS = 3, TIMES = 10000 };
    pid_t pids[RUNNERS];
    for (int i = 0; i < RUNNERS; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            _exit(come_and_go(TIMES) > 0);
        }
    }

    for (int i = 0; i < RUNNERS; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

/* daemon/store makes them; pages of the database are in some. */
static const char *const beside_database[] = {"scheduler.db-wal",     "scheduler.db.lock",
                                              "scheduler.db.reserve", "scheduler.db.wal-lost.1",
                                              "scheduler.db.mark.2",  "scheduler.db.of-tomorrow"};

/* What kill -9 leaves: all files, and a lock that nobody holds. */
static void die_with(struct run_dir *dir)
{
    ck_ms_ok(run_dir_make_tls(dir, err));
    ck_ms_ok(run_dir_listen(dir, err));
    close(dir->tcp_fd);
    close(dir->unix_fd);
    close(dir->lock_fd);
    close(dir->fd);
    write_file("scheduler.db", "x");
    for (size_t i = 0; i < MS_ARRAY_SIZE(beside_database); i++) {
        write_file(beside_database[i], "x");
    }
    write_file("tls/.half-written", "x");
}

START_TEST(what_a_killed_run_left_before_it_logged_is_cleaned_and_the_folder_taken)
{
    struct run_dir dir;
    ck_ms_ok(run_dir_make(root, "job", &dir, err));
    die_with(&dir);

    ck_ms_ok(run_dir_make(root, "job", &dir, err));

    ck_assert_uint_eq(mode_of(root, "tls"), 0);
    ck_assert_uint_eq(mode_of(root, "scheduler.db"), 0);
    for (size_t i = 0; i < MS_ARRAY_SIZE(beside_database); i++) {
        ck_assert_uint_eq(mode_of(root, beside_database[i]), 0);
    }
    ck_assert_uint_eq(mode_of(root, "scheduler.sock"), 0);
    ck_ms_ok(run_dir_make_tls(&dir, err));
    run_dir_clean(&dir);
}
END_TEST

START_TEST(logs_of_a_killed_run_stay_its_keys_go_and_the_next_one_says_so)
{
    struct run_dir dir;
    ck_ms_ok(run_dir_make(root, "job", &dir, err));
    die_with(&dir);
    write_file("worker_0.log", "loss");
    write_file("scheduler.dbs", "somebody's own");

    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_EXISTS, "a run that was killed");

    ck_assert_uint_eq(mode_of(root, "tls"), 0);
    ck_assert_uint_ne(mode_of(root, "worker_0.log"), 0);
    ck_assert_uint_ne(mode_of(root, "scheduler.dbs"), 0);
    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_EXISTS, "not empty");
}
END_TEST

START_TEST(a_folder_that_others_may_write_to_is_refused)
{
    struct run_dir dir;
    ck_assert_int_eq(chmod(root, 0777), 0);
    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_REFUSED, "chmod go-w");
    ck_assert_int_eq(chmod(root, 0770), 0);
    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_REFUSED, "others may write");
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_ms_ok(run_dir_make(root, "job", &dir, err));
    run_dir_clean(&dir);
}
END_TEST

START_TEST(a_folder_of_somebody_else_is_refused)
{
    struct run_dir dir;
    if (geteuid() != 0) {
        return; /* only root can give one away */
    }
    ck_assert_int_eq(chown(root, 12345, 12345), 0);

    ck_ms_fails(run_dir_make(root, "job", &dir, err), MS_E_REFUSED, "belongs to uid 12345");

    ck_assert_int_eq(chown(root, 0, 0), 0);
}
END_TEST

START_TEST(a_link_to_a_folder_is_not_followed)
{
    struct run_dir dir;
    char target[128];
    char link[128];
    snprintf(target, sizeof(target), "%s/target", root);
    snprintf(link, sizeof(link), "%s/link", root);
    ck_assert_int_eq(mkdir(target, 0755), 0);
    ck_assert_int_eq(symlink(target, link), 0);

    ck_ms_fails(run_dir_make(link, "job", &dir, err), MS_E_REFUSED, "is a link");
    snprintf(link, sizeof(link), "%s/link/", root);
    ck_ms_fails(run_dir_make(link, "job", &dir, err), MS_E_REFUSED, "is a link");
}
END_TEST

START_TEST(missing_parents_are_made)
{
    struct run_dir dir;
    char path[128];
    snprintf(path, sizeof(path), "%s/a/b/c", root);

    ck_ms_ok(run_dir_make(path, "job", &dir, err));

    ck_assert_str_eq(dir.path, path);
}
END_TEST

START_TEST(keys_and_sockets_are_private_and_go_at_the_end)
{
    struct run_dir dir;
    ck_ms_ok(run_dir_make(root, "job", &dir, err));

    ck_ms_ok(run_dir_make_tls(&dir, err));
    ck_ms_ok(run_dir_listen(&dir, err));

    ck_assert_uint_eq(mode_of(root, "tls"), 0700);
    ck_assert_uint_eq(mode_of(root, "tls/scheduler.p12"), 0600);
    ck_assert_uint_eq(mode_of(root, "tls/worker.p12"), 0600);
    ck_assert_uint_eq(mode_of(root, "scheduler.sock"), 0600);
    ck_assert_uint_eq(mode_of(root, "tls/ca.key"), 0); /* never on disk */
    ck_assert_int_gt(dir.port, 0);
    write_file("worker_0.log", "stays");
    run_dir_clean(&dir);
    ck_assert_uint_eq(mode_of(root, "tls"), 0);
    ck_assert_uint_eq(mode_of(root, "scheduler.sock"), 0);
    ck_assert_uint_ne(mode_of(root, "worker_0.log"), 0);
    ck_assert_int_eq(dir.tcp_fd, -1);
}
END_TEST

START_TEST(a_directory_with_a_long_path_has_its_socket_too)
{
    struct run_dir dir;
    char path[300];
    int n = snprintf(path, sizeof(path), "%s/", root);
    memset(path + n, 'd', 150);
    path[n + 150] = '\0';
    ck_ms_ok(run_dir_make(path, "job", &dir, err));

    ck_ms_ok(run_dir_listen(&dir, err));

    ck_assert_uint_eq(mode_of(path, "scheduler.sock"), 0600);
    run_dir_clean(&dir);
    ck_assert_uint_eq(mode_of(path, "scheduler.sock"), 0);
}
END_TEST

/* ---- children ---- */

static struct child start_shell(const char *script, const int *fds, size_t n_fds)
{
    static const char *const env[] = {"CHILD_TEST=yes", NULL};
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct child_spec spec = {"/bin/sh", argv, env, fds, n_fds};
    struct child child;
    memset(&child, 0, sizeof(child));
    snprintf(child.name, sizeof(child.name), "worker 3");
    snprintf(child.log, sizeof(child.log), "%s/child.log", root);
    ck_ms_ok(child_start(&child, &spec, err));
    return child;
}

static void await_child(struct child *child)
{
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(child_reap(child), 1);
    ck_assert_int_eq(child_reap(child), 0);
    ck_assert_int_eq(child_is_alive(child), 0);
}

START_TEST(a_childs_end_is_told_in_words)
{
    char text[96];
    struct child child = start_shell("exit 3", NULL, 0);
    await_child(&child);
    ck_assert_str_eq(child_status_text(&child, text, sizeof(text)), "exited with status 3");

    child = start_shell("kill -9 $$", NULL, 0);
    await_child(&child);
    ck_assert_str_eq(child_status_text(&child, text, sizeof(text)),
                     "was killed by signal 9 (Killed)");
}
END_TEST

START_TEST(a_childs_output_is_appended_and_its_tail_is_shown)
{
    char tail[4096];
    struct child child = start_shell("echo one; echo two >&2", NULL, 0);
    await_child(&child);
    child = start_shell("echo; echo three; echo; echo; ", NULL, 0);
    await_child(&child);

    ck_assert_str_eq(child_log_tail(&child, tail, sizeof(tail), 9),
                     "    | one\n    | two\n    | \n    | three\n");
    ck_assert_str_eq(child_log_tail(&child, tail, sizeof(tail), 1), "    | three\n");
    snprintf(child.log, sizeof(child.log), "%s/none.log", root);
    ck_assert_str_eq(child_log_tail(&child, tail, sizeof(tail), 9), "");
}
END_TEST

START_TEST(a_tail_of_a_long_log_is_bounded)
{
    char tail[4096];
    struct child child =
        start_shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done", NULL, 0);
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 2);

    ck_assert_str_eq(tail, "    | line 1998\n    | line 1999\n");
}
END_TEST

START_TEST(a_tail_waits_for_no_writer)
{
    char tail[4096];
    struct child child = {.name = "worker 3"};
    snprintf(child.log, sizeof(child.log), "%s/child.log", root);
    ck_assert_int_eq(mkfifo(child.log, 0600), 0);
    ck_assert_str_eq(child_log_tail(&child, tail, sizeof(tail), 9), "");
}
END_TEST

START_TEST(a_child_sees_its_own_settings_and_not_the_surroundings)
{
    char tail[4096];
    setenv("MS_ROLE", "MS_SCHED", 1);
    setenv("MSCHED_LISTEN", "x", 1);
    setenv("NOTIFY_SOCKET", "/x", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("MS_DATA_DIR", "/data", 1); /* a job's path may name it */
    struct child child = start_shell("echo $CHILD_TEST.$MS_ROLE.$MSCHED_LISTEN.$NOTIFY_SOCKET."
                                     "$OMP_NUM_THREADS.$MS_DATA_DIR",
                                     NULL, 0);
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 9);

    ck_assert_str_eq(tail, "    | yes....1./data\n");
}
END_TEST

START_TEST(sockets_are_passed_by_activation_in_order)
{
    char tail[4096];
    char want[64];
    int fds[2];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    const int swapped[] = {fds[1], fds[0]}; /* whatever numbers they have now */
    struct child child =
        start_shell("echo to-3 >&3; read x <&4; echo $x $LISTEN_FDS $LISTEN_PID $$", swapped, 2);
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 9);

    snprintf(want, sizeof(want), "    | to-3 2 %d %d\n", (int)child.pid, (int)child.pid);
    ck_assert_str_eq(tail, want);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(a_child_dies_with_its_parent_even_by_kill_9)
{
    /* parent -> child: the child holds the write end, whose closing tells of its death */
    int fds[2];
    struct pollfd poll_fd;
    char byte = 0;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct child child = start_shell("echo x >&3; exec sleep 1000", &fds[1], 1);
        (void)child;
        pause();
        _exit(0);
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1); /* it runs */
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);

    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);

    poll_fd = (struct pollfd){fds[0], POLLIN, 0};
    ck_assert_int_eq(poll(&poll_fd, 1, 60000), 1);
    ck_assert_int_eq(read(fds[0], &byte, 1), 0);
    close(fds[0]);
}
END_TEST

START_TEST(a_childs_terminal_signals_stay_away)
{
    char tail[4096];
    struct child child = start_shell("ps -o sid= -p $$ | tr -d ' '", NULL, 0);
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 9);

    ck_assert_int_eq(atol(tail + strlen("    | ")), child.pid);
}
END_TEST

static volatile int *handled; /* shared with children */

static void on_term(int number)
{
    (void)number;
    *handled += 1;
}

START_TEST(a_signal_right_after_the_start_is_the_childs_alone)
{
    handled = (volatile int *)mmap(NULL, sizeof(*handled), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)(uintptr_t)handled, MAP_FAILED);
    signal(SIGTERM, on_term);

    for (int i = 0; i < 200; i++) {
        struct child child = start_shell("exit 0", NULL, 0);
        child_signal(&child, SIGTERM);
        await_child(&child);
    }

    ck_assert_int_eq(*handled, 0); /* our handler never ran between fork and exec */
    signal(SIGTERM, SIG_DFL);
}
END_TEST

/* The status of a process that follows a job and gets a HUP, and a TERM behind it. */
static int end_of_a_watch(void (*hup)(int number))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct cli cli = {.base = event_base_new(), .out = stdout};
        signal(SIGHUP, hup);
        if (cli.base == NULL || cli_on_detach(&cli, NULL, NULL, NULL) != MS_OK) {
            _exit(1);
        }
        raise(SIGHUP);
        event_base_loop(cli.base, EVLOOP_NONBLOCK);
        raise(SIGTERM);
        for (;;) {
            event_base_loop(cli.base, EVLOOP_ONCE);
        }
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

START_TEST(who_follows_a_job_under_nohup_outlives_the_terminal)
{
    ck_assert_int_eq(end_of_a_watch(SIG_IGN), 128 + SIGTERM);
    ck_assert_int_eq(end_of_a_watch(SIG_DFL), 128 + SIGHUP);
}
END_TEST

START_TEST(a_program_that_cannot_run_says_so_in_its_log)
{
    char tail[4096];
    write_file("script", "no program\n");
    char path[128];
    snprintf(path, sizeof(path), "%s/script", root);
    const char *const argv[] = {"script", NULL};
    const struct child_spec spec = {path, argv, NULL, NULL, 0};
    struct child child;
    memset(&child, 0, sizeof(child));
    snprintf(child.log, sizeof(child.log), "%s/child.log", root);
    ck_ms_ok(child_start(&child, &spec, err));
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 9);

    ck_assert_int_eq(WEXITSTATUS(child.status), 127);
    ck_assert_ptr_nonnull(strstr(tail, "cannot execute"));
}
END_TEST

START_TEST(a_child_without_its_descriptors_says_so_in_its_log)
{
    char tail[4096];
    const int none = 12345;
    struct child child = start_shell("exit 0", &none, 1);
    await_child(&child);

    child_log_tail(&child, tail, sizeof(tail), 9);

    ck_assert_int_eq(WEXITSTATUS(child.status), 126);
    ck_assert_str_eq(tail, "    | cannot give /bin/sh its descriptors: Bad file descriptor\n");
}
END_TEST

START_TEST(programs_are_found_by_variable_and_missing_ones_are_named)
{
    char path[MS_PATH_MAX];
    unsetenv("MSCHED_TEST_PROGRAM");
    ck_ms_ok(child_find_program("sh", "MSCHED_TEST_PROGRAM", "x", path, sizeof(path), err));
    ck_assert_int_eq(access(path, X_OK), 0); /* from PATH */
    setenv("MSCHED_TEST_PROGRAM", "/bin/sh", 1);
    ck_ms_ok(child_find_program("nothing", "MSCHED_TEST_PROGRAM", "x", path, sizeof(path), err));
    ck_assert_str_eq(path, "/bin/sh");
    setenv("MSCHED_TEST_PROGRAM", "/nonexistent", 1);
    ck_ms_fails(child_find_program("sh", "MSCHED_TEST_PROGRAM", "x", path, sizeof(path), err),
                MS_E_NOT_FOUND, "MSCHED_TEST_PROGRAM=/nonexistent");
    unsetenv("MSCHED_TEST_PROGRAM");
    ck_ms_fails(
        child_find_program("msno-such", "MSCHED_TEST_PROGRAM", "x", path, sizeof(path), err),
        MS_E_NOT_FOUND, "MSCHED_TEST_PROGRAM=/path/to/msno-such");
}
END_TEST

/* ---- a run ---- */

/* Three processes that stay, of a job that trains and was cancelled. */
static void begin_run(struct run *run, struct cli *cli)
{
    *cli = (struct cli){.base = event_base_new(), .out = stdout, .err = stderr};
    memset(run, 0, sizeof(*run));
    run->cli = cli;
    run->job.recovery = 1;
    run->stage = RUN_TRAINING;
    run->job_id = 1;
    run->first_dead = -1;
    run->n_children = 3;
    run->children = (struct child *)calloc(run->n_children, sizeof(*run->children));
    ck_assert_ptr_nonnull(run->children);
    cli_display_init(&run->display, stdout, 0, 80, NULL);
    ck_ms_ok(run_watch(run, err));
    for (size_t i = 0; i < run->n_children; i++) {
        run->children[i] = start_shell("exec sleep 1000", NULL, 0);
    }
}

static void end_run(struct run *run)
{
    struct cli *cli = run->cli;
    run_end(run);
    event_base_free(cli->base);
}

/* SIGKILL of somebody else. */
static void murder(struct run *run, size_t index)
{
    siginfo_t info;
    ck_assert_int_eq(kill(run->children[index].pid, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)run->children[index].pid, &info, WEXITED | WNOWAIT), 0);
}

static int has_verdict_due(struct run *run)
{
    return evtimer_pending(run->timers[RUN_TIMER_VERDICT], NULL) != 0;
}

START_TEST(a_cancel_is_not_cut_short_while_somebody_is_left_who_can_save)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    run.signal = SIGINT;
    murder(&run, 0);
    murder(&run, 1);

    run_reap(&run);

    ck_assert_int_eq(has_verdict_due(&run), 0);
    ck_assert_int_ne(run.children[0].restart.due_ms, 0);
    ck_assert_int_eq(run.children[1].restart.due_ms, 0);
    murder(&run, 2);
    run_reap(&run);
    ck_assert_int_eq(has_verdict_due(&run), 1); /* nobody holds anything */
    ck_assert_int_eq(run.first_dead, 1);
    end_run(&run);
}
END_TEST

START_TEST(without_recovery_a_worker_that_died_ends_a_cancelled_run)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    run.job.recovery = 0;
    run.signal = SIGINT;
    murder(&run, 1);

    run_reap(&run);

    ck_assert_int_eq(has_verdict_due(&run), 1);
    end_run(&run);
}
END_TEST

static void give_up(struct run *run, size_t index)
{
    struct ms_err err = {0, ""};
    ms_fail(&err, MS_E_FAILED, "%zu does not come back", index);
    run_give_up(run, &run->children[index], &err);
}

START_TEST(who_gives_up_has_the_scheduler_end_the_job_at_its_step)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    murder(&run, 1);
    ck_assert_int_eq(child_reap(&run.children[1]), 1);

    give_up(&run, 1);

    ck_assert_int_eq(run.failed, 1);
    ck_assert_int_eq(run.stage, RUN_TRAINING); /* it is told by the next connection */
    ck_assert_int_ne(evtimer_pending(run.timers[RUN_TIMER_CANCEL], NULL), 0);
    ck_assert_int_eq(run_needs(&run, 0), 1);
    ck_assert_int_eq(run_needs(&run, 2), 0);
    run.first_dead = 0; /* and then that is gone for good, too */
    run_fail_dead(&run);
    ck_assert_int_eq(run.stage, RUN_STOPPING);
    ck_assert_str_eq(run.err.text, "1 does not come back");
    end_run(&run);
}
END_TEST

START_TEST(who_gives_up_without_a_scheduler_leaves_workers_the_time_to_save)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    murder(&run, 0);
    ck_assert_int_eq(child_reap(&run.children[0]), 1);

    give_up(&run, 0);

    ck_assert_int_eq(run.stage, RUN_STOPPING);
    ck_assert_int_eq(run.children[1].sent, SIGTERM);
    ck_assert_int_eq(run.term_ms, RUN_SAVE_MS);
    end_run(&run);

    begin_run(&run, &cli); /* nothing was trained yet */
    run.stage = RUN_FORMING;
    give_up(&run, 0);
    ck_assert_int_eq(run.stage, RUN_STOPPING);
    ck_assert_int_eq(run.term_ms, RUN_TERM_MS);
    end_run(&run);
}
END_TEST

START_TEST(who_dies_is_started_again_though_nobody_reads_the_schedulers_log)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    snprintf(run.children[0].log, sizeof(run.children[0].log), "%s/fifo", root);
    ck_assert_int_eq(mkfifo(run.children[0].log, 0600), 0);
    murder(&run, 1);

    run_reap(&run);

    ck_assert_int_ne(run.children[1].restart.due_ms, 0);
    end_run(&run);
}
END_TEST

/* What it said to people. */
static void hear(struct run *run, char **ret, size_t *ret_size)
{
    FILE *out = open_memstream(ret, ret_size);
    ck_assert_ptr_nonnull(out);
    cli_display_init(&run->display, out, 0, 80, NULL);
}

/* heard: as hear was given it, for the end may move what was heard. */
static void stop_hearing(struct run *run, char **heard)
{
    fclose(run->display.out);
    run->display.out = stdout;
    free(*heard);
}

START_TEST(a_worker_that_cannot_be_started_is_named_with_the_cause_and_ends_the_run)
{
    static struct run run;
    struct cli cli;
    char *heard = NULL;
    size_t size = 0;
    char path[128];
    begin_run(&run, &cli);
    hear(&run, &heard, &size);
    snprintf(run.dir.path, sizeof(run.dir.path), "%s", root);
    snprintf(run.worker, sizeof(run.worker), "/bin/true");
    snprintf(path, sizeof(path), "%s/worker_0.log", root);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    run.children[1].restart.ready_ms = 1; /* it trained for a while */
    murder(&run, 1);
    run_reap(&run);

    run_restart_due(&run);

    fflush(run.display.out);
    ck_assert_ptr_nonnull(
        strstr(heard, "worker 0 could not be started: the log of the worker 0: "));
    ck_assert_ptr_nonnull(strstr(heard, "worker_0.log: Is a directory; tried again in 0.1 s"));
    ck_assert_int_eq(run.children[1].restart.deaths, 2);
    for (int i = 0; i < 6 && !run.failed; i++) {
        run.children[1].restart.due_ms = 1; /* its time has come */
        run_restart_due(&run);
    }
    ck_assert_int_eq(run.failed, 1);
    ck_assert_int_eq(run.err.code, MS_E_FAILED);
    ck_assert_ptr_nonnull(
        strstr(run.err.text, "worker 0 could not be started, 7 times in a row: "));
    ck_assert_ptr_nonnull(strstr(run.err.text, "worker_0.log: Is a directory"));
    stop_hearing(&run, &heard);
    end_run(&run);
}
END_TEST

/* What the scheduler told last: rank 0 is lost, rank 1 in the state. */
static Ms__JobUpdate update;
static Ms__JobInfo job;
static Ms__RankInfo ranks[2];
static Ms__RankInfo *rank_list[] = {&ranks[0], &ranks[1]};

static void tell(struct run *run, const char *state)
{
    ms__job_update__init(&update);
    ms__job_info__init(&job);
    for (size_t i = 0; i < 2; i++) {
        ms__rank_info__init(&ranks[i]);
        ranks[i].pid = (uint32_t)run->children[1 + i].pid;
    }
    ranks[0].state = (char *)"lost";
    ranks[1].state = (char *)(uintptr_t)state;
    job.ranks = rank_list;
    job.n_ranks = 2;
    update.job = &job;
    run->last = &update;
}

START_TEST(who_trains_is_of_use)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    tell(&run, "preparing");
    run_restart_look(&run, &job);
    ck_assert_int_eq(run.children[2].restart.ready_ms, 0);

    tell(&run, "training");
    run_restart_look(&run, &job);

    ck_assert_int_ne(run.children[2].restart.ready_ms, 0);
    ck_assert_int_eq(run.children[1].restart.ready_ms, 0);
    run.children[2].restart.ready_ms = 0;
    run.children[2].is_over = 1; /* the scheduler has not seen that yet */
    run_restart_look(&run, &job);
    ck_assert_int_eq(run.children[2].restart.ready_ms, 0);
    run.children[2].is_over = 0;
    run.last = NULL;
    end_run(&run);
}
END_TEST

/* Worker 0 lives and was lost a while ago; worker 1 holds what was trained. */
static void begin_frozen_run(struct run *run, struct cli *cli)
{
    begin_run(run, cli);
    run->children[1].lost_s = RUN_FROZEN_S;
    run->children[2].restart.ready_ms = 1;
    tell(run, "holding");
}

static void end_frozen_run(struct run *run)
{
    run->last = NULL;
    end_run(run);
}

static int is_killed_for(struct run *run, const char *state, pid_t pid)
{
    Ms__NodeList list = MS__NODE_LIST__INIT;
    Ms__NodeInfo node = MS__NODE_INFO__INIT;
    Ms__NodeInfo *nodes[] = {&node};
    node.node_id = (char *)"0";
    node.state = (char *)(uintptr_t)state;
    node.pid = (uint32_t)pid;
    node.last_seen_ms = 20000;
    list.nodes = nodes;
    list.n_nodes = 1;
    run_frozen_take(run, MS_MSG_NODE_LIST, &list.base);
    return run->children[1].sent == SIGKILL;
}

START_TEST(a_worker_that_lives_and_is_lost_is_killed_and_started_again)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    const pid_t pid = run.children[1].pid;
    ck_assert_int_eq(is_killed_for(&run, "REGISTERED", pid), 0); /* it came back meanwhile */
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid + 1), 0);   /* its predecessor */

    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 1);

    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    run_reap(&run);
    ck_assert_int_ne(run.children[1].restart.due_ms, 0);
    end_frozen_run(&run);
}
END_TEST

/* The one before it had the rank; it froze before it could say that it is there. */
START_TEST(a_worker_that_the_scheduler_never_heard_is_killed_too)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    const pid_t pid = run.children[1].pid;
    run.children[1].lost_s = RUN_UNHEARD_S - 1;
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid + 1), 0);
    run.children[1].lost_s = RUN_UNHEARD_S;
    ck_assert_int_eq(is_killed_for(&run, "NEW", pid + 1), 0);

    ck_assert_int_eq(is_killed_for(&run, "LOST", pid + 1), 1);

    end_frozen_run(&run);
}
END_TEST

START_TEST(a_worker_that_is_lost_has_time_to_come_back)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    run.children[1].lost_s = RUN_FROZEN_S - 1;

    ck_assert_int_eq(is_killed_for(&run, "LOST", run.children[1].pid), 0);

    run_frozen_look(&run);
    ck_assert_int_ne(evtimer_pending(run.timers[RUN_TIMER_FROZEN], NULL), 0);
    ck_assert_int_eq(run.children[1].lost_s, RUN_FROZEN_S - 1);
    ranks[0].state = (char *)"preparing"; /* it did */
    run_frozen_look(&run);
    ck_assert_int_eq(run.children[1].lost_s, 0);
    end_frozen_run(&run);
}
END_TEST

START_TEST(who_may_be_the_last_that_holds_the_training_is_not_killed)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    const pid_t pid = run.children[1].pid;
    run.children[2].restart.ready_ms = 0; /* it was started again and never trained */
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 0);
    run.children[2].restart.ready_ms = 1;
    tell(&run, "lost");
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 0);
    tell(&run, "holding");
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 1);
    end_frozen_run(&run);
}
END_TEST

START_TEST(who_is_debugged_is_not_killed)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    const pid_t pid = run.children[1].pid;
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);

    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 0);

    end_frozen_run(&run);
}
END_TEST

START_TEST(nobody_is_killed_who_would_not_be_started_again)
{
    static struct run run;
    struct cli cli;
    begin_frozen_run(&run, &cli);
    const pid_t pid = run.children[1].pid;
    run.job.recovery = 0;
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 0);
    run.job.recovery = 1;
    run.signal = SIGTERM;
    ck_assert_int_eq(is_killed_for(&run, "LOST", pid), 0);
    end_frozen_run(&run);
}
END_TEST

/* A scheduler that lives and says nothing for so many seconds, of which we live all. */
static void be_silent(struct run *run, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        run->fired[RUN_TIMER_SILENT] = 1;
        run_silent_look(run);
    }
}

START_TEST(a_scheduler_that_does_not_answer_is_killed_and_started_again)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    run_silent_look(&run);
    ck_assert_int_ne(evtimer_pending(run.timers[RUN_TIMER_SILENT], NULL), 0);
    be_silent(&run, RUN_HUNG_S - 1);
    for (int i = 0; i < 100; i++) { /* other things happen meanwhile, or nothing for a long time */
        run_silent_look(&run);
    }
    ck_assert_int_eq(run.silent_s, RUN_HUNG_S - 1);
    ck_assert_int_eq(run.children[0].sent, 0);

    be_silent(&run, 1);

    ck_assert_int_eq(run.children[0].sent, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)run.children[0].pid, &info, WEXITED | WNOWAIT), 0);
    run_reap(&run);
    ck_assert_int_ne(run.children[0].restart.due_ms, 0);
    be_silent(&run, 1);
    ck_assert_int_eq(run.silent_s, 0);
    end_run(&run);
}
END_TEST

START_TEST(a_scheduler_that_is_heard_again_begins_anew)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    be_silent(&run, RUN_HUNG_S - 1);
    run.heard = 7; /* as if client_heard had been other than it is now */

    be_silent(&run, 1);

    ck_assert_int_eq(run.silent_s, 0);
    be_silent(&run, RUN_HUNG_S - 1);
    ck_assert_int_eq(run.children[0].sent, 0);
    end_run(&run);
}
END_TEST

START_TEST(a_scheduler_that_is_debugged_or_would_not_be_started_again_is_not_killed)
{
    static struct run run;
    struct cli cli;
    begin_run(&run, &cli);
    run.job.recovery = 0;
    be_silent(&run, 2 * RUN_HUNG_S);
    ck_assert_int_eq(run.children[0].sent, 0);
    run.job.recovery = 1;
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, run.children[0].pid, NULL, NULL), 0);
    ck_assert_int_eq((int)child_tracer(&run.children[0]), (int)getpid());

    be_silent(&run, 2 * RUN_HUNG_S);

    ck_assert_int_eq(run.children[0].sent, 0);
    end_run(&run);
}
END_TEST

/* ---- metrics ---- */

START_TEST(metrics_are_steps_and_nothing_else)
{
    char path[128];
    struct cli_metrics metrics;
    write_file("metrics.jsonl", "{\"step\":1,\"loss\":2.5,\"samples_per_s\":100,\"step_ms\":10}\n"
                                "{\"epoch\":1,\"eval_loss\":0.4,\"accuracy\":0.9}\n"
                                "{\"step\":2,\"loss\":null,\"samples_per_s\":300,\"step_ms\":30}\n"
                                "{\"step\":3,\"loss\":1.5,\"samples_per_s\":200,\"step_ms\":20}\n"
                                "{\"done\":true,\"steps\":3}\n"
                                "{\"step\":4,\"lo");
    snprintf(path, sizeof(path), "%s/metrics.jsonl", root);

    ck_ms_ok(cli_metrics_read(path, &metrics, err));

    ck_assert_uint_eq(metrics.n, 3);
    ck_assert_double_eq(metrics.loss[0], 2.5);
    ck_assert(isnan(metrics.loss[1]));
    ck_assert_double_eq_tol(metrics.samples, 14, 1e-9);
    ck_assert_double_eq_tol(metrics.seconds, 0.06, 1e-9);
    ck_assert_double_eq(cli_median(metrics.step_ms, 2), 20);
    cli_metrics_free(&metrics);
    ck_ms_fails(cli_metrics_read("/nonexistent", &metrics, err), MS_E_IO, "/nonexistent");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_run");
    TCase *tc = tcase_create("run");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, who_resumes_without_a_job_hears_which_it_is, 0, 4);
    tcase_add_test(tc, a_directory_is_named_after_job_and_time);
    tcase_add_test(tc, runs_of_the_same_second_get_different_directories);
    tcase_add_test(tc, a_directory_that_is_not_empty_is_refused);
    tcase_add_test(tc, what_keeps_a_directory_from_being_made_is_said);
    tcase_add_test(tc, a_look_refuses_in_the_same_words_and_makes_nothing);
    tcase_add_test(tc, a_run_that_is_under_way_is_left_alone);
    tcase_add_test(tc, two_runs_are_never_in_one_folder_however_close_one_follows_the_other);
    tcase_add_test(tc, what_a_killed_run_left_before_it_logged_is_cleaned_and_the_folder_taken);
    tcase_add_test(tc, logs_of_a_killed_run_stay_its_keys_go_and_the_next_one_says_so);
    tcase_add_test(tc, a_folder_that_others_may_write_to_is_refused);
    tcase_add_test(tc, a_folder_of_somebody_else_is_refused);
    tcase_add_test(tc, a_link_to_a_folder_is_not_followed);
    tcase_add_test(tc, missing_parents_are_made);
    tcase_add_test(tc, keys_and_sockets_are_private_and_go_at_the_end);
    tcase_add_test(tc, a_directory_with_a_long_path_has_its_socket_too);
    tcase_add_test(tc, a_childs_end_is_told_in_words);
    tcase_add_test(tc, a_childs_output_is_appended_and_its_tail_is_shown);
    tcase_add_test(tc, a_tail_of_a_long_log_is_bounded);
    tcase_add_test(tc, a_tail_waits_for_no_writer);
    tcase_add_test(tc, a_child_sees_its_own_settings_and_not_the_surroundings);
    tcase_add_test(tc, sockets_are_passed_by_activation_in_order);
    tcase_add_test(tc, a_child_dies_with_its_parent_even_by_kill_9);
    tcase_add_test(tc, a_childs_terminal_signals_stay_away);
    tcase_add_test(tc, a_signal_right_after_the_start_is_the_childs_alone);
    tcase_add_test(tc, who_follows_a_job_under_nohup_outlives_the_terminal);
    tcase_add_test(tc, a_program_that_cannot_run_says_so_in_its_log);
    tcase_add_test(tc, a_child_without_its_descriptors_says_so_in_its_log);
    tcase_add_test(tc, programs_are_found_by_variable_and_missing_ones_are_named);
    tcase_add_test(tc, a_cancel_is_not_cut_short_while_somebody_is_left_who_can_save);
    tcase_add_test(tc, without_recovery_a_worker_that_died_ends_a_cancelled_run);
    tcase_add_test(tc, a_worker_that_cannot_be_started_is_named_with_the_cause_and_ends_the_run);
    tcase_add_test(tc, who_gives_up_has_the_scheduler_end_the_job_at_its_step);
    tcase_add_test(tc, who_gives_up_without_a_scheduler_leaves_workers_the_time_to_save);
    tcase_add_test(tc, who_dies_is_started_again_though_nobody_reads_the_schedulers_log);
    tcase_add_test(tc, who_trains_is_of_use);
    tcase_add_test(tc, a_worker_that_lives_and_is_lost_is_killed_and_started_again);
    tcase_add_test(tc, a_worker_that_the_scheduler_never_heard_is_killed_too);
    tcase_add_test(tc, a_worker_that_is_lost_has_time_to_come_back);
    tcase_add_test(tc, who_may_be_the_last_that_holds_the_training_is_not_killed);
    tcase_add_test(tc, who_is_debugged_is_not_killed);
    tcase_add_test(tc, nobody_is_killed_who_would_not_be_started_again);
    tcase_add_test(tc, a_scheduler_that_does_not_answer_is_killed_and_started_again);
    tcase_add_test(tc, a_scheduler_that_is_heard_again_begins_anew);
    tcase_add_test(tc, a_scheduler_that_is_debugged_or_would_not_be_started_again_is_not_killed);
    tcase_add_test(tc, metrics_are_steps_and_nothing_else);
    suite_add_tcase(suite, tc);
    return test_run(suite);
}
