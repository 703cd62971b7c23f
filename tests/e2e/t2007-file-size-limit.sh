#!/usr/bin/env bash
# t2007-file-size-limit.sh - a limit on the size of files (ulimit -f, LimitFSIZE=) is an error, no silent end
. "$(dirname "$0")/lib.sh"
need "$MSSCHEDD" "$MSCTL" prlimit

limited() { prlimit --fsize=1000000 "$MSSCHEDD" "$@"; }
start_limited() {
    start a prlimit --fsize=1000000 "$MSSCHEDD" --config "$T/empty.conf" --listen none \
        --socket "$T/a.sock" --database "$T/a.db"
    wait_for 60 ready a
}
cat >"$T/job.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear}
batch_size: 16
epochs: 1
loss: mse
optimizer: {kind: sgd, learning_rate: 0.005}
YAML

ok "a scheduler that may make no reserve serves" start_limited
ok "and says why it has none" logged a "ulimit -f, LimitFSIZE= of the unit"
ok "a submit is told the same" says "LimitFSIZE= of the unit" ctl a submit "$T/job.yaml"
ok "TERM ends it cleanly" stop a

tiny() { prlimit --fsize="$1" "${@:2}" >"$T/tiny.out" 2>"$T/tiny.err"; }
ok "a scheduler whose database is too large says so" \
    status 75 tiny 8192 "$MSSCHEDD" --config "$T/empty.conf" --listen none \
    --socket "$T/b.sock" --database "$T/b.db"
ok "in words" grep -q "File too large" "$T/tiny.err"
ok "msctl that may not write all of its output fails" status 1 tiny 300 "$MSCTL" --help
ok "and says why" grep -q "File too large" "$T/tiny.err"
if [ -x "$MSWORKER" ]; then
    # to standard error, a file here as in a start script
    ok "a worker that may not write what it says ends as it would" \
        status 78 tiny 1 "$MSWORKER" --server 127.0.0.1:1 --tls-dir "$T/none"

    # as a disk that is full to the end: neither its lines nor its weights can be written
    cat >"$T/long.yaml" <<'YAML'
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 320}
batch_size: 16
epochs: 80
optimizer: {kind: adam, learning_rate: 0.001}
YAML
    lines() { grep -c '"step":' "$T/full/metrics.jsonl" 2>/dev/null; }
    lines_reach() { [ "$(lines)" -ge "$1" ]; }
    plain() { sed 's/,\([0-9]\{3\}\)/\1/g' "$T/full.log"; } # 1,503 is 1503
    start full "$MSCTL" run --run-dir "$T/full" "$T/long.yaml"
    ok "a job trains" wait_for 120 lines_reach 20
    for pid in $(children full msworker 2); do
        prlimit --pid "$pid" --fsize=8192
    done
    ok "whose workers may write no more waits at its end" wait_for 300 grep -q "no rank can save the weights" "$T/full.log"
    ok "and ends when somebody ends it" status 143 stop full
    last=$(lines)
    ok "its metrics end before" [ "$last" -lt 800 ]
    ok "with a whole line" [ "$(tail -c 1 "$T/full/metrics.jsonl")" = "" ]
    ok "as its logs do" bash -c '! grep -h "^epoch: " "$1"/worker_[01].log | grep -vE "^epoch: [0-9]+ step: [0-9]+, loss is [0-9.e-]+$"' - "$T/full"
    ok "the reason names the weights" \
        grep -q "reason .*the weights are not saved: .*weights.safetensors cannot be written: File too large" "$T/full.log"
    ok "the summary says where they end" grep -q "^ *its last step is $last of 800" <(plain)
fi
finish
