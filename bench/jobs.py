"""jobs.py - the jobs of bench/chaos and bench/recovery: small steps, so that many kills meet many moments"""
import os

OPTIMIZERS = {
    "sgd": "{kind: sgd, learning_rate: 0.01}",
    "momentum": "{kind: momentum, learning_rate: 0.01, momentum: 0.9}",
    "adam": "{kind: adam, learning_rate: 0.001}",
}
NETWORKS = ("linear", "mnist", "lenet5", "cifar_small", "resnet50")
RESCALE = "{rescale: {scale: 0.00392156862745098, shift: 0}}"

def data_of(network, shared):
    """Lines of a job file: real data where there are some, else drawn ones."""
    if network == "linear":
        return "dataset: {kind: nonlinear, samples: 3200}\nloss: mse\n"
    drawn = shared is None or network == "cifar_small"
    if network in ("lenet5", "mnist") and not drawn:
        resize = "{resize: {size: [32, 32]}}, " if network == "lenet5" else ""
        path = os.path.join(shared, "data", "mnist")
        return f"dataset: {{kind: mnist, path: {path}, usage: test}}\ntransforms: [{resize}{RESCALE}]\n"
    if not drawn:
        path = os.path.join(shared, "data", "cifar-10-batches-bin")
        return (f"dataset: {{kind: cifar10, path: {path}, usage: test}}\n"
                f"transforms: [{{random_horizontal_flip: {{prob: 0.5}}}}, {RESCALE}]\n")
    return (f"dataset: {{kind: shapes, samples: 1280}}\ntransforms: [{RESCALE}]\n"
            f"evaluate: {{dataset: {{kind: shapes, usage: test, samples: 64}}, every_epochs: 1}}\n")

def job_text(network, workers, steps, optimizer="momentum", batch=8, shared=None, extra=""):
    return (f"name: chaos\nnetwork: {network}\nworkers: {workers}\nbatch_size: {batch}\nepochs: 1000000\n"
            f"steps: {steps}\noptimizer: {OPTIMIZERS[optimizer]}\nrecovery: true\n"
            f"{data_of(network, shared)}{extra}")

def shared_folder():
    """None: MSCHED_TEST_SHARED names none with data."""
    folder = os.environ.get("MSCHED_TEST_SHARED", "")
    return folder if os.path.isdir(os.path.join(folder, "data", "mnist")) else None
