#!/usr/bin/env bash
# t3002-resume-clusters.sh - standing and dynamic clusters of which everything is killed at once go on from their checkpoints by
# themselves, whichever rank has them, and end with the weights of a run that nothing befell; a cancel saves the last step
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: saves
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 320}
transforms: [{rescale: {scale: 0.0039, shift: 0}}, {random_horizontal_flip: {}}]
batch_size: 16
epochs: 60
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {directory: ckpt, prefix: small, every_steps: 7, keep_max: 3}
YAML
STEPS=600
sed 's/^epochs: .*/epochs: 1000000/' "$T/job.yaml" >"$T/endless.yaml"

steps_of() { # FOLDER
    python3 -c 'import json, sys
print(*[j["step"] for j in map(json.loads, open(sys.argv[1])) if "step" in j])' "$T/$1/metrics.jsonl" 2>/dev/null
}
newest() { # FOLDER: the highest step that has a manifest
    find "$T/$1/ckpt" -name 'small-*.json' 2>/dev/null | sed 's/.*-\([0-9]*\).json/\1/' | sort -n | tail -n 1
}
has_saved() { [ "$(newest "$1" || echo 0)" -ge "$2" ]; }
kill_all() { # NAME...: at once, so that none can tell of another one's death
    local name pids=()
    for name in "$@"; do pids+=("${pid_of[$name]}"); done
    kill -KILL "${pids[@]}"
    for name in "$@"; do reap "$name"; done 2>/dev/null
    return 0
}
told_once() { same "$(steps_of "$1")" "$(seq -s ' ' "$STEPS")"; }
kept_few() { [ "$(find "$T/$1/ckpt" -mindepth 1 | wc -l)" -eq 6 ]; }

ok "a run that nothing befalls" run whole "$T/job.yaml"
whole=$(digest whole)

# ---- a standing cluster
ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
for node in n1 n2; do start_node $node; done
ok "two nodes are idle" wait_for 120 idle 2
ok "a job is submitted" same "$(as alice submit "$T/job.yaml")" 1
ok "it saves" wait_for 120 has_saved jobs/1 21
kill_all a n1 n2
ok "its scheduler and all its workers are dead at a step" [ "$(newest jobs/1)" -lt "$STEPS" ]
ok "the scheduler starts again" start_head "$HEAD"
for node in n2 n1; do start_node $node; done
ok "the job ends well, by itself" status 0 as alice wait --timeout 900 1
ok "with the weights of the whole run" same "$(digest jobs/1)" "$whole"
ok "each step was told once" told_once jobs/1
ok "it went on from a checkpoint" logged a "goes on from the checkpoint of step"
ok "three of them stay, and nothing beside" kept_few jobs/1

# ---- a cancel that lets the step end
ok "another job is submitted" same "$(as alice submit "$T/endless.yaml")" 2
ok "it saves, too" wait_for 120 has_saved jobs/2 7
ok "it is cancelled" status 0 as alice cancel 2
as alice wait --timeout 900 2 >/dev/null 2>&1
ok "and over" in_state 2 CANCELLED
ok "its last step is saved" same "$(newest jobs/2)" "$(steps_of jobs/2 | awk '{ print $NF }')"
ok "and can be gone on from" status 0 "$MSCTL" run --run-dir "$T/after" --resume "$T/jobs/2" \
    --set "steps=$(($(newest jobs/2) + 3))" "$T/endless.yaml"
stop n1
stop n2
stop a

# ---- a dynamic cluster
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH=$T/recovery
MS_SCHED_PORT=$(free_port)
export MS_SCHED_PORT
mkdir "$T/left" "$T/right"
sched() { start d env MS_ROLE=MS_SCHED "$MSSCHEDD"; }
worker() { # ID FOLDER [VARIABLE=VALUE]...
    local id=$1 folder=$2
    shift 2
    start "d_$id" env MS_ROLE=MS_WORKER MS_NODE_ID="$id" "$@" "$MSWORKER" --run-dir "$T/$folder" "$T/job.yaml"
}
sched
worker 0 left
worker 1 right
ok "rank 0 of a dynamic cluster saves" wait_for 120 has_saved left 21
kill_all d d_0 d_1
saved=$(newest left)
ok "all of it is dead at a step" [ "$saved" -lt "$STEPS" ]
ok "the other rank has none" [ ! -e "$T/right/ckpt" ]
sched
worker 1 left MSCHED_TRANSPORT=remote # the folders are of two hosts, and have changed hands
worker 0 right MSCHED_TRANSPORT=remote
ok "who has them now sends them, and its scheduler ends with 0" status 0 reap d
for i in 0 1; do ok "worker $i, too" status 0 reap d_$i; done
ok "the weights are those of the whole run" same "$(digest right)" "$whole"
ok "rank 0 began behind the checkpoint" same "$(steps_of right | awk '{ print $1 }')" $((saved + 1))
ok "three of them stay where it is now" kept_few right
ok "nothing was taken away where it was" same "$(newest left)" "$saved"
finish
