#!/usr/bin/env bash
# t1120-labels.sh - what labels count: weights of classes, a label that is ignored; the same losses on one worker, on two and
# on four, and in evaluations; samples that are mixed; shares of classes; tokens
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# A third of the rows does not count, among them all of a whole batch of the second of two workers.
python3 - "$T" <<'PY'
import random, struct, sys
random.seed(7)
def npy(name, kind, shape, form, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n"
    data = struct.pack(f"<{len(values)}{form}", *values)
    open(f"{sys.argv[1]}/{name}.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
def part(name, rows):
    x, y = [], []
    for i in range(rows):
        k = random.choice([0, 0, 0, 0, 1, 2])
        x += [random.gauss(j == k, 0.7) for j in range(5)]
        y.append(-100 if random.random() < 0.25 or (i % 2 == 1 and 24 <= i < 48) else k)
    npy(f"x_{name}", "<f4", (rows, 5), "f", x)
    npy(f"y_{name}", "<i8", (rows,), "q", y)
    return sum(k >= 0 for k in y)
part("train", 240)
print(part("test", 90), file=open(f"{sys.argv[1]}/counted", "w"))
PY
printf '%s\n' 'network: [flatten, dense: {out: 16}, tanh, dense: {out: classes}]' "dataset: {kind: numpy, path: $T, shuffle: false}" \
    'class_weights: [0.5, 2, 4]' 'ignored_label: -100' 'batch_size: 24' 'epochs: 3' \
    'optimizer: {kind: sgd, learning_rate: 0.1, weight_decay: 0.01, clip_norm: 0.4}' \
    "evaluate: {dataset: {kind: numpy, path: $T}, metrics: [confusion, per_class, top5]}" >"$T/job.yaml"

near() { # RUN OTHER: their lines, but for how long things took
    python3 - "$T/$1/metrics.jsonl" "$T/$2/metrics.jsonl" <<'PY'
import json, math, sys
def lines(path):
    return [json.loads(line) for line in open(path)]
def same(a, b):
    return all(math.isclose(a[k], b[k], rel_tol=2e-5) for k in ("loss", "eval_loss") if k in a) and \
        all(a[k] == b[k] for k in ("accuracy", "confusion", "recall", "top5") if k in a)
a, b = (lines(path) for path in sys.argv[1:])
kinds = [sorted(set(line) & {"loss", "eval_loss"}) for line in a]
steps = sum(kind == ["loss"] for kind in kinds)
sys.exit(not (len(a) == len(b) and steps == 30 and all(map(same, a, b))))
PY
}
ok "one worker trains" run one "$T/job.yaml"
ok "two with half of its batch" run two -n 2 --set batch_size=12 "$T/job.yaml"
ok "have its losses and its evaluations" near one two
ok "so do four" run four -n 4 --set batch_size=6 "$T/job.yaml"
ok "to the step" near one four
ok "and batches that are added up" run parts -n 2 --set batch_size=4 --set accumulate=3 "$T/job.yaml"
ok "too" near one parts
ok "sums of gradients are so many means" run sums -n 2 --set batch_size=12 --set parallel.gradients_mean=false \
    --set optimizer.learning_rate=0.05 --set optimizer.weight_decay=0.02 --set optimizer.clip_norm=0.8 "$T/job.yaml"
ok "of all that counts" near one sums
ok "what is ignored is in no confusion" python3 - "$T" <<'PY'
import json, sys
last = [l for l in map(json.loads, open(f"{sys.argv[1]}/one/metrics.jsonl")) if "confusion" in l][-1]
rows = sum(map(sum, last["confusion"]))
hits = sum(last["confusion"][i][i] for i in range(3))
sys.exit(not (rows == int(open(f"{sys.argv[1]}/counted").read()) and abs(last["accuracy"] - hits / rows) < 1e-9))
PY
"$MSCTL" --json eval "$T/one" >"$T/eval.json"
ok "an evaluation of the weights counts alike, to the bit" python3 - "$T" <<'PY'
import json, sys
told = json.load(open(f"{sys.argv[1]}/eval.json"))
last = [l for l in map(json.loads, open(f"{sys.argv[1]}/one/metrics.jsonl")) if "eval_loss" in l][-1]
sys.exit(not all(told[k] == last[k] for k in ("eval_loss", "accuracy", "confusion")))
PY
ok "predictions have its label as it is" sh -c "'$MSCTL' predict '$T/one' | cut -d , -f 2 | grep -qx -e -100"

ok "a job with checkpoints" run saved --set 'checkpoint={every_steps: 5}' --set steps=10 "$T/job.yaml"
ok "does not go on with other weights" says "class_weights" "$MSCTL" run --run-dir "$T/other" --set 'checkpoint={every_steps: 5}' \
    --set 'class_weights=[1, 2, 4]' --resume "$T/saved" "$T/job.yaml"
ok "nor with another label" says "ignored_label" "$MSCTL" run --run-dir "$T/other" --set 'checkpoint={every_steps: 5}' \
    --set 'ignored_label=null' --set dataset.classes=3 --set 'dataset.shape=[5]' --resume "$T/saved" "$T/job.yaml"
ok "without the key the label is none" says "y_train.npy: row " "$MSCTL" run --run-dir "$T/bad1" --set ignored_label=null "$T/job.yaml"
ok "weights are a number a class" says "class_weights: 2 numbers, and the data set has 3 classes; give one a class" \
    "$MSCTL" run --run-dir "$T/bad2" --set 'class_weights=[1, 2]' "$T/job.yaml"

# ---- nothing counts: no loss, no NaN, no change
ok "a job of which nothing counts" run nothing -n 2 --set 'class_weights=[0, 0, 0, 1]' --set classes=4 --set batch_size=12 \
    --set optimizer.weight_decay=0 "$T/job.yaml"
ok "has losses of 0" python3 - "$T" <<'PY'
import json, sys
lines = list(map(json.loads, open(f"{sys.argv[1]}/nothing/metrics.jsonl")))
sys.exit(any(l.get("loss", 0) != 0 or l.get("eval_loss", 0) != 0 for l in lines))
PY

# ---- samples that are mixed have two labels
printf '%s\n' 'network: [flatten, dense: {out: 16}, tanh, dense: {out: classes}]' 'dataset: {kind: shapes, samples: 240}' \
    'transforms: [{random_horizontal_flip: {}}, {rescale: {scale: 0.0039}}, {mixup: {alpha: 0.4}}]' 'class_weights: [1, 2, 1, 1, 4, 1, 1, 1, 0.5, 1]' \
    'label_smoothing: 0.1' 'batch_size: 24' 'epochs: 3' 'optimizer: {kind: sgd, learning_rate: 0.1}' \
    'evaluate: {dataset: {kind: shapes, usage: test, samples: 60}}' >"$T/mixed.yaml"
ok "mixed samples" run mixed1 "$T/mixed.yaml"
ok "on four workers" run mixed4 -n 4 --set batch_size=6 "$T/mixed.yaml"
ok "have the same losses" near mixed1 mixed4
ok "and other ones than those that are not" run plain --set 'transforms=[{random_horizontal_flip: {}}, {rescale: {scale: 0.0039}}]' "$T/mixed.yaml"
ok "in each step" sh -c "! cmp -s '$T/plain/worker_0.log' '$T/mixed1/worker_0.log'"
ok "a training that ends" run half --set 'checkpoint={every_steps: 5}' --set steps=15 "$T/mixed.yaml"
ok "goes on" run whole --set 'checkpoint={every_steps: 5}' --resume "$T/half" "$T/mixed.yaml"
ok "with the samples that it would have had" same "$(digest whole)" "$(digest mixed1)"

# ---- shares of each class in the place of labels: those that are one-hot are the labels, to rounding
python3 - "$T" <<'PY'
import os, random, struct, sys
random.seed(3)
def npy(name, kind, shape, form, values):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n"
    data = struct.pack(f"<{len(values)}{form}", *values)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
x = [random.random() for _ in range(96 * 5)]
y = [i * 7 % 3 for i in range(96)]
for kind in "hot", "hard":
    npy(f"{sys.argv[1]}/{kind}/x.npy", "<f4", (96, 5), "f", x)
npy(f"{sys.argv[1]}/hard/y.npy", "<i8", (96,), "q", y)
npy(f"{sys.argv[1]}/hot/y.npy", "<f4", (96, 3), "f", [float(k == j) for k in y for j in range(3)])
PY
for kind in hard hot; do
    printf '%s\n' 'network: [flatten, dense: {out: classes}]' "dataset: {kind: numpy, path: $T/$kind}" 'loss: softmax_cross_entropy' \
        'label_smoothing: 0.1' 'batch_size: 16' 'epochs: 5' 'optimizer: {kind: sgd, learning_rate: 0.1}' \
        "evaluate: {dataset: {kind: numpy, path: $T/$kind}, metrics: [confusion, per_class]}" >"$T/$kind.yaml"
done
ok "labels" run labels "$T/hard.yaml"
ok "shares of classes" run soft "$T/hot.yaml"
ok "are alike where they are one-hot" near labels soft
ok "on two workers, too" run soft2 -n 2 --set batch_size=8 "$T/hot.yaml"
ok "by loss and accuracy" near soft soft2
ok "predictions have no label then" sh -c "'$MSCTL' predict '$T/soft' | head -n 1 | grep -qx 'sample,predicted,p0,p1,p2'"

# ---- tokens: a byte that nobody has to guess
for i in {1..60}; do echo "line $i of a text that is said again"; done >"$T/text.txt"
printf '%s\n' 'network:' '  - embedding: {words: classes, size: 8}' '  - dense: {out: classes}' \
    "dataset: {kind: text, path: $T/text.txt, tokens: 16, split: {test: 0.2}}" 'ignored_label: 32' 'batch_size: 8' 'epochs: 2' \
    'optimizer: {kind: adam, learning_rate: 0.02}' "evaluate: {dataset: {kind: text, path: $T/text.txt}, metrics: [perplexity, per_class]}" >"$T/text.yaml"
ok "a text" run text1 "$T/text.yaml"
ok "on two workers" run text2 -n 2 --set batch_size=4 "$T/text.yaml"
ok "blanks count nowhere" python3 - "$T" <<'PY'
import json, math, sys
one, two = ([l for l in map(json.loads, open(f"{sys.argv[1]}/{run}/metrics.jsonl"))] for run in ("text1", "text2"))
sys.exit(not (all(math.isclose(a["loss"], b["loss"], rel_tol=1e-4) for a, b in zip(one, two) if "epoch" in a and "loss" in a)
              and [l for l in one if "recall" in l][-1]["recall"][32] is None))
PY
finish
