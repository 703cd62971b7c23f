"""recovery_torch.py - the same kill under torchrun with Gloo, where PyTorch is installed (bench/recovery)

    torchrun --nproc-per-node N recovery_torch.py FOLDER     the training itself

torchrun has no replica to take the state from: it ends all workers when one dies and starts them from the last checkpoint, which
is written each EVERY steps here. Where its agent shares its store with the workers, which is its default, PyTorch 2.15's Gloo does not
come together again after a kill: all wait in init_process_group. So it does not share it here."""
import importlib.util
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

EVERY = 10      # steps between checkpoints
STEP_S = 0.02   # about what a step of lenet5 takes beside others

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}

def train(folder):
    import torch
    import torch.distributed as dist
    from torch import nn
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    ddp = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    path, step = os.path.join(folder, "checkpoint.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    with open(os.path.join(folder, f"pid_{rank}"), "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
    with open(os.path.join(folder, "steps"), "a", encoding="utf-8") as log:
        while True:
            step += 1
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(ddp(torch.randn(8, 1, 32, 32)), torch.randint(10, (8,)))
            loss.backward()
            optimizer.step()
            if rank == 0:
                log.write(f"{time.time():.3f} {step}\n")
                log.flush()
                if step % EVERY == 0:
                    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".new")
                    os.replace(path + ".new", path)
            time.sleep(STEP_S)

def steps_of(folder):
    try:
        with open(os.path.join(folder, "steps"), encoding="utf-8") as file:
            return [(float(t), int(step)) for t, step in (line.split() for line in file if line.endswith("\n"))]
    except FileNotFoundError:
        return []

def wait_for_steps(folder, after, n, bound_s):
    """Lines behind the moment; None: they did not come."""
    end = time.monotonic() + bound_s
    while time.monotonic() < end:
        lines = [line for line in steps_of(folder) if line[0] > after]
        if len(lines) >= n:
            return lines
        time.sleep(0.02)
    return None

def one_kill(folder):
    """(ms to the next step, steps that run again); None: it did not go on within a minute."""
    if wait_for_steps(folder, time.time(), 2 * EVERY, 120) is None:
        return None
    with open(os.path.join(folder, "pid_1"), encoding="utf-8") as file:
        pid = int(file.read())
    at = time.time()
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1) # a step that all sums were there for is still written
    before = steps_of(folder)[-1]
    after = wait_for_steps(folder, before[0], 1, 60)
    return after and ((after[0][0] - at) * 1000, before[1] + 1 - after[0][1])

def compare(runs, workers):
    torchrun = shutil.which("torchrun")
    if importlib.util.find_spec("torch") is None or torchrun is None:
        print("torchrun: PyTorch is not installed here: skipped (python3 -m pip install torch)")
        return
    folder = tempfile.mkdtemp(prefix="msched-torch-")
    argv = [torchrun, "--standalone", f"--nproc-per-node={max(2, workers)}", f"--max-restarts={runs + 1}", os.path.abspath(__file__),
            folder]
    with open(os.path.join(folder, "log"), "wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env=ENVIRONMENT)
        try:
            figures = [one_kill(folder) for _ in range(runs)]
        finally:
            process.terminate()
            process.wait()
    good = [figure for figure in figures if figure is not None]
    title = f"torchrun, lenet5, {max(2, workers)} workers"
    if good:
        print(f"{title}: next step: {statistics.median(ms for ms, _ in good):.0f} median, {max(ms for ms, _ in good):.0f} worst "
              f"of {len(good)} ms")
        print(f"{title}: steps that run again: {statistics.median(n for _, n in good):.0f} median, {max(n for _, n in good)} worst")
    print(f"{title}: did not go on within a minute: {len(figures) - len(good)} of {len(figures)}")
    shutil.rmtree(folder, ignore_errors=True)

if __name__ == "__main__":
    train(sys.argv[1])
