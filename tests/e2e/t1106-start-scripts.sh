#!/usr/bin/env bash
# t1106-start-scripts.sh - the start script of MindSpore's document, word by word: workers first, scheduler last,
# the same words for both, DATA_PATH at the folder of the training files
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
need_shared data/mnist

mkdir -p "$T/place/MNIST_Data/train" "$T/place/MNIST_Data/test" "$T/bin"
cp "$SHARED"/data/mnist/train-* "$T/place/MNIST_Data/train"
cp "$SHARED"/data/mnist/t10k-* "$T/place/MNIST_Data/test"
cp "$ROOT/examples/mnist.yaml" "$T/place/net.yaml"
echo "steps: 20" >>"$T/place/net.yaml"
sed -i '/^epochs:/d' "$T/place/net.yaml"
# `python ./net.py` in our words: one program for all roles
cat >"$T/bin/python" <<'SH'
#!/usr/bin/env bash
exec "$MSWORKER" "${1%.py}.yaml"
SH
chmod +x "$T/bin/python"
port=$(free_port)
cat >"$T/place/run_dynamic_cluster.sh" <<SH
EXEC_PATH=\$(pwd)
export DATA_PATH=\${EXEC_PATH}/MNIST_Data/train/
rm -rf device
mkdir device
echo "start training"
# Start 8 Worker training processes in a loop
for((i=0;i<8;i++));
do
    export MS_WORKER_NUM=8              # Set the number of Worker processes in the cluster to 8
    export MS_SCHED_HOST=127.0.0.1      # Set the Scheduler IP address to the local loop address
    export MS_SCHED_PORT=$port             # Set Scheduler port
    export MS_ROLE=MS_WORKER            # Set the started process to the MS_WORKER role
    export MS_NODE_ID=\$i                # Set process id, optional
    python ./net.py > device/worker_\$i.log 2>&1 &    # Start training script
done
# Start 1 Scheduler process
export MS_WORKER_NUM=8              # Set the number of Worker processes in the cluster to 8
export MS_SCHED_HOST=127.0.0.1      # Set the Scheduler IP address to the local loop address
export MS_SCHED_PORT=$port             # Set Scheduler port
export MS_ROLE=MS_SCHED             # Set the started process to the MS_SCHED role
python ./net.py > device/scheduler.log 2>&1 &    # Start training script
wait \$!
SH
script() { (cd "$T/place" && PATH="$T/bin:$PATH" OMP_NUM_THREADS=1 bash run_dynamic_cluster.sh); }
losses() { [ "$(grep -c 'loss is' "$T/place/device/worker_$1.log")" -ge 2 ]; }
ok "the script runs, and its scheduler ends with 0" script
for i in 0 3 7; do ok "worker $i left its losses in worker_$i.log" wait_for 60 losses $i; done
ok "none of them complains" bash -c '! grep -hE "^msworker:| error | warning " "$1"/place/device/*.log' - "$T"
ok "with only the training files there, a job that evaluates says which are missing" bash -c '
    mv "$1/place/MNIST_Data/test" "$1/place/away"' - "$T"
ok "the scheduler ends with 1" status 1 script
ok "naming the file" wait_for 60 grep -q "evaluate: .*t10k-images" "$T/place/device/worker_0.log"
sed -i '/^evaluate:/d' "$T/place/net.yaml"
ok "one that does not evaluate needs no others" script
ok "a word that is no file is a mistake" says "unexpected word" env MS_ROLE=MS_SCHED MS_WORKER_NUM=1 \
    MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT="$port" "$MSSCHEDD" ./none.yaml

# a scheduler that is late: the lateness is what is tested
cat >"$T/job.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
steps: 5
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
export MS_WORKER_NUM=2 MS_SCHED_HOST=127.0.0.1
MS_SCHED_PORT=$(free_port)
export MS_SCHED_PORT
mkdir "$T/late"
for i in 0 1; do start "late_$i" env MS_ROLE=MS_WORKER MS_NODE_ID=$i "$MSWORKER" --run-dir "$T/late" "$T/job.yaml"; done
ok "workers wait for a scheduler" wait_for 60 logged late_1 "agent.waiting"
start sched env MS_ROLE=MS_SCHED "$MSSCHEDD" "$T/job.yaml"
listening() { grep -q "scheduler.listen" "$T/sched.log"; }
wait_for 60 listening
begun=$SECONDS
ok "the job ends well" reap sched
ok "and soon (two seconds on a machine at rest; it took $((SECONDS - begun)))" [ $((SECONDS - begun)) -lt $((12 * PATIENCE)) ]
for i in 0 1; do ok "worker $i ends with 0" reap late_$i; done

# a scheduler that never comes: the time is kept
ok "MS_TOPO_TIMEOUT=3 without a scheduler ends with 3" status 3 timeout 600 env -C "$T" MS_ROLE=MS_WORKER MS_TOPO_TIMEOUT=3 \
    "$MSWORKER" "$T/job.yaml"

# a peer that dies
cp "$T/job.yaml" "$T/long.yaml"
sed -i 's/^steps:.*/steps: 100000000/; $ a epochs: 1000000' "$T/long.yaml"
MS_SCHED_PORT=$(free_port)
mkdir "$T/dies"
start sched2 env MS_ROLE=MS_SCHED "$MSSCHEDD" "$T/long.yaml"
for i in 0 1; do start "dies_$i" env -C "$T/dies" MS_ROLE=MS_WORKER MS_NODE_ID=$i "$MSWORKER" "$T/long.yaml"; done
ok "two workers train" wait_for 120 logged dies_0 "step: 20,"
kill -KILL "${pid_of[dies_1]}"
reap dies_1
ok "the one whose peer died ends with 1" status 1 reap dies_0
ok "and names the rank" logged dies_0 "rank 1"
ok "but no log that was never written" bash -c '! grep -q "worker_1.log" "$1"' - "$T/dies_0.log"
ok "the scheduler ends with 1" status 1 reap sched2

# our own scripts: who looks at the terminal hears why nothing starts
start holder python3 -c 'import signal, socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); signal.pause()'
held() { [ -s "$T/holder.log" ]; }
wait_for 60 held
mkdir "$T/ours"
scripted() { env -C "$T/ours" -u MS_WORKER_NUM MSCHED_BIN="$T/programs" "$@"; }
mkdir "$T/programs"
ln -s "$MSSCHEDD" "$MSWORKER" "$T/programs/"
MS_SCHED_PORT=$(cat "$T/holder.log")
for n in "" _1; do
    case $n in
    '') words=("$T/job.yaml" 2) ;;
    _1) words=(127.0.0.1 "$T/job.yaml") ;;
    esac
    ok "run_dynamic_cluster$n.sh ends with its scheduler's status" status 75 scripted bash "$ROOT/examples/run_dynamic_cluster$n.sh" "${words[@]}"
    ok "it says why" says "port $MS_SCHED_PORT is in use" scripted bash "$ROOT/examples/run_dynamic_cluster$n.sh" "${words[@]}"
    ok "and no success before" bash -c '! "$@" 2>&1 | grep success' - env -C "$T/ours" MSCHED_BIN="$T/programs" \
        bash "$ROOT/examples/run_dynamic_cluster$n.sh" "${words[@]}"
done
MS_SCHED_PORT=$(free_port)
sed -i 's/^steps:.*/steps: 5/; /^epochs:/d' "$T/long.yaml"
ok "a job that runs" scripted bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/long.yaml" 2
sed "s/^dataset:.*/dataset: {kind: mnist, path: '\${DATA_PATH}', usage: train}/; s/^network:.*/network: mnist/; s/^loss:.*/loss: softmax_cross_entropy/" \
    "$T/job.yaml" >"$T/data.yaml"
tells() { # PATTERN COMMAND...
    local pattern=$1
    shift
    "$@" >"$T/tells.out" 2>&1
    grep -qE "$pattern" "$T/tells.out" || { cat "$T/tells.out" && return 1; }
}
ok "where the data are not, the scheduler's last line has the cause" tells \
    '^device/scheduler.log: .*scheduler.end status=1 reason=.*dataset: .*/none.* cannot be opened' \
    scripted env DATA_PATH="$T/none" bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/data.yaml" 2
ok "where workers are missing, too" tells '^device/(scheduler.log: .*scheduler.end status=1 reason=|worker_0.out: msworker: ).*[01] of 2 workers' \
    scripted env MS_WORKER_NUM=2 MS_TOPO_TIMEOUT=1 bash "$ROOT/examples/run_dynamic_cluster_1.sh" 127.0.0.1 "$T/job.yaml"
mkdir "$T/killed"
printf '#!/bin/sh\necho rank.ready\nkill -KILL $$\n' >"$T/killed/msworker"
chmod +x "$T/killed/msworker"
ok "a worker that was killed could not say why: the script does" tells '^device/worker_1.out: ended by SIGKILL' \
    env -C "$T/ours" MSCHED_BIN="$T/killed" MS_WORKER_NUM=2 bash "$ROOT/examples/run_dynamic_cluster_2.sh" 127.0.0.1 "$T/job.yaml"
echo "learning: 1" >>"$T/long.yaml"
ok "a job that cannot says why" says "device/worker_1.out: msworker: $T/long.yaml" scripted env MS_TOPO_TIMEOUT=3 bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/long.yaml" 2
ok "workers of a second machine, too" says "device/worker_1.out: msworker: $T/long.yaml" scripted env MS_WORKER_NUM=2 bash "$ROOT/examples/run_dynamic_cluster_2.sh" 127.0.0.1 "$T/long.yaml"
for n in "" _1; do
    words=("$T/long.yaml" 2)
    [ -z "$n" ] || words=(127.0.0.1 "$T/long.yaml")
    for recovers in 0 1; do
        ok "run_dynamic_cluster$n.sh ends when no worker is left, with their status (recovery: $recovers)" status 2 scripted \
            env MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=$recovers timeout 600 bash "$ROOT/examples/run_dynamic_cluster$n.sh" "${words[@]}"
    done
done
for n in "" _1 _2; do
    rm -rf "$T/ours/device"
    words=("$T/none.yaml")
    [ -z "$n" ] || words=(127.0.0.1 "$T/none.yaml")
    ok "run_dynamic_cluster$n.sh looks for the job first" says "there is no job file $T/none.yaml" scripted \
        timeout 600 bash "$ROOT/examples/run_dynamic_cluster$n.sh" "${words[@]}"
    ok "and starts nothing" bash -c '[ ! -e "$1/ours/device" ]' - "$T"
done
stop holder

# who reads the log sees what starts something again as a whole: each write into this socket is a packet
writes() { # COMMAND...: how often it writes to its standard error
    python3 -c 'import socket, subprocess, sys
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
child = subprocess.Popen(sys.argv[1:], stderr=theirs)
theirs.close()
n = 0
while ours.recv(65536):
    n += 1
child.wait()
print(n)' "$@"
}
ok "what starts it again is written at once" same 1 "$(MS_NODE_TIMEOUT=5 DATA_PATH=/data writes \
    bash -c '. "$1" && tell_again "the job waits" "msworker &"' - "$ROOT/examples/run_dynamic_cluster_common.sh")"

# one start after the other, of a job that does not: what it saved is nobody's to take away
cat >"$T/saves.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 320}
batch_size: 16
steps: 10
epochs: 10
optimizer: {kind: sgd, learning_rate: 0.001}
checkpoint: {every_steps: 5, prefix: kept}
YAML
{ sed 's/^steps:.*/steps: 15/' "$T/saves.yaml" && echo 'resume: "${OURS}/device" # of the start before'; } >"$T/goes_on.yaml"
ours() { # JOB: the script, to its end
    scripted OURS="$T/ours" timeout 600 bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/$1.yaml" 2
}
has_saved() { [ -e "$T/ours/$1/checkpoints/kept-10.json" ] && [ -e "$T/ours/$1/weights.safetensors" ]; }
rm -rf "$T/ours"/device*
MS_SCHED_PORT=$(free_port)
ok "a job saves" ours saves
ok "in device" has_saved device
before=$(digest ours/device)
ok "a start after it says where that is then" says "what an earlier start saved in device is now in device.before" ours saves
ok "and it is there" has_saved device.before
ok "as is its own" has_saved device
ok "one more start" ours saves
ok "takes none of them" has_saved device.before.1
ok "a job that goes on from there says that it stays" says "device stays, with what an earlier start saved: $T/goes_on.yaml names it" ours goes_on
ok "and goes on" grep -q "step=10 state=checkpoint" "$T/ours/device/worker_0.out"
ok "with all that was there" has_saved device
ok "and is not where it began" [ "$(digest ours/device)" != "$before" ]
rm -rf "$T/ours/device"
ok "a job that fails" status 2 ours long
ok "and the next one" status 2 ours long
ok "leave nothing aside" [ ! -e "$T/ours/device.before.2" ]

# one start after the other, of a job that recovers and has ended: the next one is another job, and takes nothing from it
rm -rf "$T/ours"/device*
ended() { MSCHED_LOG_LEVEL=warning MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH=$T/rec4 ours saves; } # whatever its logs leave out
MS_SCHED_PORT=$(free_port)
ok "a job that recovers ends" ended
ok "having saved" has_saved device
before=$(digest ours/device)
sed -i '$a seed: 5' "$T/saves.yaml"
ok "a start after that says where it is then" says "what an earlier start saved in device is now in device.before" ended
ok "and it is there" has_saved device.before
ok "with the weights that it had" same "$before" "$(digest ours/device.before)"
ok "and the log of its end" grep -q "job.succeeded" "$T/ours/device.before/scheduler.log"
ok "the next one saves, too" has_saved device
ok "other weights" [ "$(digest ours/device)" != "$before" ]
ok "and has its own lines alone" same 1 "$(grep -c '"done":true' "$T/ours/device/metrics.jsonl")"
ok "with one scheduler's log" [ ! -e "$T/ours/device/scheduler.before.log" ]
rm -rf "$T/ours"/device*

# a user who keeps his job and its database there
mkdir -p "$T/ours/device/rec"
cp "$T/saves.yaml" "$T/ours/device/job.yaml"
inside() { scripted MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/ours/device/rec" MS_SCHED_PORT="$(free_port)" bash "$ROOT/examples/run_dynamic_cluster.sh" device/job.yaml 2; }
ok "a job whose file lies in the folder trains" inside
ok "and has its file and its database still" [ -e "$T/ours/device/job.yaml" -a -e "$T/ours/device/rec/state.db" ]
ok "another start does not write over what it saved" status 2 inside
ok "and says what to move" says "the job's file or MS_RECOVERY_PATH, too: move one of them" inside
rm -rf "$T/ours"/device*

# one start after the other, of a job that recovers
cat >"$T/recover.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 320}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 100000
optimizer: {kind: sgd, learning_rate: 0.001}
checkpoint: {every_steps: 5}
YAML
again() { # NAME: the script with recovery, in the background
    start "$1" env -C "$T/ours" -u MS_WORKER_NUM MSCHED_BIN="$T/programs" MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/rec" \
        bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2
}
saved() { [ -n "$(find "$T/ours/device" -name '*.json' 2>/dev/null)" ]; }
MS_SCHED_PORT=$(free_port)
again once
ok "a job that recovers saves" wait_for 120 saved
mapfile -t workers < <(children once msworker 2)
sched=$(children once msschedd)
kill -KILL "${workers[1]}"
ok "of a worker that was killed the script says that the job waits" wait_for 60 logged once "the job waits for that rank"
ok "and what starts it again" grep -q "MS_ROLE=MS_WORKER MS_NODE_ID=[01] $T/programs/msworker --run-dir device" "$T/once.log"
kill -KILL "$sched"
ok "it ends with its scheduler" status 137 reap once
ok "and says who trains on without it" logged once "the workers train on without their scheduler"
kill -KILL "${workers[0]}"
gone() { ! kill -0 "${workers[0]}" 2>/dev/null; }
wait_for 60 gone
again twice
ok "started again it goes on from a checkpoint" wait_for 120 grep -qE 'job\.recovered .*checkpoint of step [1-9]' "$T/ours/device/scheduler.log"
mapfile -t workers < <(children twice msworker 2)
sched=$(children twice msschedd)
kill -KILL "$sched" "${workers[@]}"
reap twice
none_alive() { [ -z "$(alive)" ]; }
wait_for 60 none_alive

# with the variable forgotten that has it go on
forgot() { scripted MS_RECOVERY_PATH="$T/rec" bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2; }
ok "without MS_ENABLE_RECOVERY nothing begins beside a job that may go on" status 2 forgot
ok "and it is said which of the two to set" says "MS_ENABLE_RECOVERY is not 1: set it to 1 to go on" forgot
ok "with no checkpoint less" saved

# with another job than is to go on there
sed 's/0\.001/0.002/' "$T/recover.yaml" >"$T/other.yaml"
other() { scripted MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/rec" timeout 600 bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/other.yaml" 2; }
MS_SCHED_PORT=$(free_port)
ok "workers that are refused for their job are all there is: the script ends with their status" status 4 other
ok "and says why" says "start all workers with that job's file and options, or, to forget it" other
ok "with no checkpoint less" saved
wait_for 60 none_alive

# a second start beside workers that live, for their scheduler is gone: they go on, and lose no step
rm -rf "$T/ours/device"
MS_SCHED_PORT=$(free_port)
sed 's/^epochs:.*/epochs: 200/; s/^checkpoint:.*/checkpoint: {every_steps: 50}/' "$T/recover.yaml" >"$T/living.yaml"
beside() { # NAME
    start "$1" env -C "$T/ours" -u MS_WORKER_NUM MSCHED_BIN="$T/programs" MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/rec3" \
        bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/living.yaml" 3
}
steps() { grep -c '"step":' "$T/ours/device/metrics.jsonl" 2>/dev/null; }
trains() { [ "$(steps)" -ge "$1" ]; }
told() { [ "$(grep -c "$2" "$T/$1.log")" -ge "$3" ]; }
beside older
ok "three workers train, and save" wait_for 120 saved
mapfile -t workers < <(children older msworker 3)
kill -TERM "$(children older msschedd)"
ok "the script ends with its scheduler" status 1 reap older
ok "and says who trains on without it" logged older "the workers train on without their scheduler"
ok "its workers train on" wait_for 120 trains $(($(steps) + 50))
beside_others() { scripted MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/rec5" MS_SCHED_PORT="$(free_port)" bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/living.yaml" 3; }
ok "a start with another database does not take the folder from them" status 75 beside_others
ok "and says what to do" says "workers of an earlier start live, and write to device" beside_others
ok "their lines are there" trains 1
beside younger
ok "of each that it started the second script says that another one lives" wait_for 120 told younger 'with this id lives (pid [0-9]*) and goes on' 3
for pid in "${workers[@]}"; do ok "and which" logged younger "lives (pid $pid)"; done
ok "it stays with its scheduler, and ends with the job" reap younger
ok "the job lost no rank" bash -c '! grep -h "job\.rank_lost" "$1"/ours/device/scheduler*.log' - "$T"
ok "no step was trained again" bash -c '! grep -h "trained again" "$1"/ours/device/worker_*.log' - "$T"
ok "it has the weights of an undisturbed run" run undisturbed -n 3 "$T/living.yaml"
ok "to the bit" same "$(digest ours/device)" "$(digest undisturbed)"
wait_for 60 none_alive

# two machines, in one folder: what the scripts say starts again what was killed
rm -rf "$T/ours/device"
MS_SCHED_PORT=$(free_port)
part() { # NAME NUMBER
    start "$1" env -C "$T/ours" MSCHED_BIN="$T/programs" MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/rec2" DATA_PATH="$T/a b" \
        bash "$ROOT/examples/run_dynamic_cluster_$2.sh" 127.0.0.1 "$T/recover.yaml"
}
commands() { # LOG: those that it names last
    sed -n '/start it again with$/h; /^    /H; ${x; p}' "$T/$1.log" | sed -n 's/^    //p'
}
obey() { # NAME: what its log says, in its folder, and nothing of this shell's
    (cd "$T/ours" && exec env -i PATH="$PATH" HOME="$HOME" bash -c "$(commands "$1")")
}
recovered() { [ "$(cat "$T"/ours/device/scheduler*.log | grep -c 'job\.recovered ')" -ge "$1" ]; }
part first 1
part second 2
ok "of two machines' scripts the job saves" wait_for 120 saved
kill -KILL "$(children second msworker)"
ok "the second one says that the job waits for its worker" status 137 reap second
ok "in words" logged second "the job waits for that rank; start it again with"
ok "with the variables that it had" grep -qF "export DATA_PATH=$T/a\\ b" "$T/second.log"
obey second
ok "and the job goes on with the command that it names" wait_for 120 recovered 1
kill -KILL "$(children first msworker)"
ok "the first one says it of its own worker" wait_for 60 logged first "the job waits for that rank; start it again with"
obey first
ok "and stays, with the scheduler, for the job goes on" wait_for 120 recovered 2
kill -KILL "$(children first msschedd)"
ok "it ends with its scheduler" status 137 reap first
ok "and says who trains on without it" logged first "started here is left; others train on without their scheduler; start it again with"
obey first
back() { [ "$(grep -c 'node\.registered' "$T/ours/device/scheduler.log")" -ge 6 ]; } # two, one and one again, and both
ok "the command that it names brings it back to them" wait_for 60 back
mapfile -t left < <(alive)
kill -KILL "${left[@]}"
wait_for 60 none_alive

# each worker of one machine is lost once: who was started by hand is one of the job's
rm -rf "$T/ours/device"
MS_SCHED_PORT=$(free_port)
start third env -C "$T/ours" -u MS_WORKER_NUM MSCHED_BIN="$T/programs" MS_ENABLE_RECOVERY=1 \
    bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2
ok "a job on one machine saves" wait_for 120 saved
mapfile -t workers < <(children third msworker 2)
kill -KILL "${workers[0]}"
ok "the script says that it waits" wait_for 60 told third "the job waits for that rank" 1
obey third
ok "and it goes on with what was started by hand" wait_for 120 recovered 1
kill -TERM "${workers[1]}"
ok "of one that was asked to leave it says so, too" wait_for 60 told third "the job waits for that rank" 2
obey third
ok "the last that it had started is not the last of the job" wait_for 120 recovered 2
sched=$(children third msschedd)
mapfile -t left < <(alive)
for pid in "${left[@]}"; do [ "$pid" = "$sched" ] || [ "$pid" = "${pid_of[third]}" ] || kill -KILL "$pid"; done
ok "nobody is left whom the script knows: it waits for its scheduler" kill -0 "$sched"
kill -KILL "$sched"
ok "and ends with it" status 137 reap third
wait_for 60 none_alive

# all of them at once, of which one had not come to the scheduler: what the script says starts them again
rm -rf "$T/ours/device" "$T/rec"
MS_SCHED_PORT=$(free_port)
again fourth
wait_for 120 told fourth "start success with pid" 2
mapfile -t workers < <(children fourth msworker 2)
kill -KILL "${workers[1]}"
ok "of one that is killed at its start it says so" wait_for 60 told fourth "the job waits for that rank" 1
obey fourth
ok "a job that recovers saves, once more" wait_for 120 saved
ok "a second start in this folder is refused" status 75 scripted bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2
ok "so is a wrong word of whether it recovers" status 2 scripted env MS_ENABLE_RECOVERY=true MS_RECOVERY_PATH="$T/rec" \
    MS_SCHED_PORT="$(free_port)" bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2
ok "and they touch nothing" saved
sched=$(children fourth msschedd)
mapfile -t left < <(alive)
for pid in "${left[@]}"; do [ "$pid" = "$sched" ] || [ "$pid" = "${pid_of[fourth]}" ] || kill -KILL "$pid"; done
ok "of all that it started it says so" wait_for 60 told fourth "the job waits for that rank" 2
obey fourth
MSCHED_BIN=$T/programs MS_SCHED_HOST=127.0.0.1 start byhand env -C "$T/ours" MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1 MS_ROLE=MS_WORKER MS_NODE_ID=1 \
    "$MSWORKER" --run-dir device "$T/recover.yaml"
ok "and with both of them the job goes on" wait_for 120 recovered 1
kill -KILL "$sched"
ok "the script ends with its scheduler" status 137 reap fourth
mapfile -t left < <(alive)
kill -KILL "${left[@]}"
reap byhand
wait_for 60 none_alive

# all of them at once, of which none could say anything
rm -rf "$T/ours/device" "$T/rec"
MS_SCHED_PORT=$(free_port)
again whole
ok "a job that recovers saves, for the last time" wait_for 120 saved
mapfile -t workers < <(children whole msworker 2)
sched=$(children whole msschedd)
kill -KILL "${workers[@]}" "$sched" # whichever of them the script sees first
ok "where all were killed the script ends" status 137 reap whole
ok "says so" logged whole "the scheduler has ended with the workers that were started here; start it again with"
ok "of each worker, too" told whole "worker_[01].out: ended by SIGKILL" 2
ok "and of nobody that he trains on" bash -c '! grep "train on" "$1"' - "$T/whole.log"
ok "what it names starts all of them" [ "$(commands whole | grep -c 'MS_ROLE=MS_\(SCHED\|WORKER\)')" = 3 ]
obey whole
ok "with which the job goes on" wait_for 120 recovered 1
mapfile -t left < <(alive)
kill -KILL "${left[@]}"
wait_for 60 none_alive

# a job that recovers of a scheduler that does not: who is left trains for nobody, unless he is told to end
rm -rf "$T/ours/device"
MS_SCHED_PORT=$(free_port)
start lone env -C "$T/ours" -u MS_WORKER_NUM MSCHED_BIN="$T/programs" MS_ENABLE_RECOVERY=1 \
    bash "$ROOT/examples/run_dynamic_cluster.sh" "$T/recover.yaml" 2
ok "a job without MS_RECOVERY_PATH saves" wait_for 120 saved
mapfile -t workers < <(children lone msworker 2 | sort -n)
kill -KILL "$(children lone msschedd)"
ok "its script ends with its scheduler" status 137 reap lone
ok "and says who trains on, and that nobody will know them" logged lone \
    "the workers train on without their scheduler (pids ${workers[0]} ${workers[1]}), and without MS_RECOVERY_PATH another one cannot know their job"
ok "and no command that starts one" bash -c '! grep "start it again" "$1"' - "$T/lone.log"
bash -c "$(sed -n 's/.*end them with: \(kill [0-9 ]*\) (.*/\1/p' "$T/lone.log")"
ok "what it names ends them" wait_for 60 none_alive
ok "and their last step is saved" grep -q "rank\.note .* is saved: device/checkpoints/" "$T/ours/device/worker_0.out"

# one that failed by itself while the other machine has ranks: the scheduler knows what that is to the job
rm -rf "$T/ours/device" "$T/rec"
MS_SCHED_PORT=$(free_port)
mkdir "$T/fails"
ln -s "$MSSCHEDD" "$T/fails/"
printf '#!/bin/sh\necho rank.failed\nexit 1\n' >"$T/fails/msworker"
chmod +x "$T/fails/msworker"
start fifth env -C "$T/ours" MSCHED_BIN="$T/fails" MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1 bash "$ROOT/examples/run_dynamic_cluster_1.sh" 127.0.0.1 "$T/recover.yaml"
ok "of a worker that failed by itself the script says why" wait_for 60 told fifth "device/worker_0.out: rank.failed" 1
for i in 0 1; do
    start "hand_$i" env -C "$T/ours" MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1 MS_ROLE=MS_WORKER MS_NODE_ID=$i \
        "$MSWORKER" --run-dir device "$T/recover.yaml"
done
ok "and leaves the scheduler to those that come" wait_for 120 saved
kill -KILL "$(children fifth msschedd)"
ok "with which it ends" status 137 reap fifth
for i in 0 1; do
    kill -KILL "${pid_of[hand_$i]}"
    reap "hand_$i"
done
wait_for 60 none_alive
finish
