#!/usr/bin/env bash
# t1113-onnx.sh - a model of PyTorch's exporter as a job's network: its layers, its weights, its names, and what is refused
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
golden=$ROOT/tests/golden/onnx
mkdir "$T/nets"
cp "$golden/net-torchscript-train.onnx" "$T/nets/mine.onnx"
cp "$golden"/net-dynamo-external.onnx* "$golden/net-dynamo-train.onnx" "$T/nets/"
cat >"$T/job.yaml" <<'YAML'
network: nets/mine.onnx
dataset: {kind: shapes, samples: 64}
transforms: [{resize: {size: [20, 16]}}, {rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
steps: 4
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
names() { # DIR: of the tensors in its weights, one a line
    python3 - "$T/$1/weights.safetensors" <<'PY'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
print("\n".join(sorted(name for name in head if name != "__metadata__")))
PY
}
losses() { grep -o '"loss_hex":"[^"]*"' "$T/$1/metrics.jsonl"; }

ok "a job names a model" run model -n 2 "$T/job.yaml"
ok "and is called as its file is" grep -q "^job 1 (mine) SUCCEEDED" "$T/model.out"
ok "the names of its weights are PyTorch's" same "$(names model | tr '\n' ' ')" "depthwise.bias depthwise.weight dilated.weight \
fc.bias fc.weight inner.bias inner.weight norm.bias norm.running_mean norm.running_var norm.weight stem.0.weight stem.1.bias \
stem.1.running_mean stem.1.running_var stem.1.weight "
ok "with random weights instead" run random -n 2 --set initial_weights=null "$T/job.yaml"
ok "it trains to others" [ "$(digest random)" != "$(digest model)" ]
ok "the same file as initial weights" run named -n 2 --set initial_weights=nets/mine.onnx "$T/job.yaml"
ok "is the default" same "$(digest named)" "$(digest model)"
ok "its own weights begin a job" run again -n 1 --set initial_weights="$T/model/weights.safetensors" "$T/job.yaml"
ok "a model of the other exporter" run dynamo -n 2 --set network=nets/net-dynamo-train.onnx "$T/job.yaml"
ok "the same with its values in a file beside it" run beside -n 2 --set network=nets/net-dynamo-external.onnx "$T/job.yaml"
ok "has the same losses" same "$(losses beside)" "$(losses dynamo)"
ok "its table has its layers" says "stem.0" "$MSCTL" show --network "$T/job.yaml"

# ---- what cannot be is refused before anything starts
refused() { # TEXT SET...
    status 2 "$MSCTL" run --run-dir "$T/bad" "${@:2}" "$T/job.yaml" && says "$1" "$MSCTL" run --run-dir "$T/bad" "${@:2}" "$T/job.yaml" && [ ! -e "$T/bad" ]
}
ok "a node that cannot be kept" refused "node /frozen/BatchNormalization (BatchNormalization, opset 17): this batch norm is frozen" --set "network=$golden/frozen-torchscript.onnx"
ok "batch norms that are no more" refused "export with optimize=False" --set "network=$golden/net-dynamo-optimized.onnx"
ok "images of another size" refused "wants 3x20x16 and gets 3x32x32; add a resize transform" --set "transforms=[]"
head -c 3000 "$golden/net-torchscript-train.onnx" >"$T/nets/cut.onnx"
ok "a file that is cut" refused "nets/cut.onnx: byte 22: a field that has no end; the file is damaged" --set network=nets/cut.onnx
ok "a graph of another kind" refused "of graph files those of ONNX are read" --set network=nets/mine.pb
rm "$T/nets/net-dynamo-external.onnx.data"
fails() { ! "$MSCTL" run --run-dir "$T/lost" --set network=nets/net-dynamo-external.onnx "$T/job.yaml" >"$T/lost.out" 2>&1; }
ok "values that are not there end the job" fails
ok "which says so" grep -q "net-dynamo-external.onnx.data cannot be opened" "$T/lost.out"
finish
