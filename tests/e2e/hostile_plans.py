"""hostile_plans.py - plans that no rank would say, or not then: each by hand, with what all who hear of it are answered

A job of two ranks is placed on two workers made here. One frame is said, and then everything is compared that the speaker and
the other rank hear, and what became of the job. Surroundings: those of hostile.py.
Standard library only."""
import os, re, sys
from hostile import FIELDS, KINDS, NAMES, CODES, PROBE, Peer, frame, message, parse, probe, read

PLAN = b"msched plan 1\nsection bits\nsection memory\nend\n"
OTHER = PLAN.replace(b"bits\n", b"bits\nthreads 2\n")
LEVEL = int(re.search(r"MS_WIRE_LEVEL = (\d+)", read("proto/wire.h"))[1])
LIMIT = int.__lshift__(*map(int, re.search(r"#define MS_PLAN_MAX\s+\((\d+)U << (\d+)\)", read("proto/limits.h")).groups()))

def long_plan(size):
    return PLAN.replace(b"bits\n", b"bits\n" + b"x" * (size - len(PLAN) - 1) + b"\n")

def field(name, body, wanted):
    return parse(body).get(next(number for _, _, field_, number in FIELDS[name] if field_ == wanted))

# ---- two ranks ----

serial = 0

class Rank(Peer):
    """A worker on a host of its own and without a certificate: another one's end would pause what is of that."""
    def __init__(self, level):
        global serial
        super().__init__("anyone")
        serial += 1
        self.plan_from, self.rank = None, None
        node = b"plan-%d-%d" % (os.getpid(), serial)
        self.send(frame(KINDS["Register"], message(
            "Register", node_id=node, incarnation=serial, host_name=node, host_id=node, data_address=b"127.0.0.1:1",
            cores=1, isa=b"avx2", onednn=b"2.6.3", pid=1, level=level)))
        kind, _, body = self.next()
        assert kind == KINDS["Registered"], body

    def take_rank(self):
        kind, body = None, b""
        while kind != KINDS["Assign"]:
            kind, _, body = self.next()
        self.job, self.generation = field("Assign", body, "job"), field("Assign", body, "generation")
        self.rank, self.plan_from = field("Assign", body, "rank") or 0, field("Assign", body, "plan_from") or 0

    def say(self, name, **values):
        """What this rank says of its job, but for the values that are given."""
        own = {"job": self.job, "generation": self.generation, "rank": self.rank}
        self.send(frame(KINDS[name], message(name, **{**own, **values})))

    def heard(self):
        """Everything up to the answer of a question that is asked now: 'Plan, Stop', 'Error: refused', ..."""
        self.send(probe(self))
        words = []
        while True:
            got = self.next()
            if got is None:
                return ", ".join(words + ["closed"])
            kind, ident, body = got
            if ident == PROBE:
                return ", ".join(words)
            words.append(describe(kind, body))

def describe(kind, body):
    word = NAMES[kind]
    if kind == KINDS["Error"]:
        code = field("Error", body, "code") or 0
        return word + ": " + CODES.get(code - (1 << 64) if code >> 63 else code, "?")
    if kind == KINDS["Plan"]:
        return word + {PLAN: "", OTHER: " (the other one)", long_plan(LIMIT): " of the largest size"}.get(
            field("Plan", body, "plan"), " that nobody said")
    return word

class Pair:
    """Both ranks of a job that gets ready, and who submitted it."""
    def __init__(self, plan=None, levels=(LEVEL, LEVEL)):
        self.ranks = [Rank(level) for level in levels]
        self.owner = Peer("anyone")
        self.submit(plan)
        for rank in self.ranks:
            rank.take_rank()
        self.ranks.sort(key=lambda rank: rank.rank)

    def submit(self, plan):
        values = {"plan": plan} if plan is not None else {}
        self.owner.send(frame(KINDS["Submit"], message("Submit", job_json=b"{}", name=b"plans", workers=2, **values)))
        kind, _, body = self.owner.next()
        assert kind == KINDS["Submitted"], describe(kind, body)
        self.id = field("Submitted", body, "job")

    def state(self):
        self.owner.send(frame(KINDS["JobQuery"], message("JobQuery", job=self.id)))
        kind, _, body = self.owner.next()
        return field("JobInfo", field("JobList", body, "jobs"), "state").decode() if kind == KINDS["JobList"] else "gone"

    def close(self):
        self.owner.send(frame(KINDS["Cancel"], message("Cancel", job=self.id)))
        self.owner.next()
        for peer in [*self.ranks, self.owner]:
            peer.close()

def settle(pair, speaker):
    """What the speaker heard, what the other rank heard after it, what the job is then."""
    said = pair.ranks[speaker].heard()
    return said, pair.ranks[1 - speaker].heard(), pair.state()

# ---- what a rank says ----

def ranks_say(*sayings, plan=None, levels=(LEVEL, LEVEL), plan_from=1, ready=False):
    """Each saying is (rank that speaks, name, values); generation may be a difference to the one that holds."""
    def run():
        pair = Pair(plan, levels)
        said = [rank.plan_from for rank in pair.ranks]
        assert said == [plan_from] * 2, said
        begun = ["Plan" if plan is not None else ""] * 2
        if ready:
            for rank in pair.ranks:
                rank.say("RankReady")
            begun = ["Start"] * 2
        heard = [rank.heard() for rank in pair.ranks]
        assert heard == begun, heard
        for speaker, name, values in sayings:
            values = dict(values)
            if "newer" in values:
                values["generation"] = pair.ranks[speaker].generation + values.pop("newer")
            pair.ranks[speaker].say(name, **values)
        result = settle(pair, sayings[0][0])
        pair.close()
        return result
    return run

def rank_plan(speaker, plan=PLAN, **values):
    return speaker, "RankPlan", {"plan": plan, **values}

# ---- what a user submits ----

def user_submits(plan):
    def run():
        peer = Peer("anyone")
        peer.send(frame(KINDS["Submit"], message("Submit", job_json=b"{}", name=b"plans", workers=1000, plan=plan), 7) +
                  frame(KINDS["StatusQuery"], b"", PROBE))
        words = []
        while (got := peer.next()) is not None and got[1] != PROBE:
            words.append(describe(got[0], got[2]))
            job = field("Submitted", got[2], "job")
        if words == ["Submitted"]:
            peer.send(frame(KINDS["Cancel"], message("Cancel", job=job)))
            peer.next()
        peer.close()
        return ", ".join(words + (["closed"] if got is None else []))
    return run

# ---- the cases ----

CLOSED = ("Error: protocol, closed", "Stop", "QUEUED")
TEXTS = [("a NUL", b"\0"), ("an escape", b"\x1b[2J"), ("a bell", b"\a"), ("a carriage return", b"\r"), ("a C1 control", b"\xc2\x9b"),
         ("a reversed direction", b"\xe2\x80\xae"), ("no UTF-8", b"\xff"), ("half a surrogate pair", b"\xed\xa0\x80")]

def with_text(text):
    return PLAN.replace(b"bits\n", b"bits" + text + b"\n")

CASES = [
    ("rank 0 says its plan", ranks_say(rank_plan(0)), ("Plan", "Plan", "PLACING")),
    ("... twice: it hears it again", ranks_say(rank_plan(0), rank_plan(0)), ("Plan, Plan", "Plan", "PLACING")),
    ("... and then another one", ranks_say(rank_plan(0), rank_plan(0, OTHER)), ("Plan, Stop", "Plan, Stop", "FAILED")),
    ("... of the largest size", ranks_say(rank_plan(0, long_plan(LIMIT))),
     ("Plan of the largest size", "Plan of the largest size", "PLACING")),
    ("... of a byte more", ranks_say(rank_plan(0, long_plan(LIMIT + 1))), CLOSED),
    ("... larger than its frame may be", ranks_say(rank_plan(0, long_plan(2 * LIMIT))), CLOSED),
    ("... of an old generation", ranks_say(rank_plan(0, newer=-1)), ("", "", "PLACING")),
    ("... of one to come", ranks_say(rank_plan(0, newer=1)), ("", "", "PLACING")),
    ("... of no generation", ranks_say(rank_plan(0, generation=0)), ("", "", "PLACING")),
    ("... of another job", ranks_say(rank_plan(0, job=999999)), ("", "", "PLACING")),
    ("... which is empty", ranks_say(rank_plan(0, b"")), ("Error: invalid", "", "PLACING")),
    ("... which is none", ranks_say(rank_plan(0, b"hello")), ("Error: invalid", "", "PLACING")),
    ("... after the start", ranks_say(rank_plan(0), ready=True), ("", "", "RUNNING")),
    ("... where the plan came with the job", ranks_say(rank_plan(0, OTHER), plan=PLAN, plan_from=2),
     ("Error: invalid", "", "PLACING")),
    ("... where the other rank knows no plans", ranks_say(rank_plan(0), levels=(LEVEL, 0), plan_from=0),
     ("Error: invalid", "", "PLACING")),
    ("rank 1 says one", ranks_say(rank_plan(1)), ("Error: invalid", "", "PLACING")),
    ("... in the name of rank 0", ranks_say(rank_plan(1, rank=0)), ("", "", "PLACING")),
    ("... in that of a rank that is none", ranks_say(rank_plan(1, rank=(1 << 32) - 1)), ("", "", "PLACING")),
    ("rank 0 sends Plan, which is the scheduler's to say", ranks_say((0, "Plan", {"plan": PLAN})),
     ("Error: refused", "", "PLACING")),
    ("rank 1 does", ranks_say((1, "Plan", {"plan": PLAN})), ("Error: refused", "", "PLACING")),
    *[("rank 0 says a plan with " + what, ranks_say(rank_plan(0, with_text(text))), CLOSED) for what, text in TEXTS],
    ("a user submits a plan", user_submits(PLAN), "Submitted"),
    ("... of the largest size", user_submits(long_plan(LIMIT)), "Submitted"),
    ("... of a byte more", user_submits(long_plan(LIMIT + 1)), "Error: protocol, closed"),
    ("... larger than its frame may be", user_submits(long_plan(3 * LIMIT)), "Error: protocol, closed"),
    ("... which is none", user_submits(b"hello"), "Error: invalid"),
    *[("... with " + what, user_submits(with_text(text)), "Error: protocol, closed") for what, text in TEXTS],
]

failed = 0
for what, run, want in CASES:
    try:
        got = run()
    except (AssertionError, OSError, TypeError) as problem:  # it was answered otherwise before that
        got = repr(problem)
    if got != want:
        failed += 1
        print(f"{what}: {got}, and not {want}")
print(len(CASES), "cases")
sys.exit(failed > 0)
