#!/usr/bin/env bash
# t2008-clock.sh - a copy of the database is not served by a clock that is behind: its numbers go on by it; and a clock
# that is corrected ends no run
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" cc
. "$(dirname "$0")/standing.sh"

# A clock that says what $MSCHED_TEST_CLOCK says, in seconds.
cat >"$T/clock.c" <<'END'
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *at)
{
    const char *text = getenv("MSCHED_TEST_CLOCK");
    long rc = syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_REALTIME && text != NULL) {
        at->tv_sec = atol(text);
    }
    return (int)rc;
}
END
cc -shared -fPIC -o "$T/clock.so" "$T/clock.c" || skip_all "cc makes no library here"
export ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-}
at() { # SECONDS command...
    local seconds=$1
    shift
    env LD_PRELOAD="$T/clock.so" MSCHED_TEST_CLOCK="$seconds" "$@"
}
b() { # SECONDS option...: a start that ends by itself
    local seconds=$1
    shift
    at "$seconds" "$MSSCHEDD" --config "$T/empty.conf" --listen none --tls off --socket "$T/b.sock" \
        --database "$T/b.db" "$@"
}
HEAD=unix:$T/a.sock
make_job job 9 1
ok "a scheduler serves" start_sched a
ok "a job is submitted" says 1 ctl a submit "$T/job.yaml"
stop a
cp "$T/a.db" "$T/b.db"

ok "a clock of 1970 does not serve a copy" status 75 b 72
ok "which names the clock" says "the clock of this host says 1970-01-01" b 72
ok "and what sets it" says "timedatectl" b 72
ok "nor does one of 2021" status 75 b 1610000000
ok "which is behind what happened" says "the clock of this host says 2021-01-07" b 1610000000
ok "nor a clock of 1970 with --accept-loss" status 75 b 72 --accept-loss
now=$(date +%s)
start b env LD_PRELOAD="$T/clock.so" MSCHED_TEST_CLOCK="$now" "$MSSCHEDD" --config "$T/empty.conf" --listen none \
    --tls off --socket "$T/b.sock" --database "$T/b.db"
ok "a clock that is right does" wait_for 60 ready b
ok "with numbers by it" says "$(((now - 1577836800) / 1000))" ctl b submit "$T/job.yaml"
stop b
ok "a database that is no copy is served by any clock" start c env LD_PRELOAD="$T/clock.so" MSCHED_TEST_CLOCK=72 \
    "$MSSCHEDD" --config "$T/empty.conf" --listen none --tls off --socket "$T/a.sock" --database "$T/a.db"
ok "as before" wait_for 60 ready c
stop c

# ---- a run whose clock is corrected, by years: who is started again has the certificates of before
cat >"$T/moved.c" <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long moved_s(void)
{
    long seconds = 0;
    FILE *file = fopen(getenv("MSCHED_TEST_MOVED"), "re");
    if (file != NULL) {
        if (fscanf(file, "%ld", &seconds) != 1) {
            seconds = 0;
        }
        fclose(file);
    }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *at)
{
    long rc = syscall(SYS_clock_gettime, id, at);
    if (id == CLOCK_REALTIME) {
        at->tv_sec += moved_s();
    }
    return (int)rc;
}
time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL) {
        *at = now.tv_sec;
    }
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
END
ok "a clock can be moved" cc -shared -fPIC -o "$T/moved.so" "$T/moved.c"
cat >"$T/long.yaml" <<'YAML'
name: clock
workers: 2
recovery: true
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 1000000
loss: mse
optimizer: {kind: momentum, learning_rate: 0.0001, momentum: 0.9}
YAML
trains() { [ "$(grep -c '"step":' "$T/moved/metrics.jsonl" 2>/dev/null)" -ge "$1" ]; }
went_on() { [ "$(grep -cF "went on from step" "$T/moved.log")" -ge "$1" ]; }
year=$((365 * 86400))
start moved env LD_PRELOAD="$T/moved.so" MSCHED_TEST_MOVED="$T/moved.s" "$MSCTL" run --run-dir "$T/moved" "$T/long.yaml"
ok "a run trains" wait_for 120 trains 200
n=0
for seconds in $((-2 * year)) $((20 * year)); do
    n=$((n + 1))
    echo "$seconds" >"$T/moved.new"
    mv "$T/moved.new" "$T/moved.s"
    kill -KILL "$(children moved msschedd)" "$(children moved msworker 2 | tail -n 1)"
    ok "scheduler and worker come back to a clock that was moved by $seconds s" wait_for 120 went_on $n
done
kill -INT "${pid_of[moved]}"
ok "INT ends it with 130" status 130 reap moved
finish
