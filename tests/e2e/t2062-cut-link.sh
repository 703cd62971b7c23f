#!/usr/bin/env bash
# t2062-cut-link.sh - the data link between two hosts is cut for good, and the spares are on one of them, one of which is slow: no step is lost
. "$(dirname "$0")/lib.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 nsenter ip
unset MSCHED_TEST_SHARED # drawn data

mkdir "$T/cluster"
python3 "$ROOT/tests/e2e/cut_link.py" "$T/cluster" "$BUILD" >"$T/cut.log" 2>&1
result=$?
[ $result -ne 77 ] || skip_all "$(tail -n 1 "$T/cut.log")"
sed 's/^/# /' "$T/cut.log"
ok "a link that is cut costs no step" [ $result -eq 0 ]
finish
