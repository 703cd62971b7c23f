#!/usr/bin/env bash
# t1171-early-stop.sh - evaluations end a training and keep its best weights: alone, on two ranks, after a kill, resumed
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

cat >"$T/job.yaml" <<'YAML'
name: net
network:
  - conv2d: {name: conv1, out: 4, kernel: 3, padding: same}
  - relu
  - global_avg_pool
  - dense: {name: fc, out: classes}
dataset: {kind: shapes, samples: 160}
evaluate: {dataset: {kind: shapes, usage: test, samples: 80}}
transforms: [{rescale: {scale: 0.0039, shift: 0}}]
batch_size: 16
epochs: 40
optimizer: {kind: sgd, learning_rate: 0}
checkpoint: {every_steps: 4, keep_max: 100}
early_stop: {patience: 2}
YAML
steps() { field "$1" steps; }
ends_with() { [ "$(steps "$1")" = "$2" ]; }

# ---- nothing gets better where the rate is 0: the first evaluation is the best one
ok "a training ends early" run one "$T/job.yaml"
ok "after as many evaluations as it has patience for" ends_with one 30
ok "its reason says why" grep -q "steps       30; it ended early: loss was .* after step 10, and the 2 evaluations since then were no better" "$T/one.out"
ok "to the scheduler, too" grep -q "job.succeeded .*finished 30 steps; .*it ended early" "$T/one/scheduler.log"
ok "it succeeded" grep -q "SUCCEEDED" "$T/one.out"
ok "two ranks end at one step" run two -n 2 "$T/job.yaml"
ok "of theirs" ends_with two 15
# one that is long enough to be killed on its way
long=(-n 2 --set epochs=1000 --set early_stop.patience=300 --set checkpoint.every_steps=500 "$T/job.yaml")
ok "more patience is more steps" run calm "${long[@]}"
ok "as many" ends_with calm 1505
ok "a worker that is killed changes nothing" lose_a_worker killed 300 "${long[@]}"
ok "of the step" ends_with killed 1505
ok "nor of the weights" same "$(digest killed)" "$(digest calm)"
ok "its reason says why" grep -q "it ended early: loss was" "$T/killed.log"

# ---- what was counted goes with checkpoints
ok "a part of it" run part --set steps=24 "$T/job.yaml"
ok "knows what was counted" python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))["early_stop"]
assert (m["judge"], m["seen"], m["step"], m["bad"]) == ("loss-min", 20, 10, 1), m' "$T/part/checkpoints/net-24.json"
ok "and goes on" run rest --resume "$T/part" "$T/job.yaml"
ok "to the same end" ends_with rest 30
ok "with the same weights" same "$(digest rest)" "$(digest one)"
ok "one that ended early goes on with more patience" run more --resume "$T/one" --set early_stop.patience=4 "$T/job.yaml"
ok "as one that had it from the beginning" ends_with more 50
ok "and ends where it is without more" run again --resume "$T/one" "$T/job.yaml"
ok "at once" ends_with again 30
ok "its reason says why, again" grep -q "steps       30; it ended early: loss was .* after step 10, and the 2 evaluations since then were no better" "$T/again.out"
# where the checkpoint was taken before the evaluation of its step, the next one ends it
rarely=(--set evaluate.every_epochs=2)
ends_soon() { ends_with "$1" "$2" || ends_with "$1" "$3"; }
ok "so it may be where no evaluation follows that step" run rarely --resume "$T/one" "${rarely[@]}" "$T/job.yaml"
ok "soon" ends_soon rarely 30 40
ok "and with several ranks, of which one has the checkpoint" run shared -n 2 --resume "$T/two" "${rarely[@]}" "$T/job.yaml"
ok "all at one step" ends_soon shared 15 20
ok "each for the same reason" grep -q "it ended early: loss was" "$T/shared.out"
ok "and none waits for another" test 0 -eq "$(grep -c "may hang" "$T/shared.out")"
ok "another metric begins to count anew" run other --resume "$T/part" --set early_stop.metric=accuracy "$T/job.yaml"
ok "so it has patience for one more" ends_with other 50
ok "less than min_delta is no better" run delta --set optimizer.learning_rate=1e-7 --set early_stop.min_delta=0.01 "$T/job.yaml"
ok "so it ends" ends_with delta 30
ok "and says that better they may have been, by how much they had to be" grep -q "steps       30; it ended early: loss was .* after step 10, and the 2 evaluations since then were no better by more than 0\.01 (early_stop\.min_delta)" "$T/delta.out"

# ---- whatever an evaluation counts
ok "perplexity judges, too" run counted --set 'evaluate.metrics=[top5, per_class, confusion, perplexity]' \
    --set early_stop.metric=perplexity "$T/job.yaml"
ok "and ends it" ends_with counted 30
ok "what was counted stands in the summary" grep -q "^  perplexity  10.5" "$T/counted.out"
ok "as a table" [ "$(sed -n '/^  classes  /,/^ *mean/p' "$T/counted.out" | wc -l)" -eq 12 ]
ok "of all rows" [ "$(sed -n '/^  confusion  /,/^  [a-z]/p' "$T/counted.out" | awk 'NF == 11 { for (i = 2; i <= 11; i++) n += $i } END { print n }')" -eq 80 ]

# ---- the best weights
train=(--set early_stop=null --set epochs=8 --set optimizer.learning_rate=0.8 --set 'best={metric: loss}')
ok "a training keeps its best weights" run best -n 2 "${train[@]}" "$T/job.yaml"
best=$(python3 -c 'import json, sys
rows = [r for r in map(json.loads, open(sys.argv[1])) if "eval_loss" in r]
print(5 * min(rows, key=lambda r: r["eval_loss"])["epoch"])' "$T/best/metrics.jsonl")
kept() {
    python3 -c 'import json, struct, sys
raw = open(sys.argv[1], "rb").read()
print(json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]["steps"])' "$T/$1/best.safetensors"
}
ok "of the step with the least loss" same "$(kept best)" "$best"
ok "the run says where they are" grep -q "best        $T/best/best.safetensors" "$T/best.out"
ok "which is said" grep -q "^loss is .* after step $best, the best so far: kept in best.safetensors" "$T/best/worker_0.log"
ok "a training up to there" run upto -n 2 "${train[@]}" --set steps="$best" "$T/job.yaml"
ok "ends with these" same "$(digest upto)" "$(digest_of_file "$T/best/best.safetensors")"
ok "the other way round" run worst -n 2 "${train[@]}" --set best.mode=max "$T/job.yaml"
ok "it is another one" [ "$(kept worst)" != "$best" ]

# the best three of eight, each in its file
several=("${train[@]}" --set 'best={metric: loss, keep: 3}')
least=$(python3 -c 'import json, sys
rows = [r for r in map(json.loads, open(sys.argv[1])) if "eval_loss" in r]
print(*sorted("best-%d.safetensors" % (5 * r["epoch"]) for r in sorted(rows, key=lambda r: r["eval_loss"])[:3]))' "$T/best/metrics.jsonl")
three() { # RUN: these, and nothing else; the best one by two names
    same "$(cd "$T/$1" && echo best-*)" "$least" && [ "$T/$1/best.safetensors" -ef "$T/$1/best-$best.safetensors" ]
}
ok "a training keeps several" run several -n 2 "${several[@]}" "$T/job.yaml"
ok "those with the least losses" three several
ok "the best of them with the same weights" same "$(digest_of_file "$T/several/best.safetensors")" "$(digest upto)"
ok "one whose worker is killed keeps as many" lose_a_worker survived 20 -n 2 "${several[@]}" --set epochs=200 "$T/job.yaml"
ok "with the steps of their names" [ "$(cd "$T/survived" && echo best-* | wc -w)" = 3 ]
ok "and the best one by two names" [ "$T/survived/best.safetensors" -ef "$T/survived/best-$(kept survived).safetensors" ]

# ---- every so many epochs
epochs=(--set early_stop=null --set epochs=3 --set 'checkpoint={every_steps: 0, every_epochs: 2}')
ok "checkpoints come by epochs" run epochs "${epochs[@]}" "$T/job.yaml"
ok "and with no other step" same "$(cd "$T/epochs/checkpoints" && echo *.json)" "net-20.json"
finish
