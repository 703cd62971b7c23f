#!/usr/bin/env bash
# t1112-own-data.sh - the same records as NumPy arrays, packed and not, as tensors, and as PNG images in folders: the bits of the binary
# reader; features with numbers as targets; tables of text; what is wrong is named
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 openssl
ok "a drawn data set" "$MSCTL" dataset shapes --train 1200 --test 200 --seed 3 "$T/drawn"
ok "and copies of it" python3 "$ROOT/tests/e2e/make_data.py" "$T/drawn" "$T/own"

job() { # KIND PATH
    printf '%s\n' 'network: cifar_small' "dataset: {kind: $1, path: $T/own/$2}" 'batch_size: 32' 'epochs: 2' \
        'transforms: [{random_crop: {size: 32, padding: 4}}, random_horizontal_flip: {}, {rescale: {scale: 0.0039}}]' \
        'optimizer: {kind: momentum, learning_rate: 0.01}' "evaluate: {dataset: {kind: $1, path: $T/own/$2}}"
}
both() { # NAME KIND PATH: trains on it with two workers, with the losses of the binary reader
    job "$2" "$3" >"$T/$1.yaml"
    run "$1" -n 2 "$T/$1.yaml" && same "$(digest "$1")" "$(digest binary)" &&
        same "$(losses "$1")" "$(losses binary)"
}
losses() { grep -o '"loss_hex":"[^"]*"\|"eval[^}]*"' "$T/$1/metrics.jsonl"; }
job cifar10 sorted >"$T/binary.yaml"
ok "the binary reader" run binary -n 2 "$T/binary.yaml"
ok "arrays in a folder have its bits" both arrays numpy arrays
ok "so do those of an archive" both stored numpy stored.npz
ok "and of a packed one, channels last" both packed numpy packed.npz
ok "and tensors of a folder" both tensors safetensors tensors
ok "and images in folders" both images image_folder png
export MSCHED_IMAGE_MEMORY=0
ok "decoded each time, too" both decoded image_folder png
unset MSCHED_IMAGE_MEMORY

# ---- a job without the data at hand says what they are
sed 's/path: [^}]*arrays/path: "${WHERE}"/g' "$T/arrays.yaml" >"$T/away.yaml"
ok "data that are elsewhere" says "give shape and classes or target_width" "$MSCTL" run --run-dir "$T/bad1" "$T/away.yaml"
ok "are looked for here" env WHERE="$T/own/arrays" "$MSCTL" run --run-dir "$T/here" -n 2 "$T/away.yaml"
ok "with the same bits" same "$(digest here)" "$(digest binary)"
ok "what is said is held against the files" says "has label 9, and the job has 9 classes, 0 to 8" "$MSCTL" run --run-dir "$T/bad2" \
    --set dataset.classes=9 --set 'dataset.shape=[3, 32, 32]' "$T/arrays.yaml"
ok "so is the shape" says "the job says 3x16x16 (dataset.shape)" "$MSCTL" run --run-dir "$T/bad3" --set 'dataset.shape=[3, 16, 16]' "$T/arrays.yaml"

# ---- features, numbers as targets
python3 - "$T" <<'PY'
import struct, sys
def npy(name, shape, values):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n"
    data = struct.pack(f"<{len(values)}d", *values)
    open(f"{sys.argv[1]}/{name}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
x = [((i * 37 + j * 11) % 64) / 64 for i in range(256) for j in range(3)]
npy("x", (256, 3), x)
npy("y", (256, 2), [v for i in range(256) for v in (x[3 * i] - x[3 * i + 1], 0.5 * x[3 * i + 2])])
PY
printf '%s\n' 'network: [flatten: {}, dense: {out: 2}]' "dataset: {kind: numpy, path: $T}" 'batch_size: 16' 'epochs: 30' \
    'optimizer: {kind: momentum, learning_rate: 0.2}' >"$T/numbers.yaml"
ok "features and two numbers a row" run numbers "$T/numbers.yaml"
last_loss() { tail -n 2 "$T/numbers/metrics.jsonl" | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["loss"])'; }
ok "are learned" python3 -c "import sys; sys.exit(not $(last_loss) < 1e-4)"
ok "are no shares of classes" says "is no probability, and the loss wants 0 to 1" "$MSCTL" run --run-dir "$T/bad4" --set loss=softmax_cross_entropy "$T/numbers.yaml"

ok "no probabilities" says "/y.npy: row " "$MSCTL" run --run-dir "$T/bad12" --set loss=binary_cross_entropy "$T/numbers.yaml"
ok "and what is given twice and differs" says "has 2 numbers a row as targets, and the job says 1 (dataset.target_width)" \
    "$MSCTL" run --run-dir "$T/bad13" --set dataset.target_width=1 "$T/numbers.yaml"

# ---- tables
python3 - "$T" <<'PY'
import random, sys
random.seed(1)
names = ["iris, blue", "rose", "tulip"]
for part, rows in ("train", 300), ("test", 90):
    with open(f"{sys.argv[1]}/{part}.csv", "w") as file:
        file.write("length,width,kind,weight\n")
        for i in range(rows):
            k = random.randrange(3) if part == "train" else 1 + i % 2 # a test without one of the classes
            a, b = k - 1 + random.uniform(-0.3, 0.3), (k == 1) + random.uniform(-0.3, 0.3)
            kind = f'"{names[k]}"' if k == 0 else names[k]
            file.write(f"{a:.4f},{b:.4f},{kind},{2 * a - b:.4f}\n")
PY
printf '%s\n' 'network: [flatten: {}, dense: {out: classes}]' \
    "dataset: {kind: csv, path: $T, target: kind, columns: [length, width]}" 'batch_size: 16' 'epochs: 20' \
    'optimizer: {kind: momentum, learning_rate: 0.2}' "evaluate: {dataset: {kind: csv, path: $T}, every_epochs: 20}" >"$T/table.yaml"
ok "a table with words as classes" run table -n 2 "$T/table.yaml"
ok "is learned, and a part without one of them recognised" grep -qE "epoch 20: accuracy (9[5-9]|100)" "$T/table.out"
python3 - "$T" <<'PY'
import csv, sys
with open(f"{sys.argv[1]}/test.csv", newline="") as file:
    rows = [[row[i] for i in (3, 1, 2, 0)] for row in csv.reader(file)]
for name in "width", "breadth":
    rows[0][1] = name
    with open(f"{sys.argv[1]}/{name}.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
PY
ok "columns in another order are found by their names" run order -n 2 --set evaluate.dataset.path="$T/width.csv" --set dataset.columns=null \
    --set dataset.path="$T/train.csv" "$T/table.yaml"
ok "to an evaluation as good" grep -qE "epoch 20: accuracy (9[5-9]|100)" "$T/order.out"
accuracy() { "$MSCTL" --json eval "$@" | jq .accuracy; }
ok "also of a run that has ended" same "$(accuracy "$T/order" --data "$T/width.csv")" "$(accuracy "$T/order" --data "$T/test.csv")"
ok "columns of other names are none" says "breadth.csv has no column 'width': the network is trained on 'length', 'width', 'weight', and" \
    "$MSCTL" predict "$T/order" --data "$T/breadth.csv"
ok "also where the job says what a record is" run said -n 2 --set evaluate.dataset.path="$T/width.csv" --set dataset.columns=null \
    --set dataset.path="$T/train.csv" --set dataset.shape='[3]' --set dataset.classes=3 --set 'dataset.class_names=["iris, blue", rose, tulip]' "$T/table.yaml"
ok "and learns the same" same "$(digest said)" "$(digest order)"
ok "and is evaluated" same "$(accuracy "$T/said")" "$(accuracy "$T/order")"
cp -r "$T/said" "$T/nameless" && jq 'del(.dataset.column_names)' "$T/said/job.json" >"$T/nameless/job.json"
ok "a job without the names finds them in the training set" same "$(accuracy "$T/nameless")" "$(accuracy "$T/order")"
mv "$T/train.csv" "$T/away.csv"
for command in eval predict; do
    ok "where that is gone $command does not go by position" says "which columns were trained is not known ($T/train.csv cannot be opened" "$MSCTL" $command "$T/nameless"
done
mv "$T/away.csv" "$T/train.csv"
ok "not by other keys" says "evaluate.dataset.columns: [width, weight], and the network is trained on [length, width]" \
    "$MSCTL" run --run-dir "$T/bad14" --set 'evaluate.dataset.columns=[width, weight]' "$T/table.yaml"
ok "a number of it" run weight --set dataset.target=weight --set evaluate=null --set 'network=[flatten: {}, dense: {out: 1}]' "$T/table.yaml"
ok "a file that is split" run split -n 2 --set dataset.path="$T/train.csv" --set evaluate.dataset.path="$T/train.csv" \
    --set dataset.split.test=0.2 "$T/table.yaml"
ok "is tested on what it was not trained on" grep -qE "epoch 20: accuracy (9[5-9]|100)" "$T/split.out"
ok "in other steps than the whole" [ "$(field split steps)" -eq $((20 * 8)) ]
ok "which is said" grep -q "on the test set of train.csv" "$T/split.out"
ok "a folder with a test has it" says "has parts of its own (train.csv, test.csv)" "$MSCTL" run --run-dir "$T/bad11" \
    --set dataset.split.test=0.2 "$T/table.yaml"
mkdir "$T/sub"
ln -s ../train.csv "$T/sub/link.csv"
for path in "$T//sub/../train.csv" "$T/sub/link.csv" '${HERE}/train.csv'; do
    rm -rf "${T:?}/as"
    ok "so it is by the path $path" env HERE="$T" "$MSCTL" run --run-dir "$T/as" -n 2 --set dataset.path="$T/train.csv" \
        --set evaluate.dataset.path="$path" --set dataset.split.test=0.2 "$T/table.yaml"
    ok "to the same evaluation" same "$(grep -o '"eval[^}]*"' "$T/as/metrics.jsonl")" "$(grep -o '"eval[^}]*"' "$T/split/metrics.jsonl")"
done
ok "a table without parts" run memory --set dataset.path="$T/train.csv" --set evaluate.dataset.path="$T/sub/link.csv" "$T/table.yaml"
ok "is the training data" grep -q "on the training data" "$T/memory.out"
sed -i '7s/^[^,]*/x/' "$T/train.csv"
ok "a field that is no number" says "train.csv:7:1: column length: 'x' is no finite number" "$MSCTL" run --run-dir "$T/field" "$T/table.yaml"
sed -i '7s/^x,/0,0,/' "$T/train.csv"
ok "a row with one field more" says "train.csv:7: 5 fields, and 4 in the first line" "$MSCTL" run --run-dir "$T/row" "$T/table.yaml"

# ---- images of any size, and damaged ones
sed 's/path: [^,}]*/&, size: 24/' "$T/images.yaml" >"$T/sized.yaml"
ok "images are resized and cut" run sized -n 2 --set 'transforms=[{rescale: {scale: 0.0039}}]' "$T/sized.yaml"
ok "to other weights" [ "$(digest sized)" != "$(digest images)" ]
sed 's/^transforms: .*/transforms: [{random_resized_crop: {size: 16}}, {centre_crop: {size: 16}}, {random_erasing: {}}, {rescale: {scale: 0.0039}}]/' \
    "$T/sized.yaml" >"$T/cropped.yaml"
ok "crops of random sizes, which evaluation leaves out" run cropped -n 2 "$T/cropped.yaml"
ok "once more" run again -n 2 "$T/cropped.yaml"
ok "have the same bits" same "$(digest cropped)" "$(digest again)"
ok "no crop in the middle, no evaluation" says "add centre_crop: {size: [16, 16]}" "$MSCTL" run --run-dir "$T/bad9" \
    --set 'transforms=[{random_resized_crop: {size: 16}}]' "$T/sized.yaml"
one=$(find "$T/own/png/train" -name '*.png' | sort | tail -n 1)
cp "$one" "$T/whole.png"
head -c 300 "$T/whole.png" >"$one"
ok "a truncated image" says "${one#"$T/own/png"/} is truncated or damaged (PNG)" "$MSCTL" run --run-dir "$T/torn" -n 2 "$T/images.yaml"
cp "$T/whole.png" "$one"

# ---- goes on in the middle of an epoch, with random boxes
for name in whole begun resumed; do cp "$T/cropped.yaml" "$T/$name.yaml"; done
save='checkpoint={every_steps: 5}'
ok "a training" run whole -n 2 --set steps=30 "$T/whole.yaml"
ok "that ends in an epoch" run begun -n 2 --set steps=7 --set "$save" "$T/begun.yaml"
ok "is resumed" run resumed -n 2 --set steps=30 --set "$save" --resume "$T/begun" "$T/resumed.yaml"
ok "to the same bits" same "$(digest resumed)" "$(digest whole)"

# ---- a standing cluster reads below its roots alone, whatever a name says
mkdir "$T/private"
cp "$T/own/arrays/y_train.npy" "$T/private"
ln -s "$T/private/y_train.npy" "$T/own/arrays/link.npy"
ok "a path is no name" says "dataset.inputs" "$MSCTL" run --run-dir "$T/bad10" --set dataset.inputs=../x --set dataset.targets=../y "$T/arrays.yaml"
make_certificates
ok "a cluster" start_head
ok "with a node that reads the arrays" start_node w0 --data-roots "$T/own"
ok "and another one" start_node w1 --data-roots "$T/own"
as alice submit -n 2 "$T/arrays.yaml" >/dev/null
ok "they train on them" wait_for 120 in_state 1 SUCCEEDED
ok "to the bits of the binary reader" json show 1 -- "j['weights_sha256'] == '$(digest binary)'"
as alice submit -n 1 --set dataset.inputs=x_train --set dataset.targets=link "$T/arrays.yaml" >/dev/null
ok "not through a link out of them" wait_for 120 in_state 2 FAILED
ok "which is said" json show 2 -- "'data_roots' in j['reason']"

if [ -d "${SHARED:-/nowhere}/data/cifar-10-batches-bin" ]; then
    rm -rf "$T/own" # its first 10,000 images of each part: a file each
    ok "copies of CIFAR-10" python3 "$ROOT/tests/e2e/make_data.py" "$SHARED/data/cifar-10-batches-bin" "$T/own" 10000
    for name in binary arrays stored packed images; do rm -rf "${T:?}/$name"; done
    ok "CIFAR-10 itself" run binary -n 2 --set steps=40 --set epochs=1 "$T/binary.yaml"
    for name in arrays stored packed images; do
        ok "as $name" run "$name" -n 2 --set steps=40 --set epochs=1 "$T/$name.yaml"
        ok "has the same bits" same "$(digest "$name")" "$(digest binary)"
    done
fi
finish
