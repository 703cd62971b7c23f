#!/usr/bin/env bash
# t2009-full-run-folder.sh - a run folder that is full for a while costs a training nothing: it goes on, and its lines come
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

mkdir "$T/disk"
mount -t tmpfs -o size=64m,mode=700 msched-e2e "$T/disk" 2>/dev/null ||
    skip_all "mounting a small tmpfs takes root; test_metrics covers the lines with a limit of its own"
MOUNTS=$T/disk
cat >"$T/job.yaml" <<'YAML'
name: fills
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 320}
batch_size: 16
epochs: 1000000
optimizer: {kind: adam, learning_rate: 0.001}
YAML
steps() { grep -c '"step":' "$T/disk/run/metrics.jsonl" 2>/dev/null; }
lines_reach() { [ "$(steps)" -ge "$1" ]; }
fill() { dd if=/dev/zero bs=4096 2>/dev/null >>"$T/disk/filler" || true; }
# the scheduler hears of steps whose lines wait
step_now() { "$MSCTL" -s "unix:$T/disk/run/scheduler.sock" --json show 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["progress"]["step"])'; }
trained() { fill && [ "$(step_now)" -ge "$1" ]; }
whole() { # every step until the last one, once
    python3 - "$T/disk/run/metrics.jsonl" <<'PY'
import json, sys
steps = [line["step"] for line in map(json.loads, open(sys.argv[1])) if "step" in line]
assert steps == list(range(1, len(steps) + 1)), [s for i, s in enumerate(steps) if s != i + 1][:5]
PY
}
logs_whole() { # every loss line of each rank, once, and no line that two were made of
    python3 - "$T/disk/run" <<'PY'
import re, sys
stamp = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (warning |error )?[a-z_]+\.[a-z_]+( [a-z_0-9]+=(\"([^\"\\]|\\.)*\"|[^ \"]*))*")
loss = re.compile(r"epoch: (\d+) step: (\d+), loss is \d+\.\d+(e-\d+)?")
for rank in 0, 1:
    steps = []
    for line in open(f"{sys.argv[1]}/worker_{rank}.log").read().splitlines():
        found = loss.fullmatch(line)
        if found:
            steps.append((int(found[1]) - 1) * 10 + int(found[2]))
        else:
            assert stamp.fullmatch(line) or line.startswith(("training ", "msworker: cancelled by ")), line
    assert len(steps) > 100 and steps == list(range(1, len(steps) + 1)), [s for i, s in enumerate(steps) if s != i + 1][:5]
PY
}
said() { grep -q "rank.note .*$2" "$T/disk/run/worker_$1.log"; }

start run "$MSCTL" run --run-dir "$T/disk/run" "$T/job.yaml"
ok "a job trains" wait_for 120 lines_reach 20
fill
before=$(step_now)
ok "with its folder full it trains on, past what its lines have" wait_for 120 trained $((before + 100))
had=$(steps)
ok "which end where there was no room" [ "$had" -lt "$(step_now)" ]
rm "$T/disk/filler"
ok "with room again they come" wait_for 120 lines_reach $((had + 100))
ok "and the log of rank 0 says that none is missing" wait_for 60 grep -q "metrics are written again: none is missing" "$T/disk/run/worker_0.log"
for rank in 0 1; do
    ok "rank $rank says that it had no loss lines for a while" wait_for 60 said $rank "no loss lines from step [0-9]* on: cannot write the log of rank $rank: No space left on device"
    ok "and that none is missing" wait_for 60 said $rank "loss lines are written again: none is missing"
done
ok "the job ends as it is asked to" status 143 stop run TERM
ok "each step has its line, once" whole
ok "in the ranks' logs, too, where no line is torn" logs_whole
finish
