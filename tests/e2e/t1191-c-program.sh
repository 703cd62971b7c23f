#!/usr/bin/env bash
# t1191-c-program.sh - a C program with a network and data of its own (examples/points.c): alone, as a worker of a dynamic
# cluster, and with a rank that is killed
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
POINTS=$BUILD/examples/points
need "$MSCTL" "$MSSCHEDD" "$POINTS" "$BUILD/tests/tools/own-loop" python3 mkfifo

sha() { sed -n 's/^weights_sha256 //p' "$1"; }
# A folder of its own: the program leaves points.safetensors where it is.
alone() { # NAME [VARIABLE=VALUE]...
    mkdir "$T/$1"
    env -C "$T/$1" "${@:2}" "$POINTS" >"$T/$1.out" 2>&1 || { cat "$T/$1.out" && return 1; }
}

ok "the example is of at most 80 lines" [ "$(wc -l <"$ROOT/examples/points.c")" -le 80 ]
ok "it trains in its own process" alone a
ok "with a line an evaluation" [ "$(grep -cE '^epoch [0-9]+: loss [0-9.]+, accuracy [0-9.]+ %$' "$T/a.out")" -eq 10 ]
ok "and learns the spirals" bash -c 'grep -E "^epoch 10: " "$1" | sed "s/.*accuracy //; s/ %//" | awk "{ exit !(\$1 > 95) }"' - "$T/a.out"
ok "the digest is that of the file that it saved" same "$(sha "$T/a.out")" "$(digest_of_file "$T/a/points.safetensors")"
ok "once more it has the same bits" alone b
ok "of the weights" same "$(sha "$T/b.out")" "$(sha "$T/a.out")"
ok "a role that is none is named" says "MS_ROLE" alone c MS_ROLE=MS_BOSS

# ---- every kind of layer in the documents has its function; those that are lists go by msw_layer
ok "each kind of layer has a function" bash -c '
    kinds=$(sed -n "/^## Layers/,/^- /p" "$1/docs/networks.md" | grep "^| \`" | cut -d"|" -f2 | grep -oE "[a-z0-9_]+")
    [ "$(wc -w <<<"$kinds")" -gt 30 ] || exit 1
    for kind in $kinds; do
        case $kind in sequential | residual | repeat) continue ;; esac
        grep -q "int msw_$kind(struct msw_net" "$1/libworker/msworker.h" || { echo "$kind" && exit 1; }
    done' - "$ROOT"

# ---- no file may have such data: they are of a process
cat >"$T/job.yaml" <<'YAML'
network: [flatten, dense: {out: classes}]
dataset: {kind: callback, samples: 10, shape: [2], classes: 3}
optimizer: {kind: sgd, learning_rate: 0.01}
YAML
ok "a job file cannot have the data of a program" says "kind callback is of programs that make their job with msw_job_make" \
    "$MSCTL" run --run-dir "$T/none" "$T/job.yaml"

# ---- two of it are a cluster
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2
PROGRAM=$POINTS
ARGUMENTS=()
sched() { # NAME [VARIABLE=VALUE]...
    MS_SCHED_PORT=$(free_port)
    export MS_SCHED_PORT
    start "$1" env MS_ROLE=MS_SCHED "${@:2}" "$MSSCHEDD"
}
worker() { # NAME NODE_ID [VARIABLE=VALUE]...
    mkdir -p "$T/$1.d"
    start "$1" env -C "$T/$1.d" MS_ROLE=MS_WORKER MS_NODE_ID="$2" "${@:3}" "$PROGRAM" "${ARGUMENTS[@]}"
}
ends_well() {
    reap "$1"
    local got=$?
    [ "$got" -eq 0 ] || { echo "$1 ended with $got" && return 1; }
}
ends_badly() { ! ends_well "$1"; }
sched two
worker two_0 0
worker two_1 1
ok "the scheduler of two ends well" ends_well two
ok "rank 0 ends well" ends_well two_0
ok "rank 1 ends well" ends_well two_1
ok "both have the same weights" same "$(sha "$T/two_0.log")" "$(sha "$T/two_1.log")"
ok "which are those of half the steps, so others than alone" [ "$(sha "$T/two_0.log")" != "$(sha "$T/a.out")" ]
ok "rank 0 alone tells of evaluations" [ "$(grep -c ', accuracy ' "$T/two_0.log") $(grep -c ', accuracy ' "$T/two_1.log")" = "10 0" ]

# ---- one stands still behind a step, in its own loop, and is killed there
PROGRAM=$BUILD/tests/tools/own-loop
recovering=(MS_ENABLE_RECOVERY=1 MS_RECOVERY_PATH="$T/recovery")
mkdir "$T/recovery"
mkfifo "$T/still"
sched whole
worker whole_0 0
worker whole_1 1
ok "a loop of its own ends well" ends_well whole
ok "on rank 0" ends_well whole_0
ok "and on rank 1" ends_well whole_1
ok "after all steps" [ "$(grep -c '^own step ' "$T/whole_1.log")" -eq 12 ]
sched lost "${recovering[@]}"
worker lost_0 0 "${recovering[@]}"
ARGUMENTS=(7 "$T/still")
worker lost_1 1 "${recovering[@]}"
ok "rank 1 stands still behind step 7" wait_for 60 grep -q "^own step 7 of rank 1" "$T/lost_1.log"
ok "and makes no other one meanwhile" bash -c '! grep -q "^own step 8" "$1" "$2"' - "$T/lost_0.log" "$T/lost_1.log"
kill -KILL "${pid_of[lost_1]}"
reap lost_1
ARGUMENTS=()
worker again_1 1 "${recovering[@]}"
ok "the scheduler ends well all the same" ends_well lost
ok "rank 0 ends well" ends_well lost_0
ok "the one that took rank 1 ends well" ends_well again_1
ok "it took the state of step 7 from rank 0" grep -qE "rank.ready .* step=7 state=pulled state_rank=0" "$T/again_1.log"
ok "rank 0 heard each step once, with the same bits" \
    same "$(grep '^own step ' "$T/lost_0.log")" "$(grep '^own step ' "$T/whole_0.log")"
ok "the new one those after it" same "$(grep '^own step ' "$T/again_1.log")" "$(grep '^own step ' "$T/whole_1.log" | tail -n 5)"
ok "the weights are those that nobody was killed for" same "$(sha "$T/lost_0.log")" "$(sha "$T/whole_0.log")"
ok "on both" same "$(sha "$T/again_1.log")" "$(sha "$T/whole_0.log")"

# ---- the records of its function, from a program, and its network, in a job file
cat >"$T/make.py" <<'PY'
#!/usr/bin/env python3
import struct, sys
out = sys.stdout.buffer
out.write(struct.pack("<8sIIQIIIII20x", b"MSDATA\r\n", 1, 1, 48, 4, 1, 1, 0, 1))
out.flush()
for line in sys.stdin:
    row, epoch, seed = map(int, line.split())
    values = [(row * 7 + epoch * 3 + i * 5 + seed) % 8 / 8 for i in range(4)]
    out.write(struct.pack("<Qf4f", row, sum(v * (i + 1) for i, v in enumerate(values)), *values))
    out.flush()
PY
chmod +x "$T/make.py"
cat >"$T/own.yaml" <<'YAML'
network: [flatten, dense: {name: fc, out: classes}]
dataset: {kind: program, path: make.py}
batch_size: 8
epochs: 4
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
ok "a job file with the same network and records trains" run file -n 2 "$T/own.yaml"
ok "to the same bits" same "$(digest file)" "$(sha "$T/whole_0.log")"

# ---- who stands still holds up the others, and is told to go on
ARGUMENTS=(3 "$T/still")
sched slow
worker slow_0 0
ARGUMENTS=()
worker slow_1 1
ok "rank 0 stands still behind step 3" wait_for 60 grep -q "^own step 3 of rank 0" "$T/slow_0.log"
: >"$T/still"
ok "then it ends well" ends_well slow
ok "on rank 0" ends_well slow_0
ok "and on rank 1" ends_well slow_1
ok "with the same weights" same "$(sha "$T/slow_1.log")" "$(sha "$T/whole_0.log")"

# ---- who ends his loop ends the job
ARGUMENTS=(5 end)
sched left
worker left_0 0
ARGUMENTS=()
worker left_1 1
ok "a job whose rank 0 ends it early is no success" ends_badly left
ok "nor for rank 0" ends_badly left_0
ok "nor for rank 1" ends_badly left_1
ok "which says why" logged left_1 "own-loop: "
ok "alone it has what it made until then" says "weights_sha256" env -u MS_SCHED_HOST -u MS_SCHED_PORT -u MS_WORKER_NUM "$PROGRAM" 5 end
finish
