#!/usr/bin/env bash
# t1111-export.sh - weights for others and from others: MindSpore's .ckpt, torch's names of norms, checkpoints without their optimizer
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: net
network:
  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}
  - batch_norm: {name: bn1}
  - relu
  - global_avg_pool
  - dense: {name: fc, out: classes}
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
optimizer: {kind: adam, learning_rate: 0.01}
checkpoint: {every_steps: 5}
YAML
export_to() { "$MSCTL" export "$1" -o "$T/$2" "${@:3}"; }
# names FILE: of a safetensors file's tensors
names() {
    python3 -c 'import json, struct, sys
raw = open(sys.argv[1], "rb").read()
print(*sorted(k for k in json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]]) if k != "__metadata__"))' "$1"
}
# begun FILE NAME: the digest of one step that moves no weight, from the file's
begun() {
    run "$2" --set initial_weights="$1" --set optimizer.learning_rate=0 --set steps=1 --set checkpoint=null "$T/job.yaml" &&
        digest "$2"
}
fails() { ! "$@"; }
size() { stat -c %s "$T/$1"; }

ok "a network trains" run good "$T/job.yaml"
ok "a run's weights become MindSpore's checkpoint" export_to "$T/good" out.ckpt
ok "and one of torch's names" export_to "$T/good/weights.safetensors" torch.safetensors --names torch
ok "as torch.nn has them" same "$(names "$T/torch.safetensors")" \
    "bn1.bias bn1.running_mean bn1.running_var bn1.weight conv1.weight fc.bias fc.weight"
ok "a checkpoint, by its manifest, is exported" export_to "$T/good/checkpoints/net-10.json" point.ckpt
ok "without its optimizer" [ "$(size point.ckpt)" -eq "$(size out.ckpt)" ]
ok "what is there is not overwritten" status 4 export_to "$T/good" out.ckpt
ok "and that is said" says "is there already: name another file, or replace it with --force" export_to "$T/good" out.ckpt
ok "but with --force" export_to "$T/good/checkpoints/net-5.json" out.ckpt --force
ok "of which other bytes come" bash -c '! cmp -s "$1" "$2"' - "$T/out.ckpt" "$T/point.ckpt"
ok "MindSpore's become safetensors again" export_to "$T/point.ckpt" back.safetensors
ok "with the values that they had" same "$(digest_of_file "$T/back.safetensors")" "$(digest good)"

ok "a training begins with MindSpore's" begun "$T/point.ckpt" from-ckpt
ok "with torch's" begun "$T/torch.safetensors" from-torch
ok "and with ours" begun "$T/good/weights.safetensors" from-ours
ok "to the same bits" same "$(digest from-ckpt) $(digest from-torch)" "$(digest from-ours) $(digest from-ours)"

# ---- what cannot be
head -c 100 "$T/point.ckpt" >"$T/torn.ckpt"
ok "a torn file is named" says "torn.ckpt: at byte 87 a field is longer than what it is in" export_to "$T/torn.ckpt" x.safetensors
ok "by a job, too" fails run torn --set initial_weights="$T/torn.ckpt" "$T/job.yaml"
ok "in its words" grep -q "initial_weights: .*torn.ckpt: at byte 87" "$T/torn.out"
ok "an ending that is none is refused" says "ends neither in .safetensors nor in .ckpt" export_to "$T/good" x.pt
ok "a folder without weights, too" says "nowhere" export_to "$T/nowhere" x.ckpt
ok "and nothing is left" bash -c '! ls "$1"/x.* 2>/dev/null' - "$T"
ok "it tells programs what it did" bash -c '"$1" --json export "$2" -o "$3" | jq -e ".tensors == 7 and .bytes == 696"' - \
    "$MSCTL" "$T/good" "$T/told.ckpt"
finish
