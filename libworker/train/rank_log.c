/* rank_log.c - the loss lines of a rank's log, each once, whatever was killed */
#include "libworker/train/rank_log.h"

#include "proto/folder.h"
#include "proto/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is there ---- */

/* The log, to be read: whoever started this process may have opened it, for writing only. NULL: it
 * is no regular file, or may not be read. */
static FILE *open_to_read(int fd)
{
    struct stat st;
    char path[40];
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fopen(path, "re");
}

struct found {
    int is_ours;   /* the last training that is named is this one */
    uint64_t last; /* its highest step: a process that was asleep may have said an older one */
    off_t whole;   /* bytes, until the last newline */
};

static void read_line(struct found *found, const char *line, const char *training,
                      int64_t steps_per_epoch)
{
    static const char head[] = "training ";
    int64_t epoch = 0;
    int64_t step = 0;
    if (strncmp(line, head, sizeof(head) - 1) == 0) {
        const char *name = line + sizeof(head) - 1;
        const size_t n = strlen(training);
        found->is_ours = strncmp(name, training, n) == 0 && strcmp(name + n, "\n") == 0;
        found->last = 0;
    } else if (found->is_ours &&
               sscanf(line, "epoch: %" SCNd64 " step: %" SCNd64 ", loss is", &epoch, &step) == 2 &&
               epoch > 0 && step > 0 && step <= steps_per_epoch) {
        const uint64_t at = (uint64_t)((epoch - 1) * steps_per_epoch + step);
        found->last = at > found->last ? at : found->last;
    }
}

/* Lines that are longer than any of ours come in parts, of which none looks like one. */
static struct found look(FILE *file, const char *training, int64_t steps_per_epoch)
{
    struct found found = {0, 0, 0};
    char line[512];
    int begins = 1;
    while (fgets(line, sizeof(line), file) != NULL) {
        const int ends = strchr(line, '\n') != NULL;
        if (begins && ends) {
            read_line(&found, line, training, steps_per_epoch);
        }
        found.whole = ends ? ftello(file) : found.whole;
        begins = ends;
    }
    return found;
}

static int is_torn(int fd, off_t whole)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_size > whole;
}

static void drop_torn(int fd, off_t whole)
{
    if (is_torn(fd, whole) && ftruncate(fd, whole) == 0) {
        (void)lseek(fd, 0, SEEK_END); /* one that was not opened to append */
    }
}

/* ---- the file is this process's ---- */

static int copy(FILE *from, int to, off_t n)
{
    char bytes[1 << 16];
    rewind(from);
    while (n > 0) {
        const size_t want = n < (off_t)sizeof(bytes) ? (size_t)n : sizeof(bytes);
        if (fread(bytes, 1, want, from) != want || write(to, bytes, want) != (ssize_t)want) {
            return 0;
        }
        n -= (off_t)want;
    }
    return 1;
}

/* Another file with the same whole lines takes the path, and the descriptor; whoever took it anew
 * since has the path. Where it cannot be made the old one stays: that is no reason not to train. */
static int make_anew(FILE *file, int fd, const char *path, off_t whole)
{
    char anew[MS_PATH_MAX + 8];
    snprintf(anew, sizeof(anew), "%s.new", path);
    (void)unlink(anew); /* of one that was killed here */
    const int new_fd = open(anew, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (new_fd < 0) {
        return 0;
    }
    const int is_made = copy(file, new_fd, whole) && ms_name_leads_to(AT_FDCWD, path, 0, fd) &&
                        rename(anew, path) == 0 && dup3(new_fd, fd, O_CLOEXEC) >= 0;
    if (!is_made) {
        (void)unlink(anew);
    }
    close(new_fd);
    return is_made;
}

void rank_log_open(struct rank_log *log, int fd, const char *path, const char *training, int rank,
                   int world, int64_t steps_per_epoch)
{
    *log = (struct rank_log){.fd = fd, .steps_per_epoch = steps_per_epoch};
    char whose[128];
    snprintf(whose, sizeof(whose), "%s: rank %d of %d", training, rank, world);
    FILE *file = fd >= 0 && training[0] != '\0' ? open_to_read(fd) : NULL;
    if (file == NULL) {
        return;
    }
    const struct found found = look(file, whose, steps_per_epoch);
    const int is_anew = found.is_ours && path != NULL && make_anew(file, fd, path, found.whole);
    fclose(file);
    if (found.is_ours) { /* else what is torn, or still being written, is another's */
        log->last = found.last;
    }
    if (found.is_ours && !is_anew) {
        drop_torn(fd, found.whole);
    } else if (!found.is_ours) {
        rank_log_say(log, "%straining %s\n", is_torn(fd, found.whole) ? "\n" : "", whose);
    }
}

/* ---- what comes ---- */

void rank_log_say(const struct rank_log *log, const char *fmt, ...)
{
    if (log->fd < 0) {
        return;
    }
    char line[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    const size_t size = n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1;
    ssize_t written = write(log->fd, line, size);
    (void)written; /* a full disk under the log does not stop the training */
}

void rank_log_step(struct rank_log *log, uint64_t step, float loss)
{
    if (step <= log->last) {
        return;
    }
    char number[32];
    const int64_t at = (int64_t)step - 1;
    log->last = step;
    rank_log_say(log, "epoch: %" PRId64 " step: %" PRId64 ", loss is %s\n",
                 at / log->steps_per_epoch + 1, at % log->steps_per_epoch + 1,
                 metrics_format_loss(loss, number, sizeof(number)));
}
