#!/usr/bin/env bash
# t1105-dynamic-cluster.sh - MindSpore's way to start a cluster: roles and numbers in the environment
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
network: linear
dataset: {kind: nonlinear, shuffle: false}
batch_size: 16
steps: 50
loss: mse
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.6}
YAML
sed 's/0.01/0.02/' "$T/job.yaml" >"$T/other.yaml"
export MS_SCHED_HOST=127.0.0.1 MS_WORKER_NUM=3

sched() { # NAME [VARIABLE=VALUE]...
    local name=$1
    shift
    MS_SCHED_PORT=$(free_port)
    export MS_SCHED_PORT
    start "$name" env MS_ROLE=MS_SCHED "$@" "$MSSCHEDD"
}
worker() { # NAME NODE_ID [VARIABLE=VALUE]... ; job in $JOB, plan in $PLAN
    local name=$1 id=$2
    shift 2
    mkdir -p "$T/$name.d"
    start "$name" env MS_ROLE=MS_WORKER MS_NODE_ID="$id" "$@" "$MSWORKER" ${PLAN:+--plan "$PLAN"} --run-dir "$T/run_${name%_*}" "${JOB:-$T/job.yaml}"
}
ends_with() { # STATUS NAME
    reap "$2"
    local got=$?
    [ $got -eq "$1" ] || {
        echo "$2 ended with $got, expected $1"
        return 1
    }
}

sched a
mkdir "$T/run_a"
for i in 2 0 1; do worker "a_$i" $i; done
ok "the scheduler ends by itself with 0" ends_with 0 a
for i in 0 1 2; do
    ok "worker $i ends with 0" ends_with 0 "a_$i"
    ok "and left the losses of its rank" [ "$(grep -c '^epoch: 1 step: ' "$T/run_a/worker_$i.log")" -eq 50 ]
done
ok "rank 0 left metrics and weights" [ -s "$T/run_a/weights.safetensors" ]
ok "no line is an error or a warning" bash -c '! grep -hE " (error|warning) " "$1"/a*.log' - "$T"
ok "msctl run gives the same weights" run b -n 3 "$T/job.yaml"
ok "to the bit" same "$(digest run_a)" "$(digest b)"

# ---- plans
ok "rank 0 left the plan" same "$(sed '/^section memory$/,$d' "$T/run_a/plan.txt" | sha256sum | cut -d' ' -f1)" "$(field run_a plan_sha256)"
sed 's/^threads .*/threads 2/' "$T/run_a/plan.txt" >"$T/two.txt"
mkdir "$T/run_p"
sched p
for i in 2 0 1; do PLAN=$T/two.txt worker "p_$i" $i; done
ok "a cluster trains by a plan that its workers bring" ends_with 0 p
for i in 0 1 2; do ok "worker $i ends with 0" ends_with 0 "p_$i"; done
ok "and that one it left" cmp "$T/run_p/plan.txt" "$T/two.txt"
ok "each rank obeyed it" grep -q "^plan: given, " "$T/run_p/worker_1.log"
mkdir "$T/run_q"
sched q
PLAN=$T/run_a/plan.txt worker q_0 0
PLAN=$T/run_a/plan.txt worker q_1 1
PLAN=$T/two.txt worker q_2 2
ok "workers that bring two plans do not train together" ends_with 2 q_2
ok "and are told" logged q_2 "rank 0 trains by another plan than --plan of this worker says"
ok "nobody of them" ends_with 2 q_0
reap q_1
reap q
sed '3s/.*/network/' "$T/two.txt" >"$T/torn.txt"
ok "what is no plan is refused by its line" says "torn.txt: plan line 3: " env MS_ROLE=MS_WORKER "$MSWORKER" --plan "$T/torn.txt" "$T/job.yaml"
ok "as a job that is not legal is" status 2 env MS_ROLE=MS_WORKER "$MSWORKER" --plan "$T/torn.txt" "$T/job.yaml"
ok "an idle node brings no plan" says "plan: " "$MSWORKER" --server 127.0.0.1:1 --tls off --jobs-dir "$T/jobs" --plan "$T/two.txt"

mkdir "$T/run_m"
sched m
worker m_0 0
ok "a worker registers" wait_for 60 logged m_0 "agent.registered"
worker m_1 1 MS_WORKER_NUM=4
ok "another MS_WORKER_NUM is refused" ends_with 4 m_1
ok "with both values" bash -c 'grep -q 4 "$1" && grep -q "MS_WORKER_NUM" "$1" && grep -q 3 "$1"' - "$T/m_1.log"
JOB=$T/other.yaml worker m_2 1
ok "another job is refused" ends_with 4 m_2
worker m_3 0
ok "a node id that is taken is refused" ends_with 4 m_3
ok "and named" logged m_3 "node 0"
worker m_4 7
ok "a rank beyond the number is refused" ends_with 4 m_4
worker m_5 1
worker m_6 2
ok "the cluster forms all the same, and ends well" ends_with 0 m
for i in 0 5 6; do ends_with 0 m_$i; done

# ---- told to end while it waits for one that is away to hear of the job's end
sched e MS_ENABLE_RECOVERY=1 MS_WORKER_NUM=2
for i in 0 1; do
    mkdir -p "$T/run_$i/weights.safetensors/full" # nobody can save them
    worker "${i}_e" $i MS_ENABLE_RECOVERY=1 MS_WORKER_NUM=2
done
ok "all steps are made, and the weights are owed" wait_for 60 logged e "job.not_saved"
stop 1_e KILL
wait_for 60 logged e "node.lost"
rm -r "$T/run_0/weights.safetensors"
ok "the job succeeds" wait_for 60 logged e "job.succeeded"
ok "its last worker ends with 0" ends_with 0 0_e
ok "the scheduler waits for the other one" wait_for 30 logged e "topology.waits_for_end"
kill -TERM "${pid_of[e]}"
ok "and ends with the job's status when it is told to" ends_with 0 e
reap 1_e

mkdir "$T/run_t"
for seconds in 2 10 50 250; do # until one of them is there in time, however long its start takes here
    rm -f "$T"/t.log "$T"/t_0.log
    sched t MS_TOPO_TIMEOUT=$seconds
    worker t_0 0
    came() { logged t_0 "agent.registered" || has_ended "${pid_of[t]}"; }
    wait_for 300 came
    ! logged t_0 "agent.registered" || break
    stop t_0 KILL
    reap t
done
ok "too few workers: the scheduler gives up with 1" ends_with 1 t
ok "the worker too, with a message" ends_with 1 t_0
ok "that says how many came" logged t_0 "1 of 3"

ok "MS_WORKER_NUM must be a number above 0" says "MS_WORKER_NUM" env MS_ROLE=MS_SCHED MS_SCHED_PORT=1024 \
    MS_WORKER_NUM=0 "$MSSCHEDD"
sched l
worker l_0 0
ok "a worker waits for the others" wait_for 60 logged l_0 "agent.registered"
ok "asked to leave before it has a rank, it does so with 0" status 0 stop l_0 TERM
ok "its log says that it was" logged l_0 'worker.leaves reason="asked to end by signal 15 (Terminated)"'
stop l KILL

ok "an unknown role is refused" says "MS_ROLE" env MS_ROLE=MS_BOSS MS_SCHED_PORT=1024 "$MSSCHEDD"
for name in MS_TLS_CONFIG MS_ENABLE_SSL=0; do
    ok "beyond loopback it wants certificates or a clear word: $name" says "$name" \
        env MS_ROLE=MS_SCHED MS_SCHED_HOST=0.0.0.0 MS_SCHED_PORT=1024 "$MSSCHEDD"
done

# the seed's TLS JSON, with the cipher list of the seed's document
ok "a CA" "$MSCTL" certs init --dir "$T/ca"
ok "the scheduler's certificate" "$MSCTL" certs issue scheduler head --dir "$T/ca" --host 127.0.0.1 --out "$T/server.p12"
ok "the workers' certificate" "$MSCTL" certs issue worker node --dir "$T/ca" --out "$T/client.p12"
cat >"$T/tls.json" <<JSON
{"server_cert_path": "server.p12", "client_cert_path": "client.p12", "ca_cert_path": "ca/ca.crt",
 "crl_path": "", "cert_expire_warning_time_in_day": 90,
 "cipher_list": "ECDHE-R SA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256:DHE-DSS-AES128-GCM-SHA256"}
JSON
mkdir "$T/run_s"
export MS_TLS_CONFIG=$T/tls.json
sched s
for i in 0 1 2; do worker "s_$i" $i MSCHED_TRANSPORT=remote; done
ok "over TLS the job ends well" ends_with 0 s
for i in 0 1 2; do ok "worker $i too" ends_with 0 s_$i; done
ok "the weights are the same to the bit" same "$(digest run_s)" "$(digest b)"
unset MS_TLS_CONFIG
finish
