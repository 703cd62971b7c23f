#!/usr/bin/env bash
# t1190-text.sh - a small transformer learns a text: losses and perplexity are of bytes, the same twice, and what is no text is
# named
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
python3 - "$T" <<'PY'
import random, sys
random.seed(1)
words = "a rank sends its sums to the next one and waits until they come back".split()
text = " ".join(random.choice(words) for _ in range(6000))
open(f"{sys.argv[1]}/all.txt", "w").write(text)
open(f"{sys.argv[1]}/vocabulary", "w").write("".join(f"{w}\n" for w in sorted(set(words)) + [" "]))
open(f"{sys.argv[1]}/packed.txt", "wb").write(b"\x1f\x8b" + text.encode())
PY
cat >"$T/job.yaml" <<YAML
network:
  - embedding: {words: classes, size: 32, weight: {normal: 0.1}}
  - positional_embedding
  - residual: {body: [layer_norm: {over: channels}, attention: {heads: 4, causal: true, dropout: 0.1}]}
  - residual: {body: [layer_norm: {over: channels}, dense: {out: 64}, gelu, dense: {out: 32}]}
  - layer_norm: {over: channels}
  - dense: {out: classes}
dataset: {kind: text, path: $T/all.txt, tokens: 32, split: {test: 0.1, seed: 3}}
batch_size: 16
epochs: 3
optimizer: {kind: adamw, learning_rate: 0.01}
evaluate: {dataset: {kind: text, path: $T/all.txt}, metrics: [perplexity]}
YAML
ok "two workers on a text" run text -n 2 "$T/job.yaml"
evaluation() { grep '"perplexity"' "$T/text/metrics.jsonl" | tail -n 1; }
ok "loss, accuracy and perplexity are of bytes" python3 - "$(evaluation)" <<'PY'
import json, math, sys
line = json.loads(sys.argv[1])
assert 0.3 < line["eval_loss"] < 1.6, line
assert 0.5 < line["accuracy"] < 0.95, line
assert abs(line["perplexity"] - math.exp(line["eval_loss"])) < 1e-6 * line["perplexity"], line
PY
ok "words of a vocabulary" run words -n 2 --set "dataset.vocabulary=$T/vocabulary" --set dataset.tokens=16 --set epochs=8 "$T/job.yaml"
ok "are learned: each second one is a blank" python3 - "$(grep '"perplexity"' "$T/words/metrics.jsonl" | tail -n 1)" <<'PY'
import json, sys
line = json.loads(sys.argv[1])
assert 0.45 < line["accuracy"] < 0.75 and 2 < line["perplexity"] < 6, line
PY
ok "they answer for the text" "$MSCTL" eval "$T/words"
sort -r "$T/vocabulary" -o "$T/vocabulary"
for command in eval predict; do
    ok "but not in another order: $command" says "$T/vocabulary has other words, or another order of them, than those that are trained (digest" "$MSCTL" $command "$T/words"
done
ok "the same again" run again -n 2 "$T/job.yaml"
ok "has the same bits" same "$(digest again)" "$(digest text)"
cat >"$T/recurrent.yaml" <<YAML
- embedding: {words: classes, size: 24}
- lstm: {hidden: 32}
- residual: {body: [gru: {hidden: 32}]}
- dense: {out: classes}
YAML
ok "a recurrent network on it" run recurrent -n 2 --set "network=$T/recurrent.yaml" --set epochs=3 "$T/job.yaml"
ok "learns" python3 - "$(grep '"perplexity"' "$T/recurrent/metrics.jsonl" | tail -n 1)" <<'PY'
import json, sys
line = json.loads(sys.argv[1])
assert 0.3 < line["eval_loss"] < 1.8 and line["accuracy"] > 0.45, line
PY
sed "s|^network:.*|network: $T/recurrent.yaml|; /^  -/d" "$T/job.yaml" >"$T/recurrent-job.yaml"
ok "a table has its parameters and products" python3 - "$("$MSCTL" show --network --json "$T/recurrent-job.yaml")" <<'PY'
import json, sys
layers = {layer["name"]: layer for layer in json.loads(sys.argv[1])["layers"]}
lstm, gru = layers["lstm1"], layers["gru1"]
assert (lstm["parameters"], lstm["macs"]) == (4 * 32 * (24 + 32 + 2), 32 * 4 * 32 * (24 + 32)), lstm
assert (gru["parameters"], gru["macs"]) == (3 * 32 * (32 + 32 + 2), 32 * 3 * 32 * (32 + 32)), gru
PY
ok "what is packed is named" says "packed.txt is packed; unpack it with gunzip" "$MSCTL" run --run-dir "$T/bad1" \
    --set "dataset.path=$T/packed.txt" --set evaluate=null "$T/job.yaml"
ok "windows of another length are refused" says "evaluate.dataset.tokens: 16, and the network is trained on windows of 32" "$MSCTL" run --run-dir "$T/bad2" \
    --set evaluate.dataset.tokens=16 "$T/job.yaml"
sed 's/words: classes/words: 100/' "$T/job.yaml" >"$T/few.yaml"
ok "a byte that is no word ends the job with it" says "and the embedding 100 words: tokens are whole numbers from 0 to 99" \
    "$MSCTL" run --run-dir "$T/bad3" "$T/few.yaml"
finish
