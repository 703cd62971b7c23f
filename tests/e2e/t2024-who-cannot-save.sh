#!/usr/bin/env bash
# t2024-who-cannot-save.sh - a cancel where the rank that is to save has no room: another one saves the step that it holds
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

mkdir "$T/disk" "$T/n0" "$T/n1" "$T/n2"
mount -t tmpfs -o size=16m,mode=700 msched-e2e "$T/disk" 2>/dev/null ||
    skip_all "mounting a small tmpfs takes root; test_sched_recover_stop covers who is asked"
MOUNTS=$T/disk
cat >"$T/job.yaml" <<'YAML'
name: saves
workers: 3
network: cifar_small
dataset: {kind: shapes, samples: 480}
batch_size: 16
epochs: 1000000
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {directory: ckpt, prefix: small, every_steps: 100000000}
YAML
steps() { grep -c '"step":' "$1/metrics.jsonl" 2>/dev/null; }
trains_in() { [ "$(steps "$1")" -ge 20 ]; }
fill() { dd if=/dev/zero bs=4096 2>/dev/null >"$T/disk/filler" || true; }
saved_in() { compgen -G "$1/ckpt/small-*.json" >/dev/null; }

ok "certificates are made" make_certificates
ok "a head node is there" start_head
mkdir "$T/disk/jobs"
start_node n0 --jobs-dir "$T/disk/jobs"
start_node n1 --jobs-dir "$T/n1"
start_node n2 --jobs-dir "$T/n2"
ok "and three nodes" wait_for 60 idle 3

ok "a job is submitted" [ "$(as alice submit "$T/job.yaml")" = 1 ]
ok "and trains" wait_for 120 trains_in "$T/disk/jobs/1"
fill
ok "the disk of rank 0 is full: a cancel has rank 1 save" says "rank 1 (node n1) says: step " as alice cancel 1
ok "it is saved there" saved_in "$T/n1/1"
ok "and show says so, too" says "is saved: $T/n1/1/ckpt/small-" as alice show 1
ok "its weights are fetched from there" status 0 as alice fetch --only weights -o "$T/fetched" 1
ok "as they lie there" cmp "$T/n1/1/weights.safetensors" "$T"/fetched/*.safetensors

stop n1
ok "without that node the newest is not known" status 3 as alice fetch --list 1
ok "which is said" says "job 1 may have saved more: a node that had a rank of it is away" as alice fetch --list 1
ok "nor is one gone on from" status 3 as alice submit --resume 1
start_node n1 --jobs-dir "$T/n1"
ok "it is back" wait_for 60 idle 3

rm "$T/disk/filler"
ok "another one is submitted" [ "$(as alice submit "$T/job.yaml")" = 2 ]
ok "and trains" wait_for 120 trains_in "$T/disk/jobs/2"
mkdir -p "$T/disk/ckpt"
fill
ok "the checkpoints of rank 1 lie on the full disk" ln -s "$T/disk/ckpt" "$T/n1/2/ckpt"
kill -KILL "${pid_of[n0]}"
reap n0
ok "without rank 0 it recovers" wait_for 60 in_state 2 RECOVERING
ok "a cancel has rank 2 save" says "rank 2 (node n2) says: step " as alice cancel 2
ok "it is saved there" saved_in "$T/n2/2"

stop n1
stop n2
stop a
finish
