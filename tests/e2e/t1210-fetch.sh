#!/usr/bin/env bash
# t1210-fetch.sh - a job's results come to its owner, whole, and to nobody else
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/train.sh"
. "$(dirname "$0")/standing.sh"
need "$MSCTL" "$MSSCHEDD" "$MSWORKER" python3

# The scheduler with a Unix socket too, for those without a certificate.
SOCKET=$T/sched.sock
start_both() {
    start_sched a --listen "${1:-127.0.0.1:$(free_port)}" --socket "$SOCKET" --lease-ms "$LEASE_MS" --tls on --tls-crl none \
        --tls-ca "$T/tls/sched/ca.crt" --tls-cert "$T/tls/sched/node.p12" || return 1
    HEAD=$(address_of a)
}
ok "certificates are made" make_certificates
ok "the scheduler starts" start_both
# nodes with folders of their own, as on hosts of their own
for node in n1 n2; do
    mkdir -p "$T/jobs-$node"
    start_node $node --jobs-dir "$T/jobs-$node"
done
ok "two nodes are idle" wait_for 120 idle 2
ok "alice submits" [ "$(as alice submit "$T/short.yaml")" = 1 ]
ok "and her job succeeds" status 0 as alice wait --timeout 900 1
node_of() { as alice --json show 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["ranks"][int(sys.argv[1])]["node"])' "$1"; }
DIR0=$T/jobs-$(node_of 0)/1
DIR1=$T/jobs-$(node_of 1)/1
# at DIR COMMAND...: there
at() { (cd "$1" && shift && "$@"); }

# ---- the owner
mkdir "$T/home/alice"
ok "fetch brings what there is" status 0 at "$T/home/alice" as alice fetch 1
GOT=$T/home/alice/job-1
ok "weights as on the node" cmp "$DIR0/weights.safetensors" "$GOT/weights.safetensors"
ok "metrics" cmp "$DIR0/metrics.jsonl" "$GOT/metrics.jsonl"
ok "the log of rank 0 from its node" cmp "$DIR0/worker_0.log" "$GOT/worker_0.log"
ok "the log of rank 1 from its own" cmp "$DIR1/worker_1.log" "$GOT/worker_1.log"
ok "the job, as the scheduler has it" same "$(as alice --json show 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["job"])')" \
    "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1])))' "$GOT/job.json")"
ok "its plan" same "$(as alice show --plan 1)" "$(cat "$GOT/plan.txt")"
ok "for the owner's eyes only" same "600 600 600 600 600 600" "$(stat -c %a "$GOT"/* | tr '\n' ' ' | sed 's/ $//')"
ok "in a folder that only he enters" same 700 "$(stat -c %a "$GOT")"
ok "nothing else is left" same 6 "$(find "$GOT" -type f | wc -l)"
inodes() { stat -c %i "$GOT"/* | tr '\n' ' '; }
before=$(inodes)
ok "a second time nothing is overwritten" status 0 at "$T/home/alice" as alice fetch 1
ok "which is said" says "(was there already)" at "$T/home/alice" as alice fetch 1
ok "and holds" same "$before" "$(inodes)"
echo mine >>"$GOT/metrics.jsonl"
ok "what is another one is kept" status 4 at "$T/home/alice" as alice fetch 1
ok "which is said, with the way out" says "is there already" at "$T/home/alice" as alice fetch 1
ok "and holds" same mine "$(tail -n 1 "$GOT/metrics.jsonl")"
ok "--force replaces" status 0 at "$T/home/alice" as alice fetch --force 1
cp "$GOT/job.json" "$T/job.json"
ln -sf "$T/job.json" "$GOT/job.json"
echo another >"$GOT/plan.txt"
ok "another plan, and a link where the job would be, are kept" status 4 as alice fetch -o "$GOT" 1
ok "which is said of the job" says "job.json is there already and is a symbolic link" as alice fetch -o "$GOT" 1
ok "and of the plan" says "plan.txt is there already and is not what the job has" as alice fetch -o "$GOT" 1
ok "and holds" same another "$(cat "$GOT/plan.txt")"
rm "$GOT/job.json" "$GOT/plan.txt"
ok "one that was fetched without them gets them" status 0 as alice fetch -o "$GOT" 1
ok "as they were" cmp "$T/job.json" "$GOT/job.json"
ok "--json has both, which no node has" json fetch -o "$GOT" 1 -- \
    "[(f['name'], f['node']) for f in j['files'][-2:]] == [('job.json', None), ('plan.txt', None)]"
sums() { as alice --json fetch --only weights -o "$T/json" 1 | python3 -c 'import json, sys
j = json.load(sys.stdin); print(j["files"][0]["sha256"], j["missing"])'; }
ok "--json names the digest" same "$(sha256sum <"$DIR0/weights.safetensors" | cut -c -64) []" "$(sums)"
ok "--only brought the weights alone" same weights.safetensors "$(ls "$T/json")"

# ---- what came is of use: by nothing but the folder
last() { python3 -c 'import json, sys
print(format([j for j in map(json.loads, sys.stdin) if "eval_loss" in j][-1]["eval_loss"], ".9g"))'; }
cat >"$T/tiny.yaml" <<'YAML'
name: tiny
workers: 1
network: linear
dataset: {kind: nonlinear, samples: 160}
batch_size: 16
epochs: 2
loss: mse
optimizer: {kind: momentum, learning_rate: 0.05, momentum: 0.9}
checkpoint: {every_epochs: 1, keep_max: 9}
YAML
# with keys that no file of hers has
tiny=$(as alice submit --set epochs=3 --set 'evaluate={dataset: {kind: nonlinear, samples: 64}}' "$T/tiny.yaml")
ok "a job that was submitted with --set" status 0 as alice wait --timeout 900 "$tiny"
ok "comes" status 0 as alice fetch -o "$T/use" "$tiny"
ok "is evaluated as in its training, to the last digit" same "$(last <"$T/use/metrics.jsonl")" "$("$MSCTL" --json eval "$T/use" | last)"
ok "predicts" status 0 "$MSCTL" predict -o "$T/lines.csv" "$T/use"
ok "a line a sample" same 65 "$(wc -l <"$T/lines.csv")"
ok "is exported" status 0 "$MSCTL" export "$T/use" -o "$T/tiny.onnx"
stem=$(as alice --json fetch --list "$tiny" | python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][-1]["name"])')
ok "an older checkpoint comes beside it" status 0 as alice fetch --checkpoint "$stem" -o "$T/use" "$tiny"
ok "or by itself, with the job, too" status 0 as alice fetch --checkpoint "$stem" -o "$T/alone" "$tiny"
digest_in() { python3 -c 'import json, sys; print([j for j in map(json.loads, open(sys.argv[1])) if "done" in j][-1]["weights_sha256"])' "$1/metrics.jsonl"; }
for folder in use alone; do
    ok "a run goes on from $folder, to the end of the job" status 0 "$MSCTL" run --resume "$T/$folder" --run-dir "$T/on-$folder" "$T/$folder/job.json"
    ok "by its plan" cmp "$T/$folder/plan.txt" "$T/on-$folder/plan.txt"
    ok "to its weights" same "$(digest_in "$T/use")" "$(digest_in "$T/on-$folder")"
done
ok "which is what is named where no job is" says "that of this run is $T/alone/job.json" "$MSCTL" run --resume "$T/alone"
ok "it is evaluated" status 0 "$MSCTL" eval "$T/alone" -w "$stem"
ok "and exported" status 0 "$MSCTL" export "$T/alone/$stem.json" -o "$T/tiny.ckpt"

# ---- lines that another node wrote, or for which there was no room
cp "$DIR0/metrics.jsonl" "$T/whole"
sed -i '/"step": *2[,}]/d; /"step":2[,}]/d' "$DIR0/metrics.jsonl"
ok "metrics with a hole come" status 0 as alice fetch --only metrics -o "$T/hole" 1
rm -r "$T/hole"
ok "and that is said" says "metrics.jsonl has no line of 1 of " as alice fetch --only metrics -o "$T/hole" 1
ok "with the first of them" says "the first is 2: another node wrote them" as alice fetch --force --only metrics -o "$T/hole" 1
cp "$T/whole" "$DIR0/metrics.jsonl"

# ---- what was changed since is not the job's
cp "$DIR0/weights.safetensors" "$T/honest"
python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(-1, 2); last = f.read(1); f.seek(-1, 2); f.write(bytes([last[0] ^ 1]))' "$DIR0/weights.safetensors"
ok "weights that were changed on the node are a failure" status 1 as alice fetch --only weights -o "$T/changed" 1
ok "which is named" says "holds not the weights that job 1 ended with" as alice fetch --force --only weights -o "$T/changed" 1
echo 'no weights at all' >"$DIR0/weights.safetensors"
ok "so is a file that holds none" status 1 as alice fetch --force --only weights -o "$T/changed" 1
cp "$T/honest" "$DIR0/weights.safetensors"
ok "the honest ones are a success" status 0 as alice fetch --force --only weights -o "$T/changed" 1

# ---- everybody else
ok "another user is refused" status 4 as bob fetch -o "$T/bob" 1
ok "and hears who may" says "only its owner or an admin" as bob fetch -o "$T/bob" 1
ok "nothing came" [ ! -e "$T/bob" ]
ok "the scheduler wrote it down" logged a "fetch.refused job=1"
ok "an admin may" status 0 as root fetch -o "$T/root" 1
ok "and gets the same" cmp "$DIR0/weights.safetensors" "$T/root/weights.safetensors"
cp "$T/tls/n1/node.p12" "$T/tls/n1.p12"
ok "a worker's certificate may not" status 4 as n1 fetch -o "$T/n1" 1
ok "who is on the head node needs no certificate" status 0 "$MSCTL" --server "unix:$SOCKET" fetch -o "$T/socket" 1
ok "and gets the same bytes" cmp "$DIR0/weights.safetensors" "$T/socket/weights.safetensors"

# ---- torn, and damaged on the way
mkdir -m 700 "$T/torn"
head -c 1000 "$DIR0/metrics.jsonl" >"$T/torn/.metrics.jsonl.part"
ok "a torn download goes on" says "went on at 1000 B" as alice fetch --only metrics -o "$T/torn" 1
ok "and is whole" cmp "$DIR0/metrics.jsonl" "$T/torn/metrics.jsonl"
rm "$T/torn/metrics.jsonl"
ok "weights come" status 0 as alice fetch --only weights -o "$T/torn" 1
head -c 1000 "$DIR0/metrics.jsonl" >"$T/torn/.metrics.jsonl.part"
ok "the same command completes what tore at the second file" status 0 as alice fetch -o "$T/torn" 1
ok "with all that there is" same 6 "$(find "$T/torn" -type f | wc -l)"
rm "$T/torn/weights.safetensors"
head -c 1000 /dev/zero >"$T/torn/.weights.safetensors.part"
ok "what does not fit is fetched from the start" status 0 as alice fetch --only weights -o "$T/torn" 1
ok "and is whole" cmp "$DIR0/weights.safetensors" "$T/torn/weights.safetensors"
mkdir -m 700 "$T/links"
: >"$T/links/victim"
ln -s victim "$T/links/.weights.safetensors.part"
ok "a link in the way is not followed" status 1 as alice fetch --only weights -o "$T/links" 1
ok "and its target stays empty" [ ! -s "$T/links/victim" ]
rm "$T/links/.weights.safetensors.part"
mkfifo "$T/links/.weights.safetensors.part"
ok "nor is a FIFO waited for" status 4 timeout 600 "$MSCTL" --config "$T/alice.conf" fetch --only weights -o "$T/links" 1

# ---- the scheduler starts again: it still knows who had what, and whose it is
stop a KILL
ok "the scheduler comes back" start_both "$HEAD"
ok "and its nodes" wait_for 120 idle 2
ok "a job of before can be fetched" status 0 as alice fetch -o "$T/again" 1
ok "and is the same" cmp "$DIR0/weights.safetensors" "$T/again/weights.safetensors"
ok "by nobody else" status 4 as bob fetch -o "$T/bob" 1

# ---- what there is not
ok "a job that never was" status 4 as alice fetch -o "$T/none" 99
ok "and one that never started will never have" says "has ended and left nothing" bash -c '
    id=$("$MSCTL" --config "$1/alice.conf" submit -n 9 "$1/short.yaml") && "$MSCTL" --config "$1/alice.conf" cancel "$id" &&
    "$MSCTL" --config "$1/alice.conf" fetch --only weights -o "$1/none" "$id"' - "$T"
mkdir "$T/mine" "$T/open" && chmod 777 "$T/open"
ok "for nothing, too" status 4 as alice fetch --only weights -o "$T/mine" "$(as alice submit -n 9 "$T/short.yaml")"
ok "a folder that was there stays" [ -d "$T/mine" ]
ok "a folder that others may write to gets nothing" says "chmod go-w" as alice fetch -o "$T/open" 1
ok "and is refused" status 4 as alice fetch -o "$T/open" 1
queued=$(as alice submit -n 900 "$T/short.yaml")
ok "a queued one has nothing yet" says "has nothing to fetch yet: it waits" as alice fetch -o "$T/none" "$queued"
ok "which takes one line, and not one for each rank" same 1 "$(as alice fetch -o "$T/none" "$queued" 2>&1 | wc -l)"
as alice cancel "$queued" >/dev/null
ok "nor one that never started" same "msctl: job $queued never started: it has ended and left nothing to fetch" \
    "$(as alice fetch -o "$T/none" "$queued" 2>&1)"
ok "it leaves no folder" [ ! -e "$T/none" ]
mv "$DIR1/worker_1.log" "$DIR1/kept"
ok "a log that is gone is a failure" status 4 as alice fetch --only logs -o "$T/partly" 1
ok "the other one came" cmp "$DIR0/worker_0.log" "$T/partly/worker_0.log"
mv "$DIR1/kept" "$DIR1/worker_1.log"
ok "rank 0's node ends" status 0 stop "$(node_of 0)"
ok "a node that is gone is exit 3" status 3 as alice fetch --only weights -o "$T/gone" 1
ok "its log, too" status 3 as alice logs 1
ok "which nobody takes for the scheduler's absence" bash -c '! "$MSCTL" --config "$1" logs 1 2>&1 | grep -E "the scheduler (was looked for|at .* did not answer)"' - "$T/alice.conf"
ok "with its host" says "on host $(hostname)" as alice fetch --only weights -o "$T/gone" 1
ok "and the path there" says "$DIR0/weights.safetensors" as alice fetch --only weights -o "$T/gone" 1

# ---- a private cluster, from outside
start run "$MSCTL" run --run-dir "$T/run" "$T/long.yaml"
ok "a run trains" wait_for 120 grep -q '"step":' "$T/run/metrics.jsonl"
ok "its metrics can be had while it does" status 0 "$MSCTL" -s "unix:$T/run/scheduler.sock" fetch --only metrics -o "$T/live" 1
ok "as far as they were written" bash -c 'head -c "$(stat -c %s "$1")" "$2" | cmp - "$1"' - "$T/live/metrics.jsonl" "$T/run/metrics.jsonl"
ok "weights it has none yet" says "job 1 is RUNNING: its weights come with its end" \
    "$MSCTL" -s "unix:$T/run/scheduler.sock" fetch --only weights -o "$T/live" 1
longer() { [ "$(stat -c %s "$T/run/metrics.jsonl")" -gt "$(stat -c %s "$T/live/metrics.jsonl")" ]; }
ok "it writes on" wait_for 60 longer
before=$(stat -c %s "$T/live/metrics.jsonl")
ok "without them it is no success" status 4 "$MSCTL" -s "unix:$T/run/scheduler.sock" fetch -o "$T/live" 1
ok "but the metrics that are there grow" bash -c '[ "$(stat -c %s "$1")" -gt "$3" ] && head -c "$(stat -c %s "$1")" "$2" | cmp - "$1"' - \
    "$T/live/metrics.jsonl" "$T/run/metrics.jsonl" "$before"
sed -i '/"step": *2[,}]/d; /"step":2[,}]/d' "$T/run/metrics.jsonl"
ok "a line that it lacks is said while it runs, too" says "metrics.jsonl has no line of 1 of " \
    "$MSCTL" -s "unix:$T/run/scheduler.sock" fetch --only metrics -o "$T/holed" 1
ok "it ends with Ctrl-C" status 130 stop run INT

# ---- TLS switched off in so many words
ok "a scheduler without TLS starts" start_sched plain
PLAIN=$(address_of plain)
start p1 "$MSWORKER" --server "$PLAIN" --tls off --node-id p1 --jobs-dir "$T/jobs-plain" --data-port-min 0 --data-port-max 0
mkdir -p "$T/jobs-plain"
plain() { MS_ENABLE_SSL=0 "$MSCTL" --server "$PLAIN" "$@"; }
ok "a node comes" wait_for 60 says "1 idle" plain status
ok "a job runs" status 0 plain wait --timeout 900 "$(plain submit -n 1 "$T/short.yaml")"
ok "fetch works there, too" status 0 plain fetch --only weights -o "$T/plain" 1
ok "and brings the file" cmp "$T/jobs-plain/1/weights.safetensors" "$T/plain/weights.safetensors"

# ---- folders do not stay for ever
ok "the other node ends, too" status 0 stop "$([ "$(node_of 0)" = n1 ] && echo n2 || echo n1)"
mkdir -p "$T/jobs-n3"
start_node n3 --jobs-dir "$T/jobs-n3" --job-keep-count 1
one() { as alice submit -n 1 "$T/short.yaml"; }
first=$(one)
ok "a job on a node that keeps one folder" status 0 as alice wait --timeout 900 "$first"
ok "its folder is there" [ -s "$T/jobs-n3/$first/weights.safetensors" ]
second=$(one)
ok "the next job" status 0 as alice wait --timeout 900 "$second"
gone() { [ ! -e "$T/jobs-n3/$first" ]; }
ok "takes its place" wait_for 60 gone
ok "and has its results" [ -s "$T/jobs-n3/$second/weights.safetensors" ]
ok "which the log says" wait_for 60 logged n3 "job_folder.old job=$first"
ok "fetching what is gone says so" says "its folder was cleaned" as alice fetch --only weights -o "$T/cleaned" "$first"

# ---- a number comes again with a new database: another job, and perhaps another user's
ok "the plain node ends" status 0 stop p1
ok "and its scheduler" status 0 stop plain
rm "$T"/plain.db*
ok "a new database begins" start_sched plain
PLAIN=$(address_of plain)
start p1 "$MSWORKER" --server "$PLAIN" --tls off --node-id p1 --jobs-dir "$T/jobs-plain" --data-port-min 0 --data-port-max 0
ok "the node comes again" wait_for 60 says "1 idle" plain status
ok "with job 1, again" same 1 "$(plain submit -n 1 "$T/long.yaml")"
ok "it has a folder of its own" wait_for 120 logged p1 "job_folder.aside job=1"
ok "it trains" wait_for 120 grep -q '"step":' "$T/jobs-plain/1/metrics.jsonl"
ok "and is cancelled" status 0 plain cancel 1
plain wait --timeout 900 1 >/dev/null
plain fetch --only weights -o "$T/anew" 1 >/dev/null 2>&1 # where its cancel came after a step it has some
ok "the weights of the other job 1 are not its own" bash -c '! cmp -s "$1" "$2"' - "$T/anew/weights.safetensors" "$T/plain/weights.safetensors"
ok "they are aside" cmp "$T/jobs-plain/1.1/weights.safetensors" "$T/plain/weights.safetensors"
ok "which the node says" logged p1 "job_folder.aside job=1"
mv "$T/jobs-plain/1" "$T/jobs-plain/aside"
mv "$T/jobs-plain/1.1" "$T/jobs-plain/1"
ok "nor where they are in its place" says "holds results of another job" plain fetch --only metrics -o "$T/again" 1
ok "its log neither" says "no log of rank 0" plain logs 1
finish
