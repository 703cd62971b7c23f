#!/usr/bin/env bash
# t2027-node-with-checkpoints.sh - a job that lost all its ranks waits for the node that has its checkpoints, and goes on from them,
# though another node is idle; each node has a folder of jobs of its own
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# It trains as far as this test allows, so that it is not over before anybody has looked.
cat >"$T/job.yaml" <<YAML
name: home
network: cifar_small
dataset: {kind: program, path: $ROOT/tests/e2e/allowed.py, arguments: ['$T/allowed', '3'], shape: [3, 32, 32], classes: 10, timeout: 1000}
batch_size: 16
epochs: 1000000
steps: 600
threads: 1
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {prefix: x, every_steps: 20}
YAML

node() { start_node "$1" --jobs-dir "$T/jobs-$1" --data-programs "$ROOT/tests/e2e"; }
ALL=1000000 # steps
of() { as alice --json show "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["weights_sha256"])'; } # JOB
nothing_befalls() { # JOB option...: it ends, and its weights are what is expected of the next one
    local job=$1
    shift
    allow "$ALL"
    expected=
    ok "job $job, which nothing befalls, is submitted" [ "$(as alice submit "$@" "$T/job.yaml")" = "$job" ]
    ok "and ends" status 0 as alice wait --timeout 900 "$job"
    expected=$(of "$job")
}
begins() { # JOB STEPS option...: so many of them, and no more until they are allowed
    local job=$1
    allow "$2"
    shift 2
    ok "job $job is submitted" [ "$(as alice submit "$@" "$T/job.yaml")" = "$job" ]
}
node_is_there() { kill -0 "${pid_of[$1]:-0}" 2>/dev/null && [ -n "${pid_of[$1]:-}" ]; }
node_of() { # JOB RANK
    as alice --json show "$1" | python3 -c 'import json, sys
print([r["node"] for r in json.load(sys.stdin)["ranks"] if r["rank"] == int(sys.argv[1])][0])' "$2"
}
# Which node has rank 0 is seen in its files, and it stands still from then on. home has its name.
holds() { # COMMAND...: with the node's name behind it; the first of which it holds
    for home in n1 n2 n3; do
        if "$@" "$home"; then
            kill -STOP "${pid_of[$home]}"
            return
        fi
    done
    return 1
}
saves() { logged "$2" "rank.saved job=$1 "; }                                                # JOB NODE
has_steps() { [ "$(grep -c '"step":' "$T/jobs-$2/$1/metrics.jsonl" 2>/dev/null)" -ge 20 ]; } # JOB NODE
ends_as_expected() { # JOB: after all its steps
    allow "$ALL"
    status 0 as alice wait --timeout 900 "$1" && [ "$(of "$1")" = "$expected" ]
}

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
for n in n1 n2; do node $n; done
ok "two nodes are idle" wait_for 120 idle 2

# ---- one rank: its process is killed, and the other node would have it
nothing_befalls 1 -n 1
begins 2 30 -n 1
ok "it has saved a checkpoint" wait_for 120 holds saves 2
kill -KILL "${pid_of[$home]}"
reap "$home"
ok "the job waits for that node, and says so" wait_for 60 says "waits for node $home, which has the checkpoint of step" as alice show 2
ok "the other one is idle" idle 1
node "$home"
ok "it goes on from there" wait_for 120 says "goes on from the checkpoint of step" as alice events 2
ok "and has the weights of one that nothing befell" ends_as_expected 2

# ---- two ranks of three nodes are told to leave: rank 0 saves what it holds
node n3
ok "three nodes are idle" wait_for 120 idle 3
nothing_befalls 3 -n 2
begins 4 30 -n 2
ok "it has saved a checkpoint" wait_for 120 holds saves 4
other=$(node_of 4 1)
kill -TERM "${pid_of[$home]}" "${pid_of[$other]}"
kill -CONT "${pid_of[$home]}"
reap "$home"
reap "$other"
ok "the job waits for the node of rank 0" wait_for 60 says "waits for node $home, which has the checkpoint of step" as alice show 4
node "$other"
ok "whoever else is idle" wait_for 120 idle_or_busy 2
node "$home"
ok "it goes on from the step at which they left" wait_for 120 says "goes on from the checkpoint of step" as alice events 4
ok "and has the weights of one that nothing befell" ends_as_expected 4

# ---- steps are long, and it is killed with its first checkpoint, in the middle of the next step
for n in n1 n2 n3; do node_is_there $n || node $n; done
ok "three nodes are idle again" wait_for 120 idle 3
long=(-n 1 --set batch_size=320 --set steps=12 --set checkpoint.every_steps=1)
nothing_befalls 5 "${long[@]}"
begins 6 40 "${long[@]}"
ok "it has saved its first checkpoint" wait_for 120 holds saves 6
kill -KILL "${pid_of[$home]}"
reap "$home"
ok "the job waits for that node at once" wait_for 60 says "waits for node $home, which has the checkpoint of step" as alice show 6
node "$home"
ok "it goes on from there" wait_for 120 says "goes on from the checkpoint of step" as alice events 6
ok "and has the weights of one that nothing befell" ends_as_expected 6

# ---- the cluster is stopped, first its scheduler and then the workers, which save, and started again: no checkpoint was told of
ok "three nodes are idle once more" wait_for 120 idle 3
stopped=(-n 1 --set checkpoint.every_steps=1000000)
nothing_befalls 7 "${stopped[@]}"
begins 8 30 "${stopped[@]}"
ok "and trains" wait_for 120 holds has_steps 8
stop a TERM
kill -TERM "${pid_of[$home]}"
kill -CONT "${pid_of[$home]}"
reap "$home"
ok "its worker has saved" saves 8 "$home"
ok "the scheduler is back" start_head "$HEAD"
ok "the job waits for where it was" wait_for 120 says "waits for node $home, where rank 0 was while there was no scheduler" as alice show 8
node "$home"
ok "it goes on from there" wait_for 120 grep -q "job\.recovered job=8 .*goes on from the checkpoint of step" "$T/a.log"
kill -KILL "${pid_of[$home]}"
reap "$home"
ok "what it has read is known to be there" wait_for 60 says "waits for node $home, which has the checkpoint of step" as alice show 8
node "$home"
ok "and has the weights of one that nothing befell" ends_as_expected 8

# ---- all that hold the state die, and a node that holds none has rank 0 when the job is cancelled: they are found all the same
for n in n1 n2 n3; do node_is_there $n || node $n; done
ok "three nodes are idle for one more" wait_for 120 idle 3
begins 9 30 -n 2
ok "it has saved a checkpoint" wait_for 120 holds saves 9
other=$(node_of 9 1)
for n in n1 n2 n3; do [ $n = "$home" ] || [ $n = "$other" ] || spare=$n; done
kill -STOP "${pid_of[$spare]}"
kill -KILL "${pid_of[$home]}"
reap "$home"
spare_has() { [ "$(node_of "$1" 0)" = "$spare" ]; }
ok "the spare node has rank 0" wait_for 60 spare_has 9
kill -KILL "${pid_of[$other]}"
reap "$other"
kill -CONT "${pid_of[$spare]}"
as alice cancel 9 >"$T/cancelled" 2>&1
ok "the job is cancelled" wait_for 60 in_state 9 CANCELLED
ok "its reason says who held the state" says "nothing is saved: no rank that is left held the state; the checkpoint of step" as alice show 9
ok "and where the checkpoint is" says "is on node $home on host" as alice show 9
ok "in which folder, and what goes on from it" says " in $T/jobs-$home/9: msctl submit --resume 9 goes on from it" as alice show 9
ok "while that node is away nothing is chosen" says "checkpoints of job 9: node $home on host" as alice fetch --list 9
node "$home"
node "$other"
ok "it is back" wait_for 120 idle 3
ok "its checkpoints are listed" says "$home" as alice fetch --list 9
ok "and come" as alice fetch --checkpoint latest -o "$T/fetched" 9
stop a TERM
ok "the scheduler is back once more" start_head "$HEAD"
ok "with all nodes" wait_for 120 idle 3
ok "it knows where they are" says "$home" as alice fetch --list 9
ok "a new job goes on from there" says "job 10 goes on from x-" as alice submit --resume 9
ok "to which that node lends them" test -e "$T/jobs-$home/9/.lent-10"
finish
