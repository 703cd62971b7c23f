#!/usr/bin/env bash
# t1180-answers.sh - weights answer by themselves: evaluations to the bit as in training, predictions; errors, ends
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: net
network:
  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}
  - batch_norm: {name: bn1}
  - relu
  - dropout
  - global_avg_pool
  - dense: {name: fc, out: classes}
dataset: {kind: shapes, samples: 96}
evaluate: {dataset: {kind: shapes, usage: test, samples: 90}, metrics: [top5, per_class, confusion, perplexity]}
transforms: [{random_horizontal_flip: {prob: 0.5}}, {rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 2
optimizer: {kind: adam, learning_rate: 0.01}
average: {decay: 0.9}
checkpoint: {every_epochs: 1, keep_max: 9}
best: {metric: accuracy}
workers: 3
YAML
evaluate() { "$MSCTL" --json eval "$@"; }
# counted RUN EPOCH: what the run's metrics say of it, as `eval --json` has it
counted() { sed -n "s/^{\"epoch\":$2,\(\"eval_loss\".*\)}\$/{\1,/p" "$T/$1/metrics.jsonl"; }
begins() { # TEXT WITH: it begins so, and that is something
    [ -n "$2" ] && case $1 in "$2"*) return 0 ;; esac
    printf '%s\n' "$1" "$2"
    return 1
}

ok "three ranks train" run good "$T/job.yaml"
ok "an evaluation of what they left is, to the last digit, the last one of the training" begins "$(evaluate "$T/good")" "$(counted good 2)"
ok "it went by their plan" bash -c '"$1" --json eval "$2" | jq -es ".[0].as_planned and .[0].rows == 90" >/dev/null' - "$MSCTL" "$T/good"
ok "that of a checkpoint, where its average counts, is that of its epoch" begins "$(evaluate "$T/good" -w net-2.json)" "$(counted good 1)"
ok "also by its own name" begins "$(evaluate "$T/good/checkpoints/net-2.json")" "$(counted good 1)"
cp -r "$T/good" "$T/damaged"
break_data "$T/damaged/checkpoints/net-2.safetensors"
for command in eval predict; do
    ok "$command of one that is damaged is refused" status 4 "$MSCTL" $command "$T/damaged" -w net-2
    ok "which is said" says "net-2.safetensors is damaged: its bytes are not those that its manifest has the digest of; name another one" \
        "$MSCTL" $command "$T/damaged" -w net-2
done
step=$(python3 -c 'import json, sys
rows = [r for r in map(json.loads, open(sys.argv[1])) if "eval_loss" in r]
print(max(rows, key=lambda r: (r["accuracy"], -r["epoch"]))["epoch"])' "$T/good/metrics.jsonl")
ok "the best weights are those of the best epoch" begins "$(evaluate "$T/good" -w best.safetensors)" "$(counted good "$step")"
ok "a job file with weights is the same" begins "$(evaluate "$T/job.yaml" --weights "$T/good")" "$(counted good 2)"
ok "people get a table" bash -c '"$1" eval "$2" | grep -q "^  accuracy .* % on the test set of shapes, loss " && "$1" eval "$2" | grep -q "^  confusion "' - "$MSCTL" "$T/good"
ok "on a terminal they see how far it is" bash -c 'python3 "$1" 80 "$2" eval "$3" | grep -q "of 90 samples evaluated"' - "$(dirname "$0")/on_tty.py" "$MSCTL" "$T/good"
"$MSCTL" export "$T/good" -o "$T/net.onnx" >/dev/null && "$MSCTL" export "$T/good" -o "$T/net.ckpt" >/dev/null
near() { # the accuracy of others' formats is that of the run
    evaluate "$T/good" -w "$1" | jq -es --argjson want "$(counted good 2 | sed 's/,$/}/')" '.[0].accuracy == $want.accuracy and (.[0].eval_loss - $want.eval_loss | fabs) < 1e-5' >/dev/null
}
ok "an ONNX model answers as the run does" near "$T/net.onnx"
ok "and MindSpore's checkpoint" near "$T/net.ckpt"
ok "the training data may be meant" bash -c '"$1" eval "$2" --set evaluate.dataset.usage=train | grep -q "^net: 90 samples "' - "$MSCTL" "$T/good"
sed -i 's/^isa .*/isa sse41/; s/^onednn .*/onednn 0.0.1/' "$T/good/plan.txt"
ok "a plan that cannot be had here is said" says "the plan of the training is not taken, and last bits may be others: plan line" "$MSCTL" eval "$T/good"
ok "and another one does it" bash -c '"$1" --json eval "$2" 2>/dev/null | jq -es "length == 1 and (.[0].as_planned | not)" >/dev/null' - "$MSCTL" "$T/good"
rm "$T/good/plan.txt"

# ---- predictions
predict() { "$MSCTL" predict "$@"; }
ok "each sample has a line" predict "$T/good" -o "$T/all.csv"
ok "in the order of the data, with shares that make one" python3 - "$T/all.csv" "$T/good/metrics.jsonl" <<'PY'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [int(r["sample"]) for r in rows] == list(range(90))
for r in rows:
    p = [float(r[f"p{i}"]) for i in range(10)]
    assert abs(sum(p) - 1) < 1e-6 and p.index(max(p)) == int(r["predicted"])
right = sum(r["label"] == r["predicted"] for r in rows) / 90
want = [r for r in map(json.loads, open(sys.argv[2])) if "eval_loss" in r][-1]["accuracy"]
assert abs(right - want) < 1e-8, (right, want)
PY
ok "to standard output the same" bash -c '"$1" predict "$2" | cmp - "$3"' - "$MSCTL" "$T/good" "$T/all.csv"
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[^0-9].*//')
ok "and on one CPU" bash -c 'taskset -c "$1" "$2" predict "$3" | cmp - "$4"' - "$cpu" "$MSCTL" "$T/good" "$T/all.csv"
ok "so does an evaluation" begins "$(taskset -c "$cpu" "$MSCTL" --json eval "$T/good")" "$(evaluate "$T/good" | sed 's/,"rows".*//')"
ok "what is there is not overwritten" status 4 predict "$T/good" -o "$T/all.csv"
ok "but with --force" predict "$T/good" --force -o "$T/all.csv" --top 2
ok "the largest come first" python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert len(rows) == 90 and list(rows[0]) == ["sample", "label", "class_1", "p_1", "class_2", "p_2"]
assert all(float(r["p_1"]) >= float(r["p_2"]) for r in rows)' "$T/all.csv"
ok "programs get an object a line" bash -c '"$1" predict "$2" --raw -o "$3" && jq -es "length == 90 and all(.raw | length == 10)" "$3" >/dev/null' - "$MSCTL" "$T/good" "$T/raw.jsonl"
ok "a reader that goes is no error" bash -c '"$1" predict "$2" | head -n 1 | grep -q "^sample,label,predicted,p0"' - "$MSCTL" "$T/good"

# ---- images in folders, of which only some are asked about; a table with words
python3 - "$T" <<'PY'
import os, struct, sys, zlib
def png(path, value):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress((b"\0" + bytes([value] * 12)) * 4)) + chunk(b"IEND", b""))
t = sys.argv[1]
for i in range(16):
    png(f"{t}/pets/cat/{i:02}.png", 10 + i)
    png(f"{t}/pets/dog/{i:02}.png", 200 + i)
for i in range(3):
    png(f"{t}/new/some/{i}.png", 205 + i)
with open(f"{t}/t.csv", "w") as f:
    f.write("a,b,kind\n" + "".join(f"{i},{-i},{'even' if i % 2 == 0 else 'odd, or so'}\n".replace("odd, or so", '"odd, or so"') for i in range(32)))
PY
cat >"$T/pets.yaml" <<YAML
network: [flatten, dense: {out: classes}]
dataset: {kind: image_folder, path: $T/pets}
transforms: [{rescale: {scale: 0.0078, shift: -1}}]
batch_size: 8
epochs: 20
optimizer: {kind: sgd, learning_rate: 0.1}
YAML
ok "a network learns two folders" run petnet "$T/pets.yaml"
ok "without an evaluation nothing says on what data" says "has no \`evaluate\`, so nothing says on what data; give --data PATH (of kind image_folder)" "$MSCTL" eval "$T/petnet"
ok "tables have the names of classes" bash -c '"$1" eval "$2" --set "evaluate={dataset: {kind: image_folder, path: $3}, metrics: [per_class, confusion]}" | grep -cE "^ +1  dog +(100.00 % +100.00 %|0 +16)$" | grep -qx 2' - "$MSCTL" "$T/petnet" "$T/pets"
ok "which are named" bash -c '"$1" --json eval "$2" -d "$3" | jq -es ".[0].accuracy == 1 and .[0].rows == 32" >/dev/null' - "$MSCTL" "$T/petnet" "$T/pets"
ok "images that it has not seen have the name of their class, and their file" bash -c '"$1" predict "$2" --data "$3" --top 1 --format json | jq -es "length == 3 and
    all(.top[0].class == \"dog\" and .label == \"some\") and .[2].file == \"$3/some/2.png\"" >/dev/null' - "$MSCTL" "$T/petnet" "$T/new"
ok "a folder that holds images itself is one of the folder above" says "name the folder above: $T/new" "$MSCTL" predict "$T/petnet" --data "$T/new/some"
mkdir "$T/heap" && cp -r "$T/new/some" "$T/heap" && cp "$T/new/some/0.png" "$T/heap/loose.png"
ok "an image beside the folders is not left out without a word" says "heap: the image loose.png lies beside the folders" "$MSCTL" predict "$T/petnet" --data "$T/heap"
# classes are folders by their names, not by their positions
mkdir "$T/swap" "$T/birds" && cp -r "$T/pets/dog" "$T/swap/dog" && cp -r "$T/pets/cat" "$T/birds/cat" && cp -r "$T/pets/dog" "$T/birds/emu"
ok "a test set elsewhere may lack a class" bash -c '"$1" --json eval "$2" -d "$3" | jq -es ".[0].accuracy == 1 and .[0].rows == 16" >/dev/null' - "$MSCTL" "$T/petnet" "$T/swap"
ok "an unknown one is refused by its name" says "birds: class emu is not among the 2 that are trained (cat, dog)" "$MSCTL" eval "$T/petnet" -d "$T/birds"
sed "\$ a evaluate: {dataset: {kind: image_folder, path: $T/birds}}" "$T/pets.yaml" >"$T/birds.yaml"
ok "no training is judged by it" says "birds: class emu is not among the 2 that are trained (cat, dog)" "$MSCTL" run "$T/birds.yaml" --run-dir "$T/birdnet"
mkdir "$T/high" && cp -r "$T/pets" "$T/high"
ok "a path one level too high is no network over one class" says "one class alone, the folder pets, and a network over one class can learn nothing; is dataset.path one level too high" "$MSCTL" run "$T/pets.yaml" --set dataset.path="$T/high" --run-dir "$T/highnet"
mv "$T/pets" "$T/gone"
ok "the run knows its classes where the training data are gone" bash -c '"$1" --json eval "$2" -d "$3" | jq -es ".[0].accuracy == 1 and .[0].rows == 16" >/dev/null' - "$MSCTL" "$T/petnet" "$T/swap"
ok "and their names" bash -c '"$1" predict "$2" --data "$3" | head -n 1 | grep -qx "sample,file,label,predicted,cat,dog"' - "$MSCTL" "$T/petnet" "$T/new"
cp -r "$T/petnet" "$T/oldnet" && jq 'del(.dataset.class_names)' "$T/petnet/job.json" >"$T/oldnet/job.json"
ok "one that does not know them says so" says "the folders that were trained on are not here ($T/pets)" "$MSCTL" predict "$T/oldnet" --data "$T/new"
ok "and counts nothing by position" says "which classes were trained is not known" "$MSCTL" eval "$T/oldnet" -d "$T/swap"
mv "$T/gone" "$T/pets"

# names and numbers of classes: which is which is said, or nothing is counted
python3 - "$T" <<'PY'
import os, struct, sys
def npy(name, descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    open(f"{sys.argv[1]}/twin/{name}.npy", "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data)
os.mkdir(f"{sys.argv[1]}/twin")
npy("x", "|u1", "(32, 3, 4, 4)", b"".join(bytes([200 + i] * 48) + bytes([10 + i] * 48) for i in range(16)))
npy("y", "<i4", "(32,)", struct.pack("<32i", *(i % 2 for i in range(32))))
PY
sed "s|^dataset:.*|dataset: {kind: numpy, path: $T/twin, layout: nchw}|" "$T/pets.yaml" >"$T/twin.yaml"
named="evaluate={dataset: {kind: image_folder, path: $T/pets, class_names: [dog, cat]}}"
unnamed="evaluate={dataset: {kind: image_folder, path: $T/pets}}"
numbered="evaluate={dataset: {kind: numpy, layout: nchw, path: $T/twin"
ok "a network learns dogs, 0, and cats, 1, of arrays" run twinnet "$T/twin.yaml"
ok "folders are not taken for its classes by their order" says "its classes have names (cat, dog), and those that are trained are numbers: which is which?" "$MSCTL" eval "$T/twinnet" --set "$unnamed"
ok "nor in a training" says "evaluate: its classes have names (cat, dog)" "$MSCTL" run "$T/twin.yaml" --set "$unnamed" --run-dir "$T/twinnet2"
ok "but by the order that is said" bash -c '"$1" --json eval "$2" --set "$3" | jq -es ".[0].accuracy == 1 and .[0].rows == 32" >/dev/null' - "$MSCTL" "$T/twinnet" "$named"
ok "what nobody named is predicted by its number" bash -c '"$1" predict "$2" --set "$3" --top 1 --format json | jq -es "length == 32 and all(.label == {\"0\": \"dog\", \"1\": \"cat\"}[.top[0].class | tostring])" >/dev/null' - \
    "$MSCTL" "$T/twinnet" "$unnamed"
ok "and what is named by its name" bash -c '"$1" predict "$2" --set "$3" --top 1 --format json | jq -es "length == 32 and all(.label == .top[0].class)" >/dev/null' - "$MSCTL" "$T/twinnet" "$named"
ok "also of images in any folders" bash -c '"$1" predict "$2" --set "$3" --top 1 --format json | jq -es "length == 3 and all(.label == \"some\" and .top[0].class == \"dog\")" >/dev/null' - "$MSCTL" "$T/twinnet" "${named//$T\/pets/$T/new}"
for command in eval predict; do
    ok "numbers are not taken for folders by $command" says "its labels are numbers, and the classes that are trained have names (cat, dog)" "$MSCTL" $command "$T/petnet" --set "$numbered}}"
done
ok "where no labels are shown they may be any" bash -c '"$1" predict "$2" --set "$3" --no-labels | head -n 1 | grep -qx "sample,predicted,cat,dog"' - "$MSCTL" "$T/petnet" "$numbered}}"
ok "an order that is another one is refused" says "others than dataset.class_names" "$MSCTL" eval "$T/petnet" --set "$numbered, class_names: [dog, cat]}}"
ok "the same is taken at its word" bash -c '"$1" --json eval "$2" --set "$3" | jq -es ".[0].accuracy == 0 and .[0].rows == 32" >/dev/null' - "$MSCTL" "$T/petnet" "$numbered, class_names: [cat, dog]}}"

# a label is written as its prediction is, whatever the bytes of its folder
mkdir "$T/odd" && cp -r "$T/pets/cat" "$T/odd/"$'\xff'cat && cp -r "$T/pets/dog" "$T/odd/dog"
ok "a network learns folders with odd names" run oddnet "$T/pets.yaml" --set "dataset={kind: image_folder, path: $T/odd}"
ok "their labels are UTF-8, and are their predictions" python3 -c 'import json, subprocess, sys
rows = [json.loads(line.decode("utf-8")) for line in subprocess.run(sys.argv[1:], check=True, capture_output=True).stdout.splitlines()]
assert len(rows) == 32 and all(r["label"] == r["top"][0]["class"] for r in rows), rows' "$MSCTL" predict "$T/oddnet" --data "$T/odd" --top 1 --format json

# bytes and numbers go through the same transforms
python3 - "$T" <<'PY'
import os, struct, sys
def npy(name, descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    open(f"{sys.argv[1]}/mixed/{name}.npy", "wb").write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head + data)
os.mkdir(f"{sys.argv[1]}/mixed")
npy("x_train", "|u1", "(8, 2, 2)", bytes(range(32)))
npy("x_test", "<f4", "(8, 2, 2)", struct.pack("<32f", *(i / 255 for i in range(32))))
for part in "train", "test":
    npy(f"y_{part}", "<i4", "(8,)", struct.pack("<8i", *(i % 2 for i in range(8))))
PY
cat >"$T/mixed.yaml" <<YAML
network: [flatten, dense: {out: classes}]
dataset: {kind: numpy, path: $T/mixed}
evaluate: {dataset: {kind: numpy, path: $T/mixed}}
batch_size: 4
optimizer: {kind: sgd, learning_rate: 0.01}
YAML
ok "numbers are no test of a network of bytes" says "has numbers (float32), and what is trained on bytes (uint8)" "$MSCTL" run "$T/mixed.yaml" --run-dir "$T/mixednet"
ok "also where the job says what a record is" says "has numbers (float32), and what is trained on bytes (uint8)" "$MSCTL" run "$T/mixed.yaml" --set dataset.shape='[1, 2, 2]' --set dataset.classes=2 --run-dir "$T/mixednet2"
cat >"$T/table.yaml" <<YAML
network: [flatten, dense: {out: classes}]
dataset: {kind: csv, path: $T/t.csv, split: {test: 0.25}}
evaluate: {dataset: {kind: csv, path: $T/t.csv}}
batch_size: 8
optimizer: {kind: sgd, learning_rate: 0.01}
YAML
ok "a table is learned" run table "$T/table.yaml"
ok "its words are classes" bash -c '"$1" predict "$2" | head -n 1 | grep -qx "sample,label,predicted,even,\"odd, or so\""' - "$MSCTL" "$T/table"

printf 'a,b\n0,0\n1,-1\n' >"$T/unknown.csv"
ok "a table without its target is answered for" bash -c '"$1" predict "$2" -d "$3" --no-labels --top 1 --format json | jq -es "length == 2 and (.[0] | has(\"label\") | not)" >/dev/null' - \
    "$MSCTL" "$T/table" "$T/unknown.csv"
ok "who forgets to say so hears of it" says "has no column 'kind' (dataset.target); it has 'a', 'b'; data without labels are predicted with --no-labels" "$MSCTL" predict "$T/table" -d "$T/unknown.csv"
ok "an evaluation needs them" bash -c '! "$1" eval "$2" -d "$3" 2>&1 | grep -q -e --no-labels' - "$MSCTL" "$T/table" "$T/unknown.csv"
sed "s/evaluate: .*/evaluate: null/" "$T/mixed.yaml" >"$T/bytes.yaml"
ok "arrays are learned" run bytes "$T/bytes.yaml"
ok "one array alone is answered for" bash -c '"$1" predict "$2" -d "$3" --no-labels --format json | jq -es "length == 8 and (.[0] | has(\"label\") | not)" >/dev/null' - \
    "$MSCTL" "$T/bytes" "$T/mixed/x_train.npy"
ok "and named where labels are wanted" says "x_train.npy is one array: dataset.path names the folder with it and its targets, or a .npz; dataset.inputs and dataset.targets name the arrays; data without labels are predicted with --no-labels" \
    "$MSCTL" predict "$T/bytes" -d "$T/mixed/x_train.npy"

# ---- what cannot be
ok "a folder that is no run" status 4 "$MSCTL" eval "$T/new"
ok "weights of another network" status 2 "$MSCTL" eval "$T/job.yaml" -w "$T/petnet"
ok "are named" says "are these weights of another network, or job?" "$MSCTL" eval "$T/job.yaml" -w "$T/petnet"
ok "data of another shape, too" says "has 2 classes, and the job says 10" "$MSCTL" eval "$T/good" --set 'evaluate.dataset={kind: image_folder, path: '"$T"'/pets}'
ok "a class that is not there" says "--top 11: the network has 10 classes" predict "$T/good" --top 11
head -c 200 "$T/good/weights.safetensors" >"$T/torn.safetensors"
ok "a torn file" status 2 "$MSCTL" eval "$T/good" -w "$T/torn.safetensors"
ok "a place that cannot be written to" status 1 predict "$T/good" -o "$T/nowhere/x.csv"
ok "of predictions that fail nothing is left" bash -c '! "$1" predict "$2" -w "$3" -o "$4/x.csv" 2>/dev/null && [ ! -e "$4/x.csv" ] && ! ls -A "$4" | grep -q "^.msched-new"' - \
    "$MSCTL" "$T/good" "$T/torn.safetensors" "$T"
# a worker that dies is said, and is no zombie of anybody's
printf '#!/bin/sh\nkill -9 $$\n' >"$T/dies" && chmod +x "$T/dies"
ok "a worker that is killed is said" bash -c 'MSCHED_MSWORKER=$1 "$2" eval "$3" 2>&1 | grep -q "was killed by signal 9 (Killed) before it had answered"' - "$T/dies" "$MSCTL" "$T/good"
ok "nobody is left" test -z "$(alive)"
finish
