#!/usr/bin/env bash
# t1100-reference.sh - jobs reproduce what an independent implementation computed in float64: every
# loss of every worker, and the weights after the last step
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" "$MAKE_WEIGHTS" python3
need_shared reference
export DATA_PATH=$SHARED/data/mnist

ok "initial weights by the reference's scheme" "$MAKE_WEIGHTS" mnist "$T/mnist.safetensors"
for n in 1 8; do
    ok "mnist trains with $n workers" run "mnist_$n" -n $n --set steps=100 \
        --set "initial_weights=$T/mnist.safetensors" "$ROOT/examples/mnist.yaml"
    ok "and gives the losses of the reference" losses_match "$SHARED/reference/mnist_$n.json" "mnist_$n" $n 1e-4
    ok "and its weights" python3 - "$SHARED/reference/mnist_$n.json" "$T/mnist_$n/weights.safetensors" <<'PY'
import json, math, struct, sys
want = json.load(open(sys.argv[1]))
raw = open(sys.argv[2], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
def values(name):
    b, e = head[name]["data_offsets"]
    return struct.unpack(f"<{(e - b) // 4}f", raw[8 + n + b:8 + n + e])
assert head["fc.weight"]["shape"] == [10, 784], head
l2 = math.sqrt(sum(v * v for v in values("fc.weight")))
assert abs(l2 - want["w_l2"]) < 1e-4, (l2, want["w_l2"])
for have, ref in zip(values("fc.bias"), want["b"]):
    assert abs(have - ref) < 1e-5, (have, ref)
PY
done

ok "initial weights of the regression" "$MAKE_WEIGHTS" linear "$T/linear.safetensors"
regression() {
    local name=$1 n=$2
    shift 2
    run "$name" -n "$n" --set steps=200 --set "initial_weights=$T/linear.safetensors" "$@" \
        "$ROOT/examples/nonlinear.yaml"
}
ok "the regression trains alone" regression alone 1
ok "and gives the losses of the reference" losses_match "$SHARED/reference/nonlinear_1.json" alone 1 1e-4
ok "with two workers and the mean of gradients" regression mean 2
ok "likewise" losses_match "$SHARED/reference/nonlinear_2_mean.json" mean 2 1e-4
ok "with two workers and their sum" regression sum 2 --set parallel.gradients_mean=false
ok "likewise" losses_match "$SHARED/reference/nonlinear_2_sum.json" sum 2 1e-4
finish
