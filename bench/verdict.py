"""verdict.py - whether a job that was struck is the undisturbed one: one line a check"""
import json
import os
import re
import subprocess

LOSS_LINE = re.compile(r"^epoch: \d+ step: \d+, loss is \S+$", re.M)

def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""

def rows_of(folder):
    """Of metrics.jsonl, what must not differ: steps with their loss, evaluations, the end."""
    rows = []
    for line in read(os.path.join(folder, "metrics.jsonl")).splitlines():
        row = json.loads(line)
        rows.append({key: row[key] for key in ("epoch", "step", "loss_hex", "eval_loss", "accuracy", "done", "steps",
                                               "weights_sha256", "plan_sha256") if key in row})
    return rows

def loss_lines(folder, rank):
    return LOSS_LINE.findall(read(os.path.join(folder, f"worker_{rank}.log")))

def first_difference(want, have):
    for i, pair in enumerate(zip(want, have)):
        if pair[0] != pair[1]:
            return f"line {i + 1}: {pair[1]}, without kills {pair[0]}"
    return f"{len(have)} lines, without kills {len(want)}"

def files_of(folder):
    names = set()
    for top, _, files in os.walk(folder):
        names |= {os.path.relpath(os.path.join(top, name), folder) for name in files}
    return names

def is_left_by_the_dead(path):
    """The lock of a writer that was killed between the end of its training and the end of its process."""
    words = read(path).split()
    return os.path.basename(path).startswith(".msched-lock-") and len(words) > 1 and not os.path.exists(f"/proc/{words[1]}")

def shared_names():
    """Of ours; fuzzers keep a folder of theirs there."""
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return {name for name in names if name.startswith("ms") and "fuzz" not in name}

class Verdict:
    def __init__(self):
        self.failed = []
        self.shared_before = shared_names()

    def check(self, what, holds, words=""):
        line = f"{'ok' if holds else 'FAILED'}: {what}{f' ({words})' if words else ''}"
        if not holds:
            self.failed.append(line)
        print(line, flush=True)

    # ---- the job

    def same_training(self, cluster, job, plain, workers):
        """job and plain: what `msctl show` says of the struck one and of the undisturbed one."""
        folder, other = cluster.job_folder(job["id"]), cluster.job_folder(plain["id"])
        self.check("the job succeeded", job["state"] == "SUCCEEDED", f"{job['state']}: {job['reason']}")
        for key in "weights_sha256", "plan_sha256":
            self.check(f"{key} is that of the undisturbed run", plain[key] and job[key] == plain[key], job[key][:16])
        try:
            have = rows_of(folder)
        except ValueError as error:
            have = [str(error)]
        want = rows_of(other)
        self.check("metrics.jsonl has every step, evaluation and loss_hex of it, once", have == want,
                   f"{len(have)} lines" if have == want else first_difference(want, have))
        for rank in range(workers):
            have, want = loss_lines(folder, rank), loss_lines(other, rank)
            self.check(f"worker_{rank}.log has its loss lines, once", have == want,
                       f"{len(have)} lines" if have == want else first_difference(want, have))

    def files(self, cluster, job, plain):
        folder, other = cluster.job_folder(job), cluster.job_folder(plain)
        have = {name for name in files_of(folder) if not name.startswith("checkpoints/")}
        want = {name for name in files_of(other) if not name.startswith("checkpoints/")}
        self.check("its folder has the files of the undisturbed run", have == want, " ".join(sorted(have ^ want)))
        left = os.listdir(cluster.tmp)
        self.check("no temporary file is left", not left, " ".join(left))
        left = shared_names() - self.shared_before
        self.check("nothing of it is in /dev/shm", not left, " ".join(sorted(left)))

    def checkpoints(self, cluster, job, keep_max):
        folder = os.path.join(cluster.job_folder(job), "checkpoints")
        names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        names = {name for name in names if not is_left_by_the_dead(os.path.join(folder, name))}
        stems = {name[:-5] for name in names if name.endswith(".json")}
        pairs = {stem + end for stem in stems for end in (".json", ".safetensors")}
        self.check("checkpoints are whole, and nothing else lies there", stems and names == pairs,
                   " ".join(sorted(names ^ pairs)) or f"{len(stems)} of {keep_max}")
        self.check("no more are kept than were asked for", len(stems) <= keep_max, str(len(stems)))
        for stem in stems:
            try:
                json.loads(read(os.path.join(folder, stem + ".json")))
            except ValueError as error:
                self.check("a manifest can be read", False, f"{stem}: {error}")
        texts = [read(os.path.join(cluster.folder, slot.name + ".log")) for slot in cluster.slots]
        texts += [read(os.path.join(cluster.job_folder(job), f"worker_{i}.log")) for i in range(len(cluster.slots))]
        damaged = [line for text in texts for line in text.splitlines() if "damaged" in line or "torn" in line]
        self.check("no torn checkpoint was ever read", not damaged, damaged[0] if damaged else "")

    # ---- what the scheduler tells

    def events(self, events, job, strokes):
        kinds = [event["kind"] for event in events if event["job"] == job["id"]]
        n = {kind: kinds.count("job." + kind) for kind in ("rank_lost", "rank_gone", "recovering", "recovered", "succeeded", "failed")}
        told = ", ".join(f"{count} {kind}" for kind, count in n.items())
        workers = job["workers"]
        # a machine that stands still for the time that peers wait costs a rank, and nobody killed it
        texts = [event["text"] for event in events if event["job"] == job["id"] and event["kind"] == "job.rank_lost"]
        n_slow = sum(" reports: waited " in text for text in texts)
        most = strokes.n_kills + strokes.n_freezes + workers * (strokes.n_head_kills + 2 * strokes.n_cuts) + n_slow
        n_told = n["rank_lost"] + n["rank_gone"] # gone: it had made all steps by the time that it was met
        self.check("events tell every rank that was killed while it trained, and none that was not",
                   strokes.n_sure <= n_told <= most, f"{strokes.n_sure} <= {n_told} <= {most}, {n_slow} of which were waited for")
        self.check("rounds follow losses, and steps follow rounds", n["recovering"] >= n["recovered"] >= 1, told)
        story = [kind for kind in kinds if kind in ("job.rank_lost", "job.recovering", "job.recovered")]
        broken = [i for i in range(1, len(story)) if story[i] == "job.recovered" and story[i - 1] == "job.rank_lost"]
        self.check("none recovered from a loss without a round", not broken, f"event {broken[0]}" if broken else "")
        self.check("it ended well, once", n["succeeded"] == 1 and n["failed"] == 0, told)
        numbers = [event["number"] for event in events]
        self.check("no event is told twice", len(numbers) == len(set(numbers)), f"{len(numbers)} events")

    def cluster_is_fine(self, cluster, slots):
        # of one moment: a node whose link was cut at the end may still be taken for lost in the next one, and come back
        try:
            status = cluster.wait_idle(slots)
        except TimeoutError:
            status = cluster.status() or {}
        fine = status.get("nodes_idle") == slots and status.get("nodes_registered") == slots and not status.get("jobs_running")
        self.check("all nodes are idle, and the scheduler is fine", fine and not status.get("jobs_queued"),
                   f"{status.get('nodes_idle')} idle, {status.get('jobs_running')} jobs")
        for program in [*cluster.slots, cluster.head]:
            self.check(f"{program.name} never ended but by a kill", not program.ended_alone,
                       f"{program.n_starts} starts" + (f", ended with {program.ended_alone}" if program.ended_alone else ""))

    def nobody_left(self, statuses, build):
        bad = {name: status for name, status in statuses.items() if status != 0}
        self.check("all programs end with 0 when they are asked to", not bad, str(bad) if bad else "")
        said = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True).stdout
        below, rows = {os.getpid()}, [line.split(None, 3) for line in said.splitlines()]
        for _ in rows: # parents come before children but for numbers that began anew
            below |= {int(row[0]) for row in rows if int(row[1]) in below}
            if len(below) == len(below | {int(row[0]) for row in rows if int(row[1]) in below}):
                break
        left = [row for row in rows if int(row[0]) in below and build in row[3] and int(row[0]) != os.getpid()
                and not row[2].startswith("Z")]
        self.check("no process is left over", not left, "; ".join(" ".join(row) for row in left))
