#!/usr/bin/env bash
# t0002-configuration.sh - where settings come from, and what is said about wrong ones
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD"

check() { "$MSSCHEDD" --config "$T/c.conf" --tls off "$@" --check-config; }
dynamic() { env MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=18118 MS_WORKER_NUM=2 "$@"; }
plain() { "$MSSCHEDD" --config "$T/c.conf" --socket none --database "$T/x.db" "$@"; }

: >"$T/c.conf"
ok "a built-in value says so" says "lease_ms = 10000   # from: built-in" check
echo "lease_ms = 2000" >"$T/c.conf"
ok "the file beats what is built in" says "lease_ms = 2000   # from: file $T/c.conf, line 1" check
ok "the environment beats the file" says "lease_ms = 3000   # from: environment MSCHED_LEASE_MS" \
    env MSCHED_LEASE_MS=3000 "$MSSCHEDD" --config "$T/c.conf" --tls off --check-config
ok "a flag beats them all" says "lease_ms = 4000   # from: flag --lease-ms" \
    env MSCHED_LEASE_MS=3000 "$MSSCHEDD" --config "$T/c.conf" --tls off --lease-ms 4000 --check-config
echo "lease_sm = 2000" >"$T/c.conf"
ok "an unknown key is refused with the nearest" says "did you mean 'lease_ms'" check
ok "with status 78" status 78 check
: >"$T/c.conf"
ok "a missing file that was named is refused" status 78 "$MSSCHEDD" --config "$T/none.conf" --check-config
ok "a value out of range is refused with the range" says "1000 to 3600000" check --lease-ms 5
ok "what a start would refuse, the check refuses: no certificate at a public address" \
    status 78 "$MSSCHEDD" --config "$T/c.conf" --tls-cert none --check-config
ok "a certificate that is not there" \
    status 78 "$MSSCHEDD" --config "$T/c.conf" --tls-cert "$T/none.p12" --check-config
ok "an unknown flag is refused with the nearest" says "did you mean '--listen'" check --listne x
ok "a stray word is refused" status 78 check stray
ok "a database where no folder is" status 78 check --database "$T/no/x.db"
ok "which is said" says "its folder must exist" check --database "$T/no/x.db"
ok "a socket where no folder is" status 78 check --socket "$T/no/x.sock"
echo "no database" >"$T/text.db"
ok "a database that is none" says "is no database" check --database "$T/text.db"
ok "where a start would do, the check is content" status 0 check --database "$T/new.db" --socket "$T/new.sock"
ok "and makes nothing" [ ! -e "$T/new.db" ]
ok "an address that somebody forgot to write is no wish for none" status 78 check --listen ''
ok "nor is a list of revoked certificates" says "tls_crl is empty: write the path of the list" \
    "$MSSCHEDD" --config "$T/c.conf" --tls-cert "$T/none.p12" --tls-crl '' --check-config
ok "a port without a host is refused" status 78 check --listen 8118
ok "with what to write" says "listen: address '8118': a number alone is no host; write host:port ([::]:8118" check --listen 8118
node_check() { "$MSWORKER" --server 127.0.0.1:1 --tls off --jobs-dir "$T/new" "$@" --check-config; }
if [ -x "$MSWORKER" ]; then
    ok "a worker's check is content" status 0 node_check
    ok "and makes no jobs_dir" [ ! -e "$T/new" ]
    ok "ports that are no range are refused by the check" status 78 node_check --data-port-min 9000
    ok "by their names" says "data_port_min 9000 and data_port_max 8455" node_check --data-port-min 9000
    ok "an address that is none of this host's" status 78 node_check --worker-ip 192.0.2.1
    ok "by the name of its setting" says "worker_ip: no interface of this host has the address 192.0.2.1" \
        node_check --worker-ip 192.0.2.1
    ok "an interface is no address" says "worker_ip: 'lo' is the name of an interface" node_check --worker-ip lo
    ok "whenever it comes" status 78 "$MSWORKER" --server 127.0.0.1:1 --tls off --jobs-dir "$T/jobs" --worker-ip lo
    ok "a start may come too early for it and is tried again" status 75 "$MSWORKER" --server 127.0.0.1:1 --tls off --jobs-dir "$T/jobs" --worker-ip 192.0.2.1
    if ldd "$MSWORKER" | grep -q libgomp; then
        small_stacks() { OMP_STACKSIZE=16k node_check "$@"; }
        ok "stacks of OpenMP that end the process in a step are refused before the start" status 78 small_stacks
        ok "with what they need" says "OMP_STACKSIZE=16k: threads of OpenMP get stacks of 16 KiB here, and kernels need 256: unset it" small_stacks
        vast_stacks() { OMP_STACKSIZE=900000G node_check "$@"; }
        ok "and such as no memory has room for" status 78 vast_stacks
        ok "in words" says "OMP_STACKSIZE=900000G: OpenMP can make no thread with such a stack here: unset it, or lower it" vast_stacks
    fi
    cat >"$T/kill.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
pid_t fork(void) /* the first of a process are killed before they do anything */
{
    static int n;
    pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
    const pid_t pid = real();
    if (n++ < atoi(getenv("MSCHED_TEST_KILLS")) && pid == 0) {
        raise(SIGKILL);
    }
    return pid;
}
END
    if cc -shared -fPIC -o "$T/kill.so" "$T/kill.c" -ldl 2>/dev/null; then
        killed() { # TIMES
            ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-} LD_PRELOAD="$T/kill.so" MSCHED_TEST_KILLS="$1" node_check
        }
        ok "a probe that somebody kills says nothing of stacks" status 0 killed 1
        ok "and is no fault of the configuration, however often" status 75 killed 9
        ok "in words" says "the process that measures the stacks of OpenMP's threads was ended by signal 9 (Killed), 3 times" killed 9
    fi
    printf 'nam: x\n' >"$T/bad.yaml"
    of_cluster() { dynamic MS_ROLE=MS_WORKER "$@"; }
    ok "a job that is not legal is 2" status 2 of_cluster "$MSWORKER" "$T/bad.yaml"
    ok "one that is not there, too" status 2 of_cluster "$MSWORKER" "$T/none.yaml"
    ok "two of them" status 2 of_cluster "$MSWORKER" "$T/bad.yaml" "$T/none.yaml"
    ok "or none" status 2 of_cluster "$MSWORKER"
    ok "a variable that is not legal is 78" status 78 of_cluster MS_WORKER_NUM=x "$MSWORKER" "$T/bad.yaml"
    ok "an address of another host, too" status 78 of_cluster MS_WORKER_IP=192.0.2.1 "$MSWORKER" "$ROOT/examples/nonlinear.yaml"
    ok "which is named" says "MS_WORKER_IP: no interface" of_cluster MS_WORKER_IP=192.0.2.1 "$MSWORKER" "$ROOT/examples/nonlinear.yaml"
    ok "a jobs_dir that a start could not make" status 78 node_check --jobs-dir "$T/no/jobs"
    ok "makes no folder above it either" [ ! -e "$T/no" ]
fi

# a group that is named must be there, and on a host without an installation it is not
ok "the sample file names the built-in group of the socket" bash -c '
    group=$(sed -n "s/^#\(socket_group = .*\)/\1/p" "$ROOT/systemd/msschedd.conf") &&
    "$MSSCHEDD" --config "$1/c.conf" --check-config 2>/dev/null | grep -q "^$group "' - "$T"
ok "the sample file is legal and changes nothing" bash -c '
    sed -n "s/^#\([a-z_]* = .*\)/\1/p" "$ROOT/systemd/msschedd.conf" |
        grep -v "^tls_config\|^tls_password_file\|^tls_c\|^socket_group" >"$1/sample.conf" &&
    [ "$(wc -l <"$1/sample.conf")" -ge 7 ] &&
    diff <("$MSSCHEDD" --config "$1/sample.conf" --check-config 2>/dev/null | sed "s/ *#.*//") \
         <("$MSSCHEDD" --config "$1/c.conf" --check-config 2>/dev/null | sed "s/ *#.*//")' - "$T"

for flag in $("$MSSCHEDD" --help | grep -o '^  --[a-z-]*'); do
    ok "the man page has $flag" grep -q -- "Fl ${flag#-}\b" "$ROOT/docs/man/msschedd.8"
done
for variable in $(env MS_ROLE=MS_SCHED MS_SCHED_HOST=::1 MS_SCHED_PORT=8118 MS_WORKER_NUM=1 \
    "$MSSCHEDD" --check-config | grep -o '^MS_[A-Z_]*'); do
    case $variable in MS_NODE_ID | MS_WORKER_IP) continue ;; esac # of workers
    ok "the man page has $variable" grep -q "$variable" "$ROOT/docs/man/msschedd.8"
done
if [ -x "$MSWORKER" ]; then
    for flag in $("$MSWORKER" --help | grep -o '^  --[a-z-]*'); do
        ok "msworker's man page has $flag" grep -q -- "Fl ${flag#-}\b" "$ROOT/docs/man/msworker.8"
    done
fi
if command -v mandoc >/dev/null; then
    ok "the man pages are legal" mandoc -Tlint -W warning "$ROOT/docs/man/msschedd.8" "$ROOT/docs/man/msworker.8"
fi

if [ -x "$MSWORKER" ]; then
    ok "every key of msworker.conf is one of msworker's" bash -c '
        help=$("$MSWORKER" --help)
        for key in $(sed -n "s/^#\([a-z_]*\) = .*/\1/p" "$ROOT/systemd/msworker.conf"); do
            case $help in *"--${key//_/-}"*) ;; *) echo "$key"; exit 1 ;; esac
        done'
fi
if [ -x "$MSCTL" ]; then
    sed -n 's/^#\([a-z_]* = .*\)/\1/p' "$ROOT/systemd/msctl.conf" | sed 's/^server = .*/server = 127.0.0.1:1/; s/^tls = .*/tls = off/' >"$T/msctl.conf"
    ok "msctl takes every key of msctl.conf, and finds nobody" status 3 "$MSCTL" --config "$T/msctl.conf" status
fi

ok "a public address without certificates is refused" status 78 plain --listen 0.0.0.0:0
ok "and both ways out are named" says "certs issue scheduler HOST" plain --listen 0.0.0.0:0
ok "the other one" says "tls = off in" plain --listen 0.0.0.0:0
ok "whose start line does not say that TLS is off" says "tls=no-certificate" plain --listen 0.0.0.0:0
ok "in the journal a wrong setting is an error without a time stamp" \
    says "<3>scheduler.failed code=" env JOURNAL_STREAM=1:1 "$MSSCHEDD" --log-level bogus
[ ! -x "$MSWORKER" ] || ok "a worker's, too" says "<3>worker.ended reason=" env JOURNAL_STREAM=1:1 "$MSWORKER" --isa avx9
ok "--tls on without certificates is refused on loopback too" status 78 plain --listen 127.0.0.1:0 --tls on

ok "the dynamic cluster prints its environment" says "MS_WORKER_NUM = 2   # from: environment" \
    dynamic "$MSSCHEDD" --check-config
ok "and the built-in timeouts" says "MS_TOPO_TIMEOUT = 1800   # from: built-in" \
    dynamic "$MSSCHEDD" --check-config
ok "a missing variable is named" says "MS_WORKER_NUM is not set" \
    env MS_ROLE=MS_SCHED MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=8118 "$MSSCHEDD"
while read -r variable value part; do
    ok "$variable=$value is refused with 78" status 78 dynamic env "$variable=$value" "$MSSCHEDD"
    ok "... and says: $part" says "$part" dynamic env "$variable=$value" "$MSSCHEDD"
done <<'LIST'
MS_WORKER_NUM 0 1 to 1024
MS_WORKER_NUM 1000000 1 to 1024
MS_WORKER_NUM eight 1 to 1024
MS_SCHED_PORT 80 1024 to 65535
MS_SCHED_PORT 8118x 1024 to 65535
MS_NODE_TIMEOUT 0 1 to 3600 seconds
MS_TOPO_TIMEOUT soon 1 to 604800 seconds
MS_ENABLE_RECOVERY 2 0 or 1
MS_DISABLE_HEARTBEAT yes 0 or 1
MS_ROLE MS_WORKER this program is the scheduler
MS_ROLE MS_PSERVER no parameter servers
MS_SERVER_NUM 1 no parameter servers
MS_ENABLE_SSL 1 MS_TLS_CONFIG=/path/to/tls.json
MS_TLS_CONFIG /nonexistent.json /nonexistent.json
MS_SCHED_HOST 192.0.2.1 no interface of this host
LIST
finish
