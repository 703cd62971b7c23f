#!/usr/bin/env bash
# t2051-run-restarts.sh - msctl run starts its scheduler and its workers again: which of them, when, until when; and it
# ends at any moment, with all of them
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: restarts
workers: 3
recovery: true
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 600
loss: mse
optimizer: {kind: momentum, learning_rate: 0.0001, momentum: 0.9}
YAML
sed 's/epochs: 600/epochs: 1000000/' "$T/job.yaml" >"$T/long.yaml"

steps() { grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null; }
trains() { [ "$(steps "$1")" -ge "$2" ]; }
# says_times NAME TEXT N: at least N lines
says_times() { [ "$(grep -cF -- "$2" "$T/$1.log")" -ge "$3" ]; }
# listens NAME N: the Nth scheduler of the run
listens() { [ "$(grep -c 'scheduler\.listen address=127' "$T/$1/scheduler.log")" -ge "$2" ]; }
nobody() { [ -z "$(alive)" ]; }

# ---- the scheduler: the job neither stops nor changes
ok "a job trains undisturbed" run good "$T/job.yaml"
for n in 1 2 3 4 5 6 7 8; do # whose workers may have gone before msctl hears that it ended
    ok "and a short one" run "short$n" --set epochs=1 "$T/job.yaml"
done
ok "nobody is started again whose job has ended" bash -c '! grep -H "started again" "$@"' - "$T"/{good,short?}.out
start again "$MSCTL" run --run-dir "$T/again" "$T/job.yaml"
kills=0
for target in 200 1200 2200 3200; do # of which the job has many more: a look at them may be late
    ok "another one makes $target steps" wait_for 120 trains again $target
    ok "its scheduler listens" wait_for 60 listens again $((kills + 1)) # until then TERM ends it like any program
    victim=$(children again msschedd)
    case $kills in
    2) kill -TERM "$victim" ;;
    *) kill -KILL "$victim" ;;
    esac
    kills=$((kills + 1))
    ok "its scheduler is started again" wait_for 60 says_times again "scheduler (pid $victim) " 1
done
ok "and it ends well" status 0 reap again
ok "with the same weights" same "$(digest good)" "$(digest again)"
ok "who was killed came back at once" says_times again "was killed by signal 9 (Killed): started again" 3
ok "who left, too" says_times again "exited with status 0: started again" 1
ok "the scheduler's log tells it" [ "$(grep -c 'run.restarts child="\?scheduler' "$T/again/scheduler.log")" = 4 ]
ok "its address stayed" [ "$(grep -o 'scheduler.listen address=127[^ ]*' "$T/again/scheduler.log" | sort -u | wc -l)" = 1 ]
ok "progress went on where it was" bash -c '! sed 1,4d "$1" | grep "before the first step"' - "$T/again.log"
ok "nothing but results is left" \
    same "$(cd "$T/again" && echo *)" "job.json metrics.jsonl plan.txt scheduler.log weights.safetensors worker_0.log worker_1.log worker_2.log"

# ---- with recovery off its end is the run's
start off "$MSCTL" run --run-dir "$T/off" --set recovery=false "$T/long.yaml"
ok "a job without recovery trains" wait_for 120 trains off 20
kill -KILL "$(children off msschedd)"
ok "its scheduler's end is its own" status 1 reap off
ok "and is said" logged off "scheduler was killed by signal 9 (Killed) before the job had ended"

# ---- a worker that dies whenever it is started
cat >"$T/dying" <<'SH'
#!/bin/sh
[ "$MS_NODE_ID" != 2 ] || kill -KILL $$
exec "$MSCHED_TEST_WORKER" "$@"
SH
chmod +x "$T/dying"
export MSCHED_TEST_WORKER=$MSWORKER
MSCHED_MSWORKER=$T/dying start dying "$MSCTL" run --run-dir "$T/dying-run" "$T/job.yaml"
ok "a worker that always dies comes back less and less often" wait_for 60 logged dying "started again in 5 s"
ok "and then fails the run" status 1 reap dying
for pause in "started again" "started again in 0.1 s" "started again in 0.5 s" "started again in 2 s"; do
    ok "'$pause' was said once" bash -c '[ "$(grep -cE -- "worker 2 .*: $2\$" "$1")" = 1 ]' - "$T/dying.log" "$pause"
done
ok "which says how often it tried" logged dying "worker 2 was killed by signal 9 (Killed) while the cluster formed, 8 times without a step in between"

# ---- a worker that cannot be started
start barred "$MSCTL" run -n 2 --set 'checkpoint={directory: ckpt, every_steps: 1000000}' --run-dir "$T/barred" "$T/long.yaml"
ok "one trains" wait_for 120 trains barred 200
rm "$T/barred/worker_1.log"
mkdir "$T/barred/worker_1.log"
kill -KILL "$(children barred msworker 2 | tail -n 1)"
barred="worker 1 could not be started: the log of the worker 1: cannot open $T/barred/worker_1.log: Is a directory"
ok "whose log is a folder is not started, and the first try says why" wait_for 60 logged barred "$barred; tried again in 0.1 s"
ok "the later it is tried, the later again" wait_for 60 logged barred "$barred; tried again in 5 s"
ok "the scheduler's log tells it" grep -q 'run.restarts child="\?worker 1.*Is a directory' "$T/barred/scheduler.log"
ok "and then the run fails" status 1 reap barred
ok "for that reason" logged barred "msctl: worker 1 could not be started, 7 times in a row: the log of the worker 1: cannot open"
ok "the worker that is left saved its weights" [ -s "$T/barred/weights.safetensors" ]
ok "and a checkpoint, which is said" logged barred "barred/ckpt: the newest is of step"
ok "and why the job ended" grep -q 'reason .*msctl run gave up, for worker 1 does not come back' "$T/barred.log"

# ---- a scheduler that finds its database damaged: nobody is there who could tell the workers to save
start ruined "$MSCTL" run -n 2 --set 'checkpoint={directory: ckpt, every_steps: 1000000}' --run-dir "$T/ruined" "$T/long.yaml"
ok "one more trains" wait_for 120 trains ruined 200
echo junk >"$T/ruined/scheduler.new"
mv "$T/ruined/scheduler.new" "$T/ruined/scheduler.db"
kill -KILL "$(children ruined msschedd)"
ok "a scheduler without its database ends the run" status 1 reap ruined
ok "which says that it ended once like that" grep -q "msctl: scheduler exited with status 78 before the job had ended; its log" "$T/ruined.log"
ok "rank 0 saved its weights" [ -s "$T/ruined/weights.safetensors" ]
ok "and a checkpoint, which is said" logged ruined "ruined/ckpt: the newest is of step"
step=$(sed -n 's/.*the newest is of step //p' "$T/ruined.log" | tr -d ,)
ok "of the step of its last line" same "$step" "$(grep -c '"step":' "$T/ruined/metrics.jsonl")"

# ---- Ctrl-C while it waits for its time
MSCHED_MSWORKER=$T/dying start cut "$MSCTL" run --run-dir "$T/cut" "$T/job.yaml"
ok "another one waits" wait_for 60 logged cut "started again in 5 s"
kill -INT "${pid_of[cut]}"
ok "INT ends it with 130" status 130 reap cut
ok "nobody is left" wait_for 20 nobody
start cut2 "$MSCTL" run --run-dir "$T/cut2" "$T/long.yaml"
ok "one trains" wait_for 120 trains cut2 20
kill -STOP "${pid_of[cut2]}" # so that both are there when it looks
kill -KILL "$(children cut2 msschedd)"
kill -INT "${pid_of[cut2]}"
kill -CONT "${pid_of[cut2]}"
ok "INT with a scheduler that has just died ends after a step with 130, too" status 130 reap cut2
ok "the next scheduler was told" grep -q "job.cancelled\|job.cancel" "$T/cut2/scheduler.log"
ok "metrics are whole" python3 -c "import json, sys; [json.loads(l) for l in open(sys.argv[1])]" "$T/cut2/metrics.jsonl"

# ---- Ctrl-C with the scheduler and a worker that have just died: the other one holds the step
start saves "$MSCTL" run -n 2 --set 'checkpoint={directory: ckpt, every_steps: 1000000}' --run-dir "$T/saves" "$T/long.yaml"
ok "one with a checkpoint trains" wait_for 120 trains saves 20
kill -STOP "${pid_of[saves]}" # so that all is there when it looks
kill -KILL "$(children saves msschedd)" "$(children saves msworker | tail -n 1)"
kill -INT "${pid_of[saves]}"
kill -CONT "${pid_of[saves]}"
ok "INT with both dead ends with 130" status 130 reap saves
ok "the worker that is left saved its weights" [ -s "$T/saves/weights.safetensors" ]
ok "and a checkpoint, which is said" logged saves "ckpt: the newest is of step"
ok "as is who did" grep -q 'reason .*rank [01] (node [01]) says' "$T/saves.log"
start none "$MSCTL" run -n 2 --run-dir "$T/none" "$T/long.yaml"
ok "one without trains" wait_for 120 trains none 20
kill -STOP "${pid_of[none]}"
for victim in $(children none msschedd) $(children none msworker); do
    kill -KILL "$victim"
done
kill -INT "${pid_of[none]}"
kill -CONT "${pid_of[none]}"
ok "INT with all dead ends with 130" status 130 reap none
ok "that nothing is saved is said" logged none "not saved   the weights: what was trained is lost"

# ---- kill -9 of msctl takes those along that were started again
start gone "$MSCTL" run --run-dir "$T/gone" "$T/long.yaml"
ok "a last one trains" wait_for 120 trains gone 20
kill -KILL "$(children gone msschedd)"
wait_for 60 logged gone "started again"
stop gone KILL >/dev/null
ok "kill -9 of msctl takes its second scheduler along" wait_for 20 nobody
finish
