"""Run every command in docs/living.md and put its real output below it.

    python docs/make_living.py

Lines of a ``console`` block that begin with ``$`` are run, in order, in one empty folder; all other lines are replaced.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).with_name("living.md")
PICTURE = PAGE.parent / "_static" / "living.png"


def main() -> None:
    """Rewrite the page."""
    with tempfile.TemporaryDirectory() as folder:
        shim = Path(folder) / "bin" / "ccmem"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m ccmem.cli "$@"\n')
        shim.chmod(0o755)
        work = Path(folder) / "work"
        work.mkdir()
        path = os.pathsep.join([str(shim.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path}
        source = Path(__file__).parents[1] / "src"
        environment["PYTHONPATH"] = os.pathsep.join([str(source), environment.get("PYTHONPATH", "")])

        def run(block: re.Match[str]) -> str:
            lines = []
            for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", block[1], re.MULTILINE):
                lines.append(f"$ {command}")
                done = subprocess.run(
                    command, shell=True, cwd=work, env=environment, capture_output=True, text=True, check=False
                )
                said = (done.stdout + done.stderr).replace(
                    "ccmem: compiling kernels for this processor (once per machine) ...\n", ""
                )
                lines += said.rstrip().splitlines()
            return "```console\n" + "\n".join(lines) + "\n```"

        text = re.sub(r"```console\n(.*?)\n?```", run, PAGE.read_text(), flags=re.DOTALL)
        PAGE.write_text(text)
        shutil.copy(work / "memory.png", PICTURE)


if __name__ == "__main__":
    main()
