#!/usr/bin/env bash
# t3006-optimizers.sh - whatever a job's optimizer is told, a run that was ended within an epoch and resumed, or lost a worker, has the
# weights of one that nothing befell
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: rules
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 3
optimizer: {kind: adamw, learning_rate: 0.002, weight_decay: 0.05}
checkpoint: {directory: ckpt, prefix: rules, every_steps: 4}
YAML

# goes_on NAME option...: a job with these options, ended behind step 17 and resumed; one that lost a worker in its 20th epoch or later
goes_on() {
    local name=$1
    shift
    ok "$name: a run that nothing befalls" run "$name" "$@" "$T/job.yaml"
    ok "$name: one that ends within an epoch" run "$name-half" "$@" --set steps=17 "$T/job.yaml"
    ok "$name: goes on" run "$name-rest" "$@" --resume "$T/$name-half" "$T/job.yaml"
    ok "$name: to the same weights" same "$(digest "$name-rest")" "$(digest "$name")"
}
loses() { # NAME option...
    local name=$1
    shift
    ok "$name: a longer run" run "$name-long" "$@" --set epochs=20 "$T/job.yaml"
    ok "$name: one that loses a worker" lose_a_worker "$name-killed" 50 "$@" --set epochs=20 "$T/job.yaml"
    ok "$name: has its weights" same "$(digest "$name-killed")" "$(digest "$name-long")"
}
refuses() { # TEXT RUN option...
    local text=$1 from=$2
    shift 2
    says "$text" "$MSCTL" run --run-dir "$T/refused" --resume "$T/$from" "$@" "$T/job.yaml" && [ ! -e "$T/refused" ]
}
# tensors_are_same A B PATTERN...: both files of weights have those bits under the names that match one
tensors_are_same() {
    python3 - "$T/$1/weights.safetensors" "$T/$2/weights.safetensors" "${@:3}" <<'PY'
import fnmatch, json, struct, sys
def tensors(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    return {k: raw[8 + n:][slice(*v["data_offsets"])] for k, v in head.items() if k != "__metadata__"}
a, b = map(tensors, sys.argv[1:3])
names = [k for k in a if any(fnmatch.fnmatchcase(k, p) for p in sys.argv[3:])]
assert names and sorted(a) == sorted(b)
sys.exit(any(a[k] != b[k] for k in names))
PY
}

others() { ! tensors_are_same "$@"; }

# ---- groups of parameters
groups='optimizer.groups=[{match: ["*.bias", "*.gamma", "*.beta"], weight_decay: 0, learning_rate: 0.004}, {match: ["conv1.*", "conv2.*"], frozen: true}]'
goes_on groups --set "$groups"
loses groups --set "$groups"
ok "groups: what is frozen is what it was" tensors_are_same groups groups-half 'conv1.*' 'conv2.*'
ok "groups: and nothing else" others groups groups-half 'conv3.*'
ok "groups: four workers of two samples less have the same frozen ones" run frozen-four -n 4 --set batch_size=4 --set "$groups" "$T/job.yaml"
ok "groups: bit for bit" tensors_are_same groups frozen-four 'conv1.*' 'conv2.*'
ok "groups: a resume without them is refused by key" refuses 'optimizer.groups: [{"learning_rate":0.004,"match":' groups-half
ok "groups: with another one, too" refuses 'optimizer.groups[1].match[0]: "conv1.*", and this one has "conv3.*"' groups-half \
    --set "${groups/conv1/conv3}"
ok "groups: a pattern of no parameter is refused" says "'conv9.*' matches no parameter of network cifar_small; nearest: conv" \
    "$MSCTL" run --run-dir "$T/refused" --set "${groups/conv1/conv9}" "$T/job.yaml"

# ---- kinds
goes_on rmsprop --set 'optimizer={kind: rmsprop, learning_rate: 0.001, momentum: 0.9, centered: true}'
lamb=(--set 'optimizer={kind: lamb, learning_rate: 0.01, weight_decay: 0.01, clip_norm: 1}')
goes_on lamb "${lamb[@]}"
loses lamb "${lamb[@]}"
ok "lamb: its checkpoints are none of adamw" refuses 'optimizer.kind: "lamb", and this one has "adamw"' lamb-half \
    "${lamb[@]}" --set optimizer.kind=adamw

# ---- the average of the weights
average=(--set average.decay=0.9)
goes_on average "${average[@]}"
loses average "${average[@]}"
ok "average: the weights themselves are others" run plain "$T/job.yaml"
ok "average: in the file" [ "$(digest plain)" != "$(digest average)" ]
ok "average: not in the losses" same "$(grep -o '"loss_hex":"[^"]*"' "$T/average/metrics.jsonl")" "$(grep -o '"loss_hex":"[^"]*"' "$T/plain/metrics.jsonl")"
ok "average: a resume without it is refused by key" refuses 'average: {"decay":0.9}, and this one has none' average-half

# ---- steps of several batches: of 80 samples a worker eight steps of three times 3, and one of 3, 3 and 2
several=(--set batch_size=3 --set accumulate=3)
goes_on several "${several[@]}"
loses several "${several[@]}"
losses_are_close() { # RUN RUN: of each step, to 1e-5
    python3 - "$T/$1/metrics.jsonl" "$T/$2/metrics.jsonl" <<'PY'
import json, sys
a, b = ([j["loss"] for j in map(json.loads, open(p)) if "loss_hex" in j] for p in sys.argv[1:])
assert len(a) == len(b) == 27, (len(a), len(b))
worst = max(abs(x - y) / abs(x) for x, y in zip(a, b))
print(worst)
sys.exit(worst > 1e-5)
PY
}
net='network=[flatten, dense: {out: 32}, tanh, dropout: {rate: 0.2}, dense: {out: classes}]'
ok "several: a network without batch norm" run three "${several[@]}" --set "$net" "$T/job.yaml"
ok "several: and one batch a step that is as large" run nine --set batch_size=9 --set "$net" "$T/job.yaml"
ok "several: have the same losses" losses_are_close three nine
ok "several: a resume with other batches is refused by key" refuses 'accumulate: 3, and this one has none' several-half --set batch_size=3
ok "several: a key that others have for it is named with ours" says "gradient_accumulation is called accumulate here" \
    "$MSCTL" run --run-dir "$T/refused" --set gradient_accumulation=2 "$T/job.yaml"
finish
