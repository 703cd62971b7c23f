#!/usr/bin/env bash
# t1104-bad-data.sh - bad input gets an error that names object, cause and next step, and loses nothing
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

job() { # NAME lines...
    local file=$T/$1.yaml
    shift
    printf '%s\n' "$@" >"$file"
}
# refuses NAME STATUS TEXT [option]...: the run ends with STATUS and says TEXT
refuses() {
    local name=$1 want=$2 text=$3
    shift 3
    rm -rf "$T/run_$name"
    timeout 600 "$MSCTL" run --run-dir "$T/run_$name" "$@" "$T/$name.yaml" >"$T/$name.out" 2>&1
    local got=$?
    [ "$got" -eq "$want" ] && grep -qF -- "$text" "$T/$name.out" && return 0
    echo "exit status $got, expected $want; text: $text"
    cat "$T/$name.out"
    return 1
}
common=('batch_size: 4' 'optimizer: {kind: sgd, learning_rate: 0.01}' 'steps: 2')

mkdir -p "$T/empty" "$T/short" "$T/label" "$T/idx" "$T/crc"
# 4,000 images, packed: a host's copy in memory; the checksum of the pixels is another one
python3 - "$T/crc" <<'PY'
import gzip, struct, sys
def put(name, header, data, damage):
    packed = bytearray(gzip.compress(header + data))
    if damage:
        packed[-8] ^= 1
    open(f"{sys.argv[1]}/{name}.gz", "wb").write(packed)
n = 4000
put("train-images-idx3-ubyte", struct.pack(">IIII", 2051, n, 28, 28), bytes(i % 251 for i in range(n * 784)), True)
put("train-labels-idx1-ubyte", struct.pack(">II", 2049, n), bytes(i % 10 for i in range(n)), False)
PY
head -c 3000 /dev/zero >"$T/short/data_batch_1.bin"
python3 -c 'import sys; sys.stdout.buffer.write((b"\x0b" + bytes(3072)) * 64)' >"$T/label/data_batch_1.bin"
head -c 4000 /dev/urandom >"$T/idx/train-images-idx3-ubyte"
cp "$T/idx/train-images-idx3-ubyte" "$T/idx/train-labels-idx1-ubyte"

job missing 'network: resnet50' "dataset: {kind: cifar10, path: $T/none}" "${common[@]}"
ok "a folder that is missing" refuses missing 1 "$T/none"
ok "before anything is started" [ ! -e "$T/run_missing" ]
job empty 'network: resnet50' "dataset: {kind: cifar10, path: $T/empty}" "${common[@]}"
ok "a folder without data" refuses empty 1 "$T/empty"
job short 'network: cifar_small' "dataset: {kind: cifar10, path: $T/short}" "${common[@]}"
ok "a truncated file is named with its size" refuses short 1 "3000"
job label 'network: cifar_small' "dataset: {kind: cifar10, path: $T/label}" "${common[@]}"
ok "a label out of range is named with its record" refuses label 1 "label"
job idx 'network: mnist' "dataset: {kind: mnist, path: $T/idx}" "${common[@]}"
ok "an image file that is no IDX" refuses idx 1 "2051"
job crc 'network: mnist' "dataset: {kind: mnist, path: $T/crc}" "${common[@]}"
ok "a checksum that a job of two steps does not come to" refuses crc 1 "train-images-idx3-ubyte.gz is truncated or damaged"
job variable 'network: mnist' "dataset: {kind: mnist, path: '\${NOT_SET_ANYWHERE}'}" "${common[@]}"
ok "a variable that is not set" refuses variable 1 "export NOT_SET_ANYWHERE="
for name in empty short idx variable; do ok "$name: nothing was started" [ ! -e "$T/run_$name" ]; done
# shellcheck disable=SC2016 # the programs expand it
ok "a folder is named, not the layout of its files" grep -qF "on the test set of shapes-drawn (cifar10 files)" <(
    "$MSCTL" dataset shapes "$T/shapes-drawn" --train 64 --test 32 >/dev/null
    DRAWN=$T/shapes-drawn "$MSCTL" run --run-dir "$T/run_drawn" -n 1 --set 'dataset={kind: cifar10, path: "${DRAWN}"}' \
        --set 'evaluate={dataset: {kind: cifar10, path: "${DRAWN}", usage: test}}' "$ROOT/examples/shapes.yaml" \
        --set epochs=1 2>&1)

job good 'network: linear' 'dataset: {kind: nonlinear}' 'loss: mse' "${common[@]}"
job unknown 'network: linear' 'dataset: {kind: nonlinear}' 'loss: mse' 'epoch: 3' "${common[@]}"
ok "an unknown key, with line and the nearest one" refuses unknown 2 "epochs"
ok "its line" grep -q "unknown.yaml:4" "$T/unknown.out"
job type 'network: linear' 'dataset: {kind: nonlinear}' 'loss: mse' 'epochs: many' "${common[@]}"
ok "a wrong type" refuses type 2 "epochs"
ok "no workers" refuses good 2 "workers" -n 0
ok "a million workers" refuses good 2 "1024" -n 1000000
ok "a negative learning rate" refuses good 2 "learning_rate" --set optimizer.learning_rate=-1
ok "a learning rate that is no number" refuses good 2 "learning_rate" --set optimizer.learning_rate=.nan
for later in 'precision=bf16' 'profile=true' 'checkpoint={directory: ../x}'; do
    ok "${later%%=*} is refused by name" refuses good 2 "${later%%=*}" --set "$later"
done
job big 'network: resnet50' 'dataset: {kind: shapes}' 'transforms: [{resize: {size: [224, 224]}}]' \
    'batch_size: 5000' 'optimizer: {kind: sgd, learning_rate: 0.01}'
ok "a job that cannot fit is refused before step 0, with what would fit" refuses big 1 "does not fit into memory"
ok "no run directory was made for a job that cannot work" [ ! -e "$T/run_unknown" ]
ok "weights of another network" "$MAKE_WEIGHTS" linear "$T/linear.safetensors"
job other 'network: cifar_small' 'dataset: {kind: shapes}' "initial_weights: $T/linear.safetensors" "${common[@]}"
ok "and so is what they lack" refuses other 1 "conv1.weight"
finish
