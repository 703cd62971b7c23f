#!/usr/bin/env bash
# t2025-no-room-at-the-end.sh - all steps are made, and rank 0 has no room for the weights: another rank saves them, and where none has any the job waits for room
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

mkdir "$T/disk" "$T/n1" "$T/n2"
mount -t tmpfs -o size=16m,mode=700 msched-e2e "$T/disk" 2>/dev/null ||
    skip_all "mounting a small tmpfs takes root; test_sched_save and test_train cover who saves"
MOUNTS=$T/disk
job() {
    cat >"$T/job.yaml" <<YAML
name: saves
workers: $1
network: cifar_small
dataset: {kind: shapes, samples: 480}
batch_size: 16
epochs: $2
optimizer: {kind: adam, learning_rate: 0.001}
$3
YAML
}
steps() { grep -c '"step":' "$1/metrics.jsonl" 2>/dev/null; }
trains_in() { [ "$(steps "$1")" -ge 20 ]; }
fill() { dd if=/dev/zero bs=4096 2>/dev/null >>"$T/disk/filler" || true; }
digest_in() { python3 -c 'import json, sys; print(json.load(sys.stdin)["weights_sha256"])'; }

ok "certificates are made" make_certificates
ok "a head node is there" start_head
mkdir "$T/disk/jobs"
start_node n0 --jobs-dir "$T/disk/jobs"
start_node n1 --jobs-dir "$T/n1"
start_node n2 --jobs-dir "$T/n2"
ok "and three nodes" wait_for 60 idle 3

job 3 60 ""
ok "a job is submitted" [ "$(as alice submit "$T/job.yaml")" = 1 ]
ok "and trains" wait_for 120 trains_in "$T/disk/jobs/1"
fill
ok "the disk of rank 0 is full: it ends well all the same" status 0 as alice wait 1
ok "for rank 1 saved the weights" says "rank 1 (node n1) says: the weights of step 600, the last, are saved: $T/n1/1/weights.safetensors" as alice show 1
ok "and it says why rank 0 did not" says "No space left on device" as alice show 1
ok "and show names the job as succeeded" in_state 1 SUCCEEDED
ok "they are fetched from there" status 0 as alice fetch --only weights -o "$T/fetched" 1
ok "and are those of the job" [ "$(digest_of_file "$T"/fetched/*.safetensors)" = "$(as alice --json show 1 | digest_in)" ]
rm "$T/disk/filler"
stop n0
stop n1
stop n2
stop a

umount "$T/disk"
MOUNTS=
# a folder in their place: a run's own scheduler gives some of its reserve back to a full disk, and small weights fit
blocks() { mkdir "$T/$1/weights.safetensors"; }
job 2 30 "checkpoint: {directory: ckpt, prefix: small, every_steps: 450}"
start run "$MSCTL" run --run-dir "$T/run" "$T/job.yaml"
ok "on one host a job trains" wait_for 120 trains_in "$T/run"
blocks run
here() { "$MSCTL" -s "unix:$T/run/scheduler.sock" "$@"; }
still_runs() { here --json show 1 | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["state"] != "RUNNING")'; }
ok "the weights have no place: no rank can save them" wait_for 120 says "no rank can save the weights" here show 1
ok "and the job waits" still_runs
ok "and says to whoever started it what for" wait_for 60 says "make room or mend it, or cancel the job" cat "$T/run.log"
is_gone() { [ "$(here events 1 --json | grep -c 'job\.rank_gone')" = "$1" ]; }
rank_1() { here --json show 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"][1]["pid"])'; }
kill -KILL "$(rank_1)"
ok "a rank that is killed meanwhile is not missed" wait_for 60 is_gone 1
ok "for the job still waits, and not for it" still_runs
rmdir "$T/run/weights.safetensors"
ok "when they have one it ends well" status 0 reap run
ok "and the weights are there" [ -s "$T/run/weights.safetensors" ]
ok "and every step has its line" [ "$(steps "$T/run")" = 450 ]

start cancelled "$MSCTL" run --run-dir "$T/cancelled" "$T/job.yaml"
ok "another one trains" wait_for 120 trains_in "$T/cancelled"
blocks cancelled
there() { "$MSCTL" -s "unix:$T/cancelled/scheduler.sock" "$@"; }
ok "and waits" wait_for 120 says "no rank can save the weights" there show 1
rmdir "$T/cancelled/weights.safetensors"
ok "who mends it and cancels at once loses nothing" says "the weights of step 450, the last, are saved" there cancel 1
ok "the run ends as cancelled" status 5 reap cancelled
ok "and the weights are there" [ -s "$T/cancelled/weights.safetensors" ]

start again "$MSCTL" run --run-dir "$T/again" "$T/job.yaml"
ok "and one more" wait_for 120 trains_in "$T/again"
blocks again
yonder() { "$MSCTL" -s "unix:$T/again/scheduler.sock" "$@"; }
ok "waits" wait_for 120 says "no rank can save the weights" yonder show 1
kill -KILL "$(children again msschedd)"
rmdir "$T/again/weights.safetensors"
kill -INT "${pid_of[again]}"
ok "its scheduler is killed, and it ends for Ctrl-C" status 130 reap again
ok "what its ranks had said before is no answer: the weights are there" [ -s "$T/again/weights.safetensors" ]
finish
