#!/usr/bin/env bash
# t1010-run.sh - msctl run from nothing to the end: what it prints, keeps, refuses and leaves behind
# shellcheck disable=SC2016 # the texts for bash -c expand there
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: short
workers: 2
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 2
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
cat >"$T/long.yaml" <<'YAML'
name: long
workers: 2
network: cifar_small
dataset: {kind: shapes, usage: train, samples: 1000}
transforms:
  - rescale: {scale: 0.00392156862745098, shift: 0}
batch_size: 16
epochs: 100000
loss: softmax_cross_entropy
optimizer: {kind: sgd, learning_rate: 0.001}
YAML

trains() { [ "$(grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null)" -ge 2 ]; }
# value KEY: of the JSON object in $T/json.out
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$T/json.out" "$1"; }

# ---- an evaluation that comes too early to tell
ok "a run of four steps evaluates" run early --set epochs=1 --set steps=4 --set 'evaluate={dataset: {kind: shapes, samples: 64}}' "$T/long.yaml"
ok "and counts what it was asked to" run counted --set epochs=1 --set steps=4 --set \
    'evaluate={dataset: {kind: shapes, samples: 64}, metrics: [top5, per_class, confusion, perplexity]}' "$T/long.yaml"
ok "of all samples, on whichever worker they were" jq -es '[.[] | select(.eval_loss)][0]
    | ([.confusion[][]] | add) == 64 and ([range(10) as $c | .confusion[$c][$c]] | add) / 64 == .accuracy
    and .top5 >= .accuracy and (.precision | length) == 10 and (.perplexity / (.eval_loss | exp) - 1 | fabs) < 1e-6' "$T/counted/metrics.jsonl"
ok "of a hundred classes, too" run many -n 2 --set epochs=1 --set steps=4 --set classes=100 --set \
    'evaluate={dataset: {kind: shapes, samples: 64}, metrics: [per_class, confusion]}' "$T/long.yaml"
ok "each sample once" jq -es '[.[] | select(.eval_loss)][0] | ([.confusion[][]] | add) == 64 and (.confusion | length) == 100
    and (.recall | length) == 100' "$T/many/metrics.jsonl"
ok "and the log of rank 0 has the table" grep -Eq "^ +9 +[0-9.-]+( %)? +[0-9.]+ % +[0-9]+$" "$T/counted/worker_0.log"
ok "says that the moving statistics have not settled" \
    grep -q "^              66 % of the moving statistics are what they were at first" "$T/early.out"
ok "and while it runs" grep -q "^epoch 1: accuracy .*; 66 % of the moving statistics are what they were at first" "$T/early.out"

# ---- success
ok "a job of two workers succeeds" run good "$T/job.yaml"
ok "the run directory keeps job, logs, metrics, plan and weights and nothing else" \
    same "$(cd "$T/good" && echo *)" "job.json metrics.jsonl plan.txt scheduler.log weights.safetensors worker_0.log worker_1.log"
ok "the summary names the weights' digest" grep -qF "$(digest good)" "$T/good.out"
ok "and where they lie" grep -qF "$T/good/weights.safetensors" "$T/good.out"
ok "a log gets no carriage return and no escape" bash -c '! grep -q "[[:cntrl:]]" "$1"' - "$T/good.out"
ok "each worker has its loss lines" [ "$(grep -c '^epoch: 2 step: [0-9]*, loss is ' "$T/good/worker_1.log")" -eq 200 ]

"$MSCTL" run --json --run-dir "$T/json" "$T/job.yaml" >"$T/json.out" 2>"$T/json.err"
ok "--json prints one object" [ "$(wc -l <"$T/json.out")" -eq 1 ]
ok "with the state" [ "$(value state)" = SUCCEEDED ]
ok "and the digest, the same for the same job" [ "$(value weights_sha256)" = "$(digest good)" ]
# 6400 records, two epochs; step_ms is rounded to a microsecond in each of 400 lines
ok "the speed is that of the samples over the time of the steps" python3 -c 'import json, sys
steps = [s for s in map(json.loads, open(sys.argv[1])) if "loss" in s]
end, seconds = json.load(open(sys.argv[2])), sum(s["step_ms"] for s in steps) / 1000
assert abs(end["samples_per_s"] * seconds / 12800 - 1) < 0.02, (end["samples_per_s"], seconds)' \
    "$T/json/metrics.jsonl" "$T/json.out"
ok "progress goes to standard error then" grep -q "run directory" "$T/json.err"

ok "without --run-dir it makes ./<job>-<time>" bash -c \
    'cd "$1" && "$MSCTL" run job.yaml >named.out 2>&1 && ls -d short-20[0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]' - "$T"

long=$T/$(printf 'd%.0s' {1..120})
ok "a long path is no obstacle" "$MSCTL" run --run-dir "$long" "$T/job.yaml"

# ---- a terminal
cat >"$T/terminal.py" <<'PY'
import os, pty, sys
def read(fd):
    data = os.read(fd, 65536)
    out.write(data)
    return data
out = open(sys.argv[1], "wb")
os.environ["TERM"] = "xterm"
status = pty.spawn(sys.argv[2:], read)
sys.exit(os.waitstatus_to_exitcode(status))
PY
if python3 -c 'import pty; pty.openpty()' 2>/dev/null; then # a chroot may have no /dev/pts
    ok "on a terminal it succeeds, too" python3 "$T/terminal.py" "$T/tty.out" \
        "$MSCTL" run --run-dir "$T/tty" "$T/job.yaml"
    ok "there the lines are drawn again" grep -qP '\r\x1b\[1A' "$T/tty.out"
    ok "and the workers' states shown" grep -q "workers 2: 2 " "$T/tty.out"
    ok "NO_COLOR is honoured" bash -c 'NO_COLOR=1 python3 "$1/terminal.py" "$1/plain.out" "$MSCTL" run \
        --run-dir "$1/plain" "$1/job.yaml" && ! grep -qP "\x1b\[3[0-9]m" "$1/plain.out"' - "$T"
else
    echo "# no terminals here: the live lines are not looked at"
fi

# ---- whom the umask keeps out
private() ( umask 077 && run private --set epochs=1 --set 'checkpoint={directory: '"$T/pub"', every_steps: 100}' "$T/job.yaml" )
mkdir "$T/pub"
ok "a run with a umask of 077 saves into a folder that all may read" private
ok "manifests, too" test -n "$(find "$T/pub" -name '*.json')"
ok "and only its user reads what it wrote" [ -z "$(find "$T/pub" "$T/private" -type f -perm /077)" ]

# ---- refusals
ok "a run directory that is not empty is refused with 4" status 4 "$MSCTL" run --run-dir "$T/good" "$T/job.yaml"
ok "and left as it is" [ -s "$T/good/weights.safetensors" ]
echo 'batch_sise: 16' >>"$T/job.yaml"
ok "an invalid job is refused with 2" status 2 "$MSCTL" run --run-dir "$T/invalid" "$T/job.yaml"
ok "with its line and the nearest key" says "batch_size" "$MSCTL" run --run-dir "$T/invalid" "$T/job.yaml"
ok "before anything is made" [ ! -e "$T/invalid" ]
sed -i '$d' "$T/job.yaml"
ok "so is a folder of checkpoints in the place of the weights" status 2 "$MSCTL" run --run-dir "$T/invalid" \
    --set 'checkpoint={directory: weights.safetensors}' "$T/job.yaml"
ok "by its key" says "checkpoint.directory: 'weights.safetensors' is the name of a file that the run directory has itself" \
    "$MSCTL" run --run-dir "$T/invalid" --set 'checkpoint={directory: weights.safetensors}' "$T/job.yaml"
ok "before anything is made" [ ! -e "$T/invalid" ]
ok "zero workers are refused" status 2 "$MSCTL" run -n 0 "$T/job.yaml"
ok "a million workers are refused" says "1 to 1024" "$MSCTL" run -n 1000000 "$T/job.yaml"
ok "--resume of a place that is not there is refused" says "there is no $T/nowhere" "$MSCTL" run --resume "$T/nowhere" "$T/job.yaml"
ok "a mistyped option comes with the nearest" says "--run-dir" "$MSCTL" run --rundir x "$T/job.yaml"
ok "a missing program is named" bash -c 'MSCHED_MSWORKER=/nonexistent "$MSCTL" run --run-dir "$1/noprog" "$1/job.yaml" 2>&1 |
    grep -q "MSCHED_MSWORKER=/nonexistent"' - "$T"
ok "and leaves no run directory" [ ! -e "$T/noprog" ]
ok "and leaves no key behind" [ ! -e "$T/noprog/tls" ]

# ---- children that end
cat >"$T/bad-worker" <<'SH'
#!/bin/sh
printf "cannot load: the \033[31mmoon is full\n" >&2
exit 7
SH
chmod +x "$T/bad-worker"
MSCHED_MSWORKER=$T/bad-worker timeout 600 "$MSCTL" run --run-dir "$T/bad" "$T/job.yaml" >"$T/bad.out" 2>&1
ok "a worker that exits while the cluster forms fails the run" [ $? -eq 1 ]
ok "which is named with its status" grep -q "worker [01] exited with status 7 while the cluster formed" "$T/bad.out"
ok "and its last words" grep -qF "the ?[31mmoon is full" "$T/bad.out"
ok "which command no terminal" bash -c '! grep -qP "\x1b" "$1"' - "$T/bad.out"
MSCHED_MSSCHEDD=$T/bad-worker timeout 600 "$MSCTL" run --run-dir "$T/bad2" "$T/job.yaml" >"$T/bad2.out" 2>&1
ok "so does the scheduler" grep -q "scheduler exited with status 7" "$T/bad2.out"

# ---- signals
for signal in INT TERM HUP; do
    number=$(kill -l $signal)
    start "s$signal" "$MSCTL" run --json --run-dir "$T/r$signal" "$T/long.yaml"
    ok "$signal: a long job trains" wait_for 120 trains "r$signal"
    kill -$signal "${pid_of[s$signal]}"
    ok "$signal ends it with $((128 + number))" status $((128 + number)) reap "s$signal"
    ok "which programs are told, too" says '"exit_status":'"$((128 + number))," grep '^{' "$T/s$signal.log"
    ok "$signal: no socket, key or database is left" bash -c \
        '! ls "$1"/scheduler.sock "$1"/scheduler.db* "$1"/tls 2>/dev/null' - "$T/r$signal"
done

start nohup env --ignore-signal=HUP "$MSCTL" run --run-dir "$T/rnohup" "$T/long.yaml"
ok "a run under nohup trains" wait_for 120 trains rnohup
kill -HUP "${pid_of[nohup]}"
steps() { grep -c '"step":' "$T/rnohup/metrics.jsonl"; }
at_hup=$(steps)
goes_on() { [ "$(steps)" -ge $((at_hup + 50)) ]; }
ok "and outlives its terminal" wait_for 120 goes_on
ok "until it is told to end" status 143 stop nohup TERM

start before "$MSCTL" run --run-dir "$T/before" -n 8 "$T/long.yaml"
wait_for 60 [ -d "$T/before" ] # the first thing that has to be cleaned up: from here on it listens
kill -INT "${pid_of[before]}"
ok "INT before there is a job ends it, too" status 130 reap before

cat >"$T/deaf-worker" <<'SH'
#!/bin/sh
trap '' TERM INT HUP
touch "$2/deaf"
while :; do sleep 1; done
SH
chmod +x "$T/deaf-worker"
for _ in {1..10}; do # half a second after the first one they are killed without a second one
    rm -rf "$T/deaf" "$T/deaf.log"
    MSCHED_MSWORKER=$T/deaf-worker start deaf "$MSCTL" run --run-dir "$T/deaf" "$T/long.yaml"
    wait_for 60 [ -e "$T/deaf/deaf" ]
    kill -INT "${pid_of[deaf]}"
    wait_for 60 logged deaf "once more kills it"
    kill -INT "${pid_of[deaf]}"
    wait_for 60 has_ended "${pid_of[deaf]}"
    ! logged deaf "everything is killed now" || break
    reap deaf
done
ok "the second signal kills what does not listen" status 130 reap deaf
ok "and says so" logged deaf "everything is killed now"


# ---- killed with no chance to clean up
start k9 "$MSCTL" run --run-dir "$T/k9" "$T/long.yaml"
ok "a run trains" wait_for 120 grep -q '"step":' "$T/k9/metrics.jsonl"
ok "and its plan lies there" wait_for 60 [ -s "$T/k9/plan.txt" ]
ok "another one in its folder is refused" status 4 "$MSCTL" run --run-dir "$T/k9" "$T/job.yaml"
ok "because it is under way" says "a run is under way" "$MSCTL" run --run-dir "$T/k9" "$T/job.yaml"
ok "and goes on" [ -e "$T/k9/tls/worker.p12" ]
kill -KILL "${pid_of[k9]}"
reap k9
none_alive() { [ -z "$(alive)" ]; }
ok "its children die with it" wait_for 60 none_alive
ok "its keys are left" [ -e "$T/k9/tls/worker.p12" ]
ok "the next run says what it found" says "a run that was killed" "$MSCTL" run --run-dir "$T/k9" "$T/job.yaml"
ok "and has taken keys, socket and database away" same "job.json metrics.jsonl plan.txt scheduler.log worker_0.log worker_1.log" \
    "$(cd "$T/k9" && echo *)"
mkdir "$T/open" && chmod 777 "$T/open"
ok "a folder that others may write to is refused" says "chmod go-w" "$MSCTL" run --run-dir "$T/open" "$T/job.yaml"
mkdir "$T/target" && ln -s target "$T/alias"
ok "a link is not followed" status 4 "$MSCTL" run --run-dir "$T/alias" "$T/job.yaml"
ok "nothing lies where it leads" [ -z "$(ls -A "$T/target")" ]
finish
