/* log_read.h - answers the scheduler's LogRead with a piece of a rank's log */
#ifndef LOG_READ_H
#define LOG_READ_H

#include "proto/cluster.pb-c.h"
#include "proto/conn.h"

/* Sends one LogChunk on conn: up to bytes_max (and MS_LOG_CHUNK_MAX) bytes from offset, or the
 * reason why not. log_path as in agent.h. Loop thread. */
void log_read_answer(struct ms_conn *conn, const Ms__LogRead *request,
                     int (*log_path)(void *arg, const Ms__LogRead *request, char *buf, size_t size),
                     void *arg);

#endif
