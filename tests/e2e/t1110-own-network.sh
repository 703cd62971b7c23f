#!/usr/bin/env bash
# t1110-own-network.sh - a network as a list in the job, or in a file: the bits of the named one, errors with their place, resume, a cluster
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3 openssl
known=$ROOT/libworker/network/known/cifar_small.yaml
rest='dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 2
optimizer: {kind: momentum, learning_rate: 0.01, momentum: 0.9}'
mkdir "$T/nets"
cp "$known" "$T/nets/mine.yaml"
printf 'network: cifar_small\n%s\n' "$rest" >"$T/named.yaml"
{ printf 'network:\n' && sed 's/^/  /' "$known" && printf '%s\n' "$rest"; } >"$T/listed.yaml"
printf 'network: nets/mine.yaml\n%s\n' "$rest" >"$T/filed.yaml"

ok "a job names a network" run named -n 2 "$T/named.yaml"
ok "one has its layers in a list" run listed -n 2 "$T/listed.yaml"
ok "and the same weights" same "$(digest listed)" "$(digest named)"
ok "one has them in a file beside it" run filed -n 2 "$T/filed.yaml"
ok "and the same weights" same "$(digest filed)" "$(digest named)"
ok "the job is called as the file is" grep -q "^job 1 (mine) SUCCEEDED" "$T/filed.out"
ok "a network of the command line" run set -n 2 --set network="$known" "$T/filed.yaml"
ok "has the same weights" same "$(digest set)" "$(digest named)"

# ---- what cannot be is refused before anything starts
misfit() { # TEXT SED: the file with that change is refused with these words, and leaves nothing
    sed "$2" "$known" >"$T/nets/bad.yaml"
    ! cmp -s "$known" "$T/nets/bad.yaml" &&
        status 2 "$MSCTL" run --run-dir "$T/bad" --set network=nets/bad.yaml "$T/filed.yaml" &&
        says "$1" "$MSCTL" run --run-dir "$T/bad" --set network=nets/bad.yaml "$T/filed.yaml" &&
        [ ! -e "$T/bad" ]
}
last=$(grep -n 'out: classes' "$known" | cut -d: -f1)
first=$(grep -n 'conv2d' "$known" | head -n 1 | cut -d: -f1)
ok "a width that is none of the data's is named" misfit "bad.yaml" 's/out: classes/out: 7/'
ok "with both shapes" says "makes (16, 7), and 10 classes want (16, 10)" "$MSCTL" run --set network=nets/bad.yaml "$T/filed.yaml"
ok "a layer that is none, by line" misfit "nets/bad.yaml:$first:" "${first}s/conv2d/convolution/"
ok "with the nearest one" says "known: conv2d conv_transpose2d dense" "$MSCTL" run --set network=nets/bad.yaml "$T/filed.yaml"
ok "images where rows are read, by line" misfit "bad.yaml:$((last - 1)):" '/global_avg_pool/d; /flatten/d'
ok "with what to do" says "put a flatten or a global_avg_pool before it" "$MSCTL" run --set network=nets/bad.yaml "$T/filed.yaml"
ok "a file that is not there" says "network: network file $T/nets/none.yaml cannot be opened" "$MSCTL" run --set network=nets/none.yaml "$T/filed.yaml"

# ---- a job goes on with the layers that it was begun with
ok "a job with checkpoints" run before -n 2 --set 'checkpoint={every_steps: 3}' --set steps=6 "$T/filed.yaml"
ok "goes on from them" run after -n 2 --set "checkpoint={every_steps: 3}" --resume "$T/before" "$T/filed.yaml"
ok "to the same weights" same "$(digest after)" "$(digest named)"
sed 's/^summary: .*/summary: other words/' "$T/nets/mine.yaml" >"$T/nets/moved.yaml"
ok "from a file that was moved, and says other words of it" run moved -n 2 --set "checkpoint={every_steps: 3}" \
    --resume "$T/before" --set network=nets/moved.yaml "$T/filed.yaml"
ok "to the same weights" same "$(digest moved)" "$(digest named)"
sed -i 's/max_pool/avg_pool/' "$T/nets/mine.yaml"
ok "not with another file under that name" says "network.layers[" "$MSCTL" run --run-dir "$T/other" -n 2 \
    --resume "$T/before" "$T/filed.yaml"

ok "labels are smoothed" run smooth -n 2 --set label_smoothing=0.1 "$T/named.yaml"
ok "to other weights" [ "$(digest smooth)" != "$(digest named)" ]
ok "not where the targets are numbers" says "label_smoothing has no meaning with loss: mse" "$MSCTL" run \
    --set label_smoothing=0.1 --set network=linear --set 'dataset={kind: nonlinear}' --set transforms=[] "$T/named.yaml"

# ---- what is dropped at random is a function of seed, step and row
sed 's/  - flatten/  - dropout: {rate: 0.3}\n  - flatten\n  - dropout/' "$known" >"$T/nets/mine.yaml"
ok "a job with dropout" run dropped -n 2 "$T/filed.yaml"
ok "has other weights" [ "$(digest dropped)" != "$(digest named)" ]
ok "and the same ones again" run dropped2 -n 2 "$T/filed.yaml"
ok "to the bit" same "$(digest dropped2)" "$(digest dropped)"
ok "with checkpoints" run half -n 2 --set 'checkpoint={every_steps: 3}' --set steps=6 "$T/filed.yaml"
ok "it goes on from them" run whole -n 2 --set "checkpoint={every_steps: 3}" --resume "$T/half" "$T/filed.yaml"
ok "to the bit" same "$(digest whole)" "$(digest dropped)"

# ---- norms of samples know no batch: two ranks are one with a batch of both
sed 's/- batch_norm.*/- group_norm: {groups: 4}/; s/  - flatten/  - layer_norm\n  - flatten\n  - layer_norm: {beta: none}/' "$known" >"$T/nets/mine.yaml"
calm='optimizer={kind: sgd, learning_rate: 0.001}' # rounding does not grow
last_loss() { grep '"loss_hex"' "$T/$1/metrics.jsonl" | tail -n 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["loss"])'; }
near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < 1e-5 * abs(b))' "$1" "$2"; }
ok "a job with group and layer norm" run normed -n 2 --set "$calm" "$T/filed.yaml"
ok "has no batch norm left" [ "$(grep -c 'batch_norm' "$T/nets/mine.yaml")" -eq 0 ]
ok "one rank with twice the batch" run normed1 -n 1 --set "$calm" --set batch_size=32 "$T/filed.yaml"
ok "has the same last loss" near "$(last_loss normed1)" "$(last_loss normed)"
ok "with checkpoints" run normed_half -n 2 --set "$calm" --set 'checkpoint={every_steps: 3}' --set steps=6 "$T/filed.yaml"
ok "it goes on from them" run normed_whole -n 2 --set "$calm" --set "checkpoint={every_steps: 3}" --resume "$T/normed_half" "$T/filed.yaml"
ok "to the bit" same "$(digest normed_whole)" "$(digest normed)"

# ---- nodes have the job, and no file
make_certificates
ok "a cluster without nodes" start_head
cp "$known" "$T/nets/mine.yaml"
as alice submit -n 2 "$T/filed.yaml" >/dev/null
ok "has a job in its queue" in_state 1 QUEUED
rm -r "$T/nets"
ok "whose file is gone" [ ! -e "$T/nets" ]
ok "a node comes" start_node w0
ok "and another one" start_node w1
ok "they train it" wait_for 120 in_state 1 SUCCEEDED
ok "to the same weights" json show 1 -- "j['weights_sha256'] == '$(digest named)'"
ok "show knows its layers" json show 1 -- "'conv2d' in j['job']['network']['layers'][0] and j['job']['name'] == 'mine'"
finish
