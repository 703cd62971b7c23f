# run_dynamic_cluster_common.sh - what run_dynamic_cluster.sh, _1.sh and _2.sh share: their words about who has ended
# shellcheck shell=bash

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
