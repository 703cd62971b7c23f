#!/usr/bin/env bash
# t3004-trained-again.sh - a job that lost all its ranks says where it goes on, and which steps, told of before, are trained again:
# on the terminal, in the events, in show, in the log of rank 0
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: again
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 320}
batch_size: 16
epochs: 3
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {directory: ckpt, prefix: x, every_steps: 30}
YAML

tells() { grep -qE "$2" "$T/$1/worker_0.log"; }
asked() { "$MSCTL" -s "unix:$T/$1/scheduler.sock" "${@:2}"; }
lose_all() { # NAME STEP: all workers of the run at once, after that step
    ok "$1: is in its middle" wait_for 120 has_steps "$1" "$2"
    mapfile -t workers < <(children "$1" msworker 2)
    kill -KILL "${workers[@]}"
    ok "$1: rank 0 says what comes once more" wait_for 120 tells "$1" "are trained again\$"
}
says_span() { # NAME FROM WORDS: everywhere the same steps
    local to
    to=$(sed -n "s/^$3: steps $2 to \([0-9]*\) are trained again\$/\1/p" "$T/$1/worker_0.log")
    ok "$1: in its log, in those words" [ "${to:-0}" -gt "$2" ]
    ok "$1: the event says so" wait_for 60 says "$3: steps $2 to $to are trained again; it stood still for" asked "$1" events 1
    ok "$1: and show" says "steps $2 to $to, " asked "$1" show 1
    ok "$1: and the terminal" wait_for 60 grep -qE "(went on from step $(($2 - 1))|began anew) after .*: steps $2 to $to are trained again" "$T/$1.log"
    ok "$1: and programs" bash -c 'json=$("$MSCTL" -s "unix:$1" show --json 1) && python3 -c "import json, sys
o = json.loads(sys.argv[1]); assert (o[\"again_from\"], o[\"again_to\"]) == (int(sys.argv[2]), int(sys.argv[3])), o" "$json" "$2" "$3"' - \
        "$T/$1/scheduler.sock" "$2" "$to"
    ok "$1: ends when it is asked to" status 143 stop "$1" TERM
    ok "$1: and its summary says so" grep -qE "^  again +steps $2 to $to, " "$T/$1.log"
}

ok "a run saves its last step" run first "$T/job.yaml"

start back "$MSCTL" run --run-dir "$T/back" --resume "$T/first" --set epochs=1000000 --set checkpoint.every_steps=1000000 "$T/job.yaml"
lose_all back 60
says_span back 31 "goes on from the checkpoint of step 30"

start anew "$MSCTL" run --run-dir "$T/anew" --set epochs=1000000 --set checkpoint.every_steps=1000000 "$T/job.yaml"
lose_all anew 20
says_span anew 1 "begins anew, for no rank has a checkpoint that can be read"

# ---- ranks that train for themselves: none has what another one had
start apart "$MSCTL" run -n 3 --run-dir "$T/apart" --set parallel.mode=stand_alone --set checkpoint=null --set epochs=1000000 "$T/job.yaml"
ok "apart: is in its middle" wait_for 120 has_steps apart 40
kill -KILL "$(asked apart show --json 1 | python3 -c 'import json, sys
print([r["pid"] for r in json.load(sys.stdin)["ranks"] if r["rank"] == 1][0])')"
ok "apart: the loss ends it" status 1 reap apart
ok "apart: and names the rank" grep -q "rank 1 (node .*) was lost" "$T/apart.log"
refuses() { status 2 "$MSCTL" run -n 3 --run-dir "$T/refused" --set parallel.mode=stand_alone --set checkpoint=null --set recovery=true "$T/job.yaml" >"$T/refused.log" 2>&1; }
ok "apart: it cannot be asked to recover" refuses
ok "apart: for the reason" grep -q "recovery: in mode stand_alone each of the 3 workers has a training of its own, and no other one holds what a lost one had" "$T/refused.log"
finish
