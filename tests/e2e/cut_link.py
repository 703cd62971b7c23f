#!/usr/bin/env python3
"""cut_link.py - two ranks on two hosts, spares on one of them, one of which is slow, and the data link cut for good (t2062)

    cut_link.py FOLDER BUILD

One line a check; 77: there are no network namespaces here."""
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from cluster import ENDED, Cluster, Steps, wait_until
from hosts import TwoHosts
from jobs import job_text

RANKS, SPARES = ("n0", "n3"), ("n1", "n2")  # n0 to n2 are on the first host
TEXT = job_text("lenet5", 2, 2000, "adam")

def ended(cluster, job):
    show = cluster.show(job)
    return show is not None and show["state"] in ENDED

def train(cluster, job):
    wait_until(lambda: ended(cluster, job), 240, f"the end of job {job}")
    return cluster.show(job)

def check(what, holds, text):
    print(f"{'ok' if holds else 'not ok'} - {what}{'' if holds else ': ' + str(text)}", flush=True)
    return holds

def hold_up(cluster, slots, job):
    """The spare that takes the rank stands still until the rank beside it has complained: it is slow. Says whether one was."""
    def taken():
        return [rank["node"] for rank in (cluster.show(job) or {"ranks": []})["ranks"] if rank["node"] in SPARES]
    def n_links():
        return sum(e["kind"] == "job.rank_lost" and e["facts"]["how"] == "link" for e in cluster.events(job))
    wait_until(lambda: taken() or ended(cluster, job), 120, "a spare with the rank")
    names = taken()
    if not names:
        return False
    slots[names[0]].signal(signal.SIGSTOP)
    before = n_links()
    try:
        wait_until(lambda: n_links() > before or ended(cluster, job), 120, f"a complaint about {names[0]}, which is held up")
    finally:
        slots[names[0]].signal(signal.SIGCONT)
    return True

def stays(moved):
    """Rank 0, unless two spares of its own host did not reach it: then it may be at fault. A step later all is forgotten."""
    links = [facts["rank"] for facts in moved if facts["how"] == "link" and facts["step"] == moved[0]["step"]]
    return 0 not in links or links[: links.index(0)].count(1) > 2

def struck(cluster, hosts, plain):
    """It trains on both hosts; the spares come, and the hosts do not reach each other any more."""
    slots = {slot.name: slot for slot in cluster.slots}
    job = cluster.submit(TEXT)
    steps = Steps(cluster.job_folder(job))
    wait_until(lambda: steps.look() >= 200, 120, "200 steps")
    for name in SPARES:
        slots[name].start()
    wait_until(lambda: (cluster.status() or {}).get("nodes_registered") == 4, 60, "the spares")
    hosts.cut("data")
    held_up = hold_up(cluster, slots, job)
    show = train(cluster, job)
    events = cluster.events(job)
    back = [e["facts"] for e in events if e["kind"] == "job.recovered"]
    moved = [e["facts"] for e in events if e["kind"] == "job.rank_lost"]
    good = check("the job ends well", show["state"] == "SUCCEEDED", show["reason"])
    good &= check("with the weights of the undisturbed run", show["weights_sha256"] == plain["weights_sha256"],
                  show["weights_sha256"])
    good &= check("it went on from a peer each time, and trained no step again",
                  len(back) > 0 and all(f["from"] == "peer" and f["again_to"] == 0 for f in back), back)
    good &= check("a spare was held up meanwhile", held_up, moved)
    good &= check("the rank beside one slow spare did not give way to it", stays(moved), moved)
    good &= check("events say that a link was cut", any(f["how"] == "link" for f in moved), moved)
    wait_until(lambda: cluster.status()["nodes_idle"] == 4, 60, "idle nodes")
    return check("whoever gave way is idle at the end", True, "") and good

def main(folder, build):
    try:
        hosts = TwoHosts()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no network namespaces here: {error}")
        return 77
    try:
        cluster = Cluster(folder, build, 4, [hosts.hosts[0], hosts.hosts[0], hosts.hosts[0], hosts.hosts[1]],
                          tls=True, lease_ms=10000, peer_timeout_ms=5000)
        try:
            cluster.head.start()
            wait_until(lambda: cluster.status() is not None, 60, "the scheduler")
            for slot in cluster.slots:
                if slot.name in RANKS:
                    slot.start()
            cluster.wait_idle(2)
            plain = train(cluster, cluster.submit(TEXT))
            good = check("undisturbed it ends well", plain["state"] == "SUCCEEDED", plain["reason"])
            good &= struck(cluster, hosts, plain)
        finally:
            hosts.join()
            cluster.stop()
    finally:
        hosts.remove()
    return 0 if good else 1

if __name__ == "__main__":
    began = time.monotonic()
    result = main(*sys.argv[1:])
    print(f"# {time.monotonic() - began:.0f} s")
    sys.exit(result)
