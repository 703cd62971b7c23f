#!/usr/bin/env bash
# t1213-print.sh - the lines of steps and epochs that a job wants, in MindSpore's words, each once though rank 0 is killed
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: lin
workers: 2
network: linear
dataset: {kind: nonlinear, samples: 1600}
batch_size: 16
epochs: 12
loss: mse
optimizer: {kind: sgd, learning_rate: 0.001}
checkpoint: {every_steps: 300}
print: {loss_every: 70, time: true}
YAML

# LOG EVERY TIMED: exactly the lines of each EVERYth step and of each epoch's last, with its time behind it
lines() {
    python3 - "$@" <<'PY'
import re, sys
every, timed = int(sys.argv[2]), int(sys.argv[3])
told = [line for line in open(sys.argv[1]) if re.match("epoch: |Train epoch", line)]
want = []
for step in range(1, 12 * 50 + 1):
    ends = step % 50 == 0
    if (every and step % every == 0) or (ends and timed):
        want.append("epoch: %d step: %d, loss is " % ((step - 1) // 50 + 1, (step - 1) % 50 + 1))
    if ends and timed:
        want.append("Train epoch time: ")
assert len(told) == len(want), (len(told), len(want))
for line, begin in zip(told, want):
    assert line.startswith(begin), (line, begin)
    if begin[0] == "T":
        assert re.fullmatch(r"Train epoch time: \d+\.\d{3} ms, per step time: \d+\.\d{3} ms\n", line), line
PY
}

# DIR: steps end behind their lines, so that the last one's end is of the next epoch
took() {
    python3 - "$1" <<'PY'
import json, re, sys
steps = [line for line in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if "step_ms" in line]
want = sum(line["step_ms"] for line in steps) - steps[-1]["step_ms"]
told = [float(line.split()[3]) for line in open(sys.argv[1] + "/worker_0.log") if line.startswith("Train epoch time: ")]
assert len(steps) == 50 and len(told) == 1, (len(steps), told)
assert told[0] >= 0.9 * want, (told, want)
PY
}

ok "a run ends, though a worker was killed" lose_a_worker killed 60 "$T/job.yaml"
ok "rank 0 has each line once" lines "$T/killed/worker_0.log" 70 1
ok "so has rank 1" lines "$T/killed/worker_1.log" 70 1
ok "another run prints nothing of steps" run silent --set print.loss_every=0 --set print.time=false "$T/job.yaml"
ok "as its job says" lines "$T/silent/worker_0.log" 0 0
ok "and has the same weights" cmp "$T/killed/weights.safetensors" "$T/silent/weights.safetensors"
ok "it may be resumed to print otherwise" run again --resume "$T/silent" --set epochs=13 --set print.loss_every=1 "$T/job.yaml"
ok "which prints each step" [ "$(grep -c '^epoch: 13 ' "$T/again/worker_0.log")" = 50 ]
ok "and the epoch took as long as its steps with what they waited for" took "$T/again"
finish
