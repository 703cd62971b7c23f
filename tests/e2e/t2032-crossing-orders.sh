#!/usr/bin/env bash
# t2032-crossing-orders.sh - a cancel that meets the end of the rank before it is heard
. "$(dirname "$0")/lib.sh"
need "$MSWORKER" python3

mkdir "$T/jobs"
export ROOT
# who crosses whom is chance: without care three of four were lost
for i in 1 2 3 4 5 6; do
    ok "a rank that was stopped before it began ends at once ($i)" \
        timeout 600 python3 -B "$ROOT/tests/e2e/hasty.py" "$MSWORKER" "$T/jobs" 20
done
if grep -q ' avx ' /proc/cpuinfo; then
    for i in 1 2 3 4 5 6; do
        ok "a TERM that meets a worker which begins anew is heard ($i)" \
            timeout 600 python3 -B "$ROOT/tests/e2e/hasty.py" "$MSWORKER" "$T/jobs" 20 anew $((i - 1))
    done
fi
finish
