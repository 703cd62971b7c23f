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
mkdir "$T/damaged"
cp "$T/good/checkpoints"/net-10.* "$T/good/job.json" "$T/damaged"
break_data "$T/damaged/net-10.safetensors"
for name in net-10.json net-10.safetensors; do
    ok "one that is damaged is not, by $name" status 4 export_to "$T/damaged/$name" damaged.onnx
    ok "which is said" says "net-10.safetensors is damaged: its bytes are not those that its manifest has the digest of; name another one" \
        export_to "$T/damaged/$name" damaged.onnx
done
ok "and nothing is written" [ ! -e "$T/damaged.onnx" ]
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

# ---- of a job with moving averages they are the weights
ok "a job trains with an average, by an optimizer of three slots" run averaged --set 'average={decay: 0.9}' \
    --set 'optimizer={kind: rmsprop, learning_rate: 0.001, centered: true, momentum: 0.5}' "$T/job.yaml"
ok "its checkpoint is exported" export_to "$T/averaged/checkpoints/net-10.json" averaged.safetensors
ok "as what its run ended with" same "$(digest_of_file "$T/averaged.safetensors")" "$(digest averaged)"
ok "with its names" same "$(names "$T/averaged.safetensors")" "$(names "$T/averaged/weights.safetensors")"

# ---- names of others: a network that has torch's
cat >"$T/torch.yaml" <<'YAML'
name: net
network:
  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}
  - batch_norm: {name: bn1, parameters: torch}
  - relu
  - global_avg_pool
  - sequential: {name: linear, layers: [dense: {name: fc, out: 6}]}
  - dense: {name: fc, out: classes}
YAML
sed -n '/^dataset:/,$p' "$T/job.yaml" >>"$T/torch.yaml"
ok "a network of torch's names trains" run torch "$T/torch.yaml"
cat >"$T/scale.yaml" <<'YAML'
name: net
network:
  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}
  - scale: {name: ls}
  - sequential: {name: block, layers: [batch_norm]}
  - layer_norm: {over: channels, parameters: {gamma: own.gamma, beta: own.beta}}
  - global_avg_pool
  - dense: {name: fc, out: classes}
YAML
sed -n '/^dataset:/,$p' "$T/job.yaml" >>"$T/scale.yaml"
ok "a network with a factor called gamma trains" run scale "$T/scale.yaml"
ok "its weights get torch's names" export_to "$T/scale" s.safetensors --names torch
ok "where the network has a norm's, and gave it none" same "$(names "$T/s.safetensors")" \
    "block.batch_norm1.bias block.batch_norm1.running_mean block.batch_norm1.running_var block.batch_norm1.weight conv1.weight fc.bias fc.weight ls.gamma own.beta own.gamma"
ok "a checkpoint's, too" export_to "$T/scale/checkpoints/net-10.json" sc.safetensors --names torch
ok "with the same names" same "$(names "$T/s.safetensors")" "$(names "$T/sc.safetensors")"
cp "$T/scale/weights.safetensors" "$T/alone.safetensors"
ok "weights that lie alone get them by their words" export_to "$T/alone.safetensors" a.safetensors --names torch
ok "which are norms'" same "$(names "$T/a.safetensors")" \
    "block.batch_norm1.bias block.batch_norm1.running_mean block.batch_norm1.running_var block.batch_norm1.weight conv1.weight fc.bias fc.weight ls.weight own.bias own.weight"
ok "all of its tensors are exported, also those of a layer called as an optimizer's slot is" export_to "$T/torch" t.safetensors
ok "by their names" same "$(names "$T/t.safetensors")" "$(names "$T/torch/weights.safetensors")"
ok "for MindSpore its norm has other names" export_to "$T/torch" t.ckpt
ok "which are those" bash -c 'for name in bn1.gamma bn1.beta bn1.moving_mean bn1.moving_variance linear.fc.weight; do
    grep -qa "$name" "$1" || exit 1; done; ! grep -qa "bn1.weight" "$1"' - "$T/t.ckpt"
begun_torch() { run "$2" --set initial_weights="$1" --set optimizer.learning_rate=0 --set steps=1 --set checkpoint=null "$T/torch.yaml"; }
ok "the network begins with them" begun_torch "$T/t.ckpt" torch-from-ckpt
ok "and with its own" begun_torch "$T/torch/weights.safetensors" torch-from-ours
ok "to the same bits" same "$(digest torch-from-ckpt)" "$(digest torch-from-ours)"
ok "a training of MindSpore's is exported without its numbers" export_to "$ROOT/tests/golden/ckpt/train.ckpt" ms.safetensors
ok "and its optimizer" same "$(names "$T/ms.safetensors")" \
    "bn1.beta bn1.gamma bn1.moving_mean bn1.moving_variance conv1.weight fc.bias fc.weight"

# ---- ONNX: the run's network, read back as a job's
ok "a run becomes an ONNX model" export_to "$T/good" net.onnx
ok "of the names that its weights have" bash -c 'for name in bn1.gamma bn1.moving_variance conv1.weight fc.bias; do grep -qa "$name" "$1" || exit 1; done' - "$T/net.onnx"
again() { # MODEL NAME: the digest of one step that moves no weight, of a job whose network that is
    run "$2" --set network="$T/$1" --set optimizer.learning_rate=0 --set steps=1 --set checkpoint=null "$T/job.yaml" && digest "$2"
}
ok "which is a network with these weights" again net.onnx from-onnx
ok "to the same bits as theirs" same "$(digest from-onnx)" "$(digest from-ours)"
ok "a checkpoint, with the job of its run" export_to "$T/good/checkpoints/net-10.json" point.onnx
ok "has the same bytes" cmp "$T/net.onnx" "$T/point.onnx"
ok "an average is what is written" bash -c '"$1" export "$2/averaged/checkpoints/net-10.json" -o "$2/a.onnx" && "$1" export "$2/averaged" -o "$2/b.onnx" && cmp "$2/a.onnx" "$2/b.onnx"' - "$MSCTL" "$T"
cp "$T/point.ckpt" "$T/lone.ckpt"
ok "weights that lie alone" status 4 export_to "$T/lone.ckpt" lone.onnx
ok "say nothing of their network" says "no job.json lies beside it or above, so nothing says of what network it is; give the job's file with --job" export_to "$T/lone.ckpt" lone.onnx
mkdir -p "$T/planted/w" && cp "$T/point.ckpt" "$T/planted/w/lone.ckpt"
printf '#!/bin/sh\ntouch "%s/planted/ran"\n' "$T" >"$T/planted/program" && chmod +x "$T/planted/program"
sed "s|^dataset:.*|dataset: {kind: program, path: $T/planted/program}|; /^evaluate:/d" "$T/job.yaml" >"$T/planted/job.json"
ok "a job that somebody left there" says "is no job that msctl run left: " export_to "$T/planted/w/lone.ckpt" lone.onnx
ok "starts no program" [ ! -e "$T/planted/ran" ]
ok "the job is told" export_to "$T/lone.ckpt" lone.onnx --job "$T/job.yaml"
ok "of which the same comes" cmp "$T/net.onnx" "$T/lone.onnx"
ok "that of another network is refused" says "parameter linear.fc.weight of the network is missing" export_to "$T/lone.ckpt" x.onnx --job "$T/torch.yaml"
ok "names are the network's own" says "--names is for .safetensors and .ckpt" export_to "$T/good" x.onnx --names torch

# ---- what cannot be
head -c 100 "$T/point.ckpt" >"$T/torn.ckpt"
ok "a torn file is named" says "torn.ckpt: at byte 87 a field is longer than what it is in" export_to "$T/torn.ckpt" x.safetensors
ok "by a job, too" fails run torn --set initial_weights="$T/torn.ckpt" "$T/job.yaml"
ok "in its words" grep -q "initial_weights: .*torn.ckpt: at byte 87" "$T/torn.out"
ok "an ending that is none is refused" says "ends neither in .safetensors nor in .ckpt or .onnx" export_to "$T/good" x.pt
ok "a folder without weights, too" says "nowhere" export_to "$T/nowhere" x.ckpt
ok "and nothing is left" bash -c '! ls "$1"/x.* 2>/dev/null' - "$T"
ok "it tells programs what it did" bash -c '"$1" --json export "$2" -o "$3" | jq -es ".[0].tensors == 7 and .[0].bytes == 696"' - \
    "$MSCTL" "$T/good" "$T/told.ckpt"
finish
