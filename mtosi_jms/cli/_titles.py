"""Credentials in the list of processes: what the command line said is overwritten in place, on Linux.

`ps` reads a process's command line from the process's own memory. Nothing else can be done once a secret stands there;
elsewhere, and where the system forbids it, it stays. A file or the environment keeps it out from the beginning.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_COMMAND_LINE: Final = Path("/proc/self/cmdline")
_STATE: Final = Path("/proc/self/stat")
_ARGUMENTS: Final = slice(45, 47)
"""Fields arg_start and arg_end of /proc/PID/stat, counted from 0 behind the command's name, which may hold blanks."""


def mask_in_title(secrets: Iterable[str]) -> bool:
    """Overwrite secrets in the command line that other users can see, each letter by a star.

    Returns:
        Whether none of them stands there any more.
    """
    wanted = [secret.encode("utf-8", "surrogateescape") for secret in secrets if secret]
    try:
        state = _STATE.read_text(encoding="ascii", errors="replace").rpartition(")")[2]
        begin, end = map(int, state.split()[_ARGUMENTS])
        shown = _COMMAND_LINE.read_bytes()
    except (OSError, ValueError):
        return False
    if not begin or end - begin != len(shown) or ctypes.string_at(begin, len(shown)) != shown:
        return False  # not where it was looked for: nothing may be written there
    for secret in wanted:
        at = shown.find(secret)
        while at >= 0:
            ctypes.memset(begin + at, ord("*"), len(secret))
            at = shown.find(secret, at + len(secret))
    return not any(secret in _COMMAND_LINE.read_bytes() for secret in wanted)
