# lib.sh - what every end-to-end test shares: real programs, a folder of its own, TAP
#
# A test is a bash script that sources this file, calls `ok "what must hold" command...` and ends with
# `finish`. Nothing sleeps to wait for something: wait_for polls a condition, with a bound far above
# what a slow machine needs, for it is there to end a test that would hang, and judges nothing. Schedulers get ports that the kernel
# gives to nobody else while they are down. At the end everything that was started
# is killed, and a process that is left over fails the test.
# shellcheck shell=bash

set -u
umask 022

# Two things that a shell cannot do to itself: who starts the tests with nohup must not make our programs deaf to
# HUP; and processes whose parent is gone become children of this shell (PR_SET_CHILD_SUBREAPER), where alive() finds
# them. Python ignores two signals that its children must not.
if [ "${MSCHED_E2E_REAPER:-}" != $$ ]; then
    export MSCHED_E2E_REAPER=$$ # stays the same through exec
    exec python3 -c '
import ctypes, os, signal, sys
if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) != 0:
    sys.exit("no PR_SET_CHILD_SUBREAPER")
for name in signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ:
    signal.signal(name, signal.SIG_DFL)
os.execvp("bash", ["bash"] + sys.argv[1:])' "$0" "$@"
fi

ROOT=${MSCHED_SOURCE_ROOT:?set MSCHED_SOURCE_ROOT}
BUILD=${MSCHED_BUILD_ROOT:?set MSCHED_BUILD_ROOT}
MSSCHEDD=$BUILD/daemon/msschedd
MSWORKER=$BUILD/libworker/msworker
MSCTL=$BUILD/cli/msctl
export ROOT MSSCHEDD MSWORKER MSCTL

T=$(mktemp -d "${TMPDIR:-/tmp}/msched-e2e-XXXXXX") || exit 99
# the surroundings must not decide what is tested
for variable in $(compgen -e); do
    case $variable in
    MS_* | MSCHED_LISTEN | MSCHED_SOCKET* | MSCHED_DATABASE | MSCHED_TLS* | MSCHED_L* | MSCHED_ANYONE | \
        MSCHED_USER_MAP | MSCHED_PRIORITY_USERS | MSCHED_NODE* | NOTIFY_SOCKET | \
        LISTEN_FDS | LISTEN_PID | WATCHDOG_USEC | JOURNAL_STREAM | CREDENTIALS_DIRECTORY)
        unset "$variable"
        ;;
    esac
done
export HOME=$T/home # no msctl.conf of a user
mkdir -p "$HOME"

test_count=0
test_failed=0
declare -A pid_of=()

diag() { sed 's/^/# /' >&2; }

# Programs of ours below this shell that are alive (no zombies), one pid a line. Parents and names are for everybody
# to read; environment, descriptors and file of our programs, which let nobody look into them, for root only.
alive() {
    local pid name
    ps -e -o pid= -o ppid= -o stat= -o comm= | awk -v top="$MSCHED_E2E_REAPER" '
        { parent[$1] = $2; state[$1] = $3; name[$1] = $4 }
        END {
            for (pid in parent) {
                up = pid
                while (up in parent && up != top) up = parent[up]
                if (up == top && pid != top && state[pid] !~ /^Z/) print pid, name[pid]
            }
        }' | while read -r pid name; do
        case $name in
        msschedd | msworker | msctl) echo "$pid" ;;
        *)
            case $(readlink "/proc/$pid/exe" 2>/dev/null) in
            "$BUILD"/*) echo "$pid" ;;
            esac
            ;;
        esac
    done
}

cleanup() {
    local name pid left
    [ "$BASHPID" = $$ ] || return # a program that was told to end before its shell had become it
    trap - EXIT
    for name in "${!pid_of[@]}"; do
        kill -KILL "${pid_of[$name]}" 2>/dev/null
        wait "${pid_of[$name]}" 2>/dev/null
    done
    left=$(alive)
    for pid in $left; do
        kill -KILL "$pid" 2>/dev/null
    done
    for name in ${MOUNTS:-}; do
        umount "$name" 2>/dev/null
    done
    if [ -n "${KEEP:-}" ]; then
        echo "# kept: $T" >&2
    else
        rm -rf "$T"
    fi
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# ok "sentence" command...: one test
ok() {
    local what=$1
    shift
    test_count=$((test_count + 1))
    if "$@" >"$T/ok.out" 2>&1; then
        echo "ok $test_count - $what"
    else
        echo "not ok $test_count - $what"
        test_failed=$((test_failed + 1))
        {
            echo "failed: $*"
            tail -n 20 "$T/ok.out"
            for log in "$T"/*.log; do
                [ -f "$log" ] && echo "--- $log" && tail -n 5 "$log"
            done
        } | diag
    fi
}

# For what the bound cannot be met here at all.
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

# The last test of all: nothing is left over. Then the plan.
finish() {
    local name left
    for name in "${!pid_of[@]}"; do
        stop "$name"
    done
    left=$(alive)
    ok "no process is left over" [ -z "$left" ]
    [ -n "$left" ] && ps -o pid,ppid,stat,args -p "$(echo "$left" | paste -sd,)" | diag
    echo "1..$test_count"
    [ $test_failed -eq 0 ]
    exit
}

# wait_for SECONDS command...: polls until the command succeeds. The seconds are a machine's that has nothing else to do: one that has,
# and a build with sanitizers, may take PATIENCE times as long.
PATIENCE=5
wait_for() {
    local bound=$(($1 * PATIENCE)) end
    shift
    end=$((SECONDS + bound))
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "waited $bound s for: $*"
            return 1
        fi
        sleep 0.02
    done
}

# start NAME command...: in the background, output to $T/NAME.log
start() {
    local name=$1
    shift
    "$@" >>"$T/$name.log" 2>&1 &
    pid_of[$name]=$!
}

has_ended() {
    local state
    state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) || return 0
    [ "$state" = Z ]
}

# children NAME PROGRAM [N]: pids of the children of what was started as NAME that run PROGRAM, one a line; it waits until
# there are N (1) of them. A child that was said to be started bears its parent's name until it has become the program.
children() {
    local pids=
    enough_children() {
        pids=$(ps -o pid= --ppid "$1" -o stat= -o comm= | awk -v want="$2" '$3 == want && $2 !~ /^Z/ { print $1 }')
        [ "$(grep -c . <<<"$pids")" -ge "$3" ] || has_ended "$1"
    }
    wait_for 60 enough_children "${pid_of[$1]}" "$2" "${3:-1}" >&2
    [ -z "$pids" ] || echo "$pids"
}

# stop NAME [SIGNAL]: sends it, waits for the end and returns the exit status
stop() {
    local pid=${pid_of[$1]:-}
    [ -n "$pid" ] || return 1
    kill "-${2:-TERM}" "$pid" 2>/dev/null
    reap "$1"
}

# reap NAME: waits for its end and returns its exit status; kills it after 25 minutes
reap() {
    local name=$1 pid=${pid_of[$1]:-} status
    [ -n "$pid" ] || return 1
    wait_for 300 has_ended "$pid" || kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    status=$?
    unset "pid_of[$name]"
    return $status
}

# status WANT command...: the command must end with exit status WANT
status() {
    local want=$1 got
    shift
    "$@"
    got=$?
    [ $got -eq "$want" ] || {
        echo "exit status $got, expected $want: $*"
        return 1
    }
}

# says "text" command...: the command's output must contain the text
says() {
    local text=$1 output
    shift
    output=$("$@" 2>&1)
    case $output in
    *"$text"*) return 0 ;;
    esac
    printf '%s\nlacks: %s\n' "$output" "$text"
    return 1
}

logged() { grep -qF -- "$2" "$T/$1.log"; }

# Address of the TCP listener of a daemon whose log is NAME.log: the last one that it announced.
address_of() {
    sed -n 's/.*scheduler\.listen address=\([^ ]*\) tls=o[nf]f*$/\1/p' "$T/$1.log" | tail -n 1
}
port_of() { address_of "$1" | sed 's/.*://'; }

ready() { [ "$(grep -c 'scheduler\.listen address=unix:' "$T/$1.log" 2>/dev/null)" -ge "${2:-1}" ]; }

# A port that nobody listens on, below those that the kernel gives to whoever asks for any: it stays free while its scheduler is down.
free_port() {
    python3 -c '
import random, socket
while True:
    port = random.SystemRandom().randrange(15000, 30000)
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
            break
        except OSError:
            pass
print(port)'
}

# start_sched NAME [option]...: a standing scheduler in $T, plain TCP on a free loopback port, Unix socket $T/NAME.sock, database $T/NAME.db
start_sched() {
    local name=$1 before
    shift
    before=$(grep -c 'scheduler\.listen address=unix:' "$T/$name.log" 2>/dev/null)
    start "$name" "$MSSCHEDD" --config "$T/empty.conf" --listen "127.0.0.1:$(free_port)" \
        --socket "$T/$name.sock" --database "$T/$name.db" --tls off "$@"
    wait_for 60 ready "$name" $((${before:-0} + 1))
}
: >"$T/empty.conf"

# ctl NAME word...: msctl for the scheduler NAME, over its Unix socket
ctl() {
    local name=$1
    shift
    "$MSCTL" --config "$T/empty.conf" --server "unix:$T/$name.sock" "$@"
}

# allow STEPS: so many may a job make whose records come from allowed.py with $T/allowed, of 16 records on each of its ranks
allow() {
    echo $(($1 * 16)) >"$T/allowed.new"
    mv "$T/allowed.new" "$T/allowed"
}

need() {
    local program
    for program in "$@"; do
        [ -x "$program" ] || command -v "$program" >/dev/null || skip_all "$program is not there"
    done
}
