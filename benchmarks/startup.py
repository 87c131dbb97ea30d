"""Start-up cost: imports, ``ccmem --help``, first and second use of every model, and peak memory.

python -m benchmarks.startup                       CPU seconds of the first and the second use of every model
python -m benchmarks.startup CCM ModalClassifier   of these models alone
python -m benchmarks.startup --kernels CCM         and of each kernel that the first use compiles
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from ccmem import registry

IMPORTS = {
    "python": "pass",
    "import numpy": "import numpy",
    "import ccmem": "import ccmem",
    "ccmem --help": "import sys; from ccmem.cli import main; main(['--help'])",
}
USE = """
import numpy as np, ccmem
memory = getattr(ccmem, {model!r})()
X = np.random.default_rng(0).random((50, 20), dtype=np.float32)
memory.partial_fit(X)
memory.learn_one(X[0])
memory.predict(X)
"""
LABELLED = """
import numpy as np, ccmem
model = ccmem.{model}({arguments})
rng = np.random.default_rng(0)
X = rng.random((2000, 20))
X[1000:] += 3.0
y = (X[:, 0] > X[:, 1]).astype(int)
model.fit(X, y)
model.predict(X[::40])
if {model!r} == "ModalClassifier":
    assert model.memory_.n_blocks_ == 2, "the memory must find the change of the stream"
"""
KERNELS = """
import sys, time
from numba.core import event
class Recorder(event.Listener):
    began = []
    def on_start(self, e):
        self.began.append(time.process_time())
    def on_end(self, e):
        seconds = time.process_time() - self.began.pop()
        f = e.data["dispatcher"].py_func
        if not self.began:
            print(f"    {seconds:6.2f}  {f.__module__}.{f.__qualname__}", file=sys.stdout)
event.register("numba:compile", Recorder())
"""
PEAK = """
import numpy as np, ccmem
from pathlib import Path
def kilobytes(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))
X = np.random.default_rng(0).random(({rows}, 784), dtype=np.float32)
memory = getattr(ccmem, {model!r})(random_state=0)
memory.partial_fit(X[:200])
Path("/proc/self/clear_refs").write_text("5")
before = kilobytes("VmRSS")
{action}
print(kilobytes("VmHWM") - before)
"""


def processor_seconds(code: str, cache: str | None = None) -> float:
    """Return the CPU time of a Python process that runs ``code``."""
    environment = {**os.environ, **({"CCMEM_KERNEL_CACHE": cache} if cache else {})}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode} from: {code}")
    return usage.ru_utime + usage.ru_stime


def imports(rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each import, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(rounds):
        for name, code in IMPORTS.items():
            times[name].append(processor_seconds(code))
    return {name: median(values) for name, values in times.items()}


COMMAND = """
from ccmem.cli import main
with open({rows!r}, "w") as file:
    print("a,b,c", *(f"{{i % 7}},{{i % 5}},{{i % 3}}" for i in range(200)), sep="\\n", file=file)
main(["learn", {rows!r}, "--checkpoint", {checkpoint!r}, "--again"])
"""


def command() -> dict[str, float]:
    """Return the CPU seconds of ``ccmem learn`` on a file of 200 rows."""
    with tempfile.TemporaryDirectory() as folder:
        code = COMMAND.format(rows=str(Path(folder) / "rows.csv"), checkpoint=str(Path(folder) / "memory"))
        cache = str(Path(folder) / "cache")
        return {"first": processor_seconds(code, cache), "second": processor_seconds(code, cache)}


def use(model: str) -> str:
    """Return code that learns and predicts; classifiers learn labels, and ModalClassifier finds a change."""
    if model in registry.MEMORIES:
        return USE.format(model=model)
    return LABELLED.format(model=model, arguments="ccmem.AdaptiveCCM()" if model == "ModalClassifier" else "")


def kernels(model: str) -> None:
    """Print the CPU seconds of each kernel that the first use of a model compiles, parts included."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "CCMEM_KERNEL_CACHE": cache}
        subprocess.run([sys.executable, "-c", KERNELS + use(model)], env=environment, check=True)


def uses(models: list[str]) -> dict[str, dict[str, float]]:
    """Return the CPU seconds of a process that learns and predicts, with an empty and a filled kernel cache."""
    result = {}
    for model in models:
        with tempfile.TemporaryDirectory() as cache:
            code = use(model)
            result[model] = {"first": processor_seconds(code, cache), "second": processor_seconds(code, cache)}
    result["`ccmem learn`, 200 rows"] = command()
    return result


LEARN = "memory.partial_fit(X)"
CONTROL = "np.ones((len(X), 125), np.float32)"  # a deliberate violation, to show that it would be detected


def peak_memory(models: list[str], rows: int) -> dict[str, float]:
    """Return the megabytes that learning ``rows`` x 784 needs beyond chunk and memory; Linux only."""
    if not Path("/proc/self/clear_refs").exists():
        return {}
    # without a fixed threshold, memory freed after compiling would be handed out again and hide what is needed
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    result = {}
    for name, action in [*((model, LEARN) for model in models), ("control: an array of rows x 125", CONTROL)]:
        code = PEAK.format(model=name if action is LEARN else models[0], rows=rows, action=action)
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        result[name] = int(answer.stdout) / 1024
    return result


def main() -> None:
    """Print the CPU seconds of the first and the second use of models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="classes of ccmem (default: all models and classifiers)")
    parser.add_argument("--kernels", action="store_true", help="list the kernels that the first use compiles")
    options = parser.parse_args()
    known = [*registry.MEMORIES, *registry.PREDICTORS, "ModalClassifier"]
    if unknown := [name for name in options.models if name not in known]:
        parser.error(f"{unknown[0]!r} is not a model; the models are {', '.join(known)}")
    for model in options.models or known:
        with tempfile.TemporaryDirectory() as cache:
            first, second = processor_seconds(use(model), cache), processor_seconds(use(model), cache)
        print(f"{first:6.2f} first, {second:5.2f} second  {model}", flush=True)
        if options.kernels:
            kernels(model)


if __name__ == "__main__":
    main()
