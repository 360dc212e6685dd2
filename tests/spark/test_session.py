"""A session of this machine: the least PySpark is checked without importing it, and Ctrl-C is an exception alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError

pytest.importorskip("pyspark")

import pyspark

from mtosi_jms.spark import SPARK_MINIMUM, check_version, pyspark_version


@pytest.mark.parametrize("version", ["3.5.7", "2.4", "3.99.0.dev0"])
def test_too_old(version: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"PySpark {version} is too old: .* requires PySpark 4\.0 or later"
    ) as caught:
        check_version(version)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["4.0.0", "4.3.0", "10.1", "4.0.0.dev1", "", "vendor-build"])
def test_new_enough_or_unknown(version: str) -> None:
    assert check_version(version) is None


def test_the_version_is_that_of_pyspark() -> None:
    assert pyspark_version() == pyspark.__version__


def test_the_extra_asks_for_the_same_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"pyspark>={'.'.join(map(str, SPARK_MINIMUM))}" in project["optional-dependencies"]["spark"]


_IMPORT = """
from mtosi_jms.errors import MtosiError
try:
    import mtosi_jms.spark
except MtosiError as error:
    print(error)
"""


@pytest.mark.parametrize("packed", [False, True])
def test_import_refuses_an_older_one(tmp_path: Path, packed: bool) -> None:
    files = {
        "pyspark/__init__.py": "raise SystemExit('imported')",
        "pyspark/version.py": '__version__: str = "3.5.1"\n',
    }
    place = tmp_path / ("pyspark.zip" if packed else "python")
    if packed:
        with zipfile.ZipFile(place, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    else:
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
    path = os.pathsep.join([str(place), *(entry or str(Path.cwd()) for entry in sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        done.stdout
        == "PySpark 3.5.1 is too old: mtosi_jms.spark requires PySpark 4.0 or later, pip install 'pyspark>=4.0'\n"
    )


def test_the_connection_of_an_interrupted_call_is_closed() -> None:
    """And no other one: Java gets no command of py4j's that closes some when the call ends."""
    from py4j.clientserver import JavaClient, JavaParameters, PythonParameters  # type: ignore[import-untyped]

    from mtosi_jms.spark._session import _quiet_interrupts

    told: list[bytes] = []
    ended = threading.Event()

    def serve(peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            for line in lines:
                told.append(line)
                if line == b"slow\n":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    peer.sendall(b"!y" + line)
        if b"slow\n" in told:
            ended.set()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server, _quiet_interrupts():
        threading.Thread(target=accept, daemon=True).start()
        parameters = JavaParameters(port=server.getsockname()[1])
        client = JavaClient(parameters, PythonParameters(), SimpleNamespace(pool=None), deque())
        with pytest.raises(KeyboardInterrupt):
            client.send_command("slow\n")
        assert ended.wait(60)
        assert client.send_command("fast\n") == "yfast"
        client.close()
    assert told == [b"slow\n", b"fast\n"]


@pytest.mark.spark
@pytest.mark.endurance
def test_an_interrupt_comes_as_an_exception_and_leaves_no_traceback(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    over = threading.Event()

    def interrupt() -> None:
        # Jobs of the group alone: one that another test has left behind says nothing of what waits here.
        while not spark.sparkContext.statusTracker().getJobIdsForGroup("interrupted"):
            if over.wait(0.05):
                return
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    spark.sparkContext.setJobGroup("interrupted", "a sum that takes long")
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come before the job is waited for
            thread.start()
            spark.range(10**13).selectExpr("sum(id)").collect()
    finally:
        over.set()
        thread.join()
        spark.sparkContext.cancelJobGroup("interrupted")
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert [record.getMessage() for record in caplog.records] == []
    assert spark.range(3).count() == 3
