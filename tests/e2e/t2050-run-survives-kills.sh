#!/usr/bin/env bash
# t2050-run-survives-kills.sh - kill -9 of random workers of msctl run, several at once, and of its scheduler costs no
# step: the job ends as the undisturbed one, bit for bit, and has told each step once. SEED=N repeats the order of kills.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

KILLS=24
SEED=${SEED:-$$}
RANDOM=$SEED
echo "# SEED=$SEED"

cat >"$T/job.yaml" <<'YAML'
name: survives
workers: 4
recovery: true
network: cifar_small
dataset: {kind: shapes, usage: train, samples: 1280}
transforms:
  - rescale: {scale: 0.00392156862745098, shift: 0}
batch_size: 8
epochs: 40
loss: softmax_cross_entropy
optimizer: {kind: momentum, learning_rate: 0.001, momentum: 0.9}
evaluate: {dataset: {kind: shapes, samples: 64}}
seed: 7
YAML

steps() { grep -c '"step":' "$T/killed/metrics.jsonl" 2>/dev/null; }
goes_on() { has_ended "${pid_of[killed]}" || [ "$(steps)" -ge "$1" ]; }
inspect() { "$MSCTL" --server "unix:$T/killed/scheduler.sock" "$@"; }
kill_workers() {
    local victims draw=$RANDOM # not in a shell below, which draws for itself
    mapfile -t victims < <(children killed msworker | shuf -n "$1" --random-source=<(yes "$draw"))
    kill -KILL "${victims[@]}"
}
# one blow: mostly one worker, often several, sometimes all but one, the scheduler, or both kinds
strike() {
    case $((RANDOM % 10)) in
    [0-4]) kill_workers 1 ;;
    [56]) kill_workers 2 ;;
    7) kill_workers 3 ;;
    8) kill -KILL "$(children killed msschedd)" ;;
    9)
        kill -KILL "$(children killed msschedd)"
        kill_workers 1
        ;;
    esac
}
recovered() { grep -q 'job\.recovered ' "$T/killed/scheduler.log"; } # at once: there is time to look until it ends
# events_hold PYTHON: about the list of events `j` and their kinds `k`
events_hold() {
    inspect --json events -n 1000 1 | python3 -c 'import json, sys
j = json.load(sys.stdin)
k = [e["kind"] for e in j]
assert eval(sys.argv[1]), j' "$1"
}
# each_once RUN: every step of the job stands once in the metrics and in every rank's log, in order, and every epoch's evaluation
each_once() {
    python3 - "$T/$1" <<'PY'
import json, re, sys
lines = [json.loads(line) for line in open(f"{sys.argv[1]}/metrics.jsonl")]
steps = [line["step"] for line in lines if "step" in line]
assert steps == list(range(1, 1601)), [s for i, s in enumerate(steps) if s != i + 1][:5]
assert [line["epoch"] for line in lines if "eval_loss" in line] == list(range(1, 41))
assert lines[-1]["done"] and len(lines) == 1641
want = [(epoch, step) for epoch in range(1, 41) for step in range(1, 41)]
for rank in range(4):
    text = open(f"{sys.argv[1]}/worker_{rank}.log").read()
    have = [(int(e), int(s)) for e, s in re.findall(r"^epoch: (\d+) step: (\d+), loss is ", text, re.M)]
    assert have == want, (rank, len(have), [h for h, w in zip(have, want) if h != w][:5])
PY
}
losses() { python3 -c 'import json, sys
print([line["loss_hex"] for line in map(json.loads, open(sys.argv[1])) if "loss_hex" in line])' "$T/$1/metrics.jsonl"; }

ok "a job of four workers trains undisturbed" run good "$T/job.yaml"
ok "and tells each step once" each_once good

start killed "$MSCTL" run --run-dir "$T/killed" --plan "$T/good/plan.txt" "$T/job.yaml"
ok "another one trains" wait_for 120 goes_on 20
kill_workers 1
ok "a worker is killed, and it goes on" wait_for 120 recovered
ok "its events tell who was lost, who takes the rank and when it went on" events_hold \
    'k[k.index("job.rank_lost"):][:3] == ["job.rank_lost", "job.recovering", "job.recovered"]'
ok "show sums it up" bash -c 'grep -q "^recovered    1 time (1 rank lost, " <<<"$1"' - "$(inspect show 1)"
blows=0
for ((n = 1; n < KILLS; n++)); do
    wait_for 300 goes_on $(($(steps) + 25)) || break # a step has been made since: no restart budget is touched
    has_ended "${pid_of[killed]}" && break
    strike 2>/dev/null
    blows=$((blows + 1))
done
ok "$blows more blows fell while it trained" [ $blows -ge 12 ]
ok "it ends well" status 0 reap killed
ok "with the weights of the undisturbed one" same "$(digest good)" "$(digest killed)"
ok "and its plan" same "$(field good plan_sha256)" "$(field killed plan_sha256)"
ok "and its losses, each exactly" same "$(losses good)" "$(losses killed)"
ok "each step was told once, by every rank" each_once killed
ok "who died was said" [ "$(grep -c "was killed by signal 9 (Killed): started again" "$T/killed.log")" -ge $blows ]
ok "and from which step it went on" grep -qE "lost; went on from step [0-9]+ after [0-9.]+ s" "$T/killed.log"
ok "the summary counts it" grep -qE "^  recovered   [0-9]+ times? \([0-9]+ ranks? lost, " "$T/killed.log"
ok "nothing but results is left" same "$(cd "$T/good" && echo *)" "$(cd "$T/killed" && echo *)"
finish
