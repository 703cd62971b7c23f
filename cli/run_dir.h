/* run_dir.h - the directory of one `msctl run`: logs and results stay, sockets and keys do not
 *
 *     scheduler.log  worker_<rank>.log  metrics.jsonl  weights.safetensors
 *     plan.txt  job.json                                                       stay
 *     scheduler.sock  scheduler.db*  tls/{ca.crt,scheduler.p12,worker.p12}     go at the end
 *     run.lock                                                                 goes last
 *
 * The lock is held while msctl lives, however it ends: a run.lock that nobody holds belongs to a
 * run that was killed, whose keys and sockets the next one takes away. The folder is ours alone
 * (owner, mode), so that nobody else can put links where we write. */
#ifndef CLI_RUN_DIR_H
#define CLI_RUN_DIR_H

#include "proto/err.h"
#include "proto/limits.h"

#include <time.h>

struct run_dir {
    char shown[MS_PATH_MAX + 1]; /* as the user wrote it, or ./<job>-<time> */
    char path[MS_PATH_MAX + 1];  /* absolute */
    char tls[MS_PATH_MAX + 16];  /* path/tls */
    int fd, lock_fd;             /* the folder, and run.lock in it; -1: none */
    int tcp_fd, unix_fd;         /* listening, CLOEXEC; -1: none */
    int port;
};

/* "./<job>-<YYYYmmdd-HHMMSS>" into ret of size bytes; bytes of the name that do not belong into a
 * file name become '-'. suffix > 1 appends "-<suffix>". */
void run_dir_name(char *ret, size_t size, const char *job_name, const struct tm *tm, int suffix);

/* Would run_dir_make refuse wanted as it is, for what lies in it or whose it is? For a look before
 * the long ones: nothing is made. wanted NULL: no. */
int run_dir_look(const char *wanted, struct ms_err *err);
/* Makes the directory: wanted (which must be empty if it exists), or one named after the job and
 * now. MS_E_EXISTS where it is not empty, or a run is under way in it; MS_E_REFUSED where it is a
 * link, somebody else's, or one that others may write to. */
int run_dir_make(const char *wanted, const char *job_name, struct run_dir *ret, struct ms_err *err);
/* A certificate authority of its own, whose key is never written, and what it issued. */
int run_dir_make_tls(struct run_dir *dir, struct ms_err *err);
/* TCP on loopback with a port that the kernel chooses, and the Unix socket, mode 0600. */
int run_dir_listen(struct run_dir *dir, struct ms_err *err);
/* Takes away what must not stay; closes the sockets. */
void run_dir_clean(struct run_dir *dir);

#endif
