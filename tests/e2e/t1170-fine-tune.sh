#!/usr/bin/env bash
# t1170-fine-tune.sh - a training begins with a part of another one's weights: excluded, renamed, another head; from every format
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

job() { # FILE BODY-PREFIX HEAD CLASSES
    cat >"$1" <<YAML
name: net
network:
  - conv2d: {name: $2conv1, out: 4, kernel: 3, padding: same}
  - batch_norm: {name: $2bn1}
  - relu
  - global_avg_pool
  - dense: {name: $3, out: classes}
classes: $4
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
optimizer: {kind: adam, learning_rate: 0.01}
checkpoint: {every_steps: 5}
YAML
}
job "$T/old.yaml" body. fc 17
job "$T/new.yaml" "" head 10
still=(--set optimizer.learning_rate=0 --set steps=1 --set checkpoint=null)
keys='exclude: ["fc.*", "head.*"], rename: [{from: "body.*", to: "*"}]'
begun() { run "$2" -n "${3:-1}" "${still[@]}" --set "initial_weights={file: $1, $keys}" "$T/new.yaml"; }
# tensor RUN NAME: its bytes in the run's weights
tensor() {
    python3 -c 'import json, struct, sys
raw = open(sys.argv[1], "rb").read(); n = struct.unpack("<Q", raw[:8])[0]
begin, end = json.loads(raw[8:8 + n])[sys.argv[2]]["data_offsets"]
print(raw[8 + n + begin:8 + n + end].hex())' "$T/$1/weights.safetensors" "$2"
}

ok "a network of 17 classes trains" run old "$T/old.yaml"
ok "one of 10 begins with its body" begun "$T/old/weights.safetensors" new
ok "bit by bit" same "$(tensor new conv1.weight)" "$(tensor old body.conv1.weight)"
ok "its norm, too" same "$(tensor new bn1.gamma)" "$(tensor old body.bn1.gamma)"
ok "what was taken is said" grep -q "^initial weights: 3 of 5 parameters, 2 of 2 moving statistics; head.weight, head.bias begin by their init" "$T/new/worker_0.log"
ok "without any file" run random "${still[@]}" "$T/new.yaml"
ok "its head is the same" same "$(tensor new head.weight)" "$(tensor random head.weight)"
ok "on two workers" begun "$T/old/weights.safetensors" pair 2
ok "it begins alike" same "$(tensor pair conv1.weight) $(tensor pair head.weight)" "$(tensor new conv1.weight) $(tensor new head.weight)"
ok "from a checkpoint with its optimizer" begun "$T/old/checkpoints/net-10.safetensors" point
ok "it begins alike" same "$(digest point)" "$(digest new)"
ok "as MindSpore's file" "$MSCTL" export "$T/old" -o "$T/old.ckpt"
ok "it is taken" begun "$T/old.ckpt" ckpt
ok "alike" same "$(digest ckpt)" "$(digest new)"
ok "with torch's names" "$MSCTL" export "$T/old" -o "$T/torch.safetensors" --names torch
ok "it is taken" begun "$T/torch.safetensors" torch
ok "alike" same "$(digest torch)" "$(digest new)"

ok "msctl show says what is taken" says "3 of 5 parameters, 2 of 2 moving statistics; head.weight, head.bias begin by their init" \
    "$MSCTL" show --network --set "initial_weights={file: $T/old.ckpt, $keys}" "$T/new.yaml"
refused() { # WORDS KEYS
    rm -rf "$T/bad"
    ! run bad "${still[@]}" --set "initial_weights={file: $T/old/weights.safetensors, $2}" "$T/new.yaml" >/dev/null &&
        grep -qF "$1" "$T/bad.out"
}
ok "a pattern that matches nothing is named with the nearest" refused "exclude: 'heat.*' matches no parameter of network" \
    'exclude: ["fc.*", "heat.*"], rename: [{from: "body.*", to: "*"}]'
ok "so is one of a rename" refused "rename[0]: 'bodies.*' matches no tensor of" 'exclude: ["fc.*", "head.*"], rename: [{from: "bodies.*", to: "*"}]'
ok "with what there is" grep -q "nearest: body.bn1.beta" "$T/bad.out"

# ---- a model of PyTorch's exporter is network and weights; a part of it begins anew
cat >"$T/model.yaml" <<YAML
network: $ROOT/tests/golden/onnx/net-torchscript-train.onnx
transforms: [{resize: {size: [20, 16]}}]
dataset: {kind: shapes, samples: 32}
batch_size: 8
optimizer: {kind: sgd, learning_rate: 0}
YAML
ok "a model's bias begins anew" run model --set 'initial_weights={exclude: "*.bias"}' "$T/model.yaml"
ok "and the rest is the model's" grep -q "^initial weights: .* begin by their init" "$T/model/worker_0.log"
ok "which is named" grep -q "^initial weights are those of .*/net-torchscript-train.onnx" "$T/model/worker_0.log"
finish
