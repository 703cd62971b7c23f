#!/usr/bin/env bash
# t2054-short-survivor.sh - a worker is killed, and the one that holds the state has too little memory, or too few
# descriptors, to connect anew: it says so itself, nobody else is given up for it, and the job ends as the undisturbed one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 prlimit

cat >"$T/job.yaml" <<'YAML'
name: short
workers: 3
recovery: true
network: cifar_small
dataset: {kind: shapes, usage: train, samples: 960}
transforms:
  - rescale: {scale: 0.00392156862745098, shift: 0}
batch_size: 8
epochs: 10
loss: softmax_cross_entropy
optimizer: {kind: momentum, learning_rate: 0.001, momentum: 0.9}
seed: 7
YAML

has_steps() { has_ended "${pid_of[$1]}" || [ "$(grep -c '"step":' "$T/$1/metrics.jsonl" 2>/dev/null)" -ge "$2" ]; }
# pid_of_rank RUN RANK
pid_of_rank() {
    "$MSCTL" --server "unix:$T/$1/scheduler.sock" --json show 1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"][int(sys.argv[1])]["pid"])' "$2"
}
lost() { grep -c "job.rank_lost .* rank=$2 " "$T/$1/scheduler.log"; }

# short NAME LIMIT WORDS: rank 0 gets a limit that its process has reached, and rank 1 is killed
short() {
    local name=$1 words=$3 first second limit workers
    start "$name" "$MSCTL" run --run-dir "$T/$name" --plan "$T/good/plan.txt" "$T/job.yaml"
    ok "$name: it trains" wait_for 120 has_steps "$name" 20
    mapfile -t workers < <(children "$name" msworker 3)
    kill -STOP "${workers[@]}" # so that it does not end while somebody is asked who is who
    first=$(pid_of_rank "$name" 0)
    second=$(pid_of_rank "$name" 1)
    case $2 in
    as) limit=$(($(awk '{ print $1 }' "/proc/$first/statm") * $(getconf PAGESIZE))) ;;
    nofile) limit=$(($(find "/proc/$first/fd" -mindepth 1 | wc -l) - 2)) ;;
    esac
    ok "$name: rank 0 has no more than it uses" prlimit --pid "$first" "--$2=$limit"
    kill -KILL "$second"
    kill -CONT "${workers[@]}"
    ok "$name: it ends well" status 0 reap "$name"
    ok "$name: with the weights of the undisturbed one" same "$(digest good)" "$(digest "$name")"
    ok "$name: rank 0 said of itself what it lacks" \
        grep -q "job.peer_reported .* rank=0 peer=0 reason=.*$words" "$T/$name/scheduler.log"
    ok "$name: the one that was killed was lost once" same 1 "$(lost "$name" 1)"
    ok "$name: the third one never" same 0 "$(lost "$name" 2)"
}

ok "a job of three workers trains undisturbed" run good "$T/job.yaml"
short descriptors nofile "Too many open files"
# a sanitizer's shadow fits no limit of address space
nm -D "$MSWORKER" 2>/dev/null | grep -q __asan_init || short memory as "Cannot allocate memory"
finish
