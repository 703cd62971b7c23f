#!/usr/bin/env bash
# t2053-run-frozen.sh - what of msctl run lives and does not move: its workers, also over a restart of the scheduler, and it
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/long.yaml" <<'YAML'
name: frozen
workers: 3
recovery: true
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 1000000
loss: mse
optimizer: {kind: momentum, learning_rate: 0.0001, momentum: 0.9}
YAML

steps() { grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null; }
trains() { [ "$(steps "$1")" -ge "$2" ]; }
# all_evals NAME: its summary, in JSON, has each evaluation that its metrics have, and ends with the last one
all_evals() {
    python3 - "$T/$1" <<'PY'
import json, sys
with open(sys.argv[1] + ".log") as log:
    summary = json.loads(next(line for line in log if line.startswith('{"id":')))
with open(sys.argv[1] + "/metrics.jsonl") as lines:
    made = [json.loads(line) for line in lines if '"eval_loss":' in line]
def rounded(evals):
    # a regression has no accuracy
    return [(e["epoch"], "%.6g" % e["eval_loss"], e["accuracy"]) for e in evals]
print(len(made), "were made, shown are those of epochs", [e["epoch"] for e in summary["evals"]])
assert len(made) == 60 and made[0]["accuracy"] is None and rounded(summary["evals"]) == rounded(made)
assert "%.6g" % summary["eval_loss"] == "%.6g" % made[-1]["eval_loss"]
PY
}

# ---- a worker that lives and is silent over its lease
start frozen "$MSCTL" run --run-dir "$T/frozen" "$T/long.yaml"
ok "one more trains" wait_for 120 trains frozen 200
victim=$(children frozen msworker | tail -n 1)
kill -STOP "$victim"
ok "a worker that is stopped is killed after a while" wait_for 120 logged frozen "(pid $victim) lives, but was not heard of for"
ok "and started again" wait_for 60 logged frozen "(pid $victim) was killed by signal 9 (Killed): started again"
ok "the job goes on" wait_for 120 logged frozen "rank 2 was lost; went on from step"
kill -INT "${pid_of[frozen]}"
ok "INT ends it with 130" status 130 reap frozen
ok "which saves" [ -s "$T/frozen/weights.safetensors" ]
# ---- and whose scheduler is started again meanwhile: before it has noticed, and after
for when in before after; do
    name=frozen-$when
    start "$name" "$MSCTL" run --run-dir "$T/$name" "$T/long.yaml"
    ok "one more trains" wait_for 120 trains "$name" 200
    victim=$(children "$name" msworker 3 | sed -n 2p)
    kill -STOP "$victim"
    [ $when = before ] || ok "its scheduler loses the worker that is stopped" wait_for 120 logged "$name" "RECOVERING: "
    kill -KILL "$(children "$name" msschedd)"
    ok "a worker that the next scheduler never heard is killed after a while" \
        wait_for 180 logged "$name" "(pid $victim) lives, but was not heard of by the scheduler that is there now: it is killed"
    ok "and started again" wait_for 60 logged "$name" "(pid $victim) was killed by signal 9 (Killed): started again"
    ok "the job goes on" wait_for 120 logged "$name" "rank 1 was lost; went on from step"
    ok "which nobody said before" awk '/went on/ && !killed { exit 1 } /it is killed$/ { killed = 1 }' "$T/$name.log"
    kill -INT "${pid_of[$name]}"
    ok "INT ends it with 130" status 130 reap "$name"
    ok "which saves" [ -s "$T/$name/weights.safetensors" ]
done

# ---- the last one that holds the training
start only "$MSCTL" run -n 1 --run-dir "$T/only" "$T/long.yaml"
ok "one trains alone" wait_for 120 trains only 200
victim=$(children only msworker)
kill -STOP "$victim"
ok "its worker is left alone, for it holds all" wait_for 120 logged only "it is left alone, for no other worker holds the training. kill -CONT $victim wakes"
kill -CONT "$victim"
ok "awake it goes on" wait_for 120 logged only "rank 0 was lost; went on from step"
kill -INT "${pid_of[only]}"
ok "INT ends it with 130" status 130 reap only
ok "which saves" [ -s "$T/only/weights.safetensors" ]

# ---- the scheduler: the training goes on without it, and its end is waited for
sed 's/epochs: 1000000/epochs: 600/' "$T/long.yaml" >"$T/short.yaml"
cat >>"$T/short.yaml" <<'YAML'
evaluate: {dataset: {kind: nonlinear}, every_epochs: 10}
checkpoint: {every_steps: 400}
YAML
ok "a job trains undisturbed" run good "$T/short.yaml"
start hung "$MSCTL" --json run --run-dir "$T/hung" "$T/short.yaml"
ok "another one trains" wait_for 120 trains hung 200
victim=$(children hung msschedd)
kill -STOP "$victim"
ok "that its scheduler does not answer is said, and what helps" \
    wait_for 120 logged hung "scheduler (pid $victim) lives, but has not answered for 10 s: kill -CONT $victim wakes"
ok "then it is killed" wait_for 120 logged hung "scheduler (pid $victim) has not answered for 30 s: it is killed"
ok "and started again" wait_for 60 logged hung "scheduler (pid $victim) was killed by signal 9 (Killed): started again"
ok "the job ends well" status 0 reap hung
ok "with the same weights" same "$(digest good)" "$(digest hung)"
ok "and all evaluations, also those that the frozen one was told" all_evals hung
start woken "$MSCTL" run --run-dir "$T/woken" "$T/long.yaml"
ok "one more trains" wait_for 120 trains woken 200
victim=$(children woken msschedd)
kill -STOP "$victim"
ok "that it does not answer is said" wait_for 120 logged woken "scheduler (pid $victim) lives, but has not answered for 10 s"
kill -CONT "$victim"
ok "and that it does" wait_for 60 logged woken "scheduler (pid $victim) answers again"
kill -STOP "$victim"
kill -INT "${pid_of[woken]}"
ok "Ctrl-C with one that does not answer ends with 130" status 130 reap woken
ok "for the next one was told" logged woken "scheduler (pid $victim) was killed by signal 9 (Killed): started again"
ok "which saves" [ -s "$T/woken/weights.safetensors" ]
finish
