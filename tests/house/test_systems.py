"""Where a system has no forks, users and locks of POSIX, everything imports, and works on the `memory:` provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SUITE = (
    "exchange/test_ids.py::test_a_digest_tells_numbered_replies_apart",
    "exchange/test_ids.py::test_the_time_of_a_header_is_in_whole_seconds_of_utc",
    "files/test_locks.py::test_one_process_has_it_until_it_ends",
    "files/test_locks.py::test_one_of_many_threads_has_it",
    "inventory/test_inventory_place.py",
    "soap/test_frames.py",
    "spool/test_acklog.py",
    "spool/test_spool.py",
)


def test_everything_imports_and_the_memory_suite_passes_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, str(TESTS / "house" / "elsewhere.py"), *(str(TESTS / name) for name in SUITE)]
    command += ["-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not broker and not spark and not endurance"]
    command += ["-k", "not kill_9 and not generated_from_the_release and not sidecar_round_trip"]  # they take long
    done = subprocess.run([*command, f"--basetemp={tmp_path}"], cwd=TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
