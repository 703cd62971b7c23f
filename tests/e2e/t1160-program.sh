#!/usr/bin/env bash
# t1160-program.sh - records that a program delivers: the bits of the binary reader, also when the program ends, is killed, or its
# rank is; no process is left; a standing worker runs what its operator lists
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 openssl
ok "a drawn data set" "$MSCTL" dataset shapes --train 1200 --test 200 --seed 3 "$T/drawn"
mkdir -p "$T/programs"
cp "$ROOT/examples/program/cifar10.py" "$T/programs/good.py"
# one that dies, by itself, after each 500 records
sed 's/^for line in sys.stdin:.*/for n, line in enumerate(sys.stdin):\n    n < 500 or os.kill(os.getpid(), 9)/' \
    "$T/programs/good.py" >"$T/programs/mortal.py"
echo 'print("no more", file=sys.stderr)' >>"$T/programs/good.py" # once nothing more is wanted
# one that can be killed in its middle: of the 600 records an epoch it delivers 400, and no more before it may
sed "s|^for line in sys.stdin:.*|import time\nfor n, line in enumerate(sys.stdin):\n    while n >= 400 and not os.path.exists('$T/go'): time.sleep(0.02)|" \
    "$T/programs/good.py" >"$T/programs/slow.py"
sed 's/^out.flush()$/print("no such disk", file=sys.stderr); sys.exit(4)/' "$T/programs/good.py" >"$T/programs/bad.py"
chmod +x "$T"/programs/*.py
export DATA_PATH=$T/drawn

job() { # DATASET EVALUATED
    printf '%s\n' 'network: cifar_small' "dataset: {$1}" 'batch_size: 32' 'epochs: 3' \
        'transforms: [{random_crop: {size: 32, padding: 4}}, random_horizontal_flip: {}, {rescale: {scale: 0.0039}}]' \
        'optimizer: {kind: momentum, learning_rate: 0.01}' "evaluate: {dataset: {$2}}"
}
# shellcheck disable=SC2016 # the workers expand it
program() { job "kind: program, path: $T/programs/$1.py, arguments: ['\${DATA_PATH}']" "kind: program, path: $T/programs/$1.py"; }
equal() { # NAME: a run with the digest and the losses of the binary reader
    same "$(digest "$1")" "$(digest binary)" && same "$(losses "$1")" "$(losses binary)"
}
losses() { grep -o '"loss_hex":"[^"]*"\|"eval[^}]*"' "$T/$1/metrics.jsonl"; }
nobody_is_left() { ! pgrep -f "$T/programs/" >/dev/null; }
job "kind: cifar10, path: $T/drawn" "kind: cifar10, path: $T/drawn" >"$T/binary.yaml"
ok "the binary reader" run binary -n 2 "$T/binary.yaml"
program good >"$T/good.yaml"
ok "a program" run good -n 2 "$T/good.yaml"
ok "has its bits" equal good
ok "the type of its values is kept" jq -e '.dataset.values == "bytes"' "$T/good/job.json"
ok "what it says is in the log of the rank" grep -q "^program good.py: 1200 records of 1 files" "$T/good/worker_1.log"
ok "its last words too" grep -q "^program good.py: no more" "$T/good/worker_1.log"
program mortal >"$T/mortal.yaml"
ok "one that dies now and then" run mortal -n 2 "$T/mortal.yaml"
ok "has them, too" equal mortal
ok "which is said" grep -q "^program mortal.py: is started again: program mortal.py ended by signal 9 (Killed) before record" \
    "$T/mortal/worker_0.log"

if [ -d "${SHARED:-/nowhere}/data/cifar-10-batches-bin" ]; then
    ok "CIFAR-10 itself" run itself -n 2 --set steps=40 --set epochs=1 --set "dataset.path=$SHARED/data/cifar-10-batches-bin" \
        --set evaluate=null "$T/binary.yaml"
    ok "through a program" env DATA_PATH="$SHARED/data/cifar-10-batches-bin" "$MSCTL" run --run-dir "$T/through" -n 2 \
        --set steps=40 --set epochs=1 --set evaluate=null "$T/good.yaml"
    ok "has the same bits" same "$(digest itself)" "$(digest through)"
fi

# ---- killed by somebody else
program slow >"$T/slow.yaml"
start slow "$MSCTL" run --run-dir "$T/slow" -n 2 "$T/slow.yaml"
steps() { [ "$(grep -c '"step":' "$T/slow/metrics.jsonl" 2>/dev/null)" -ge "$1" ]; }
kill_programs() { pgrep -f "$T/programs/slow.py" | xargs -r kill -KILL; }
kill_a_rank() { kill -KILL "$(children slow msworker 2 | tail -n 1)"; }
ok "a slow one trains" wait_for 120 steps 4
ok "its processes are killed" kill_programs
ok "and it goes on" wait_for 120 steps 12
ok "a rank is killed" kill_a_rank
touch "$T/go"
ok "and it comes to its end" status 0 reap slow
ok "with the same bits" equal slow
ok "no program outlives its worker" wait_for 10 nobody_is_left

# ---- asked to stop while one of two ranks waits for a record: the last step is saved
{
    printf '%s\n' '#!/usr/bin/env python3' 'import time, pathlib'
    sed -e '1d' -e "s|^for line in sys.stdin:.*|for n, line in enumerate(sys.stdin):\n    if n == 200 and not os.path.exists('$T/silent-one'):\n        os.mkdir('$T/silent-one'); time.sleep(1000)|" \
        "$T/programs/good.py"
} >"$T/programs/silent.py"
chmod +x "$T/programs/silent.py"
program silent | sed 's/^evaluate.*/checkpoint: {every_steps: 1000}/' >"$T/silent.yaml"
start silent "$MSCTL" run --run-dir "$T/silent" -n 2 "$T/silent.yaml"
is_silent() { [ -d "$T/silent-one" ] && [ "$(grep -c '"step":' "$T/silent/metrics.jsonl")" -eq 6 ]; } # of 32 records
ok "one of two is silent" wait_for 120 is_silent
kill -INT "${pid_of[silent]}"
ok "and the job is asked to stop" status 130 reap silent
ok "which it does, with its last step saved" grep -q "rank [01] (node [01]) says: step 6 is saved: $T/silent/checkpoints/cifar_small-6.json" "$T/silent.log"
ok "no program is left" wait_for 10 nobody_is_left

# ---- what cannot work
program bad >"$T/bad.yaml"
ok "one that fails is told with its last words" says "its last words: no such disk (3 times)" \
    "$MSCTL" run --run-dir "$T/bad" -n 2 "$T/bad.yaml"

sed 's/^for line in sys.stdin:.*/import time\ntime.sleep(1000)\nfor line in sys.stdin:/' "$T/programs/good.py" >"$T/programs/mute.py"
chmod +x "$T/programs/mute.py"
program mute | sed "s,arguments: ,timeout: 10\, &," >"$T/mute.yaml"
ok "one that says nothing is told by its silence" says "program mute.py has written nothing for 10 s, and record" \
    "$MSCTL" run --run-dir "$T/mute" --set evaluate=null "$T/mute.yaml"
ok "and its rank is not taken for lost" bash -c '[ -f "$1" ] && ! grep "job\.rank_lost" "$1"' - "$T/mute/scheduler.log"

# ---- a standing worker runs programs for others only where its operator says so
ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node n1 --data-roots "$T" --data-programs "$T/programs"
ok "a node is idle" wait_for 120 idle 1
ok "a job with a program" as alice submit -n 1 --set evaluate=null "$T/good.yaml"
ok "trains on it" as alice wait --timeout 900 1
ok "and one from elsewhere" cp "$T/programs/good.py" "$T/elsewhere.py"
sed "s,$T/programs/good.py,$T/elsewhere.py,g" "$T/good.yaml" >"$T/elsewhere.yaml"
ok "is taken" as alice submit -n 1 --set evaluate=null "$T/elsewhere.yaml"
ok "and refused there" status 1 as alice wait --timeout 900 2
ok "with what to do" says "below data_programs of the worker alone" as alice show 2
finish
