#!/usr/bin/env bash
# t1101-determinism.sh - same job, same seed: the same bits; N workers equal one with N times the batch
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/shapes.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 640}
transforms:
  - random_crop: {size: [32, 32], padding: [4, 4, 4, 4]}
  - random_horizontal_flip: {prob: 0.5}
  - rescale: {scale: 0.00392156862745098, shift: 0}
batch_size: 8
epochs: 2
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
seed: 7
YAML
ok "a job trains" run a -n 3 "$T/shapes.yaml"
ok "and once more" run b -n 3 "$T/shapes.yaml"
ok "the weights are the same to the bit" same "$(digest a)" "$(digest b)"
ok "so is the plan" same "$(field a plan_sha256)" "$(field b plan_sha256)"
ok "the digest is that of the file" same "$(digest a)" "$(digest_of_file "$T/a/weights.safetensors")"
ok "another seed gives other weights" run c -n 3 --set seed=8 "$T/shapes.yaml"
ok "really" [ "$(digest a)" != "$(digest c)" ]
ok "over TLS instead of shared memory" env MSCHED_TRANSPORT=remote "$MSCTL" run --run-dir "$T/tls" -n 3 \
    "$T/shapes.yaml"
ok "the weights are the same to the bit" same "$(digest a)" "$(digest tls)"

cat >"$T/sum.py" <<'PY'
import json, sys
def losses(path):
    return [json.loads(l)["loss"] for l in open(path) if '"step":' in l]
a, b = losses(sys.argv[1]), losses(sys.argv[2])
assert len(a) == len(b) > 20, (len(a), len(b))
worst = max(abs(x - y) for x, y in zip(a, b))
assert worst < 1e-4, worst
PY
cat >"$T/plain.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
steps: 100
loss: mse
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.6}
YAML
ok "four workers with batch 16" run four -n 4 "$T/plain.yaml"
ok "one worker with batch 64" run one -n 1 --set batch_size=64 "$T/plain.yaml"
ok "give the same losses" python3 "$T/sum.py" "$T/four/metrics.jsonl" "$T/one/metrics.jsonl"
if [ -d "$SHARED/data/mnist" ]; then
    export DATA_PATH=$SHARED/data/mnist
    ok "mnist: eight workers with batch 32" run m8 -n 8 --set steps=60 "$ROOT/examples/mnist.yaml"
    ok "mnist: one worker with batch 256" run m1 -n 1 --set steps=60 --set batch_size=256 \
        "$ROOT/examples/mnist.yaml"
    ok "give the same losses" python3 "$T/sum.py" "$T/m8/metrics.jsonl" "$T/m1/metrics.jsonl"
fi
finish
