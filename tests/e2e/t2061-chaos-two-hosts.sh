#!/usr/bin/env bash
# t2061-chaos-two-hosts.sh - kill -9, SIGSTOP and cut links under a job over two hosts (network namespaces, mutual TLS): the bits, the
# steps and the files of the undisturbed run (bench/chaos, shortened)
. "$(dirname "$0")/lib.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 setpriv nsenter ip
unset MSCHED_TEST_SHARED # drawn data: the loader has to draw as well

"$ROOT/bench/chaos" --mode netns --seed 1 --kills 10 --steps 2000 --lease-ms 5000 "$BUILD" >"$T/chaos.log" 2>&1
result=$?
[ $result -ne 77 ] || skip_all "$(tail -n 1 "$T/chaos.log")"
ok "kills, frozen workers and cut links over two hosts" [ $result -eq 0 ]
finish
