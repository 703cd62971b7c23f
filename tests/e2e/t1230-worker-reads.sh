#!/usr/bin/env bash
# t1230-worker-reads.sh - what a standing worker reads for others: no variable and no file but the operator's
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

mkdir -p "$T/data" "$T/private" "$T/moved"
echo "root:hunter2:19000:0:99999:7:::" >"$T/private/shadow"
chmod 0600 "$T/private/shadow"
ln -s "$T/private/shadow" "$T/data/link.safetensors"
ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
export TOKEN_OF_THE_OPERATOR=hunter2 DATA_PATH=$T/data
start_node n1 --data-roots "$T/data /srv"
unset TOKEN_OF_THE_OPERATOR DATA_PATH
ok "a node is idle" wait_for 120 idle 1
ok "and called by its name" [ "$(cat "/proc/${pid_of[n1]}/comm")" = msworker ]

n=0
# refused TEXT KEY=VALUE...: a job with these settings fails, its reason has TEXT and nothing of the secret
refused() {
    local text=$1 sets=() word
    shift
    for word in "$@"; do sets+=(--set "$word"); done
    n=$((n + 1))
    as alice submit -n 1 "${sets[@]}" "$T/short.yaml" >"$T/id" || return 1
    status 1 as alice wait --timeout 900 "$n" || return 1
    as alice show "$n" >"$T/show"
    as alice logs "$n" >>"$T/show" 2>&1
    grep -qF -- "$text" "$T/show" && ! grep -q hunter "$T/show" && return 0
    cat "$T/show"
    return 1
}
# shellcheck disable=SC2016 # the worker expands them
{
    ok "a variable of the worker is refused" refused "jobs may not use the variable TOKEN_OF_THE_OPERATOR" \
        'initial_weights=${TOKEN_OF_THE_OPERATOR}'
    ok "in a folder's name, too" refused "jobs may not use" 'initial_weights=/srv/${TOKEN_OF_THE_OPERATOR}/x'
    ok "a file outside is refused" refused "data_roots" "initial_weights=$T/private/shadow"
    ok "whether it is there or not" refused "data_roots" "initial_weights=$T/private/none"
    ok "through a link, too" refused "data_roots" "initial_weights=$T/data/link.safetensors"
    ok "through dots, too" refused "data_roots" "initial_weights=$T/data/../private/shadow"
    ok "what is missing inside is named as the job has it" refused 'initial_weights: ${DATA_PATH}/none' \
        'initial_weights=${DATA_PATH}/none'
    ok "with the rank and the node" grep -q "rank 0 (node n1" "$T/show"
    ok "but not as the environment has it" bash -c '! grep -qF "$1/data/none" "$1/show"' - "$T"
}
cp "$T/private/shadow" "$T/data/wrong.safetensors"
ok "no byte of a wrong file is told" refused "no size of a header" "initial_weights=$T/data/wrong.safetensors"
cat >"$T/data.yaml" <<YAML
network: mnist
dataset: {kind: mnist, path: $T/moved}
batch_size: 4
optimizer: {kind: sgd, learning_rate: 0.01}
YAML
cp "$T/data.yaml" "$T/short.yaml"
ok "a data set outside is refused" refused "dataset: path $T/moved: jobs read below" steps=2
ok "the node is idle" wait_for 60 idle 1
ok "a list that is none is 78" status 78 "$MSWORKER" --server "$HEAD" --tls-dir "$T/tls/n1" --data-roots data
ok "a node ends when asked" stop n1
finish
