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

# The scheduler, with its log in ./device: that says what the scripts look for, whatever MSCHED_LOG_LEVEL leaves out of the others'.
# shellcheck disable=SC2034,SC2154 # logs is of who calls
start_scheduler() { # sets scheduler
    local level=${MSCHED_LOG_LEVEL:-info}
    [ "$level" = debug ] || level=info
    mkdir -p device
    [ ! -e device/scheduler.log ] || mv device/scheduler.log device/scheduler.before.log
    : >device/scheduler.log # there before anybody reads it, and without an older one's lines
    MSCHED_LOG_LEVEL=$level MS_ROLE=MS_SCHED msschedd >>device/scheduler.log 2>&1 &
    scheduler=$!
    logs[scheduler]=device/scheduler.log
    await_scheduler device/scheduler.log
}

# Has the scheduler found no job in MS_RECOVERY_PATH that is to go on?
has_no_job() { # LOG
    grep -q ' scheduler\.loaded jobs_queued=0 jobs_placed=0 ' "$1"
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
    printf -v line '\n    cd %q' "$PWD"
    words+=$line
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

# Children that have not ended, each between spaces.
who_runs() { echo " $(jobs -rp | tr '\n' ' ')"; }

# bash tells how a child ended as often as it is asked.
# shellcheck disable=SC2034 # ended is for who calls
take_end() { # PID; sets pid and ended
    pid=$1
    ended=0
    wait "$pid" || ended=$?
}

# One of those with a log in logs[PID] that have ended, the scheduler before all others. `wait -n` misses who ends while another one
# is seen to.
# shellcheck disable=SC2154 # logs and scheduler are of who calls
next_end() { # sets pid and ended
    local running
    while :; do
        running=$(who_runs)
        for pid in ${scheduler:-} "${!logs[@]}"; do
            [[ $running == *" $pid "* ]] && continue
            take_end "$pid"
            return
        done
        sleep 0.2
    done
}

# All of them that have: who did not end well is told of, and is in gone where the job waits for it.
# shellcheck disable=SC2034,SC2154 # gone is for who calls, logs of who calls
tell_ended() { # sets gone
    local log running
    running=$(who_runs)
    gone=()
    for pid in "${!logs[@]}"; do
        [[ $running == *" $pid "* ]] && continue
        log=${logs[pid]}
        unset "logs[$pid]"
        take_end "$pid"
        [ "$ended" -ne 0 ] || continue
        ! is_needless "$log" "$pid" || continue
        tell "$log" "$ended"
        ! is_awaited "$log" "$ended" || gone+=("$pid")
    done
}

# A worker that was killed, or asked to leave: where the job recovers it waits for that rank.
# shellcheck disable=SC2154 # recovers is of who calls
is_awaited() { # LOG STATUS
    [ "$recovers" = 1 ] || return 1
    [ "$2" -le 128 ] || return 0
    [ "$2" -eq 5 ] && tail -n 3 "$1" | grep -q 'asked to end by signal'
}

# Whatever else it is, it is no reason to begin anew; nor is one that was forgotten beside a folder that needs it.
check_recovery() { # VALUE
    [ "$1" = 0 ] || [ "$1" = 1 ] || { echo "$0: MS_ENABLE_RECOVERY=$1: it must be 0 or 1" >&2; exit 2; }
    [ "$1" = 1 ] || [ -z "${MS_RECOVERY_PATH:-}" ] || [ ! -e "$MS_RECOVERY_PATH/state.db" ] || {
        echo "$0: MS_RECOVERY_PATH=$MS_RECOVERY_PATH has the database of earlier starts, and MS_ENABLE_RECOVERY is not 1: set it to 1 to go on with a job that has not ended there, or unset MS_RECOVERY_PATH to leave it alone" >&2
        exit 2
    }
}

# Does the job name anything that lies in ./device, as checkpoints to go on from or first weights? Its paths are of its folder.
names_device() { # JOB
    local text name own path
    own=$(realpath device)
    text=$(sed -E 's/(^|[[:space:]])#.*//' "$1")
    for name in $(compgen -e); do
        text=${text//"\${$name}"/"${!name}"}
    done
    while IFS= read -r path; do
        [[ $path/ != "$own"/* ]] || return 0
    done < <(cd "$(dirname "$1")" && sed -E 's/[][{},"'\'']|:[[:space:]]|^[[:space:]]*-[[:space:]]/\n/g' <<<"$text" |
        sed -E 's/^[[:space:]]+//; s/[[:space:]]+$//; /^$/d' | tr '\n' '\0' | xargs -0r realpath -m --)
    return 1
}

# Is the job's file, or the folder of its database, in ./device? Nothing that starts there may take that away.
is_in_device() { # JOB
    local path own
    own=$(realpath -m device)
    for path in "$1" "${MS_RECOVERY_PATH:-}"; do
        [ -z "$path" ] || [[ $(realpath -m -- "$path")/ != "$own"/* ]] || return 0
    done
    return 1
}

# A job that begins gets a new ./device. What an earlier one saved there stays on the disk, under another name where this one
# does not go on from it.
make_room() { # JOB
    local away=device.before n=0 saved held=0
    saved=$(find device/ -name '*.safetensors' -print -quit 2>/dev/null) || true
    [ ! -d device ] || flock -n device true 2>/dev/null || held=$?
    if [ "$held" -eq 1 ]; then # each rank has a lock on it; where there are none flock ends otherwise
        echo "$0: workers of an earlier start live, and write to device: to go on with their job start its scheduler again as it was, with its MS_RECOVERY_PATH; to begin anew end them first" >&2
        exit 75
    fi
    if is_in_device "$1"; then
        [ -z "$saved" ] || {
            echo "$0: device has what an earlier start saved ($saved), and the job's file or MS_RECOVERY_PATH, too: move one of them elsewhere" >&2
            exit 2
        }
        rm -f device/worker_*.out
    elif [ -z "$saved" ]; then
        rm -rf device
    elif names_device "$1"; then
        rm -f device/worker_*.out
        echo "device stays, with what an earlier start saved: $1 names it"
    else
        while [ -e $away ] || [ -L $away ]; do
            n=$((n + 1))
            away=device.before.$n
        done
        mv device $away
        echo "what an earlier start saved in device is now in $away"
    fi
}

# Who listens at the port already has a job, and files in this folder, perhaps: nothing is touched.
check_port() { # HOST PORT
    # shellcheck disable=SC2016 # the words are of the shell inside
    ! timeout 2 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null ||
        { echo "$0: port $2 is in use at $1: another scheduler? end it, or set MS_SCHED_PORT" >&2; exit 75; }
}

# The scheduler was stopped, perhaps with all others (kill -9, no memory): what starts it again, or ends those whom none can know
# without MS_RECOVERY_PATH, and who of ours ended with it. The workers train on without it; but ours may be gone, and others, as who
# was started by hand, are not known here.
# shellcheck disable=SC2154 # logs and again are of who calls
tell_scheduler_gone() {
    local words commands n
    local -a gone
    sleep 1 # who is killed together does not end together
    tell_ended
    n=${#gone[@]}
    commands="MS_ROLE=MS_SCHED $(printf %q "$(command -v msschedd)") >>device/scheduler.log 2>&1 &"
    for pid in "${gone[@]}"; do
        commands+=$'\n'"    ${again[pid]}"
    done
    if [ -z "${MS_RECOVERY_PATH:-}" ]; then
        [ ${#logs[@]} -eq 0 ] || echo "the workers train on without their scheduler (pids ${!logs[*]}), and without MS_RECOVERY_PATH another one cannot know their job; end them with: kill ${!logs[*]} (where the job has checkpoints rank 0 saves its step then)" >&2
        return
    fi
    case $n:${#logs[@]} in
    0:0) words="none of the workers that were started here is left; others train on without their scheduler" ;;
    0:*) words="the workers train on without their scheduler" ;;
    *:0) words="the scheduler has ended with the workers that were started here" ;;
    *) words="the scheduler has ended with $n of the workers that were started here, and the others train on" ;;
    esac
    tell_again "$words" "$commands"
}

# The scheduler was killed or asked to end, or its database failed (75): the job is not over.
was_stopped() { # LOG STATUS
    [ "$2" -gt 128 ] || [ "$2" -eq 75 ] || { [ "$2" -eq 1 ] && tail -n 1 "$1" | grep -q ' scheduler\.end status=1 reason="a signal"'; }
}

# Until the job is over. The scheduler ends with it, with its status, and knows best who is there: workers that were started by
# hand, of an earlier start, and of another machine. But for those that failed before they came to it, as where the job is not
# legal, it would wait MS_TOPO_TIMEOUT: where all of ours did, and nobody is to be started again, it is ended.
# Of the caller: scheduler, its pid; left, how many workers of this host have not ended; logs[PID], of all of them;
# again[PID], what starts a worker again.
# shellcheck disable=SC2034,SC2154
supervise() { # sets status
    local log failed=0 # status of a worker that ended badly
    local waits=0      # the job waits for a rank, or workers of an earlier start have it
    local -a gone
    status=
    while [ -z "$status" ]; do
        next_end
        if [ "$pid" != "$scheduler" ] && is_awaited "${logs[pid]}" "$ended"; then
            sleep 1 # who is killed together does not end together: the scheduler's end says more
            next_end
        fi
        log=${logs[pid]}
        unset "logs[$pid]"
        if [ "$ended" -ne 0 ] && is_needless "$log" "$pid"; then
            waits=1
            left=$((left - 1))
            continue
        fi
        [ "$ended" -eq 0 ] || tell "$log" "$ended"
        if [ "$pid" = "$scheduler" ]; then
            status=$ended
            if [ "$recovers" = 1 ] && was_stopped "$log" "$ended"; then
                tell_scheduler_gone
            else # it ended with the job
                tell_ended
            fi
            continue
        fi
        left=$((left - 1))
        if is_awaited "$log" "$ended"; then
            waits=1
            tell_again "the job waits for that rank" "${again[pid]}"
        elif [ "$ended" -ne 0 ]; then
            failed=$ended
            # what is not legal, or no program, has as a rule not come to the scheduler; of others it knows, and what to do
            case $recovers:$ended in
            1:2 | 1:78 | 1:126 | 1:127) ;;
            1:4) # or was refused at its door, as with another job than is to go on there
                ! grep -q ' node\.registered ' device/scheduler.log || waits=1
                ;;
            1:*) waits=1 ;;
            esac
        fi
        if [ "$left" -eq 0 ] && [ "$failed" -ne 0 ] && [ $waits -eq 0 ]; then
            kill "$scheduler" 2>/dev/null || true
            wait "$scheduler" || true
            status=$failed
        fi
    done
}
