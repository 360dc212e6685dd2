"""Kills a swap at each of its system calls, and what finishes it at each of its own; prints what was found as JSON.

    python swap_process.py FOLDER

A job is a child process that ends, without any clean-up, at a given audit event of Python: one comes before each call
that opens, makes, renames or removes something.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from mtosi_jms.errors import MtosiError
from mtosi_jms.tables.job import recover, staging

KILLED = 9
FAILED = 3
COUNTED = ("os.", "open", "shutil.", "fcntl.", "ctypes.dl")
TABLES = ("objectType=*",)
SCENARIOS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "one": (("ME",), ("ME",)),
    "several": (("ME", "PTP"), ("ME", "EQ", "EH")),
    "first": ((), ("ME", "EQ")),
    "last": (("ME", "EQ"), ()),
}
State = dict[str, list[str]]


def job(out: Path, types: tuple[str, ...], content: str) -> None:
    with staging(out) as staged:
        for name in types:
            table = staged.folder / f"objectType={name}"
            table.mkdir()
            (table / f"part-{content}.parquet").write_text(content)
        staged.report("summary.json", content)
        staged.swap(TABLES)


def state(out: Path) -> State:
    """What each table and the report hold."""
    folders = [*out.glob("objectType=*"), *out.glob("_report")]
    return {folder.name: sorted(file.read_text() for file in folder.iterdir()) for folder in folders}


def expected(types: tuple[str, ...], content: str) -> State:
    return {f"objectType={name}": [content] for name in types} | {"_report": [content]}


def killed(action: Callable[[], None], step: int) -> bool:
    """Run an action in a child that dies at a step; false where it has fewer steps."""
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, arguments: object) -> None:
            nonlocal left
            if event.startswith(COUNTED):
                left -= 1
                if left == 0:
                    os._exit(KILLED)

        sys.addaudithook(count)
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - a child that goes on would be a second parent
            print(f"step {step}: {error!r}", file=sys.stderr, flush=True)
            os._exit(FAILED)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, KILLED):
        raise SystemExit(f"the job ended with {code}")
    return code == KILLED


def rounds(root: Path, name: str, *, again: bool) -> dict[str, object]:
    """Kill a job at each step, and with `again` what finishes it at each of its steps as well."""
    before, after = SCENARIOS[name]
    first, out = root / "first", root / "out"
    job(first, before, "old")
    old, new = expected(before, "old"), expected(after, "new")
    bare: set[str] = set()
    finished: list[str] = []
    wrong: list[str] = []

    def restart() -> None:
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(first, out)

    def finish(place: str) -> None:
        recover(out)
        found = state(out)
        finished.append("old" if found == old else "new" if found == new else "mixed")
        if finished[-1] == "mixed":
            wrong.append(f"{place}: {found}")
        job(out, after, "newer")
        if state(out) != expected(after, "newer") or {path.name for path in out.glob("_*")} != {"_report"}:
            wrong.append(f"{place}, then a whole job: {sorted(map(str, out.rglob('*')))}")

    step = 0
    while True:
        step += 1
        restart()
        if not killed(lambda: job(out, after, "new"), step):
            break
        found = state(out).get("objectType=ME")
        bare.add("none" if found is None else found[0])
        if not again:
            finish(f"step {step}")
            continue
        if not (out / "_swap.json").exists():
            continue
        second = 0
        while True:
            second += 1
            restart()
            killed(lambda: job(out, after, "new"), step)
            if not killed(lambda: recover(out), second):
                break
            finish(f"steps {step} and {second}")
    order = sorted(set(finished), key=finished.index)
    return {"steps": step - 1, "rounds": len(finished), "bare": sorted(bare), "finished": order, "wrong": wrong[:5]}


def main(root: Path) -> None:
    os.fsync = lambda handle: None  # processes die here, and the power stays on
    report = {name: rounds(root / name, name, again=False) for name in SCENARIOS}
    report["twice"] = rounds(root / "twice", "several", again=True)

    def nowhere(*arguments: object) -> None:
        raise OSError("no such library")

    ctypes.CDLL = nowhere  # type: ignore[assignment, misc]
    report |= {f"{name}, by renames": rounds(root / f"{name}2", name, again=False) for name in ("one", "several")}
    print(json.dumps(report))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except MtosiError as error:
        sys.exit(str(error))
