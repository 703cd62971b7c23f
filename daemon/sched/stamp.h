/* stamp.h - proof that the database still holds what was acknowledged
 *
 * Each tick that writes has a number, stored with it. Whoever is answered is told the number of the
 * last one that is durable with the answer, sealed with a secret of the database (a stamp), and
 * brings it when he comes again. A stamp above our own number proves that acknowledged writes are
 * missing: the scheduler says so and ends with 78. Nobody can make a stamp up.
 *
 *     bytes 0-7    number of the tick, big-endian
 *     bytes 8-23   the first 16 of HMAC-SHA256(secret, "msched stamp" and bytes 0-7)
 *
 * The same secret tells jobs apart whose numbers are the same, in folders of nodes that outlive a
 * database: a job's tag is the first 16 bytes of HMAC-SHA256(secret, "msched job", its number and
 * the time of its submission), in hexadecimal. */
#ifndef SCHED_STAMP_H
#define SCHED_STAMP_H

#include "daemon/sched/sched.h"

#include <stdbool.h>

struct conn;
struct job;

/* emit.c: the tick that is under way writes. */
void stamp_count(struct sched *s);
/* For the answer that is being made; tick memory. Empty without a database. */
ProtobufCBinaryData stamp_now(struct sched *s);
/* It is not one of this database's: never the empty one. */
bool stamp_is_foreign(const struct sched *s, const ProtobufCBinaryData *stamp);
void stamp_refuse_foreign(struct sched *s, const struct conn *conn, uint32_t frame_id);
/* Of one that is ours: true if it proves that the database lacks writes; then the request was
 * answered here. */
bool stamp_is_ahead(struct sched *s, const struct conn *conn, uint32_t frame_id,
                    const ProtobufCBinaryData *stamp);
/* All of these: true if the stamp cannot be let pass and the request was answered here. */
bool stamp_refused(struct sched *s, const struct conn *conn, uint32_t frame_id,
                   const ProtobufCBinaryData *stamp);
/* Tick memory. */
const char *job_tag(struct sched *s, const struct job *job);

#endif
