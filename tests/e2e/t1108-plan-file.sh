#!/usr/bin/env bash
# t1108-plan-file.sh - a plan outlives its run: shown, saved, obeyed again whatever state the machine is in, or refused by line
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 openssl taskset lscpu
. "$(dirname "$0")/cores.sh"
cat >"$T/job.yaml" <<'YAML'
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 2
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML
by_plan() { # NAME [option]...: a run of two ranks by the plan of the first one
    local name=$1
    shift
    run "$name" -n 2 --plan "$T/first/plan.txt" "$@" "$T/job.yaml"
}
plan_is_kept() { cmp "$T/first/plan.txt" "$T/$1/plan.txt"; }
# edited SED: the plan with that change
edited() { sed "$1" "$T/first/plan.txt" >"$T/edited.txt" && ! cmp -s "$T/edited.txt" "$T/first/plan.txt"; }
refuses() { # TEXT option...: no run by the edited plan, with these words
    local text=$1
    shift
    rm -rf "$T/refused"
    says "$text" "$MSCTL" run --run-dir "$T/refused" --plan "$T/edited.txt" "$@" "$T/job.yaml" &&
        ! grep -qs '"step":' "$T/refused/metrics.jsonl"
}
bits_of() { sed '/^section memory$/,$d' "$1" | sha256sum | cut -d' ' -f1; }

ok "two ranks train with two threads each" run first -n 2 --set threads=2 "$T/job.yaml"
ok "their plan is a text of lines" [ "$(head -n 1 "$T/first/plan.txt")" = "msched plan 1" ]
ok "that says so many threads" grep -qx "threads 2" "$T/first/plan.txt"
ok "its digest is that of the section of bits" same "$(bits_of "$T/first/plan.txt")" "$(plan first)"

ok "a job that says no threads takes the plan's" by_plan again
ok "with the same weights" same "$(digest again)" "$(digest first)"
ok "and the same plan.txt" plan_is_kept again
ok "a host with one CPU obeys it, too" bound_to "${cpus[0]}" by_plan one
ok "with the same weights" same "$(digest one)" "$(digest first)"
ok "OpenMP may place the threads" env OMP_PROC_BIND=true "$MSCTL" run --run-dir "$T/omp" -n 2 \
    --plan "$T/first/plan.txt" "$T/job.yaml"
ok "with the same weights" same "$(digest omp)" "$(digest first)"
ok "OpenMP may not have fewer in a team than the plan" env OMP_DYNAMIC=true OMP_MAX_ACTIVE_LEVELS=0 "$MSCTL" run \
    --run-dir "$T/dynamic" -n 2 --plan "$T/first/plan.txt" "$T/job.yaml"
ok "with the same weights" same "$(digest dynamic)" "$(digest first)"
ok "a limit of threads below the plan's is named" says "plan line 5: threads 2: OpenMP gives this process 1 thread, and a rank has 2: raise OMP_THREAD_LIMIT" env OMP_THREAD_LIMIT=1 "$MSCTL" run \
    --run-dir "$T/limited" -n 2 --plan "$T/first/plan.txt" "$T/job.yaml"
ok "a wish for other threads and code counts for nothing" env OMP_NUM_THREADS=1 DNNL_MAX_CPU_ISA=SSE41 "$MSCTL" run \
    --run-dir "$T/wish" -n 2 --plan "$T/first/plan.txt" "$T/job.yaml"
ok "with the same weights" same "$(digest wish)" "$(digest first)"
ok "and the worker's log says so" grep -q "OMP_NUM_THREADS=1 counts for nothing here: the plan has 2 threads" "$T/wish/worker_0.log"
ok "of both" grep -q "DNNL_MAX_CPU_ISA=SSE41 counts for nothing here: the plan has isa" "$T/wish/worker_1.log"
ok "stacks that end a process in a step are named" says "OMP_STACKSIZE=16k" env OMP_STACKSIZE=16k "$MSCTL" run \
    --run-dir "$T/stacks" -n 2 "$T/job.yaml"
start busy sh -c 'while :; do :; done'
ok "a busy process beside it changes nothing" by_plan beside
stop busy KILL
ok "of the weights" same "$(digest beside)" "$(digest first)"
if make_group; then
    ok "a quota of 1.5 CPUs does not, either" limited_to 150 by_plan quota
    ok "with the same weights" same "$(digest quota)" "$(digest first)"
else
    echo "# no group with a limit of CPU time can be made here: quotas are left out"
fi
ok "nor do other transports" env MSCHED_TRANSPORT=remote "$MSCTL" run --run-dir "$T/remote" -n 2 \
    --plan "$T/first/plan.txt" "$T/job.yaml"
ok "with the same weights" same "$(digest remote)" "$(digest first)"

ok "three ranks are not what it was made for" refuses "workers: 3" -n 3 --plan "$T/first/plan.txt"
ok "an edited layout" edited 's/^\(op 0 .* \)src=[A-Za-z0-9]*/\1src=acdb/'
ok "is refused by its line" refuses "plan line $(grep -n '^op 0 ' "$T/edited.txt" | head -n 1 | cut -d: -f1)" -n 2
ok "more threads than any job may have" edited 's/^threads .*/threads 1025/'
ok "are refused by their line" refuses "edited.txt line 5" -n 2
ok "a job with another batch" cp "$T/first/plan.txt" "$T/edited.txt"
ok "is told both sizes" refuses "use train has batches of 16, and the job 8" -n 2 --set batch_size=8
ok "line ends of another system" edited 's/$/\r/'
ok "are named" refuses "edited.txt line 1: ends with CR LF" -n 2
ok "another network" edited 's/^network .*/network lenet5/'
ok "is refused by its line" refuses "line 3" -n 2
ok "an edited oneDNN" edited 's/^onednn .*/onednn 1.0.0/'
ok "is refused with what this node has" refuses "this node: isa" -n 2
ok "a torn file" edited '$d'
ok "is refused before anything starts" refuses "edited.txt line" -n 2

make_certificates
ok "a cluster" start_head
ok "with a node" start_node w0
ok "and another one" start_node w1
ok "both idle" wait_for 60 idle 2
as alice submit -n 2 --plan "$T/first/plan.txt" "$T/job.yaml" >/dev/null
ok "takes the plan with a job" wait_for 120 in_state 1 SUCCEEDED
ok "trains to the same weights" json show 1 -- "j['weights_sha256'] == '$(digest first)' and j['plan_given']"
as alice show --plan 1 >"$T/shown.txt"
ok "and shows it as it was given" cmp "$T/shown.txt" "$T/first/plan.txt"
as alice submit -n 2 "$T/job.yaml" >/dev/null
ok "chooses one where none is given" wait_for 120 in_state 2 SUCCEEDED
ok "which is none that was given" json show 2 -- "not j['plan_given']"
as alice show --plan 2 >"$T/chosen.txt"
ok "and shows the one that was chosen" json show 2 -- "j['plan_sha256'] == '$(bits_of "$T/chosen.txt")'"
ok "for a run by it elsewhere" run elsewhere -n 2 --plan "$T/chosen.txt" "$T/job.yaml"
ok "with the same weights" json show 2 -- "j['weights_sha256'] == '$(digest elsewhere)'"
finish
