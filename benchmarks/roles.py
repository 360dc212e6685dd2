"""One role of an exchange over a broker, in a process of its own: who asks and who answers share no interpreter lock.

Started by `Role`; it reads its task from standard input, a line of JSON, and then what to do: `run AMOUNT`, `cpu`.
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
    os._exit(0)  # who asked is gone; threads of libraries would go on


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Role:
    """A role in a process of its own.

    Args:
        module: `bare`, `java`, or one of ours: which makes it.
        scenario: `request`, `batches` or `stream`.
        plan: of the exchange.
        answers: whether it is the one who answers.
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
        """Say what it is to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """What it has to say, waited for.

        Raises:
            RuntimeError: it has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: the process has ended")
        return line.strip()

    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        self.tell("cpu")
        return float(self.answer())

    def run(self, amount: int) -> int:
        """Has it do its work, and waits."""
        self.tell(f"run {amount}")
        return int(self.answer())

    def peak(self) -> float:
        """The most memory that it has held, in millions of bytes; 0 where the system does not tell."""
        status = Path(f"/proc/{self._process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii")) if status.exists() else None
        return int(found[1]) * 1024 / 1e6 if found else 0.0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    main()
