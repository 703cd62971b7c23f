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

# A worker that was killed, or asked to leave: where the job recovers it waits for that rank.
# shellcheck disable=SC2154 # recovers is of who calls
is_awaited() { # LOG STATUS
    [ "$recovers" = 1 ] || return 1
    [ "$2" -le 128 ] || return 0
    [ "$2" -eq 5 ] && tail -n 3 "$1" | grep -q 'asked to end by signal'
}

# Workers that have registered and not left, as the scheduler's log has it: those that were started by hand, of an earlier
# start, and of another machine, too. Of ours one that has ended is none, though the log may not say so yet.
# shellcheck disable=SC2154 # ids are of who calls
n_there() { # SCHEDULER'S LOG
    local pid words=''
    for pid in "${!ids[@]}"; do
        [ -n "${logs[pid]:-}" ] || words+=" ${ids[pid]}:$pid"
    done
    sed -nE 's/.* (warning |error )?node\.(registered|lost|left|away) node="([^"]*)"(.* pid=([0-9]+) .*)?.*/\2 \3 \5/p' "$1" |
        awk -v ended="$words " '
            { there[$2] = $1 == "registered" && index(ended, " " $2 ":" $3 " ") == 0 }
            END { for (id in there) n += there[id]; print n + 0 }'
}

# Until the job is over. The scheduler ends with it, with its status; but for workers that failed before they came to it,
# it would wait MS_TOPO_TIMEOUT, and nobody may be left. Of the caller: scheduler, its pid; left, how many workers of this
# host have not ended; logs[PID], of all of them; ids[PID], the node ids of workers; again[PID], what starts one again.
# shellcheck disable=SC2034,SC2154
supervise() { # sets status
    local log failed=0 # status of a worker that ended badly
    local never=0      # ... before it came to the scheduler
    status=
    while [ -z "$status" ]; do
        next_end
        log=${logs[pid]}
        unset "logs[$pid]"
        if [ "$ended" -ne 0 ] && is_needless "$log" "$pid"; then
            left=$((left - 1))
            continue
        fi
        [ "$ended" -eq 0 ] || tell "$log" "$ended"
        if [ "$pid" = "$scheduler" ]; then
            status=$ended
            [ "$recovers" != 1 ] || [ "$ended" -le 128 ] || [ -z "${MS_RECOVERY_PATH:-}" ] || [ "$(n_there "$log")" -eq 0 ] ||
                tell_again "the workers train on without their scheduler" "MS_ROLE=MS_SCHED $(command -v msschedd) >>device/scheduler.log 2>&1 &"
            continue
        fi
        left=$((left - 1))
        if [ "$ended" -ne 0 ]; then
            failed=$ended
            grep -qE "node\.registered node=\"${ids[pid]}\" .* pid=$pid " device/scheduler.log || never=1
            ! is_awaited "$log" "$ended" || [ "$(n_there device/scheduler.log)" -eq 0 ] ||
                tell_again "the job waits for that rank" "${again[pid]}"
        fi
        if [ "$left" -eq 0 ] && [ "$failed" -ne 0 ] && { [ $never -eq 1 ] || [ "$(n_there device/scheduler.log)" -eq 0 ]; }; then
            kill "$scheduler" 2>/dev/null || true
            wait "$scheduler" || true
            status=$failed
            [ "$recovers" != 1 ] || [ -z "${MS_RECOVERY_PATH:-}" ] || [ $never -eq 1 ] ||
                echo "nobody is left who trains: a second start of this script goes on with the job, from its last checkpoint" >&2
        fi
    done
}
