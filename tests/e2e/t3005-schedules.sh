#!/usr/bin/env bash
# t3005-schedules.sh - a learning rate that changes is that of its step, whatever befell the run: stopped and resumed in the
# middle of its warm-up or of its fall, or with a worker killed there; another schedule, or another end of it, is refused by name
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: rates
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 20
optimizer:
  kind: adamw
  learning_rate: 0.002
  weight_decay: 0.05
  clip_norm: 0.5
  schedule: {kind: cosine, by: step, warmup: 60, warmup_from: 0.1, min_learning_rate: 0.0001}
checkpoint: {directory: ckpt, prefix: rates, every_steps: 5}
YAML
STEPS=200

newest() { find "$T/$1/ckpt" -name 'rates-*.json' | sed 's/.*-//; s/\.json$//' | sort -n | tail -n 1; }
# rates_are_right RUN FIRST: each step from FIRST on has a line with the rate that msched-job(5) says, as a float
rates_are_right() {
    python3 - "$T/$1/metrics.jsonl" "$2" "$STEPS" <<'PY'
import json, math, struct, sys
have = {j["step"]: j["learning_rate"] for j in map(json.loads, open(sys.argv[1])) if "step" in j}
first, steps = int(sys.argv[2]), int(sys.argv[3])
assert sorted(have) == list(range(first, steps + 1)), sorted(have)[:3]
def rate(t):
    r, least, warmup = 0.002, 0.0001, 60
    if t - 1 < warmup:
        return r * (0.1 + 0.9 * (t - 1) / warmup)
    p = (t - 1 - warmup) / (steps - warmup - 1)
    return least + (r - least) * (1 + math.cos(math.pi * p)) / 2
for t, got in have.items():
    want = struct.unpack("f", struct.pack("f", rate(t)))[0]
    assert abs(got - want) <= 2e-7 * want, (t, got, want)
PY
}
# stop_at RUN STEPS: begins a run, and stops it behind that step. One that has ended before anybody looked is begun again.
stop_at() {
    local got
    for _ in {1..20}; do
        rm -rf "${T:?}/$1" "$T/$1".*
        start "$1" "$MSCTL" run --run-dir "$T/$1" "$T/job.yaml"
        wait_for 120 has_steps "$1" "$2" || return 1
        stop "$1" TERM
        got=$?
        [ "$(last_step "$1")" -ge "${3:-$STEPS}" ] || return "$got"
    done
    return 1
}
refuses() { # TEXT option...
    local text=$1
    shift
    says "$text" "$MSCTL" run --run-dir "$T/refused" --resume "$T/falling" "$@" "$T/job.yaml" && [ ! -e "$T/refused" ]
}

ok "a run that nothing befalls" run whole "$T/job.yaml"
ok "has the rates of the manual" rates_are_right whole 1
whole=$(digest whole)
ok "another one, with a rate that does not change, has other weights" run flat --set optimizer.schedule=null "$T/job.yaml"
ok "they are others" [ "$(digest flat)" != "$whole" ]
ok "and no rate in its metrics" bash -c '! grep -q learning_rate "$1"' - "$T/flat/metrics.jsonl"

ok "one is stopped in its warm-up" status 143 stop_at rising 20 60
ok "and resumed" run risen --resume "$T/rising" "$T/job.yaml"
ok "with the rates of its steps" rates_are_right risen $(($(newest rising) + 1))
ok "and the weights of the whole run" same "$(digest risen)" "$whole"

ok "one is stopped where its rate falls" status 143 stop_at falling 100
ok "and resumed" run fallen --resume "$T/falling" "$T/job.yaml"
ok "with the rates of its steps" rates_are_right fallen $(($(newest falling) + 1))
ok "and the weights of the whole run" same "$(digest fallen)" "$whole"

ok "one loses a worker on its way" lose_a_worker killed 80 "$T/job.yaml"
ok "each step has its rate" rates_are_right killed 1
ok "and the weights are those of the whole run" same "$(digest killed)" "$whole"

ok "another schedule is refused by key" refuses 'optimizer.schedule.min_learning_rate: 0.0001, and this one has 0.0' \
    --set optimizer.schedule.min_learning_rate=0
ok "so is none" refuses 'optimizer.schedule: {"by":"step"' --set optimizer.schedule=null
ok "another weight decay" refuses "optimizer.weight_decay: 0.05, and this one has 0.01" --set optimizer.weight_decay=0.01
ok "a longer job, for it would have had other rates" refuses "epochs: 20, and this one has 30" --set epochs=30
ok "and a shorter one" refuses "steps: 0, and this one has 150" --set steps=150

length=(--set "optimizer.schedule.length=$STEPS")
ok "one whose schedule says how long it is ends before" run half "${length[@]}" --set steps=100 "$T/job.yaml"
ok "goes on to its end" run full --resume "$T/half" "${length[@]}" "$T/job.yaml"
ok "with the weights of the whole run" same "$(digest full)" "$whole"
ok "and behind it" run beyond --resume "$T/full" "${length[@]}" --set epochs=21 "$T/job.yaml"
ok "with the last rate" bash -c 'grep "\"step\":" "$1" | tail -n 1 | grep -q "\"step\":210,.*\"learning_rate\":0.0001,"' - "$T/beyond/metrics.jsonl"

ok "a warm-up that is longer than the job is refused before it starts" says "warmup: 60 steps, and the job has 50; give 0 to 50" \
    "$MSCTL" run --run-dir "$T/refused" --set steps=50 "$T/job.yaml"
ok "or where the data show it" bash -c '! "$MSCTL" run --run-dir "$1/short" --set epochs=5 "$1/job.yaml" >"$1/short.out" 2>&1' - "$T"
ok "in words" grep -rqs "optimizer.schedule.warmup: 60 steps, and with this dataset the job has 50 steps, 10 an epoch" "$T/short.out" "$T/short"
finish
