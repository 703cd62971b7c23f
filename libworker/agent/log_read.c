/* log_read.c - answers the scheduler's LogRead with a piece of a rank's log */
#include "libworker/agent/log_read.h"

#include "proto/limits.h"
#include "proto/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_piece(const char *path, const Ms__LogRead *request, uint8_t *buf, size_t size,
                      size_t *ret_n, struct ms_err *err)
{
    struct stat st;
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* a FIFO must not hold us */
    if (fd < 0) {
        return ms_fail_errno(err, MS_E_NOT_FOUND, "cannot open the log %s", path);
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return ms_fail(err, MS_E_NOT_FOUND, "the log %s is no regular file", path);
    }
    ssize_t n = pread(fd, buf, size, (off_t)request->offset);
    if (n < 0) {
        ms_fail_errno(err, MS_E_IO, "cannot read the log %s", path);
        close(fd);
        return MS_E_IO;
    }
    close(fd);
    *ret_n = (size_t)n;
    return 0;
}

void log_read_answer(struct ms_conn *conn, const Ms__LogRead *request,
                     int (*log_path)(void *arg, const Ms__LogRead *request, char *buf, size_t size),
                     void *arg)
{
    static uint8_t buf[MS_LOG_CHUNK_MAX - 1024]; /* the loop thread's; head room for the message */
    Ms__LogChunk chunk = MS__LOG_CHUNK__INIT;
    struct ms_err err = {0, ""};
    char path[MS_PATH_MAX + 1];
    size_t size = request->bytes_max != 0 && request->bytes_max < sizeof(buf) ? request->bytes_max
                                                                              : sizeof(buf);
    size_t n = 0;
    chunk.route = request->route;
    chunk.offset = request->offset;
    if (log_path == NULL || log_path(arg, request, path, sizeof(path)) <= 0) {
        chunk.code =
            ms_fail(&err, MS_E_NOT_FOUND,
                    "the node has no log of rank %u of job %" PRIu64
                    " any more: its folder was cleaned (job_keep_days of the node), or it moved",
                    request->rank, request->job);
    } else {
        chunk.code = read_piece(path, request, buf, size, &n, &err);
    }
    chunk.text = err.text;
    chunk.data.data = buf;
    chunk.data.len = n;
    chunk.at_end = n < size;
    if (ms_conn_send(conn, MS_MSG_LOG_CHUNK, 0, &chunk.base, &err) < 0) {
        ms_log(MS_LOG_WARNING, "agent.log_chunk_failed reason=%s, ignoring", MS_QUOTE(err.text));
    }
}
