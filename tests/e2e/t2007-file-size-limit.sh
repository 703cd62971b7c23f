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
fi
finish
