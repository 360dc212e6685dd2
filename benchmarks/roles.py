"""A role of an exchange over a broker in a process of its own, so that the two roles share no interpreter lock.

`Role` starts it. It reads its task from standard input as a line of JSON, and then commands: `run AMOUNT`, `cpu`.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import java


def main() -> None:
    """The child process."""
    task = json.loads(sys.stdin.readline())
    module = importlib.import_module(task["module"])
    role = module.role(task["plan"], task["scenario"], task["answers"])
    print("ready", flush=True)
    for line in sys.stdin:
        command, _, amount = line.strip().partition(" ")
        print(role.run(int(amount)) if command == "run" else _cpu(), flush=True)
    os._exit(0)  # the parent is gone; threads of libraries would keep the process alive


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Role:
    """A role in a process of its own.

    Args:
        module: the module that makes the role: `bare`, `java`, or one of ours.
        scenario: `request`, `batches` or `stream`.
        plan: of the exchange.
        answers: whether it is the role that answers.
    """

    def __init__(self, module: str, scenario: str, plan: dict[str, Any], *, answers: bool) -> None:
        self.name = f"{module}, {scenario}, {'answers' if answers else 'asks'}"
        is_java = module == "java"
        command = (
            java.command(plan, scenario, answers=answers)
            if is_java
            else [sys.executable, str(Path(__file__).resolve())]
        )
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if is_java:
            return
        module, _, mode = module.partition(" ")
        task = {"module": module, "scenario": scenario, "plan": {**plan, "mode": mode}, "answers": answers}
        self.tell(json.dumps(task))

    def tell(self, line: str) -> None:
        """Send it a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Wait for its answer, and return it.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: the process has ended")
        return line.strip()

    def cpu(self) -> float:
        """Return the processor time that it has used, in seconds."""
        self.tell("cpu")
        return float(self.answer())

    def run(self, amount: int) -> int:
        """Let it do its work, and wait for the end."""
        self.tell(f"run {amount}")
        return int(self.answer())

    def peak(self) -> float:
        """Return its peak memory in millions of bytes; 0 if the system does not give it."""
        status = Path(f"/proc/{self._process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii")) if status.exists() else None
        return int(found[1]) * 1024 / 1e6 if found else 0.0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    main()
