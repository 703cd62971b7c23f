#!/usr/bin/env bash
# t1102-accuracy.sh - real MNIST: the sample network with eight workers, LeNet-5 with one
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3
need_shared data
export DATA_PATH=$SHARED/data/mnist

# accuracy NAME EPOCH AT_LEAST
accuracy() {
    python3 - "$T/$1/metrics.jsonl" "$2" "$3" <<'PY'
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if "accuracy" in row and row["epoch"] == int(sys.argv[2]):
        print(row)
        sys.exit(0 if row["accuracy"] > float(sys.argv[3]) else 1)
sys.exit("no evaluation of that epoch")
PY
}
ok "mnist, eight workers, three epochs" run mnist -n 8 --set epochs=3 "$ROOT/examples/mnist.yaml"
ok "above 88 % after one" accuracy mnist 1 0.88
ok "above 90 % after three" accuracy mnist 3 0.90
ok "LeNet-5, one worker, three epochs" run lenet -n 1 "$ROOT/examples/lenet5-mnist.yaml"
ok "above 98 % after three" accuracy lenet 3 0.98
finish
