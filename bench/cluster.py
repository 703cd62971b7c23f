"""cluster.py - a standing cluster on this host, each program under a supervisor that starts it again at once, as systemd does

For bench/chaos and bench/recovery. A Program is killed by its pid; who ended by itself is remembered, for nobody may."""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE = 5 # how much longer things may take on a busy machine, and with sanitizers

def wait_until(holds, bound_s, what):
    """Polls; an end far above what a slow machine needs."""
    bound_s *= PATIENCE
    end = time.monotonic() + bound_s
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {bound_s} s for: {what}")
        time.sleep(0.01)

def free_port():
    """Below the ports that the kernel gives to who connects: it stays free while the scheduler is dead."""
    while True:
        port = random.SystemRandom().randrange(15000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                pass

class Program:
    """One program and its supervisor. restart_s is how long the next one waits; keep_down: until release()."""

    def __init__(self, name, argv, env, log):
        self.name, self.argv, self.env, self.log = name, argv, env, log
        self.restart_s = 0.0
        self.process = None
        self.started = 0.0      # wall clock
        self.n_starts = 0
        self.ended_alone = []   # exit statuses of those that nobody killed
        self.lock = threading.Lock()
        self.killed = None      # pid that was killed last
        self.stopping = False
        self.may_start = threading.Event()
        self.may_start.set()
        self.thread = threading.Thread(target=self._supervise, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def _supervise(self):
        # the parent's death is this program's, too: nothing is left behind however the driver ends
        argv = ["setpriv", "--pdeathsig", "KILL", *self.argv]
        while self.may_start.wait() and not self.stopping:
            with open(self.log, "ab") as log:
                process = subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            with self.lock:
                self.process, self.started = process, time.time()
                self.n_starts += 1
            status = process.wait()
            with self.lock:
                if self.killed != process.pid and not self.stopping:
                    self.ended_alone.append(status)
            if self.restart_s > 0:
                time.sleep(self.restart_s)

    def pid(self):
        """0: none is alive, or it has been killed."""
        with self.lock:
            process = self.process
            return process.pid if process and process.returncode is None and self.killed != process.pid else 0

    def kill(self):
        """SIGKILL; false where nobody was alive."""
        with self.lock:
            process = self.process
            if process is None or process.returncode is not None or self.killed == process.pid:
                return False
            self.killed = process.pid
            process.send_signal(signal.SIGKILL)
            return True

    def signal(self, number):
        with self.lock:
            if self.process is not None:
                self.process.send_signal(number)

    def keep_down(self):
        self.may_start.clear()

    def release(self):
        self.may_start.set()

    def stop(self):
        """TERM; its exit status, -9 where it took longer than five minutes."""
        self.stopping = True
        self.may_start.set()
        if self.process is not None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(60 * PATIENCE)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGKILL)
        self.thread.join(10)
        return self.process.returncode if self.process else 0

class Host:
    """This host. hosts.py has others, in network namespaces."""
    address = "127.0.0.1"
    data_address = "127.0.0.1"

    def on(self, argv):
        return argv

def clean_environment(tmp):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("MS_", "MSCHED_")) or k.endswith("_OPTIONS")}
    # as the unit does: cli/run_children.c says why
    return {**kept, "GOMP_SPINCOUNT": "5000", "TMPDIR": tmp, "HOME": tmp}

class Cluster:
    """msschedd, and slots n0, n1, ... on the hosts in turn: n0 to n1 on the first of two hosts, n2 and n3 on the second."""

    def __init__(self, folder, build, slots, hosts=None, tls=False, lease_ms=3000, peer_timeout_ms=600000):
        for path in ("daemon", "msschedd"), ("libworker", "msworker"), ("cli", "msctl"):
            if not os.access(os.path.join(build, *path), os.X_OK):
                sys.exit(f"{build} is no folder of a build: it has no {'/'.join(path)}; ninja -C {build} makes it")
        self.folder, self.build, self.tls, self.lease_ms = folder, build, tls, lease_ms
        self.peer_timeout_ms = peer_timeout_ms
        self.hosts = hosts or [Host()]
        self.jobs = os.path.join(folder, "jobs")
        self.tmp = os.path.join(folder, "tmp")
        for path in self.jobs, self.tmp:
            os.makedirs(path, mode=0o700)
        self.env = clean_environment(self.tmp)
        self.settings = os.path.join(folder, "empty.conf")
        open(self.settings, "w", encoding="utf-8").close()
        self.socket = os.path.join(folder, "head.sock")
        self.port = free_port()
        if tls:
            self._make_certificates(slots)
        self.head = self._head()
        self.slots = [self._slot(i, self.hosts[i * len(self.hosts) // slots]) for i in range(slots)]

    def _program(self, *path):
        return os.path.join(self.build, *path)

    # ---- certificates

    def _certs(self, *words):
        subprocess.run([self._program("cli", "msctl"), "certs", "--dir", os.path.join(self.folder, "ca"), *words],
                       check=True, env=self.env, stdout=subprocess.DEVNULL)

    def _issue(self, role, name, host):
        folder = os.path.join(self.folder, "tls", name)
        os.makedirs(folder)
        self._certs("issue", role, name, "--host", host, "--out", os.path.join(folder, "node.p12"))
        os.link(os.path.join(self.folder, "ca", "ca.crt"), os.path.join(folder, "ca.crt"))

    def _make_certificates(self, slots):
        self._certs("init")
        self._issue("scheduler", "head", self.hosts[0].address)
        for i in range(slots):
            self._issue("worker", f"n{i}", self.hosts[i * len(self.hosts) // slots].data_address)

    # ---- programs

    def _head(self):
        tls = os.path.join(self.folder, "tls", "head")
        words = ["--tls", "on", "--tls-crl", "none", "--tls-ca", os.path.join(tls, "ca.crt"),
                 "--tls-cert", os.path.join(tls, "node.p12")] if self.tls else ["--tls", "off"]
        argv = [self._program("daemon", "msschedd"), "--config", self.settings, "--listen",
                f"{self.hosts[0].address}:{self.port}", "--socket", self.socket, "--database",
                os.path.join(self.folder, "state.db"), "--lease-ms", str(self.lease_ms), *words]
        return Program("head", self.hosts[0].on(argv), self.env, os.path.join(self.folder, "head.log"))

    def _slot(self, i, host):
        name = f"n{i}"
        words = ["--tls-dir", os.path.join(self.folder, "tls", name)] if self.tls else ["--tls", "off"]
        argv = [self._program("libworker", "msworker"), "--server", f"{self.hosts[0].address}:{self.port}",
                "--node-id", name, "--jobs-dir", self.jobs, "--data-port-min", "0", "--data-port-max", "0",
                "--lease-ms", str(self.lease_ms), "--peer-timeout-ms", str(self.peer_timeout_ms),
                "--worker-ip", host.data_address, "--data-roots", "any", *words]
        slot = Program(name, host.on(argv), self.env, os.path.join(self.folder, f"{name}.log"))
        slot.host = host
        return slot

    def start(self):
        self.head.start()
        wait_until(lambda: self.status() is not None, 60, "the scheduler")
        for slot in self.slots:
            slot.start()
        self.wait_idle(len(self.slots))

    def stop(self):
        """Exit statuses by name."""
        return {program.name: program.stop() for program in [*self.slots, self.head]}

    # ---- what the scheduler says

    def ctl(self, *words):
        """What msctl --json says, parsed; None where it failed."""
        argv = [self._program("cli", "msctl"), "--config", self.settings, "--server", f"unix:{self.socket}", "--json"]
        try:
            said = subprocess.run([*argv, *words], env=self.env, capture_output=True, timeout=60 * PATIENCE, check=False)
            return json.loads(said.stdout) if said.returncode in (0, 1, 5) and said.stdout.strip() else None
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            return None

    def status(self):
        return self.ctl("status")

    def show(self, job):
        return self.ctl("show", str(job))

    def events(self, job):
        """The oldest first."""
        return sorted(self.ctl("events", "-n", "100000", str(job)) or [], key=lambda event: event["number"])

    def wait_idle(self, n):
        """The status in which n nodes are here, all idle."""
        status = None
        def idle():
            nonlocal status
            status = self.status()
            return status is not None and status["nodes_idle"] == n and status["nodes_registered"] == n
        wait_until(idle, 120, f"{n} idle nodes")
        return status

    def submit(self, text):
        """Its number."""
        path = os.path.join(self.folder, "job.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        argv = [self._program("cli", "msctl"), "--config", self.settings, "--server", f"unix:{self.socket}", "submit", path]
        said = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        if said.returncode != 0:
            raise RuntimeError(f"submit: {said.stderr.strip()}")
        return int(said.stdout)

    def job_folder(self, job):
        return os.path.join(self.jobs, str(job))

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")

class Steps:
    """What metrics.jsonl shows while it grows: the highest step that was ever whole in it, and when that was seen."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "metrics.jsonl")
        self.step = 0
        self.generation = 0
        self.seen = time.monotonic()
        self.done = False

    def look(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 2048))
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return self.step
        for line in reversed(lines):
            try:
                row = json.loads(line)
            except ValueError:
                continue # its beginning was not read
            self.done = self.done or "done" in row
            if "step" in row:
                if row["step"] > self.step:
                    self.step, self.seen = row["step"], time.monotonic()
                self.generation = max(self.generation, row["generation"])
                break
        return self.step
