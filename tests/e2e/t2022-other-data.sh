#!/usr/bin/env bash
# t2022-other-data.sh - a node whose data are not those of the training takes no part in it
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# folder NAME SAMPLES SEED: a set in MNIST's format; the first samples of one seed are the same
folder() {
    mkdir "$T/$1"
    python3 - "$T/$1" "$2" "$3" <<'PY'
import random, struct, sys
where, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
labels, images = random.Random(seed), random.Random(seed + 1000)
with open(where + "/train-labels-idx1-ubyte", "wb") as file:
    file.write(struct.pack(">II", 2049, n) + bytes(labels.randrange(10) for _ in range(n)))
with open(where + "/train-images-idx3-ubyte", "wb") as file:
    file.write(struct.pack(">IIII", 2051, n, 28, 28))
    for _ in range(n):
        file.write(images.getrandbits(784 * 8).to_bytes(784, "little"))
PY
}
folder right 800 1
folder fewer 400 1
folder other 800 2

cat >"$T/images.yaml" <<'YAML'
name: images
workers: 2
network: lenet5
dataset: {kind: mnist, path: "${DATA_PATH}"}
transforms: [{resize: {size: [32, 32]}}, {rescale: {scale: 0.0039, shift: 0}}]
batch_size: 8
epochs: 1000
steps: 4000
threads: 1
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}
YAML

weights_of() { tail -n 1 "$1/metrics.jsonl" | python3 -c 'import json, sys; print(json.load(sys.stdin)["weights_sha256"])'; }
node_with() { # NAME FOLDER
    DATA_PATH=$T/$2 start_node "$1" --data-roots "$T"
}
node_of() { # JOB RANK
    as alice --json show "$1" | python3 -c 'import json, sys
print([r["node"] for r in json.load(sys.stdin)["ranks"] if r["rank"] == int(sys.argv[1])][0])' "$2"
}

# ---- a run that is resumed
cp "$T/images.yaml" "$T/saved.yaml"
cat >>"$T/saved.yaml" <<'YAML'
checkpoint: {directory: ckpt, prefix: x, every_steps: 60}
YAML
ok "a run saves checkpoints" env DATA_PATH="$T/right" "$MSCTL" run --run-dir "$T/saved" --set steps=60 "$T/saved.yaml"
resume_with() { # FOLDER
    DATA_PATH=$T/$1 "$MSCTL" run --resume "$T/saved" --run-dir "$T/resumed_$1" --set steps=120 "$T/saved.yaml"
}
for name in fewer other; do
    ok "with the data $name it is not resumed" status 4 resume_with $name
    ok "the words say of what it is" says "is of a dataset with 800 samples" resume_with $name
    ok "and nothing was started" [ ! -e "$T/resumed_$name/worker_0.log" ]
done
ok "with its own it is" resume_with right

# ---- a standing cluster
ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
node_with n1 right
node_with n2 right
ok "two nodes are idle" wait_for 120 idle 2
ok "an undisturbed job ends well" status 0 as alice wait --timeout 900 "$(as alice submit "$T/images.yaml" 2>/dev/null)"
right=$(weights_of "$T/jobs/1")

job=1
# spare FOLDER RANK WORDS: a spare node with that folder is passed over when the rank is lost
spare() {
    job=$((job + 1))
    ok "a job trains" [ "$(as alice submit "$T/images.yaml" 2>/dev/null)" = $job ]
    ok "and gets on" wait_for 120 trains $job
    victim=$(node_of $job "$2")
    kill -STOP "${pid_of[$victim]}" # so that the job does not end meanwhile
    node_with "n3_$1" "$1"
    ok "a spare node comes with the data $1" wait_for 120 logged "n3_$1" agent.registered
    kill -KILL "${pid_of[$victim]}"
    reap "$victim"
    ok "it is asked, and cannot serve" wait_for 120 says "rank $2 (node n3_$1" as alice show $job
    ok "the words say what it has, and what the others" says "$3" as alice show $job
    ok "the job waits for another one" in_state $job RECOVERING
    node_with "$victim" right
    ok "and goes on with one that has the data" status 0 as alice wait --timeout 900 $job
    ok "to the weights of the undisturbed one" same "$right" "$(weights_of "$T/jobs/$job")"
    ok "the node with others is none the worse" stop "n3_$1"
}
spare fewer 1 "400 samples here, where rank 0 has 800"
spare other 0 "800 samples here, and as many but other ones where rank 1 is"
stop n1
stop n2
stop a

# ---- a dynamic cluster
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=2 MS_ENABLE_RECOVERY=1
cluster() { # NAME
    MS_SCHED_PORT=$(free_port)
    export MS_SCHED_PORT
    mkdir "$T/run_$1"
    start "$1" env MS_ROLE=MS_SCHED "$MSSCHEDD"
}
worker() { # NAME RANK FOLDER
    start "$1_$2" env MS_ROLE=MS_WORKER MS_NODE_ID="$2" DATA_PATH="$T/$3" "$MSWORKER" --run-dir "$T/run_$1" "$T/images.yaml"
}
rank_0_gets_on() { [ "$(grep -c '"step":' "$T/run_$1/metrics.jsonl")" -ge 20 ]; }

cluster d
worker d 0 right
worker d 1 fewer
ok "a cluster that begins with other data ends" status 1 reap d
ok "rank 1 says why" says "$T/fewer: 400 samples here, where rank 0 has 800" cat "$T/d_1.log"
ok "and ends with 2" status 2 reap d_1
ok "rank 0 names rank 1" says "rank 1" cat "$T/d_0.log"
ok "and ends with 2" status 2 reap d_0

cluster e
worker e 0 right
worker e 1 right
ok "one with the same data trains" wait_for 120 rank_0_gets_on e
stop e_1 KILL
worker e 1 other
ok "a process that comes back with other data ends" status 2 reap e_1
ok "and says which" says "$T/other: 800 samples here, and as many but other ones where rank 0 is" cat "$T/e_1.log"
worker e 1 right
ok "the next one has the right ones, and the cluster ends well" status 0 reap e
ok "so do its workers" status 0 reap e_1
ok "both" status 0 reap e_0
ok "with the weights of the undisturbed job" same "$right" "$(weights_of "$T/run_e")"
finish
