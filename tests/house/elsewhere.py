"""Imports every module where the SDK finds nothing that Windows or macOS lacks, then runs pytest with the arguments.

Libraries see the whole system: they have ways of their own.
"""

from __future__ import annotations

import builtins
import fcntl
import importlib
import os
import pkgutil
import signal
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pytest

MISSING = ("fcntl", "grp", "pwd", "pty", "resource", "syslog", "termios", "tty")
OS = """
O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown fchmod fork forkpty getegid geteuid getgid getpgid getuid
killpg mkfifo nice posix_fallocate pread pwrite register_at_fork sched_getaffinity set_blocking setsid statvfs sync
uname wait waitid
"""
SIGNAL = """
SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGSTOP SIGUSR1 SIGUSR2 alarm pthread_kill pthread_sigmask setitimer
sigwait
"""
WITHOUT = {"os": OS.split(), "signal": SIGNAL.split()}


class Poorer(ModuleType):
    """A module without some of its names."""

    def __init__(self, whole: ModuleType) -> None:
        super().__init__(whole.__name__)
        self.whole = whole

    def __getattr__(self, name: str) -> Any:
        if name in WITHOUT[self.__name__]:
            raise AttributeError(f"{self.__name__} has no {name} here")
        return getattr(self.whole, name)


class Msvcrt(ModuleType):
    """What the SDK uses of Windows' own module."""

    LK_NBLCK = 2

    @staticmethod
    def locking(descriptor: int, mode: int, octets: int) -> None:
        assert (mode, octets, os.lseek(descriptor, 0, os.SEEK_CUR)) == (Msvcrt.LK_NBLCK, 1, 0)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(*error.args) from None


POORER = {"os": Poorer(os), "signal": Poorer(signal)}
whole_import = builtins.__import__


def poorer_import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    if str((globals or {}).get("__name__", "")).partition(".")[0] in ("mtosi_jms", "mtosi_codegen"):
        if name in MISSING:
            raise ImportError(f"there is no {name} here")
        if name in POORER:
            return POORER[name]
    return whole_import(name, globals, locals, fromlist or (), level)


def main() -> int:
    sys.modules["msvcrt"] = Msvcrt("msvcrt")
    builtins.__import__ = poorer_import
    for package in "mtosi_jms", "mtosi_codegen":
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return pytest.main(["--assert=plain", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
