"""strokes.py - what bench/chaos does to a cluster under a job, and when: all of it from one seed

A stroke kills, freezes or cuts off. The next one comes after so many steps of the job, or at any moment of the recovery from
the last one; but docs/recovery.md, "When it is enough", is kept to: not a fourth without a step in between. Where the job has
no checkpoints one rank that holds the state is left alone."""
import ctypes
import os
import select
import signal
import struct
import time

from cluster import ENDED, Steps

RESTARTS = 3            # docs/recovery.md: the fourth loss without a step fails the job
STANDSTILL_S = 240      # no step for so long: the job is stuck

# weights of what is done, by mode
KINDS = {
    "workers": {"one": 60, "several": 20, "head": 6, "head and some": 6, "freeze": 4, "freeze long": 3, "freeze head": 1},
    "all": {"everything": 40, "all workers": 30, "several": 15, "head and some": 10, "one": 5},
    "checkpoints": {"one": 35, "several": 15, "all workers": 25, "everything": 20, "head": 5},
    "netns": {"one": 40, "several": 15, "head": 4, "head and some": 4, "freeze": 2, "freeze long": 3, "cut": 12,
              "cut long": 10, "cut data": 10},
}

class FolderWatch:
    """Wakes who waits when a file in a folder is made, closed or renamed (inotify)."""
    CREATED, CLOSED, MOVED = 0x100, 0x8, 0x80

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.path, self.watched = path, False

    def wait(self, seconds):
        """The name that changed; None."""
        if not self.watched:
            mask = self.CREATED | self.CLOSED | self.MOVED
            self.watched = self.libc.inotify_add_watch(self.fd, self.path.encode(), mask) >= 0
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        data = os.read(self.fd, 65536)
        length = struct.unpack_from("iIII", data)[3]
        return data[16:16 + length].rstrip(b"\0").decode()

    def drain(self):
        while self.watched and select.select([self.fd], [], [], 0)[0]:
            os.read(self.fd, 65536)

class Strokes:
    def __init__(self, cluster, job, options, rng, say):
        self.cluster, self.job, self.options, self.rng, self.say = cluster, job, options, rng, say
        self.steps = Steps(cluster.job_folder(job))
        self.kinds = {name: weight for name, weight in KINDS[options.mode].items() if name not in options.without}
        self.checkpoints = options.checkpoint_every > 0
        self.folder = FolderWatch(os.path.join(cluster.job_folder(job), "checkpoints"))
        self.n_kills = self.n_head_kills = self.n_freezes = self.n_cuts = self.n_sure = 0
        self.counts = {}
        self.since_step = 0     # strokes since the last step
        self.step_after = 0     # the highest step when the last stroke had taken effect
        self.holders = {}       # pid by slot of those that hold the state of the training
        self.target = 0
        self.last = options.steps * 0.95 # before the end there is a stroke of its own
        self.began = self.asked = time.monotonic()
        self.has_ended = False

    # ---- what is known

    def look_who_holds(self):
        """Asks the scheduler; the slots whose ranks take part in steps. Without one, those of the last time that live."""
        job = self.cluster.show(self.job) if self.cluster.head.pid() else None
        running = set()
        if job and job["state"] == "RUNNING":
            pids = {rank["node"]: rank["pid"] for rank in job["ranks"] if rank["state"] == "training"}
            for slot in self.cluster.slots:
                if slot.pid() and pids.get(slot.name) == slot.pid():
                    self.holders[slot.name] = slot.pid()
                    running.add(slot.name)
        self.holders = {slot.name: slot.pid() for slot in self.cluster.slots
                        if slot.pid() and self.holders.get(slot.name) == slot.pid()}
        return running

    def goes_on(self):
        if self.steps.look() > self.step_after:
            self.since_step = 0
        idle_s = time.monotonic() - max(self.steps.seen, self.began)
        if idle_s > STANDSTILL_S:
            raise TimeoutError(f"no step for {idle_s:.0f} s")
        if idle_s > 1 and time.monotonic() > self.asked + 1:
            self.asked = time.monotonic()
            self.has_ended = (self.cluster.show(self.job) or {}).get("state") in ENDED
        return self.steps.step < self.options.steps and not self.has_ended

    def may_strike(self):
        return self.since_step < RESTARTS

    # ---- when

    def wait_for_moment(self):
        """False: the job has all its steps."""
        left = max(1, self.options.kills - self.n_kills)
        in_recovery = self.rng.random() < self.options.again
        gap = (self.last - self.steps.step) / left * self.mean_kills() * 0.8 # not all strokes meet as many
        self.target = min(self.last, self.steps.step + max(1, int(gap * self.rng.uniform(0, 2))))
        moment = time.monotonic() + (self.rng.uniform(0, self.options.again_s) if in_recovery else STANDSTILL_S)
        while self.goes_on():
            # a fast job recovers, and makes hundreds of steps, before a moment of its recovery is there
            if self.may_strike() and (self.steps.step >= self.target or time.monotonic() >= moment):
                return self.wait_for_instant()
            time.sleep(0.002)
        return False

    def wait_for_instant(self):
        """Within a step; or, where checkpoints are the aim, while one is written."""
        if self.options.mode != "checkpoints":
            time.sleep(self.rng.uniform(0, 0.03))
            return True
        self.folder.drain()
        while self.goes_on() and self.steps.step < self.last:
            if self.folder.wait(0.05) is not None:
                break
        time.sleep(self.rng.uniform(0, 0.01))
        return True

    def kills_of(self, kind):
        """How many a stroke of the kind kills, in the mean."""
        slots = len(self.cluster.slots)
        kills = {"one": 1, "several": 2, "head": 1, "head and some": 2.5, "all workers": slots, "everything": slots + 1}
        return kills.get(kind, 0)

    def mean_kills(self):
        return sum(self.kills_of(kind) * weight for kind, weight in self.kinds.items()) / sum(self.kinds.values())

    def choose(self):
        """A kind of stroke. Where few steps are left for the kills that are, one that kills: a fast job runs out of steps
        while links are cut."""
        kinds = [kind for kind in self.kinds if self.steps.step < self.last or self.kills_of(kind) > 0] or list(self.kinds)
        return self.rng.choices(kinds, [self.kinds[kind] for kind in kinds])[0]

    # ---- whom

    def victims(self, n):
        """n slots that live; without checkpoints one holder stays."""
        slots = [slot for slot in self.cluster.slots if slot.pid()]
        self.rng.shuffle(slots)
        chosen = slots[:n]
        if not self.checkpoints:
            left = [slot for slot in slots if slot not in chosen and slot.name in self.holders]
            if not left:
                spared = [slot for slot in chosen if slot.name in self.holders][:1]
                if not spared: # nobody holds anything yet: nothing can be lost but time
                    return chosen[:1] if self.steps.step == 0 else []
                chosen.remove(spared[0])
        return chosen

    # ---- what

    def kill(self, slots, running):
        for slot in slots:
            sure = slot.name in running
            if slot.kill():
                self.n_kills += 1
                self.n_sure += sure

    def kill_head(self, down_s):
        self.cluster.head.restart_s = down_s
        if self.cluster.head.kill():
            self.n_kills += 1
            self.n_head_kills += 1

    def freeze(self, program, seconds):
        self.n_freezes += 1
        program.signal(signal.SIGSTOP)
        time.sleep(seconds)
        program.signal(signal.SIGCONT)

    def cut(self, which, seconds):
        self.n_cuts += 1
        self.options.hosts.cut(which)
        time.sleep(seconds)
        self.options.hosts.join()

    def strike(self):
        kind = self.choose()
        lease_s, slots = self.cluster.lease_ms / 1000, len(self.cluster.slots)
        running = self.look_who_holds()
        down_s = self.rng.choice([0, 0, self.rng.uniform(0, 1.5), self.rng.uniform(0, lease_s)])
        room = self.options.kills - self.n_kills
        before = self.n_kills
        if kind == "one":
            self.kill(self.victims(1), running)
        elif kind == "several":
            self.kill(self.victims(min(room, self.rng.randint(2, max(2, slots - 1)))), running)
        elif kind == "all workers":
            self.kill(self.victims(min(room, slots)), running)
        elif kind == "everything":
            self.kill_head(down_s)
            self.kill(self.victims(min(room - 1, slots)), running)
        elif kind == "head":
            self.kill_head(down_s)
        elif kind == "head and some":
            some = self.victims(min(room - 1, self.rng.randint(1, max(1, slots - 1))))
            if self.rng.random() < 0.5:
                self.kill(some, running)
                self.kill_head(down_s)
            else:
                self.kill_head(down_s)
                time.sleep(self.rng.uniform(0, down_s))
                self.kill(some, set())
        elif kind == "freeze head":
            self.freeze(self.cluster.head, self.rng.uniform(0.05, 2))
        elif kind.startswith("freeze"):
            long_s = self.rng.uniform(lease_s * 1.1, lease_s * 1.6)
            for slot in self.victims(1):
                self.freeze(slot, long_s if kind == "freeze long" else self.rng.uniform(0.02, lease_s * 0.5))
        elif kind == "cut":
            self.cut("all", self.rng.uniform(0.05, lease_s * 0.5))
        elif kind == "cut long":
            self.cut("all", self.rng.uniform(lease_s * 1.2, lease_s * 2))
        elif kind == "cut data":
            patience_s = self.cluster.peer_timeout_ms / 1000
            self.cut("data", self.rng.uniform(0.05, patience_s * 1.5))
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.since_step += 1
        if self.n_kills > before:
            time.sleep(0.05) # a step that all sums were there for is still written
        self.step_after = self.steps.look()
        self.say(f"stroke {sum(self.counts.values())}: {kind}, {self.n_kills} kills, step {self.step_after}")

    def strike_at_end(self):
        """In one of the last steps, or after it: ranks that are done are lost like others."""
        while self.goes_on() and (self.steps.step < self.options.steps - self.rng.randint(0, 2) or not self.may_strike()):
            time.sleep(0.001)
        time.sleep(self.rng.uniform(0, 0.05))
        self.look_who_holds()
        self.kill(self.victims(self.rng.randint(1, max(1, self.options.workers - 1))), set())
        self.say(f"stroke at the end: {self.n_kills} kills, step {self.steps.look()}")

    def run(self):
        """All strokes, then the end of the job; its last `msctl show`."""
        while self.n_kills < self.options.kills and self.wait_for_moment():
            self.strike()
        self.cluster.head.restart_s = 0
        if self.options.kills > 0:
            self.strike_at_end()
        while True:
            self.goes_on()
            job = self.cluster.show(self.job)
            if job and job["state"] in ENDED:
                return job
            time.sleep(0.1)
