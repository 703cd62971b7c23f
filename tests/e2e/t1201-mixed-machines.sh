#!/usr/bin/env bash
# t1201-mixed-machines.sh - nodes of different instruction sets: what fails says how to mend it, and that works
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
grep -q ' avx ' /proc/cpuinfo || skip_all "this machine has one instruction set only"

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node new
ok "a node with all that its machine has" wait_for 120 idle 1
ok "trains" status 0 as alice wait --timeout 300 "$(as alice submit -n 1 "$T/short.yaml")"
start_node old --isa sse41
ok "an older one comes" wait_for 120 idle 2
ok "and says what it has" json nodes -- '[n["isa"] for n in j if n["node"] == "old"] == ["sse41"]'
ok "a job on both fails" status 1 as alice wait --timeout 300 "$(as alice submit "$T/short.yaml")"
ok "naming the instruction set" says "isa sse41: this process runs with" as alice show 2
ok "and what to do" says "set isa = sse41 for every msworker" as alice show 2
ok "both are idle again" wait_for 60 idle 2
stop new
start_node new --isa sse41
ok "the newer node does as it was told" wait_for 120 idle 2
ok "and both train" status 0 as alice wait --timeout 300 "$(as alice submit "$T/short.yaml")"
ok "each alone, too" status 0 as alice wait --timeout 300 \
    "$(as alice submit -n 1 "$T/short.yaml")" "$(as alice submit -n 1 "$T/short.yaml")"
ok "an instruction set that is none is refused with 2" status 2 "$MSWORKER" --server "$HEAD" --isa sse9
finish
