#!/usr/bin/env bash
# t3003-shared-checkpoints.sh - runs that share a folder of checkpoints never overwrite or take away what is another's: the
# second is refused before it trains, in words that help; a resumed run, and one that lost all its ranks, write on there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

FOLDER=$T/shared
cat >"$T/job.yaml" <<YAML
name: saves
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 320}
batch_size: 16
epochs: 3
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {directory: $FOLDER, prefix: small, every_steps: 2, keep_max: 3}
YAML
sed 's/^epochs: .*/epochs: 1000000/' "$T/job.yaml" >"$T/endless.yaml"

steps_there() { find "$FOLDER" -name "${1:-small}-*.json" 2>/dev/null | sed 's/.*-\([0-9]*\).json/\1/' | sort -n | tr '\n' ' '; }
few_to() { # LAST [PREFIX]: three at the most, the last is that; which are between, and on a slow disk how many, is the disk's
    [ "$(steps_there "${2:-small}" | wc -w)" -le 3 ] && same "$(newest "${2:-small}")" "$1"
}
newest() { steps_there "$@" | awk '{ print $NF + 0 }'; }
files() { find "$FOLDER" -mindepth 1 -printf '%P %i %s %T@\n' | sort; }
has_saved() { [ "$(newest "$1")" -ge "$2" ]; }
refused() { # TEXT NAME option... JOB: fails, says why, took no step, changed nothing, and calls nothing there its own
    local text=$1 name=$2 before
    shift 2
    before=$(files)
    status 1 "$MSCTL" run --run-dir "$T/$name" "$@" >"$T/$name.out" 2>&1 || { cat "$T/$name.out"; return 1; }
    grep -qF "$text" "$T/$name.out" || { cat "$T/$name.out"; return 1; }
    grep -qF "checkpoint.directory $FOLDER: " "$T/$name.out" && grep -q "write another checkpoint.prefix or checkpoint.directory" "$T/$name.out" &&
        ! grep -q '"step"' "$T/$name/metrics.jsonl" && ! grep -E '^  checkpoints|go on with: ' "$T/$name.out" && same "$(files)" "$before"
}

ok "a run saves to a folder of its own" run first "$T/job.yaml"
ok "three of them stay, no more" few_to 30
ok "the same job once more is refused" refused "small-30.json there is a checkpoint of another run of job saves" again "$T/job.yaml"
ok "another one, too" refused "small-30.json there is a checkpoint of job saves" other --set name=other --set seed=2 "$T/job.yaml"
kept=$(steps_there)
ok "with a prefix of its own it is not" run prefixed --set name=other --set seed=2 --set checkpoint.prefix=other --set checkpoint.keep_max=1 "$T/job.yaml"
ok "and takes away its own alone" same "$kept $(steps_there other)" "$(steps_there) 30 "
ok "a run that goes on writes on there" run longer --resume "$FOLDER/small-30.json" --set epochs=4 "$T/job.yaml"
ok "and no rank says that it passes over what it was told to take" bash -c '! grep -h "passed over" "$1"/longer/worker_[01].log' - "$T"
ok "and the oldest go, whichever run they are of" few_to 40
ok "so does one after that" run longest --resume "$FOLDER/small-40.json" --set epochs=5 "$T/job.yaml"
ok "nobody's are left over" few_to 50
ok "no lock stays" [ -z "$(find "$FOLDER" -name '.*')" ]

# ---- at once
rm -r "$FOLDER"
start live "$MSCTL" run --run-dir "$T/live" --set checkpoint.every_steps=1000000 "$T/endless.yaml"
ok "a run that has saved nothing yet holds the folder" wait_for 120 test -e "$FOLDER/.msched-lock-small"
pid=$(awk '{ print $2 }' "$FOLDER/.msched-lock-small")
ok "the same job at once is refused, and told who writes there" refused "process $pid on $(uname -n) (job saves) writes checkpoints small-* there now" \
    at_once "$T/endless.yaml"
ok "the first run is stopped" status 143 stop live TERM
ok "it saved its step" has_saved small 1
ok "the folder is free" [ ! -e "$FOLDER/.msched-lock-small" ]

# ---- resumed while the first run writes on
rm -r "$FOLDER"
start busy "$MSCTL" run --run-dir "$T/busy" --set checkpoint.keep_max=1000 "$T/endless.yaml"
ok "a run saves, and goes on" wait_for 120 has_saved small 4
ok "one that is resumed there meanwhile is refused" status 1 run meanwhile --resume "$FOLDER" "$T/endless.yaml"
ok "and shows no step of the first, nor that it lost any" bash -c '! grep -E "^  steps|not saved|go on with" "$1"' - "$T/meanwhile.out"
ok "the first run is stopped" status 143 stop busy TERM

# ---- resumed from an early one, where the later ones of its predecessor lie there: it comes to their steps again
rm -r "$FOLDER"
came_to() { # the newest step that a resumed run has there
    grep -ls '"first_tag"' "$FOLDER"/small-*.json | sed 's/.*-\([0-9]*\).json/\1/' | sort -n | awk '{ print $NF + 0 }' | tail -n 1
}
is_behind() { [ "$(came_to)" -gt "$1" ]; }
went_back_to() { # as the scheduler heard it: a rank says so only where steps are trained again
    sed -n 's/.* job\.recovered .*goes on from the checkpoint of step \([0-9]*\).*/\1/p' "$T/$1/scheduler.log" | tail -n 1
}
ok "a run saves all that it can" run far --set epochs=30 --set checkpoint.keep_max=1000 "$T/job.yaml"
ok "and another one nothing, to a later step" run farther --set epochs=31 --set checkpoint=null "$T/job.yaml"
early=$(steps_there | awk '{ print $1 }')
cp -a "$FOLDER" "$T/kept"
heir() { # WHO: it comes to a later step, its processes are killed, and it ends well
    rm -rf "$FOLDER" "$T/heir_$1"
    cp -a "$T/kept" "$FOLDER"
    start "heir_$1" "$MSCTL" run --run-dir "$T/heir_$1" --resume "$FOLDER/small-$early.json" --set epochs=31 --set checkpoint.keep_max=1 "$T/job.yaml"
    wait_for 120 is_behind "$early" || return 1
    mapfile -t workers < <(children "heir_$1" msworker 2)
    [ "$1" = all ] || workers=("$(awk '{ print $2 }' "$FOLDER/.msched-lock-small")")
    kill -KILL "${workers[@]}"
    status 0 reap "heir_$1"
}
struck() { # WHO: again, where it was over before the blow fell
    local try
    for try in 1 2 3 4 5 6 7 8; do
        heir "$1" || return 1
        [ "$(logged_losses "$1")" -eq 0 ] || return 0
    done
    echo "over before the blow fell, $try times"
    return 1
}
logged_losses() { grep -c 'job\.rank_lost' "$T/heir_$1/scheduler.log"; }
for who in all first; do
    ok "$who: a run that is resumed from its first comes to a later one, its processes are killed, and it ends well" struck "$who"
    [ $who = first ] || ok "$who: it went on from where it was" [ "$(went_back_to "heir_$who")" -gt "$early" ]
    ok "$who: with the weights of one that nothing befell" same "$(digest "heir_$who")" "$(digest farther)"
    ok "$who: it saved to its end" same "$(steps_there)" "310 "
    ok "$who: each step that was due" [ -z "$(grep -h "no checkpoint of step" "$T/heir_$who"/worker_*.log)" ]
done

# ---- all ranks at once
rm -r "$FOLDER"
start bereft "$MSCTL" run --run-dir "$T/bereft" --set epochs=30 "$T/job.yaml"
ok "another run has saved" wait_for 120 has_saved small 20
mapfile -t workers < <(children bereft msworker 2)
kill -KILL "${workers[@]}"
ok "all its workers are killed, and it ends well" status 0 reap bereft
ok "the newest stay" few_to 300
ok "no lock stays" [ -z "$(find "$FOLDER" -name '.*')" ]
finish
