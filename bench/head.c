/* head.c - certificates and a scheduler of its own for a benchmark that plays nodes */
#include "bench/head.h"

#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 600, START_LIMIT_S = 60, NICE = -10 };

void head_die(struct head *head, const char *what)
{
    fprintf(stderr, "%s: %s (%s), see %s\n", head->bench, what, strerror(errno), head->dir);
    head_kill(head);
    exit(1);
}

char *head_path(const struct head *head, const char *name)
{
    char *path = malloc(PATH_BYTES);
    snprintf(path, PATH_BYTES, "%s/%s", head->dir, name);
    return path;
}

/* ---- certificates ---- */

static void run(struct head *head, const char *const argv[])
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        head_die(head, "msctl certs failed; is it built?");
    }
}

static void make_certificates(struct head *head)
{
    const char *ctl = MSCHED_BUILD_ROOT "/cli/msctl";
    char *ca = head_path(head, "ca");
    run(head, (const char *[]){ctl, "certs", "--dir", ca, "init", NULL});
    run(head, (const char *[]){ctl, "certs", "--dir", ca, "issue", "scheduler", "head", "--host",
                               "127.0.0.1", "--out", head_path(head, "head.p12"), NULL});
    run(head, (const char *[]){ctl, "certs", "--dir", ca, "issue", "worker", "w", "--out",
                               head_path(head, "w.p12"), NULL});
}

void head_init(struct head *head, const char *bench)
{
    const char *tmp = getenv("TMPDIR");
    *head = (struct head){.bench = bench};
    snprintf(head->dir, sizeof(head->dir), "%s/msched-%s-XXXXXX", tmp != NULL ? tmp : "/tmp",
             bench);
    if (mkdtemp(head->dir) == NULL) {
        head_die(head, "no temporary folder");
    }
    snprintf(head->unix_address, sizeof(head->unix_address), "unix:%s/s.sock", head->dir);
    make_certificates(head);
}

SSL_CTX *head_tls(struct head *head, const char *p12)
{
    SSL_CTX *tls = NULL;
    struct ms_err err = {0, ""};
    struct ms_tls_config cfg = {.p12_path = head_path(head, p12),
                                .p12_password = "",
                                .ca_path = head_path(head, "ca/ca.crt")};
    if (ms_tls_context(&cfg, &tls, NULL, &err) < 0) {
        head_die(head, err.text);
    }
    return tls;
}

/* ---- the scheduler ---- */

static void exec_scheduler(struct head *head, const char *listen, size_t nodes_max)
{
    char max[24];
    char database[32];
    snprintf(max, sizeof(max), "%zu", nodes_max);
    snprintf(database, sizeof(database), "state-%d.db", head->database);
    int fd = open(head_path(head, "log"), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* as its unit does; refused to who is not root */
    execl(MSCHED_BUILD_ROOT "/daemon/msschedd", "msschedd", "--config",
          head_path(head, "empty.conf"), "--listen", listen, "--socket", head->unix_address + 5,
          "--database", head_path(head, database), "--tls", "on", "--tls-crl", "none", "--tls-ca",
          head_path(head, "ca/ca.crt"), "--tls-cert", head_path(head, "head.p12"),
          "--nodes-per-certificate", max, (char *)NULL);
    _exit(127);
}

/* Its address is the one of the log's line that says so. */
static int find_address(struct head *head)
{
    char line[1024];
    int found = 0;
    FILE *log = fopen(head_path(head, "log"), "r");
    while (log != NULL && fgets(line, sizeof(line), log) != NULL) {
        char *at = strstr(line, "scheduler.listen address=127.");
        found |= at != NULL && sscanf(at, "scheduler.listen address=%63s", head->address) == 1;
    }
    if (log != NULL) {
        fclose(log);
    }
    return found;
}

void head_start(struct head *head, const char *listen, size_t nodes_max)
{
    close(open(head_path(head, "empty.conf"), O_CREAT | O_WRONLY, 0600));
    unlink(head_path(head, "log"));
    head->pid = fork();
    if (head->pid == 0) {
        exec_scheduler(head, listen, nodes_max);
    }
    for (double until = ms_mono_s() + START_LIMIT_S; ms_mono_s() < until;) {
        if (find_address(head)) {
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    head_die(head, "msschedd did not start");
}

void head_kill(struct head *head)
{
    if (head->pid > 0) {
        kill(head->pid, SIGKILL);
        waitpid(head->pid, NULL, 0);
        head->pid = 0;
    }
}

void head_forget(struct head *head)
{
    head->database++;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void head_fini(struct head *head)
{
    head_kill(head);
    nftw(head->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what it costs ---- */

double head_cpu_s(struct head *head)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(head->pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        head_die(head, "cannot read the time that msschedd computed");
    }
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

size_t head_rss_bytes(struct head *head)
{
    char path[64];
    size_t pages = 0;
    snprintf(path, sizeof(path), "/proc/%ld/statm", (long)head->pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*s %zu", &pages) != 1) {
        head_die(head, "cannot read the memory of msschedd");
    }
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
