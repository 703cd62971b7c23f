#!/usr/bin/env bash
# t1201-mixed-machines.sh - nodes of different instruction sets train together and alone, by turns
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
grep -q ' avx ' /proc/cpuinfo || skip_all "this machine has one instruction set only"

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
start_node new
ok "a node with all that its machine has" wait_for 120 idle 1
ok "trains" status 0 as alice wait --timeout 900 "$(as alice submit -n 1 "$T/short.yaml")"
start_node old --isa sse41
ok "an older one comes" wait_for 120 idle 2
ok "and says what it has" json nodes -- '[n["isa"] for n in j if n["node"] == "old"] == ["sse41"]'
ok "a job on both trains with the lesser one" status 0 as alice wait --timeout 900 "$(as alice submit "$T/short.yaml")"
ok "after the newer node began anew for it" says "isa sse41: this process runs with" as alice events 2
ok "both are idle again" wait_for 60 idle 2
ok "and the newer one has again what its machine has" json nodes -- '["sse41"] != [n["isa"] for n in j if n["node"] == "new"]'
ok "each trains alone" status 0 as alice wait --timeout 900 \
    "$(as alice submit -n 1 "$T/short.yaml")" "$(as alice submit -n 1 "$T/short.yaml")"
stop old
ok "the older one goes" wait_for 60 idle 1
ok "and the newer one trains on" status 0 as alice wait --timeout 900 "$(as alice submit -n 1 "$T/short.yaml")"
start_node old --isa sse41
ok "the older one comes back" wait_for 120 idle 2
ok "many jobs by turns on one and on both" status 0 as alice wait --timeout 900 \
    "$(as alice submit -n 2 "$T/short.yaml")" "$(as alice submit -n 1 "$T/short.yaml")" \
    "$(as alice submit -n 1 "$T/short.yaml")" "$(as alice submit -n 2 "$T/short.yaml")" \
    "$(as alice submit -n 2 "$T/short.yaml")" "$(as alice submit -n 1 "$T/short.yaml")"
came=0
for i in 1 2 3 4 5 6; do # the next job takes a node of this one, which begins anew as its results are asked for
    job=$(as alice submit -n 2 "$T/short.yaml")
    next=("$(as alice submit -n 1 "$T/short.yaml")" "$(as alice submit -n 1 "$T/short.yaml")")
    as alice wait --timeout 900 "$job" && as alice fetch -o "$T/of$i" "$job" >"$T/fetched" 2>&1 &&
        as alice logs "$job" >/dev/null 2>>"$T/fetched" && came=$((came + 1))
    as alice wait --timeout 900 "${next[@]}"
done
ok "who waits for a job fetches its results and reads its log, whatever comes next" [ "$came" = 6 ]
ok "an instruction set that is none is refused with 2" status 2 "$MSWORKER" --server "$HEAD" --isa sse9
finish
