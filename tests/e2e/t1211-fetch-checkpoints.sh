#!/usr/bin/env bash
# t1211-fetch-checkpoints.sh - checkpoints and best weights of a job come to its owner by name, whole, from the nodes that have them
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: many
workers: 2
network: linear
dataset: {kind: nonlinear, samples: 640}
batch_size: 16
epochs: 3
loss: mse
optimizer: {kind: momentum, learning_rate: 0.05, momentum: 0.9}
evaluate: {dataset: {kind: nonlinear, samples: 64}}
best: {keep: 2}
checkpoint: {directory: a/b, prefix: lin, every_steps: 0, every_epochs: 1, keep_max: 2}
YAML

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
for n in n1 n2; do
    mkdir -p "$T/jobs-$n"
    start_node $n --jobs-dir "$T/jobs-$n"
done
ok "two nodes are idle" wait_for 120 idle 2
ok "alice submits" [ "$(as alice submit "$T/job.yaml")" = 1 ]
ok "and her job succeeds" status 0 as alice wait --timeout 900 1
home=$(as alice --json show 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"][0]["node"])')
DIR=$T/jobs-$home/1
LAST=$(python3 -c 'import json, sys; print(max(json.loads(line).get("step", 0) for line in open(sys.argv[1])))' "$DIR/metrics.jsonl")
EPOCH=$((LAST / 3))
# of the second epoch's end, or of the step at which the writer was free again
MID=$(find "$DIR/a/b" -name 'lin-*.json' ! -name "lin-$LAST.json" | sed 's/.*lin-\(.*\)\.json/\1/')
AT=$(python3 -c 'import json, sys; m = json.load(open(sys.argv[1])); print("%d_%d" % (m["epoch"], m["step_in_epoch"]))' "$DIR/a/b/lin-$MID.json")

# ---- what there is
ok "a list says which there are" says "lin-$LAST" as alice fetch --list 1
ok "by epoch and step, too" says "$AT" as alice fetch --list 1
ok "with the best weights" says "best " as alice fetch --list 1
ok "two checkpoints are kept, the newest first" json fetch --list 1 -- \
    "[c['name'] for c in j['checkpoints']] == ['lin-$LAST', 'lin-$MID'] and j['best']['metric'] == 'loss' and j['damaged'] == 0 and j['complete']"
ok "with the two best, of which the first is the best" json fetch --list 1 -- \
    "len(j['bests']) == 2 and j['bests'][0] == {k: j['best'][k] for k in j['bests'][0]} and j['bests'][0]['value'] <= j['bests'][1]['value']"
BEST=$(as alice --json fetch --list 1 | python3 -c 'import json, sys; print(*(b["step"] for b in json.load(sys.stdin)["bests"]))')
ok "by their steps" says "best-${BEST#* } " as alice fetch --list 1
ok "with node, folder, size, age and MindSpore's name" json fetch --list 1 -- \
    "all(c['node'] == '$home' and c['folder'] == '$DIR/a/b' and c['bytes'] > 0 and 0 <= c['age_s'] < 7200 for c in j['checkpoints']) and j['checkpoints'][1]['mindspore_name'] == 'lin-$AT'"
ok "a list makes no folder" [ ! -e job-1 ]
ok "another user is refused" status 4 as bob fetch --list 1
ok "with who may" says "only its owner or an admin" as bob fetch --list 1
ok "an admin may" status 0 as root fetch --list 1

# ---- one of them
got() { # FOLDER STEP: both files as on the node, the job and its plan, and nothing else
    cmp "$DIR/a/b/lin-$2.safetensors" "$1/lin-$2.safetensors" && cmp "$DIR/a/b/lin-$2.json" "$1/lin-$2.json" &&
        [ -s "$1/job.json" ] && [ -s "$1/plan.txt" ] && [ "$(find "$1" -type f | wc -l)" = 4 ] && [ "$(stat -c %a "$1/lin-$2.json")" = 600 ]
}
for which in latest "$LAST" "lin-$LAST" "lin-3_$EPOCH"; do
    ok "$which comes" status 0 as alice fetch --checkpoint "$which" -o "$T/$which" 1
    ok "and is the last" got "$T/$which" "$LAST"
done
ok "an older one by its file's name" status 0 as alice fetch --checkpoint "lin-$MID.safetensors" -o "$T/mid" 1
ok "comes, too" got "$T/mid" "$MID"
ok "a second time nothing is overwritten" says "was there already" as alice fetch --checkpoint "$MID" -o "$T/mid" 1
ok "best brings the best weights" status 0 as alice fetch --checkpoint best -o "$T/best" 1
ok "as they are on the node" cmp "$DIR/best.safetensors" "$T/best/best.safetensors"
for step in $BEST; do
    ok "one of the best comes by its step" status 0 as alice fetch --checkpoint "best-$step" -o "$T/best" 1
    ok "as it is on the node" cmp "$DIR/best-$step.safetensors" "$T/best/best-$step.safetensors"
done
ok "one that is none of them is not there" says "no checkpoint called best-1:" as alice fetch --checkpoint best-1 1
ok "all brings all" status 0 as alice fetch --checkpoint all -o "$T/all" 1
ok "seven files, the job and its plan" [ "$(find "$T/all" -type f | wc -l)" = 9 ]
ok "a private run goes on from what came" says "step $MID" "$MSCTL" run --run-dir "$T/run" --resume "$T/mid" "$T/mid/job.json"

# ---- torn, damaged, changed
mkdir -m 700 "$T/torn"
head -c 100 "$DIR/a/b/lin-$LAST.safetensors" >"$T/torn/.lin-$LAST.safetensors.part"
ok "a torn one goes on" says "went on at 100 B" as alice fetch --checkpoint latest -o "$T/torn" 1
ok "and is whole" got "$T/torn" "$LAST"
cp "$DIR/a/b/lin-$LAST.safetensors" "$T/honest"
python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-1, 2); last = f.read(1); f.seek(-1, 2); f.write(bytes([last[0] ^ 1]))' "$DIR/a/b/lin-$LAST.safetensors"
ok "one that was changed on the node is a failure" status 1 as alice fetch --checkpoint latest -o "$T/changed" 1
ok "which is named" says "is not whole" as alice fetch --checkpoint latest -o "$T/changed" 1
head -c 100 "$T/honest" >"$DIR/a/b/lin-$LAST.safetensors"
ok "one that is too short is damaged, and not named" json fetch --list 1 -- \
    "[c['name'] for c in j['checkpoints']] == ['lin-$MID'] and j['damaged'] == 1"
ok "so the latest is the one before" status 0 as alice fetch --checkpoint latest -o "$T/before" 1
ok "which is whole" got "$T/before" "$MID"
cp "$T/honest" "$DIR/a/b/lin-$LAST.safetensors"

# ---- nothing but this job's, and nothing outside of its folder
cp "$DIR/a/b/lin-$MID.safetensors" "$T/kept"
rm "$DIR/a/b/lin-$MID.safetensors"
ln -s /etc/hostname "$DIR/a/b/lin-$MID.safetensors"
ok "a link is not followed" status 4 as alice fetch --checkpoint "$MID" -o "$T/link" 1
rm "$DIR/a/b/lin-$MID.safetensors"
cp "$T/kept" "$DIR/a/b/lin-$MID.safetensors"
mv "$DIR/a" "$T/elsewhere"
ln -s "$T/elsewhere" "$DIR/a"
ok "neither is one that leads out of the folder" says "cannot look for checkpoints in a/b of $DIR" as alice fetch --list 1
rm "$DIR/a"
mv "$T/elsewhere" "$DIR/a"
ok "a second job of the same file" [ "$(as alice submit "$T/job.yaml")" = 2 ]
ok "succeeds" status 0 as alice wait --timeout 900 2
two=$(as alice --json show 2 | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"][0]["node"])')
rm "$T/jobs-$two/2/a/b"/*
cp "$DIR/a/b"/lin-* "$T/jobs-$two/2/a/b/"
ok "another job's checkpoints in its folder are not its own" json fetch --list 2 -- "j['checkpoints'] == []"
ok "and do not come" says "has no checkpoint on the nodes of its ranks" as alice fetch --checkpoint latest -o "$T/none" 2

# ---- what there is not
ok "a step that there is not" says "has no checkpoint called 7: it has 2, from lin-$MID to lin-$LAST" as alice fetch --checkpoint 7 -o "$T/none" 1
ok "is exit 4" status 4 as alice fetch --checkpoint 7 -o "$T/none" 1
ok "and leaves no folder" [ ! -e "$T/none" ]
ok "--only and --checkpoint do not go together" status 2 as alice fetch --only weights --checkpoint latest 1
plain=$(as alice submit --set checkpoint=null --set best=null "$T/job.yaml")
ok "a job without checkpoints" status 0 as alice wait --timeout 900 "$plain"
ok "says so" says "its file has no section checkpoint" as alice fetch --list "$plain"
ok "and has no best weights" says "has no best weights" as alice fetch --checkpoint best "$plain"
ok "rank 0's node ends" status 0 stop "$home"
ok "the other one has none, and cannot say that there are none" status 3 as alice fetch --checkpoint latest -o "$T/none" 1
ok "nor of the best weights" status 3 as alice fetch --checkpoint best -o "$T/none" 1
ok "nor of all" status 3 as alice fetch --list 1
ok "for there may be more" says "job 1 may have saved more: a node that had a rank of it is away" as alice fetch --list 1
ok "and the one that is gone is named" says "node $home on host" as alice fetch --list 1
ok "no new job goes on from there" status 3 as alice submit --resume 1
ok "which says what helps" says "is not known until it is back: bring it back; nothing is queued" as alice submit --resume 1
finish
