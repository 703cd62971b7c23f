#!/usr/bin/env bash
# t2060-chaos.sh - twenty kill -9 of workers and scheduler in one job, at moments of a fixed seed, several at once, in recoveries
# and around checkpoints: each time the bits, the steps and the files of the undisturbed run (bench/chaos, shortened)
. "$(dirname "$0")/lib.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 setpriv
unset MSCHED_TEST_SHARED # drawn data: the loader has to draw as well

# chaos option...: the driver's checks become this test's
chaos() {
    "$ROOT/bench/chaos" --quiet --lease-ms 10000 "$@" "$BUILD" # longer than a busy machine keeps a process still
}

ok "kills of any worker, several at once, and of the scheduler" chaos --mode workers --seed 1 --kills 10 --steps 3000
ok "kills of everything at once: it goes on from its checkpoints" chaos --mode all --seed 2 --kills 15 --workers 2 \
    --steps 400 --network cifar_small --optimizer adam
ok "kills while checkpoints are written" chaos --mode checkpoints --seed 3 --kills 8 --workers 2 --steps 2000 \
    --checkpoint-every 10
ok "bench/recovery measures one" "$ROOT/bench/recovery" --runs 1 --network lenet5 --how spare --no-torch "$BUILD"
finish
