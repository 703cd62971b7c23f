#!/usr/bin/env bash
# t3001-resume.sh - a run that was stopped, or killed as a whole, goes on from its checkpoints in the middle of an epoch,
# and ends with the weights of one that nothing befell; what cannot be resumed is refused by name
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: saves
workers: 2
network: cifar_small
dataset: {kind: shapes, samples: 160}
transforms: [{rescale: {scale: 0.0039, shift: 0}}, {random_horizontal_flip: {}}]
batch_size: 8
epochs: 30
optimizer: {kind: adam, learning_rate: 0.001}
evaluate: {dataset: {kind: shapes, samples: 64}, every_epochs: 10}
checkpoint: {directory: ckpt, prefix: small, every_steps: 7}
YAML
STEPS=300

steps_of() { python3 -c 'import json, sys
print(*[j["step"] for j in map(json.loads, open(sys.argv[1])) if "step" in j])' "$T/$1/metrics.jsonl" 2>/dev/null; }
newest() { # RUN: the highest step that has a manifest
    local file
    for file in "$T/$1"/ckpt/small-*.json; do
        file=${file##*-}
        echo "${file%.json}"
    done | sort -n | tail -n 1
}
begin() { # NAME option...: a run in the background, until it has done some steps
    local name=$1
    shift
    start "$name" "$MSCTL" run --run-dir "$T/$name" "$@" "$T/job.yaml"
}
nothing_lives() { [ -z "$(alive)" ]; }
# midway ACT NAME STEPS option...: begins a run and does ACT NAME to it behind that step, with what that returns. A machine
# that stands still meanwhile comes back to a run that has ended (with step END, else STEPS): then it is begun again.
midway() {
    local act=$1 name=$2 steps=$3 got
    shift 3
    for _ in {1..20}; do # on a busy machine it has ended before we look
        rm -rf "${T:?}/$name" "$T/$name".*
        begin "$name" "$@"
        wait_for 120 has_steps "$name" "$steps" || return 1
        "$act" "$name"
        got=$?
        [ "$(last_step "$name")" -ge "${END:-$STEPS}" ] || return "$got"
        [ -z "${pid_of[$name]:-}" ] || reap "$name"
    done
    return 1
}
terminate() { stop "$1" TERM; }
has_saved() { compgen -G "$T/$1/ckpt/small-*.json" || ! kill -0 "${pid_of[$1]}"; } # forty steps take as long as a slow disk
kill_whole() {
    wait_for 120 has_saved "$1"
    stop "$1" KILL
    wait_for 60 nothing_lives
}
kill_workers() {
    local workers
    wait_for 120 has_saved "$1"
    mapfile -t workers < <(children "$1" msworker 2)
    kill -KILL "${workers[@]}"
}
resume() { # NAME FROM option...: goes on from FROM to the end
    local name=$1 from=$2
    shift 2
    run "$name" --resume "$from" "$@" "$T/job.yaml"
}
begins_behind() { [ "$(steps_of "$1" | awk '{ print $1 }')" -eq $(($2 + 1)) ] && [ "$(last_step "$1")" -eq "$STEPS" ]; }
refuses() { # STATUS TEXT option...
    local want=$1 text=$2
    shift 2
    status "$want" "$MSCTL" run --run-dir "$T/refused" "$@" "$T/job.yaml" && says "$text" "$MSCTL" run --run-dir "$T/refused" "$@" "$T/job.yaml" &&
        [ ! -e "$T/refused" ]
}

ok "a run that nothing befalls saves on its way" run whole "$T/job.yaml"
stay=$(find "$T/whole/ckpt" -name '*.json' | wc -l) # fewer than are due where the disk is slower than some steps
ok "five of them stay, or all that were written" [ $((stay > 0 && stay <= 5)) = 1 ]
ok "with their data, and nothing beside them" [ "$(find "$T/whole/ckpt" -mindepth 1 | wc -l)" -eq $((2 * stay)) ]
whole=$(digest whole)

# ---- stopped at a step
ok "TERM in its middle ends a run with 143" status 143 midway terminate stopped 20
ok "the summary says how far it came" grep -q "^  steps       $(last_step stopped) of $STEPS\$" "$T/stopped.log"
ok "what is saved" grep -qF "checkpoints $T/stopped/ckpt: the newest is of step $(newest stopped)" "$T/stopped.log"
ok "and how one goes on" grep -qF "go on with: $MSCTL run --resume $T/stopped $T/job.yaml" "$T/stopped.log"
ok "how long it was trained" grep -q "CANCELLED after .* of training\$" "$T/stopped.log"
ok "and the digest of the weights that it saved" grep -q "^  weights     digest $(digest stopped)\$" "$T/stopped.log"
ok "its last step is saved" same "$(newest stopped)" "$(last_step stopped)"
ok "it goes on from its run directory" resume after "$T/stopped"
ok "msctl says from which step" grep -q "resumes from step $(newest stopped) (epoch" "$T/after.out"
ok "and how long this run took of the whole training" grep -q "SUCCEEDED after .* of training, .* since step $(newest stopped)\$" "$T/after.out"
ok "no speed before its first step" bash -c '! grep -q " 0.0000 " "$1"' - "$T/after.out"
ok "no step is told twice or left out" begins_behind after "$(newest stopped)"
ok "the weights are those of the whole run" same "$(digest after)" "$whole"
ok "the plan is the same" same "$(field after plan_sha256)" "$(field whole plan_sha256)"

ok "programs are told from where, and where its checkpoints are" bash -c '"$MSCTL" run --json --run-dir "$1/told" --resume "$1/stopped" "$1/job.yaml" 2>/dev/null |
    python3 -c "import json, sys
o, step, folder = json.load(sys.stdin), int(sys.argv[1]), sys.argv[2]
assert o[\"resumed_step\"] == step and 0 < o[\"resumed_seconds\"] < o[\"seconds\"], o
assert o[\"checkpoint\"] == folder + \"/small-%d.json\" % o[\"checkpoint_step\"], o" "$2" "$1/told/ckpt"' - "$T" "$(newest stopped)"

# ---- killed as a whole
ok "when another one is killed in its middle, everything of it dies" midway kill_whole killed 40
ok "it goes on from its folder of checkpoints" resume again "$T/killed/ckpt"
ok "at the newest" begins_behind again "$(newest killed)"
ok "the weights are those of the whole run" same "$(digest again)" "$whole"

# ---- all of its workers at once: the job goes on by itself
ok "the workers of a third one die in its middle" midway kill_workers bereft 40
ok "it ends without any of those workers" status 0 reap bereft
ok "each step was told once" same "$(steps_of bereft)" "$(seq -s ' ' $STEPS)"
ok "the weights are those of the whole run" same "$(digest bereft)" "$whole"
ok "the ranks took them from a checkpoint" grep -q "checkpoint" "$T"/bereft/worker_0.log

# ---- its own checkpoint of the step at which it was resumed is damaged, and what it was resumed from is whole
HALF=154
ok "half a training" run half --set steps=$HALF --set checkpoint.every_steps=$HALF "$T/job.yaml"
break_and_kill() {
    break_data "$T/$1/ckpt/small-$HALF.safetensors"
    kill_workers "$1"
}
ok "is gone on with from a checkpoint of its own, and loses both" \
    midway break_and_kill twice $((HALF + 6)) --resume "$T/half" --set checkpoint.every_steps=$HALF
ok "it ends without any of those workers" status 0 reap twice
ok "the damaged one was passed over, by name" grep -qE "checkpoint of step $HALF is passed over: .*/twice/ckpt/small-$HALF.safetensors is damaged" "$T/twice/worker_0.log"
ok "the weights are those of the whole run" same "$(digest twice)" "$whole"

# ---- cancelled while a rank is lost, and nobody takes it: who holds saves the step at which it stands
saved_by() { says "rank $2 (node n$2) says: step $(newest "jobs/$1") is saved" as alice show "$1"; }
cancels_without() { # JOB RANK: of ranks 0 and 1, which are on n0 and n1
    ok "job $1 is submitted" [ "$(as alice submit "$T/job.yaml")" = "$1" ]
    ok "and trains" wait_for 120 trains "$1"
    kill -KILL "${pid_of[n$2]}"
    reap "n$2"
    ok "without rank $2 it recovers" wait_for 60 in_state "$1" RECOVERING
    ok "a cancel says that its step is saved" says "is saved: " as alice cancel "$1"
    ok "by rank $((1 - $2)), and show says it, too" saved_by "$1" $((1 - $2))
    ok "it goes on from there" resume "after_$1" "$T/jobs/$1/ckpt"
    ok "to the weights of the whole run" same "$(digest "after_$1")" "$whole"
}
ok "certificates are made" make_certificates
ok "a standing cluster starts" start_head
start_node n0
start_node n1
ok "its nodes are idle" wait_for 120 idle 2
cancels_without 1 1
ok "it was the last step that was told" same "$(newest jobs/1)" "$(last_step jobs/1)"
start_node n1
ok "both nodes are idle" wait_for 120 idle 2
cancels_without 2 0

# ---- rank 0 dies within the step that a cancel waits for, and the other one ends before anybody can tell it to save
start_node n0
ok "both nodes are idle" wait_for 120 idle 2
ok "job 3 is submitted" [ "$(as alice submit "$T/job.yaml")" = 3 ]
ok "and trains" wait_for 120 trains 3
kill -STOP "${pid_of[n0]}"
start_as cancelling alice cancel 3
ok "a cancel waits for the end of the step" wait_for 60 logged a "job.stopping job=3"
kill -STOP "${pid_of[a]}"
kill -KILL "${pid_of[n0]}"
reap n0
ok "rank 1 stops without rank 0" wait_for 60 logged n1 "rank.done job=3 rank=1"
kill -CONT "${pid_of[a]}"
ok "the cancel ends well" status 0 reap cancelling
ok "and says that the step is saved" logged cancelling "rank 1 (node n1) says: step "
ok "by rank 1" saved_by 3 1
ok "it goes on from there" resume after_3 "$T/jobs/3/ckpt"
ok "to the weights of the whole run" same "$(digest after_3)" "$whole"
for name in n1 a; do
    ok "$name ends with 0" status 0 stop $name
done

# ---- as the summary says it, word for word
go_on() { # NAME: with the command that its summary has, into NAME-on
    local words
    words=$(sed -n "s/.*go on with: [^ ]* run/--run-dir '${T//\//\\/}\/$1-on'/p" "$T/$1.log")
    [ -n "$words" ] && eval "\"\$MSCTL\" run $words" >"$T/$1-on.out" 2>&1
}
ok "one that the command line changed ends with 143, too" status 143 midway terminate changed 20 \
    -n 1 --set batch_size=16 --set "checkpoint={directory: '$T/changed.by $$', prefix: small, every_steps: 7}"
ok "its summary has all that" grep -qF "run --resume '$T/changed.by $$' -n 1 --set batch_size=16 --set 'checkpoint={dir" "$T/changed.log"
ok "and goes on, as it stands there" go_on changed
ok "from its last step" grep -q "resumes from step $(last_step changed) (epoch" "$T/changed-on.out"
ok "where they lie is said to who names its run directory" refuses 4 "some are there: --resume $T/changed.by $$" --resume "$T/changed" \
    --set "checkpoint={directory: '$T/changed.by $$', prefix: small, every_steps: 7}" -n 1 --set batch_size=16
# ... of what may have been stopped shortly before its end: this one is longer
END=900
ok "one that has the key, too" status 143 midway terminate by-key "$(($(last_step stopped) + 5))" \
    --set "resume=$T/stopped" --set epochs=90
ok "it goes on by the key" go_on by-key
ok "to the end" [ "$(steps_of by-key-on | awk '{ print $1, $NF }')" = "$(($(newest by-key) + 1)) $END" ]
unset END

# ---- of a run that was resumed itself, by what lies in its folder
own() { # STEP NAME option...: the job.json of by-key, one step further than STEP
    local name=$2 steps=$(($1 + 1))
    shift 2
    "$MSCTL" run --run-dir "$T/$name" --set steps="$steps" "$@" "$T/by-key/job.json" >"$T/$name.out" 2>&1
}
last=$(newest by-key)
ok "its job.json names what it began with" grep -qF "\"resume\":\"$T/stopped" "$T/by-key/job.json"
ok "with its folder it goes on from its own last step" own "$last" by-folder --resume "$T/by-key"
ok "which it does" same "$(steps_of by-folder)" "$((last + 1))"
ok "and says that --resume takes that key's place" grep -qF "takes the place of the key resume in the job's file, which is $T/stopped" "$T/by-folder.out"
ok "without the key, too" own "$last" by-null --resume "$T/by-key" --set resume=null
ok "of which nothing is said" bash -c '! grep "takes the place" "$1"' - "$T/by-null.out"
ok "two places of the command line are refused" status 2 own "$last" by-two --resume "$T/by-key" --set "resume=$T/stopped"
ok "with both" grep -qF -- "--resume $T/by-key: the job has the key resume, too, by --set resume=$T/stopped; leave one of them out" "$T/by-two.out"

# ---- further below than a search looks
ok "a job may have its folder two levels down" run deep --set steps=14 --set checkpoint.directory=a/b "$T/job.yaml"
ok "its run directory is enough to go on from there" resume deeper "$T/deep" --set checkpoint.directory=a/b
ok "with the same weights" same "$(digest deeper)" "$whole"

# ---- one of them, and the job's own key
one=$(find "$T/killed/ckpt" -name '*.json' | sort | head -n 1)
ok "it goes on from any that is named" resume named "$one"
ok "with the same weights" same "$(digest named)" "$whole"
ok "a job may name it by key, with its plan" run keyed --set "resume=$one" --plan "$T/killed/plan.txt" "$T/job.yaml"
ok "with the same weights" same "$(digest keyed)" "$whole"
ok "a checkpoint is a file of initial weights" run weights --set epochs=1 --set "initial_weights=${one%.json}.safetensors" "$T/job.yaml"
ok "a longer training goes on where the whole one ended" run longer --resume "$T/whole" --set epochs=31 "$T/job.yaml"
ok "with the weights of one that was as long at once" run at_once --set epochs=31 --plan "$T/whole/plan.txt" "$T/job.yaml"
ok "to the bit" same "$(digest longer)" "$(digest at_once)"
for other in evaluate=null evaluate.batch_size=40 evaluate.every_epochs=15; do
    ok "the evaluation may be another one: $other" resume "$other" "$T/killed" --set "$other"
    ok "with the same weights" same "$(digest "$other")" "$whole"
done
ok "or the first one" resume evaluated "$T/evaluate=null" --set epochs=31
ok "with the weights of one that was as long at once" same "$(digest evaluated)" "$(digest at_once)"

# ---- damaged: two last steps, which are always saved, whatever of those before was due while the disk was slow
ok "a run makes one step more, and saves it" resume one_more "$T/stopped" --set steps="$(($(newest stopped) + 1))" --set checkpoint.every_steps=1
last=$(newest one_more)
cp -r "$T/stopped/ckpt" "$T/damaged"
cp "$T/one_more/ckpt/small-$last".* "$T/damaged"
break_data "$T/damaged/small-$last.safetensors"
ok "a damaged one is passed over" resume older "$T/damaged"
ok "by name" grep -q "small-$last.safetensors is damaged" "$T/older.out"
ok "with the same weights" same "$(digest older)" "$whole"

# ---- refused
ok "a job that ends before that step" refuses 4 "this job ends with step 10: give it more steps" --resume "$T/whole" --set steps=10
ok "or before that epoch" refuses 4 "this job ends with epoch 2: give it more epochs" --resume "$T/whole" --set epochs=2
ok "a folder that is in use, before anything is read" bash -c '! "$MSCTL" run --resume "$1/killed" --run-dir "$1/killed" "$1/job.yaml" >"$1/use.out" 2>&1 &&
    ! grep -q "resumes from" "$1/use.out"' - "$T"
ok "which names the way on" grep -qF -- "go on from its checkpoints with --resume $T/killed" "$T/use.out"
ok "no word" refuses 2 "resume: no place is named" --resume ''
ok "no place" refuses 4 "there is no $T/nowhere" --resume "$T/nowhere"
mkdir "$T/empty"
ok "no checkpoint" refuses 4 "no checkpoint in $T/empty" --resume "$T/empty"
ok "another number of workers" refuses 4 "workers: 2, and this one has 3" --resume "$T/killed" -n 3
ok "another seed" refuses 4 "seed: 1, and this one has 2" --resume "$T/killed" --set seed=2
ok "another batch" refuses 4 "batch_size: 8, and this one has 4" --resume "$T/killed" --set batch_size=4
ok "another network" refuses 4 'network: "cifar_small", and this one has "lenet5"' --resume "$T/killed" --set network=lenet5
ok "another one of its transforms, with what helps" refuses 4 \
    'transforms[0].rescale.scale: 0.0039, and this one has 0.5: its training would be another one; give the job that key, or begin anew' \
    --resume "$T/killed" --set 'transforms=[{rescale: {scale: 0.5, shift: 0}}, {random_horizontal_flip: {}}]'
ok "or one more" refuses 4 'transforms[2]: none, and this one has {"random_crop":' \
    --resume "$one" --set 'transforms=[{rescale: {scale: 0.0039, shift: 0}}, {random_horizontal_flip: {}}, {random_crop: {size: [32, 32], padding: 4}}]'
ok "a plan beside it" refuses 2 "leave one of them out" --resume "$T/killed" --plan "$T/killed/plan.txt"
for file in "$T"/damaged/*.json; do echo >"$file"; done
ok "a damaged one that is named, by itself" refuses 4 "resume: $T/damaged/small-$last.json" --resume "$T/damaged/small-$last.json"
ok "no older one is looked for" bash -c '! "$MSCTL" run --resume "$1" "$2" 2>&1 | grep -q "older"' - "$T/damaged/small-$last.json" "$T/job.yaml"
n=$(find "$T/damaged" -name '*.json' | wc -l) # one more than stay where the kill came before the oldest went
ok "damaged ones alone, by number" refuses 4 "none of the $n checkpoints in $T/damaged can be resumed ($n damaged" --resume "$T/damaged"
ok "a key that leads nowhere ends the job" status 1 "$MSCTL" run --run-dir "$T/lost" --set "resume=$T/nowhere" "$T/job.yaml"
ok "in words" grep -rqs "no rank has a complete checkpoint in $T/nowhere: there is no such place here" "$T/lost"
for rank in 0 1; do
    ok "rank $rank says what it found" grep -q "rank.note .*resume: $T/nowhere: there is no such place here" "$T/lost/worker_$rank.log"
done
ok "nothing was trained, and nothing is said to be lost" bash -c '"$MSCTL" run --run-dir "$1/lost2" --set "resume=$1/nowhere" "$1/job.yaml" >"$1/lost2.out"
    grep -q FAILED "$1/lost2.out" && ! grep "not saved" "$1/lost2.out"' - "$T"
ok "a key that leads to a step behind the last one, too" status 1 run behind --set steps=10 --set "resume=$T/whole" "$T/job.yaml"
ok "as msctl would say it" grep -q "is of step $(newest whole), and this job ends with step 10: give it more steps, or name an older checkpoint" "$T/behind.out"
finish
