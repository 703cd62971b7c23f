# train.sh - what the tests that train share: reference weights, runs, losses, digests
# shellcheck shell=bash

SHARED=${MSCHED_TEST_SHARED:-}
MAKE_WEIGHTS=${MAKE_WEIGHTS:-$BUILD/tests/tools/make-weights}
export SHARED MAKE_WEIGHTS

need_shared() {
    [ -d "${SHARED:-/nowhere}/$1" ] || skip_all "no folder $1 in MSCHED_TEST_SHARED"
}

# run NAME [option]... JOB: msctl run into $T/NAME, output to $T/NAME.out; its exit status
run() {
    local name=$1
    shift
    timeout -k 10 900 "$MSCTL" run --run-dir "$T/$name" "$@" >"$T/$name.out" 2>&1
    local status=$?
    [ $status -eq 0 ] || tail -n 25 "$T/$name.out"
    return $status
}

# field NAME KEY: a value of the last line of the run's metrics
field() {
    tail -n 1 "$T/$1/metrics.jsonl" | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

digest() { field "$1" weights_sha256; }

same() {
    if [ -z "$1" ] || [ "$1" != "$2" ]; then
        echo "$1"
        echo "$2"
        return 1
    fi
}

# digest_of_file PATH: the weights' digest as docs/design.md defines it, by other means
digest_of_file() {
    python3 - "$1" <<'PY'
import hashlib, json, struct, sys
raw = open(sys.argv[1], "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
head = json.loads(raw[8:8 + n])
sha = hashlib.sha256()
for name in sorted(k for k in head if k != "__metadata__"):
    begin, end = head[name]["data_offsets"]
    sha.update(raw[8 + n + begin:8 + n + end])
print(sha.hexdigest())
PY
}

# losses_match REFERENCE RUN RANKS TOLERANCE: every loss line of every rank against loss[step][rank]
losses_match() {
    python3 - "$1" "$T/$2" "$3" "$4" <<'PY'
import json, re, sys
want = json.load(open(sys.argv[1]))["loss"]
ranks, tolerance = int(sys.argv[3]), float(sys.argv[4])
worst = 0.0
for rank in range(ranks):
    text = open(f"{sys.argv[2]}/worker_{rank}.log").read()
    have = [float(m) for m in re.findall(r"^epoch: \d+ step: \d+, loss is (\S+)$", text, re.M)]
    if len(have) != len(want):
        sys.exit(f"rank {rank}: {len(have)} loss lines, {len(want)} expected")
    for step, loss in enumerate(have):
        row = want[step]
        ref = row[rank] if isinstance(row, list) else row
        worst = max(worst, abs(loss - ref))
        if not abs(loss - ref) <= tolerance:
            sys.exit(f"rank {rank} step {step + 1}: loss {loss}, reference {ref}")
print(f"worst difference {worst:.2e}")
PY
}

break_data() { # FILE: a bit of it is another one
    python3 - "$1" <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-9, 2); byte = f.read(1); f.seek(-9, 2); f.write(bytes([byte[0] ^ 1]))
PY
}

# the last step of a run that its metrics have, 0: none
last_step() { # without a program that takes longer to begin than a short run does to end
    local step
    step=$(tail -n 20 "$T/$1/metrics.jsonl" 2>/dev/null | sed -n 's/^{.*"step":\([0-9]*\),.*/\1/p' | tail -n 1)
    echo "${step:-0}"
}
has_steps() { [ "$(last_step "$1")" -ge "$2" ]; }

# lose_a_worker RUN STEPS [option]... JOB: begins a run, and kills one of its two workers behind that step. One that has
# ended before anybody looked is begun again.
lose_a_worker() {
    local name=$1 steps=$2 workers
    shift 2
    for _ in {1..20}; do
        rm -rf "${T:?}/$name" "$T/$name".*
        start "$name" "$MSCTL" run --run-dir "$T/$name" "$@"
        wait_for 120 has_steps "$name" "$steps" || return 1
        mapfile -t workers < <(children "$name" msworker 2)
        [ "${#workers[@]}" -gt 0 ] && kill -KILL "${workers[0]}" 2>/dev/null
        reap "$name" || return 1
        grep -q "was killed by signal 9 (Killed): started again" "$T/$name.log" && return 0
    done
    return 1
}
