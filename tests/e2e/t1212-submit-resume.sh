#!/usr/bin/env bash
# t1212-submit-resume.sh - a new job goes on from a checkpoint of one that has ended, at the exact step, to the same weights; nobody else's may
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: lin
workers: 1
network: linear
dataset: {kind: nonlinear, samples: 1600}
batch_size: 16
epochs: 100000
steps: 5000000
loss: mse
optimizer: {kind: adam, learning_rate: 0.001}
checkpoint: {every_steps: 130, keep_max: 1000}
YAML

node() { mkdir -p "$T/jobs-$1" && start_node "$1" --jobs-dir "$T/jobs-$1"; }
info() { as alice --json show "$1" | python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$2"; }
weights() { info "$1" 'j["weights_sha256"]'; }
ends_like_2() { status 0 as alice wait --timeout 900 "$1" && same "$(weights 2)" "$(weights "$1")"; }
has_steps() { [ "$(grep -c '"step":' "$T/jobs-n1/1/metrics.jsonl" 2>/dev/null)" -ge 300 ]; }

ok "certificates are made" make_certificates
ok "the scheduler starts" start_head
node n1
ok "a node is idle" wait_for 120 idle 1
ok "a job" [ "$(as alice submit "$T/job.yaml")" = 1 ]
ok "trains" wait_for 120 has_steps
ok "nobody goes on from it while it does" says "job 1 is RUNNING: a new job goes on where it ended" as alice submit --resume 1
ok "and is cancelled within an epoch" status 0 as alice cancel 1
stopped=$(info 1 'j["steps"]')
older=$(as alice --json fetch --list 1 | python3 -c 'import json, sys
j = json.load(sys.stdin)["checkpoints"][-1]; print(j["name"], j["mindspore_name"], "step", j["step"])')
read -r name other_name step <<<"$older"
ok "having saved that step" json fetch --list 1 -- "j['checkpoints'][0]['step'] == $stopped"
end=$((stopped + 57))
ok "an undisturbed one comes 57 steps further" status 0 as alice wait --timeout 900 "$(as alice submit --set steps=$end "$T/job.yaml")"

# ---- on: the same job, from the step at which it stopped
ok "a third goes on from the first" same 3 "$(as alice submit --resume 1 --set steps=$end 2>"$T/said")"
ok "which is said with job, name and step" says "job 3 goes on from lin-$stopped of job 1: step $stopped (epoch" cat "$T/said"
ok "where all nodes have it no place is named" [ "$(grep -c 'the checkpoint lies on' "$T/said")" = 0 ]
ok "it ends with the undisturbed one's weights" ends_like_2 3
ok "what it went on from can be read later, too" says "goes on from $T/jobs-n1/1/checkpoints/lin-$stopped.json" as alice show 3
ok "which another one lacks" [ "$(as alice show 2 | grep -c 'goes on from')" = 0 ]
ok "its first step is the one behind" same "$((stopped + 1))" "$(python3 -c 'import json, sys
print(min(j["step"] for j in map(json.loads, open(sys.argv[1])) if "loss_hex" in j))' "$T/jobs-n1/3/metrics.jsonl")"
ok "a file, an older one of its checkpoints, and another rule of saving" same 4 \
    "$(as alice submit --resume "1:$name" --set steps=$end --set checkpoint.every_steps=1000000 "$T/job.yaml" 2>"$T/said")"
ok "go on as well" says "$step (epoch" cat "$T/said"
ok "to the same weights" ends_like_2 4
ok "so does one by MindSpore's name, as the table has it" same 5 "$(as alice submit --resume "1:${other_name#lin-}" --set steps=$end)"
ok "of which the newest may be gone on from" ends_like_2 5
ok "by yet another one, from what a resumed one has saved" same 6 "$(as alice submit --resume 5:latest --set steps=$((end + 3)))"
ok "to its own end" status 0 as alice wait --timeout 900 6
ok "with all its steps" same "$((end + 3))" "$(info 6 'j["steps"]')"

# ---- no
ok "a job that ends before has nothing to go on for" says "give it more steps" as alice submit --resume 1 --set steps=20
ok "another training is refused before it is queued" says "seed" as alice submit --resume 1 --set seed=7
ok "as exit 4" status 4 as alice submit --resume 1 --set seed=7
ok "a checkpoint that there is not" status 4 as alice submit --resume 1:7
ok "a job that there is not" status 4 as alice submit --resume 99
ok "a plan beside it" status 2 as alice submit --resume 1 --plan "$T/job.yaml"
ok "the key resume in its file" status 2 as alice submit --resume 1 --set resume=/srv "$T/job.yaml"
ok "or beside it" says "the job has the key resume, too" as alice submit --resume 5 --set resume=/srv
ok "another user's job" status 4 as bob submit --resume 1
path=$T/jobs-n1/1/checkpoints/lin-$stopped.json
id=$(as bob submit --set steps=$end --set resume="$path" "$T/job.yaml")
ok "nothing was queued of all these" same 7 "$id"
ok "nor by its path" status 1 as bob wait --timeout 900 "$id"
ok "which nobody has lent" says "whose owner has not lent it to job $id" as bob logs "$id"

# ---- evaluated on the nodes: where no step is left, the evaluation is all there is
evaluated='evaluate={dataset: {kind: nonlinear, samples: 320}, metrics: [mae]}'
last_line() { python3 -c 'import json, sys
lines = [j for j in map(json.loads, sys.stdin) if "eval_loss" in j]
print(*(format(lines[-1][key], ".9g") for key in ("eval_loss", "mae")))'; }
ok "a trained job is evaluated on other data" same 8 "$(as alice submit --resume "1:$stopped" --set steps="$stopped" --set "$evaluated")"
ok "and ends" status 0 as alice wait --timeout 900 8
ok "without another step" same "$stopped" "$(info 8 'j["steps"]')"
ok "and no line of one" [ "$(grep -c loss_hex "$T/jobs-n1/8/metrics.jsonl")" = 0 ]
ok "to what its weights give here, to the last digit" same \
    "$("$MSCTL" --json eval "$T/job.yaml" --weights "$T/jobs-n1/8/weights.safetensors" --set "$evaluated" | last_line)" \
    "$(last_line <"$T/jobs-n1/8/metrics.jsonl")"

# ---- of a schedule that is as long as the job: evaluated likewise, and trained to no other end
falls='optimizer.schedule={kind: cosine, by: step, warmup: 20}'
ok "a job whose rates go by its length" same 9 "$(as alice submit --set steps=400 --set "$falls" "$T/job.yaml")"
ok "ends" status 0 as alice wait --timeout 900 9
saved=$T/jobs-n1/9/checkpoints
manifest=$(cat "$saved/lin-130.json")
ok "to another end it is refused, by what makes it another training" \
    says "steps: 400, and this one has 300: optimizer.schedule has no length and goes by the job's" as alice submit --resume 9:130 --set steps=300
ok "with the key that helps" says "or begin anew with optimizer.schedule.length" as alice submit --resume 9:130 --set steps=300
ok "so it is by msctl run" says "epochs: 100000, and this one has 70: optimizer.schedule has no length" \
    "$MSCTL" run --resume "$saved/lin-130.json" --set "$falls" --set steps=400 --set epochs=70 "$T/job.yaml"
ok "where it ends with the checkpoint nothing is trained" same 10 "$(as alice submit --resume 9:130 --set steps=130 --set "$evaluated")"
ok "and it is evaluated" status 0 as alice wait --timeout 900 10
ok "without another step" same 130 "$(info 10 'j["steps"]')"
ok "by a private run, too, which would save in that folder" status 0 "$MSCTL" run --run-dir "$T/here" --resume "$saved/lin-130.json" \
    --set "$falls" --set steps=130 --set "$evaluated" --set checkpoint.directory="$saved" "$T/job.yaml"
ok "to the same" same "$(last_line <"$T/here/metrics.jsonl")" "$(last_line <"$T/jobs-n1/10/metrics.jsonl")"
ok "the checkpoint stays that of its training" same "$manifest" "$(cat "$saved/lin-130.json")"
ok "which is gone on with" same 11 "$(as alice submit --resume 9:130)"
ok "to its end" status 0 as alice wait --timeout 900 11
ok "and its weights" same "$(weights 9)" "$(weights 11)"

ok "its node ends" status 0 stop n1
ok "then it cannot be had, which is said with node, host and path" says "$T/jobs-n1/1" as alice submit --resume 1
finish
