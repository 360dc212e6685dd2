"""SIGINT and SIGTERM at any moment: a command ends in order or within a second, says so in a line, and leaves nothing
behind; and passwords in the list of processes."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtosi_jms.cli import COMMANDS
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.providers import mask_in_title
from mtosi_jms.cli.running import Stop, closing_at

SERVE = [sys.executable, "-m", "mtosi_jms", "serve", "--destination", "queue:EMS", "--elements", "1", "--url"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serve_in_good_order(number: int) -> None:
    with subprocess.Popen([*SERVE, "memory:"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: queue:EMS")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the command line of a process is looked up in /proc")
def test_a_password_is_overwritten_in_the_list_of_processes() -> None:
    with subprocess.Popen(
        [*SERVE, "memory://user:s3cret@x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shown = Path(f"/proc/{process.pid}/cmdline").read_text()
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert "memory://user:******@x" in shown
    assert "s3cret" not in shown + err


def test_what_does_not_stand_in_the_title_needs_no_mask() -> None:
    before = Path("/proc/self/cmdline").read_bytes() if sys.platform == "linux" else b""
    assert mask_in_title(["no such text in the command line"]) == (sys.platform == "linux")
    assert (Path("/proc/self/cmdline").read_bytes() if before else b"") == before


def test_a_stop_wakes_and_stays_set() -> None:
    with Stop() as stop:
        assert not stop.wait(0)
        for _ in range(100_000):  # more than a pipe holds
            stop.set()
        assert stop.wait(0)
        assert stop.is_set()


def test_something_is_closed_when_the_stop_is_set_and_only_then() -> None:
    closed: list[bool] = []
    with Stop() as stop:
        with closing_at(stop, lambda: closed.append(True)):
            pass
        assert closed == []
        stop.set()
        with closing_at(stop, lambda: closed.append(True)):
            while not closed:
                pass
        assert closed == [True]


def test_the_log_is_told_in_lines_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("mtosi_jms.exchange._supplier")
    with log_in_lines():
        try:
            raise ValueError("inner")
        except ValueError:
            log.exception("it %s\nbadly \x1b[2J", "failed")
        log.info("nothing that anybody wants to know")
    assert capsys.readouterr().err == "note: it failed\\nbadly \\x1b[2J\n"


def program(run: str) -> list[str]:
    """`mtosi-jms queue count` whose `run` is this code."""
    code = f"""
import os, signal, sys, threading, time
import mtosi_jms.cli.queues as command
from mtosi_jms.cli import main
from mtosi_jms.cli.running import until_signalled
def stuck():
    print("in it", flush=True)
    while True:
        try: threading.Event().wait(60)
        except KeyboardInterrupt: pass
def run(args):
    {run}
command.run = run
sys.argv = ["mtosi-jms", "queue", "count", "queue:Q", "--url", "memory:"]
sys.exit(main())
"""
    return [sys.executable, "-c", code]


def ended(run: str, number: int = signal.SIGINT) -> tuple[int, str]:
    """Signals such a program once it prints `in it`: code and errors. Of itself it would not end."""
    with subprocess.Popen(program(run), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in it\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        return process.returncode, err


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("with until_signalled(): stuck()", signal.SIGINT),
        ("with until_signalled(is_prompt=True) as stop: stop.is_set(); stuck()", signal.SIGINT),
        ("with until_signalled(is_prompt=True) as stop: stop.is_set(); stuck()", signal.SIGTERM),
        ("with until_signalled(): print('in it', flush=True); time.sleep(60)", signal.SIGTERM),
    ],
    ids=["a stop that nobody looks at", "a command that is to end soon", "the same", "a call that ends"],
)
def test_a_signal_ends_a_command_within_a_second_wherever_it_is(code: str, number: int) -> None:
    assert ended(code, number) == (128 + number, "error: interrupted\n")


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize(
    "code",
    [
        pytest.param("stuck()", id="nothing gets it out"),
        pytest.param("print('in it', flush=True); time.sleep(60)", id="asleep"),
        pytest.param(
            "\n    try:\n        print('in it', flush=True); time.sleep(60)"
            "\n    except KeyboardInterrupt: raise RuntimeError('of a library') from None",
            id="another error of it",
        ),
    ],
)
def test_ctrl_c_ends_a_command_without_a_stop(code: str) -> None:
    assert ended(code) == (130, "error: interrupted\n")


def test_a_command_that_looks_at_its_stop_has_the_time_that_it_needs() -> None:
    code = "\n    with until_signalled() as stop:\n        stop.is_set()\n        print('in it', flush=True)"
    assert ended(f"{code}\n        stop.wait(); time.sleep(1.5); return 0") == (0, "")


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process catches is looked up in /proc")

PATIENCE = 5.0
"""Longest seconds between a signal and the end: about one, on a machine that has other things to do."""
SAMPLES = Path(__file__).parents[1] / "codegen" / "sources"
HOME = Path(__file__).parents[2]

CODEGEN = {
    "generate": ["{wsdl}", "--package", "p", "--out", "{out}"],
    "check": ["{wsdl}", "--package", "p", "--out", "{out}"],
    "inspect": ["{wsdl}"],
    "docs": ["{wsdl}", "--out", "{out}"],
    "deploy": ["{wsdl}", "--address", "A=queue:Q", "--out", "{out}"],
    "templates": ["{out}"],
    "verify": ["{wsdl}", "--package", "p", "--out", "{out}"],
    "sample": ["getAllManagedElements", "{wsdl}"],
}
"""The commands of `mtosi-codegen`."""
QUEUE = ["--url", "{url}", "--wait", "60", "--to", "queue:T", "--record", "{out}"]
PROVIDER = ["--url", "{url}"]
RUNS = {
    "demo": ["--elements", "5000", "--out", "{out}"],
    "help": ["--man", "{out}"],
    "map": ["{landing}"],
    "validate": ["{landing}"],
    "inspect": ["{landing}"],
    "ingest": ["{landing}", "--out", "{out}"],
    "query": ["{landing}", "SELECT count(*) FROM MESSAGE"],
    "diff": ["{landing}", "{landing}", "--out", "{out}"],
    "topology": ["{landing}", "--out", "{out}"],
    "alarms": ["{landing}", "--out", "{out}"],
    "spark-archive": ["--out", "{out}"],
    "doctor": [*PROVIDER],
    "new": ["requestor", "{out}"],
    "operations": [],
    "deployment": ["{landing}/0.xml"],
    "serve": ["--destination", "queue:Q", *PROVIDER],
    "request": ["getAllManagedElements", "--to", "queue:Q", "--timeout", "60", *PROVIDER],
    "publish": ["{landing}", "--topic", "topic:T", *PROVIDER],
    "subscribe": ["--topic", "topic:T", *PROVIDER],
    "replay": ["{landing}", "--to", "queue:Q", *PROVIDER],
    "queue": ["move", "queue:Q", *QUEUE],
    "spool": ["verify", "{landing}"],
    "mq": ["write", "{landing}", "--out", "{out}"],
    "jvm": ["fetch", "activemq"],
    "broker": ["up", "--dir", "{out}"],
    "console": ["--watch", "queue:Q", "--listen", "127.0.0.1:0", *PROVIDER],
    "gateway": ["--to", "queue:Q", "--listen", "127.0.0.1:0", "--without-login", *PROVIDER],
    "bridge": ["--from", "corbaloc::127.0.0.1:9/NotificationService", "--to", "topic:T", *PROVIDER],
    "channel": ["up", "--dir", "{out}"],
    "completion": ["bash"],
}
"""The commands of `mtosi-jms`; a test keeps the list whole."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("landing")
    for number in range(3000):
        (folder / f"{number}.xml").write_text("<a/>")
    return folder


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a broker that takes connections, and never says anything."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"stomp://127.0.0.1:{server.getsockname()[1]}"


def signalled(words: list[str], number: int, after: float, folder: Path) -> tuple[int, str, float]:
    """Runs a program in a session of its own: its code and errors, and the seconds from the signal to its end."""
    environment = {**os.environ, "TMPDIR": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    environment |= {name: os.environ[name] for name in ("XDG_CACHE_HOME",) if name in os.environ}
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=environment,
    ) as process:
        while process.poll() is None and not catches(process.pid, signal.SIGTERM):
            os.sched_yield()  # the interpreter still loads the program
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        began = time.monotonic()
        _, err = process.communicate(timeout=60)
        return process.returncode, err, time.monotonic() - began


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def check(words: list[str], number: int, after: float, folder: Path) -> None:
    code, err, seconds = signalled(words, number, after, folder)
    where = f"{words} {number} {after}: {code} {err[-1000:]}"
    assert seconds < PATIENCE, where
    assert "Traceback" not in err, where
    # The last that the interpreter does is to give signals back to the system: a shell shows that as 128 + number, too.
    assert code in (128 + number, -number, 0, 1, 2), where
    assert not list(folder.glob("mtosi-spark-*")), where
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert not [line for line in left if str(folder) in line and "java" in line and code == 128 + number], where


def filled(words: list[str], tmp_path: Path, landing: Path, url: str) -> list[str]:
    places = {"landing": landing, "out": tmp_path / "out", "wsdl": HOME / "wsdl", "url": url}
    return [word.format(**places) for word in words]


def test_the_table_has_every_command() -> None:
    assert set(RUNS) == set(COMMANDS)


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize(
    ("name", "number"),
    [*zip(("validate", "request", "queue", "doctor"), (signal.SIGINT, signal.SIGTERM) * 2, strict=True)],
)
def test_a_signal_ends_a_command(name: str, number: int, tmp_path: Path, landing: Path, silent: str) -> None:
    words = ["mtosi_jms", name, *filled(RUNS[name], tmp_path, landing, silent)]
    check(words, number, 0.2, tmp_path)


@pytest.mark.obligation("OPS1")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_generator(number: int, tmp_path: Path, landing: Path) -> None:
    check(["mtosi_codegen", "docs", *filled(CODEGEN["docs"], tmp_path, landing, "")], number, 0.2, tmp_path)


@pytest.mark.endurance
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("program", "name"), [*(("mtosi_jms", one) for one in RUNS), *(("mtosi_codegen", one) for one in CODEGEN)]
)
def test_a_signal_at_any_moment(
    program: str, name: str, number: int, tmp_path: Path, landing: Path, silent: str
) -> None:
    words = (RUNS if program == "mtosi_jms" else CODEGEN)[name]
    for moment in (0.0, random.uniform(0, 1), random.uniform(1, 6)):
        folder = tmp_path / f"{moment}"
        folder.mkdir()
        check([program, name, *filled(words, folder, landing, silent)], number, moment, folder)


@pytest.mark.obligation("OPS4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_stuck", [False, True])
def test_what_a_command_started_ends_with_it(number: int, is_stuck: bool, tmp_path: Path) -> None:
    folder = str(tmp_path)
    run = f"""
    from pathlib import Path
    from mtosi_jms.broker import BrokerProcess, Endpoints
    started = BrokerProcess(["sleep", "60"], Path({folder!r}), Endpoints({{}}, "", ""), ready=["never"])
    Path({folder!r}, "pid").write_text(str(started.pid))
    print("in it", flush=True)
    if {is_stuck}: started._is_ready = stuck
    started.wait_until_ready()
"""
    assert ended(run, number) == (128 + number, "error: interrupted\n")
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + PATIENCE
    while running(pid):
        assert time.monotonic() < end


@pytest.mark.obligation("OPS4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("program", "module"), [("main", "mtosi_jms.cli"), ("codegen", "mtosi_codegen")])
def test_a_signal_while_the_modules_load(program: str, module: str, number: int) -> None:
    text = f"""
import os, sys
from mtosi_jms.__main__ import {program}
class Signals:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Signals())
{program}()
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + number, "error: interrupted\n")


@pytest.mark.obligation("OPS4")
def test_an_interrupt_that_python_drops() -> None:
    run = """
    class Dropped:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
    Dropped()
    threading.Event().wait(60)
"""
    done = subprocess.run(program(run), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.obligation("OPS4")
def test_what_is_dropped_by_an_interrupt_ends_all_the_same() -> None:
    # In a process of its own: what ends with the process is also what other tests share, such as a broker.
    code = """
from contextlib import ExitStack
from mtosi_jms.closing import end_with_the_process, with_the_process

held = ExitStack()
held.enter_context(with_the_process(lambda: print("ended")))
del held
end_with_the_process()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ended\n"


def running(pid: int) -> bool:
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return not (state := told.stdout.strip()).startswith("Z") and bool(state)
