"""Where both programs begin: `python -m mtosi_jms` is the `mtosi-jms` command. A signal that comes while their modules
load ends them in one line, too."""

from __future__ import annotations

import importlib
import os
import signal
import sys


def main() -> int:
    """Run `mtosi-jms`."""
    return _run("mtosi_jms.cli")


def codegen() -> int:
    """Run `mtosi-codegen`."""
    return _run("mtosi_codegen.cli")


def _run(module: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    code: int = importlib.import_module(module).main()
    return code


def _end(number: int, _: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
