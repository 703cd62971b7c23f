#!/usr/bin/env bash
# t1107-cores.sh - threads of a rank: what affinity and a quota of CPU time leave of the host's cores
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 taskset lscpu pgrep
. "$(dirname "$0")/cores.sh"
cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML

for n in 1 2; do
    ok "one rank with threads=$n" run of$n -n 1 --set threads=$n "$T/job.yaml"
done
ok "the number of threads is part of the plan" [ "$(plan of1)" != "$(plan of2)" ]
ok "a rank that is bound to one CPU" bound_to "${cpus[0]}" run bound1 -n 1 "$T/job.yaml"
ok "has one thread" same "$(plan bound1)" "$(plan of1)"
if [ ${#cpus[@]} -ge 2 ]; then
    ok "a rank that is bound to two cores" bound_to "${cpus[0]},${cpus[1]}" run bound2 -n 1 "$T/job.yaml"
    ok "has two" same "$(plan bound2)" "$(plan of2)"
    ok "a rank whose threads OpenMP is to place" bound_to "${cpus[0]},${cpus[1]}" placed run places -n 1 "$T/job.yaml"
    ok "has one on each core all the same" same "$(plan places)" "$(plan of2)"
    ok "two ranks with threads=1" run pair1 -n 2 --set threads=1 "$T/job.yaml"
    ok "two ranks that share two cores" bound_to "${cpus[0]},${cpus[1]}" run pair -n 2 "$T/job.yaml"
    ok "have one thread each" same "$(plan pair)" "$(plan pair1)"
fi

# apart NAME: the trainers of the run's two workers have no CPU in common, and each worker has a thread that may go anywhere
apart() {
    python3 - "${pid_of[$1]}" <<'PY'
import glob, os, subprocess, sys
pids = subprocess.run(["pgrep", "-P", sys.argv[1], "-x", "msworker"], capture_output=True, text=True).stdout.split()
trainers = [os.sched_getaffinity(int(pid)) for pid in pids]
others = [[os.sched_getaffinity(int(task.split("/")[-1])) for task in glob.glob(f"/proc/{pid}/task/*")] for pid in pids]
assert len(pids) == 2, f"not two workers: {pids}"
assert not trainers[0] & trainers[1], f"the trainers share CPUs: {trainers}"
both = trainers[0] | trainers[1]
assert all(any(both <= cpus for cpus in sets) for sets in others), f"no thread may go anywhere: {others}"
PY
}
trains() { [ "$(grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null)" -ge 5 ]; }
# roams NAME: the run's worker has its trainer bound to fewer CPUs than a thread that is none of the team
roams() {
    python3 - "${pid_of[$1]}" <<'PY'
import glob, os, subprocess, sys
pid = subprocess.run(["pgrep", "-P", sys.argv[1], "-x", "msworker"], capture_output=True, text=True).stdout.strip()
trainer = os.sched_getaffinity(int(pid))
others = [os.sched_getaffinity(int(task.split("/")[-1])) for task in glob.glob(f"/proc/{pid}/task/*")]
assert any(trainer < cpus for cpus in others), (trainer, others)
PY
}
if [ ${#cpus[@]} -ge 2 ]; then
    ok "two ranks on cores of their own" run free -n 2 --set epochs=4 "$T/job.yaml"
    ok "two that are not bound" env MSCHED_BIND_CPUS=off "$MSCTL" run --run-dir "$T/unbound" -n 2 --set epochs=4 "$T/job.yaml"
    ok "have the same weights, to the bit" same "$(digest free)" "$(digest unbound)"
    start long "$MSCTL" run --run-dir "$T/long" -n 2 --set epochs=100000 "$T/job.yaml"
    ok "two ranks train" wait_for 60 trains long
    ok "on CPUs of their own" apart long
    stop long INT
    start placed env OMP_PROC_BIND=true "$MSCTL" run --run-dir "$T/placed" -n 1 --set epochs=100000 "$T/job.yaml"
    ok "a rank whose threads OpenMP places trains" wait_for 60 trains placed
    ok "and its loader goes anywhere" roams placed
    stop placed INT
    start loose env MSCHED_BIND_CPUS=off "$MSCTL" run --run-dir "$T/loose" -n 2 --set epochs=100000 "$T/job.yaml"
    ok "two ranks that are not to be bound train" wait_for 60 trains loose
    ok "wherever they like" says "the trainers share CPUs" apart loose
    stop loose INT
fi
# node NAME: a worker of the scheduler
node() {
    start "$1" "$MSWORKER" --server "$(address_of a)" --tls off --node-id "$1" --jobs-dir "$T/jobs" --data-port-min 0 --data-port-max 0
}
have_cores() { # CORES node CORES node: what `nodes` says of one host
    ctl a nodes | awk -v want="$*" '
        NR > 1 { shown = shown sep (!/^ / ? $2 " " $5 : $2 ~ /^w/ ? $1 " " $2 : "- " $1); sep = " " }
        END { print shown; exit shown != want }'
}
if [ ${#cpus[@]} -ge 2 ]; then
    ok "a scheduler" start_sched a
    bound_to "${cpus[0]}" node w0
    bound_to "${cpus[0]},${cpus[1]}" node w1
    ok "shows the cores of each node where they differ" wait_for 60 have_cores 1 w0 2 w1
fi
if make_group; then
    ok "a rank with a quota of 1.9 CPUs" limited_to 190 run quota1 -n 1 "$T/job.yaml"
    ok "has one thread" same "$(plan quota1)" "$(plan of1)"
    if [ ${#cpus[@]} -ge 2 ]; then
        ok "a rank with a quota of 2.5 CPUs" limited_to 250 run quota2 -n 1 "$T/job.yaml"
        ok "has two" same "$(plan quota2)" "$(plan of2)"
        ok "two ranks that share a quota of 2.5 CPUs" limited_to 250 run quotas -n 2 "$T/job.yaml"
        ok "have one each" same "$(plan quotas)" "$(plan pair1)"
    fi
else
    echo "# no group with a limit of CPU time can be made here: quotas are left out"
fi
finish
