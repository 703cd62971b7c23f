#!/usr/bin/env bash
# t1020-msctl.sh - the commands against a standing cluster of two workers: tables, JSON, exit statuses
# shellcheck disable=SC2016 # the texts for bash -c and python expand there
. "$(dirname "$0")/lib.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: short
workers: 2
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
epochs: 2
loss: mse
optimizer: {kind: sgd, learning_rate: 0.0001}
YAML
sed -e 's/name: short/name: long/; s/epochs: 2/epochs: 1000000/' "$T/job.yaml" >"$T/long.yaml"

# json WORD... -- PYTHON: the expression about `j` must hold for the command's output
json() {
    local words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    ctl a --json "${words[@]}" | python3 -c 'import json, sys
j = json.load(sys.stdin)
assert eval(sys.argv[1]), j' "$2"
}
in_state() { ctl a jobs --all | grep -qE "^ *$1 .* $2 "; }
# start_ctl NAME word...: msctl in the background, itself and no shell around it
start_ctl() {
    local name=$1
    shift
    start "$name" "$MSCTL" --config "$T/empty.conf" --server "unix:$T/a.sock" "$@"
}
worker() {
    start "$1" "$MSWORKER" --server "$(address_of a)" --tls off --node-id "$1" --jobs-dir "$T/jobs" \
        --data-port-min 0 --data-port-max 0
}

# ---- nobody there
ok "no scheduler is exit 3" status 3 "$MSCTL" --config "$T/empty.conf" --server 127.0.0.1:1 jobs
ok "what was looked at is listed" says "--server                       127.0.0.1:1" \
    "$MSCTL" --config "$T/empty.conf" --server 127.0.0.1:1 jobs
ok "an unknown command comes with the nearest" says "did you mean jobs?" "$MSCTL" jbos
ok "but not with one that is far" bash -c '! "$MSCTL" bogus 2>&1 | grep -q "did you mean"'
ok "and is exit 2" status 2 "$MSCTL" jbos
ok "what comes later is refused by name" says "drain comes later" "$MSCTL" drain
for command in run submit jobs show logs watch wait cancel nodes status certs dataset; do
    ok "$command has help" says "usage: msctl $command" "$MSCTL" "$command" --help
done
if [ -e /dev/full ]; then
    ok "output that cannot be written is a failure" bash -c '! "$MSCTL" --help >/dev/full 2>&1'
fi

# ---- a queue
start_sched a
ok "status" says "0 registered, 0 idle" ctl a status
ok "submit prints the id alone" [ "$(ctl a submit "$T/job.yaml")" = 1 ]
ok "jobs says what it waits for" says "waits for 2 idle nodes" ctl a jobs
ok "wait --timeout is exit 124" status 124 ctl a wait --timeout 0.2 1
ok "without any time it asks how the job stands" says "job 1 has not ended" ctl a wait --timeout 0 1
ok "and of none that there is not" status 4 ctl a wait --timeout 0 77
ok "logs of a waiting job are refused with 4" status 4 ctl a logs 1
ok "an empty address is exit 2, not another server" status 2 "$MSCTL" --server '' jobs
ok "a port alone names no host, and that is said" says "a port alone names no host" env MS_SCHED_PORT=8119 "$MSCTL" jobs
ok "without HOME the user's own folder is asked all the same" says "/.config/msched/msctl.conf" \
    env -u HOME -u XDG_CONFIG_HOME "$MSCTL" jobs
ok "a job from standard input is refused in words" says "comes from a file" ctl a submit -
ok "help takes the words of a command" says "usage: msctl certs" "$MSCTL" help certs issue
ok "the scheduler's -h is its --help" says "usage: msschedd" "$MSSCHEDD" -h
ok "an invalid job is refused before the scheduler is asked" status 2 ctl a submit --set workers=0 "$T/job.yaml"
ok "a job that does not exist is exit 4" status 4 ctl a show 77
ok "a word that is no id is exit 2" status 2 ctl a show first

# ---- networks, of files and of jobs
sed -e 's/network: linear/network: [flatten, dense: {out: 3}]/' "$T/job.yaml" >"$T/unfit.yaml"
nobody=("$MSCTL" --config "$T/empty.conf" --server 127.0.0.1:1)
ok "the network of a file needs no scheduler" says "parameters   3, 12 B as fp32" "${nobody[@]}" show --network "$T/job.yaml"
ok "a key of the file can be another one" says "2x1x1, batches of 5" "${nobody[@]}" show --network --set batch_size=5 "$T/job.yaml"
ok "one that does not fit has its place" says "unfit.yaml:3:10: layers: the last one makes (16, 3), and 1 class wants (16, 1)" \
    "${nobody[@]}" show --network "$T/unfit.yaml"
ok "and is exit 2" status 2 "${nobody[@]}" show --network "$T/unfit.yaml"
ok "a file that is no job is exit 2" status 2 "${nobody[@]}" show --network "$T/empty.conf"
ok "a file that is not there, too" says "job file $T/none.yaml cannot be opened" "${nobody[@]}" show --network "$T/none.yaml"
untimed() { "$@" | sed -e 's/ *[0-9.]* %$//' -e '/^time /,$d'; } # the host is measured each time
ok "that of a job is what its file's was" [ "$(untimed ctl a show --network 1)" = "$(untimed "${nobody[@]}" show --network "$T/job.yaml")" ]
ok "as JSON" json show --network 1 -- '[l["name"] for l in j["layers"]] == ["flatten1", "fc"] and j["macs"] == 2'
ok "with the time of a step" says "of a rank on one core of this host" "${nobody[@]}" show --network "$T/job.yaml"
ok "whose shares are all of it" json show --network 1 -- 'abs(sum(l["time_share"] for l in j["layers"]) - 1) < 1e-9'
ok "by what the host does" json show --network 1 -- 'all(j[k] > 0 for k in ("expected_step_seconds", "macs_per_second", "memory_bytes_per_second"))'
ok "of a job that does not exist is exit 4" status 4 ctl a show --network 77
ok "of none that can be asked for is exit 3" status 3 "${nobody[@]}" show --network 1
ok "a plan is shown alone" status 2 ctl a show --plan --network 1
ok "a job that was sent has the keys that it has" says "changes what a job file says" ctl a show --network --set batch_size=5 1

# ---- workers
mkdir "$T/jobs"
worker w1
worker w2
ok "the job runs when they are there" status 0 ctl a wait --timeout 900 1
ok "nodes are listed by host" says "$(hostname)" ctl a nodes
ok "as JSON" json nodes -- 'sorted(n["node"] for n in j) == ["w1", "w2"]'
ok "show tells how it ended" says "all 2 ranks finished" ctl a show 1
ok "with a rank a line" says "w2" ctl a show 1
ok "and the job itself as JSON" json show 1 -- 'j["state"] == "SUCCEEDED" and j["job"]["network"] == "linear"'
ok "logs has every loss line" [ "$(ctl a logs 1 | grep -c '^epoch: 2 step: ')" -eq 200 ]
ok "of each rank" [ "$(ctl a logs --rank 1 1 | grep -c '^epoch: 2 step: ')" -eq 200 ]
ok "a rank that is none is exit 2" status 2 ctl a logs --rank 2 1
ok "watch of an ended job ends with its status" says "SUCCEEDED" ctl a watch 1
ok "wait for it, too" status 0 ctl a wait 1
ok "wait without any time sees that it has ended" status 0 ctl a wait --timeout 0 1
ok "status counts it" says "1 ended" ctl a status
ok "as JSON" json status -- 'j["nodes_idle"] == 2 and j["jobs_ended"] == 1'

# ---- follow, detach, cancel
ok "a long job is submitted" json submit "$T/long.yaml" -- 'j["id"] == 2'
ok "and runs" wait_for 120 in_state 2 RUNNING
start_ctl follow logs -f 2
ok "logs -f follows" wait_for 60 logged follow "epoch: 1 step: 1, loss is"
start_ctl watch watch 2
ok "watch shows steps" wait_for 60 logged watch "/1000000  step "
kill -INT "${pid_of[watch]}"
ok "INT only detaches" status 130 reap watch
ok "and says so, with what comes to that scheduler again" logged watch \
    "job 2 goes on: $MSCTL --config $T/empty.conf -s unix:$T/a.sock watch 2, $MSCTL --config $T/empty.conf -s unix:$T/a.sock cancel 2"
ok "for it does" in_state 2 RUNNING
leaves() { timeout 600 "$MSCTL" --config "$T/empty.conf" --server "unix:$T/a.sock" "$@" | head -n 1; }
ok "a reader that leaves ends logs -f" leaves logs -f 2
ok "and watch" leaves watch 2
start_ctl waiting wait 2 1
ok "cancel says what it did" says "job 2: cancelled" ctl a cancel 2
ok "wait of a cancelled job is exit 5" status 5 reap waiting
ok "logs -f ends with the job" status 0 reap follow
ok "cancel of an ended job is fine" status 0 ctl a cancel 2
ok "cancel of one that succeeded is refused with 4" status 4 ctl a cancel 1

# ---- failure
ok "a job that cannot work is accepted" [ "$(ctl a submit --set 'dataset={kind: mnist, path: /nonexistent}' \
    --set network=mnist --set loss=softmax_cross_entropy "$T/job.yaml")" = 3 ]
ok "it fails with 1" status 1 ctl a wait 3
ok "and the reason is shown" says "/nonexistent" ctl a show 3
ok "jobs lists what waits or runs" json jobs -- 'j == []'
ok "jobs --all lists all" json jobs --all -- '[x["state"] for x in j] == ["SUCCEEDED", "CANCELLED", "FAILED"]'

# ---- a scheduler that goes and comes
ok "a job waits" [ "$(ctl a submit -n 9 "$T/job.yaml")" = 4 ]
start_ctl patient wait 4
ok "as does its waiter" wait_for 60 json status -- 'j["clients"] >= 2'
stop a KILL >/dev/null
ok "the waiter notices the loss" wait_for 60 logged patient "the scheduler is gone"
start_sched a
ok "a restart later the job is still there" wait_for 60 in_state 4 QUEUED
ctl a cancel 4 >/dev/null
ok "and the waiter heard of its end" status 5 reap patient

finish
