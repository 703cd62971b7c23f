# run_dynamic_cluster_common.sh - what run_dynamic_cluster.sh, _1.sh and _2.sh share: where the programs are, and what
# follows, in words too, when one of them has ended
# shellcheck shell=bash

# The programs: of the build tree around us or of MSCHED_BIN, else those in PATH.
find_programs() { # PROGRAM...
    local program build=${MSCHED_BIN:-$(dirname "$0")/../build}
    PATH=$build/daemon:$build/libworker:${MSCHED_BIN:+$MSCHED_BIN:}$PATH
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "$0: $program is not in $build and not in PATH" >&2; exit 1; }
    done
}

# It is there once it listens. If it has ended instead, the last line of its log has the reason.
# shellcheck disable=SC2154 # scheduler, its pid, is of who calls
await_scheduler() { # LOG
    local i
    for ((i = 0; i < 100; i++)); do
        grep -q 'scheduler\.listen' "$1" && break
        kill -0 "$scheduler" 2>/dev/null || { tail -n 1 "$1" >&2; wait "$scheduler"; }
        sleep 0.1
    done
}

# Who fails says why in the last line of its log; who was killed could not.
tell() { # LOG STATUS
    [ "$2" -le 128 ] || echo "$1: ended by SIG$(kill -l "$2"); the last line of its log follows" >&2
    echo "$1: $(tail -n 1 "$1")" >&2
}

# The job outlives whoever was killed: what it waits for, and what starts that again in this folder. In one write, for who
# reads along is to find the command behind the words; the shell's own printf writes line by line.
tell_again() { # WHAT COMMAND
    local name line words="$1; start it again with"
    for name in $(compgen -e MS_) DATA_PATH; do
        case $name in
        MS_ROLE | MS_NODE_ID) ;;
        *)
            [ -n "${!name:-}" ] || continue
            printf -v line '\n    export %s=%q' "$name" "${!name}"
            words+=$line
            ;;
        esac
    done
    cat >&2 <<<"$words"$'\n'"    $2"
}

# A start beside an earlier one, whose scheduler is gone and whose workers live: the scheduler lets those go on, and refuses ours.
# True, and in words, if that is why this one ended.
is_needless() { # LOG PID
    local line
    line=$(grep -E "registered already: by pid [0-9]+ .*; this one is pid $2 " "$1" | tail -n 1)
    [ -n "$line" ] || return 1
    echo "$1: the worker with this id lives ($(grep -oE 'pid [0-9]+' <<<"$line" | head -n 1)) and goes on with the job; the one started here is not needed" >&2
}

# The next of those with a log in logs[PID] that has ended. `wait -n` misses who ends while another one is seen to.
# shellcheck disable=SC2034,SC2154 # ended is for who calls, logs of who calls
next_end() { # sets pid and ended
    local running
    while :; do
        running=" $(jobs -rp | tr '\n' ' ')"
        for pid in "${!logs[@]}"; do
            [[ $running == *" $pid "* ]] && continue
            ended=0
            wait "$pid" || ended=$?
            return
        done
        sleep 0.2
    done
}

# Until the job is over. The scheduler ends with it, with its status; but for workers that failed before they came to it,
# it would wait MS_TOPO_TIMEOUT. Of the caller: scheduler, its pid; left, how many workers of this host have not ended;
# logs[PID], of all of them; again[PID], what starts a worker again.
# shellcheck disable=SC2034,SC2154
supervise() { # ELSEWHERE: 1 where another machine has workers of the job, too; sets status
    local log was_killed elsewhere=$1 failed=0
    local others=0 # workers of an earlier start, which go on
    status=
    while [ -z "$status" ]; do
        next_end
        log=${logs[pid]}
        unset "logs[$pid]"
        if [ "$ended" -ne 0 ] && is_needless "$log" "$pid"; then
            others=$((others + 1))
            left=$((left - 1))
            continue
        fi
        [ "$ended" -eq 0 ] || tell "$log" "$ended"
        [ "$pid" = "$scheduler" ] || left=$((left - 1))
        was_killed=0 # and somebody is left who holds the training
        [ "$recovers" != 1 ] || [ "$ended" -le 128 ] || [ $((left + others + elsewhere)) -eq 0 ] || was_killed=1
        if [ "$pid" = "$scheduler" ]; then
            status=$ended
            [ $was_killed -eq 0 ] || [ -z "${MS_RECOVERY_PATH:-}" ] ||
                tell_again "the workers train on without their scheduler" "MS_ROLE=MS_SCHED $(command -v msschedd) >>device/scheduler.log 2>&1 &"
            continue
        fi
        [ $was_killed -eq 0 ] || tell_again "the job waits for that rank" "${again[pid]}"
        [ "$ended" -eq 0 ] || [ $((was_killed * elsewhere)) -eq 1 ] || failed=$ended
        if [ "$left" -eq 0 ] && [ "$failed" -ne 0 ] && [ $others -eq 0 ]; then
            kill "$scheduler" 2>/dev/null || true
            wait "$scheduler" || true
            status=$failed
        fi
    done
}
