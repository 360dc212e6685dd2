"""The commands on landings of a real S3 server: what they write, and what they say of bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError
from mtosi_jms.spark._session import check_java

from ..java_tools import JavaTools
from ..s3_servers import SECRET, Server, s3_server
from .conftest import Envelopes, writer
from .troubles import content, troubled_landing

pytestmark = [pytest.mark.spark, pytest.mark.endurance]

SERVERS = {"s3": s3_server}
PATIENCE = 300.0


def run(*arguments: str | Path, told: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mtosi_jms", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment(told or {}))


def environment(told: dict[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**own, "AWS_EC2_METADATA_DISABLED": "true", **told}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A landing, and beside it what an ingest makes of it."""
    try:
        check_java()
    except ConfigError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("here")
    troubled_landing(writer(folder / "landing"), Envelopes(), Envelopes("z"))
    done = run("ingest", folder / "landing", "--out", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, here: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    start: Callable[..., Any] = SERVERS[request.param]
    java = JavaTools()
    with start(java, tmp_path_factory.mktemp(request.param), here / "landing") as started:
        yield started


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_ingest_from_there_is_that_from_here(server: Server, here: Path, tmp_path: Path, engine: str) -> None:
    done = run("ingest", server.url, "--out", tmp_path / "out", "--engine", engine, told=server.environment)
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out", server.url) == content(here / "out", str(here / "landing"))
    assert SECRET not in done.stdout + done.stderr + (tmp_path / "out/_report/report.html").read_text()


def test_loads_that_add_up_from_there_are_those_from_here(server: Server, here: Path, tmp_path: Path) -> None:
    """Three ingests, the last without news; and a stream in two runs."""
    landing, envelopes = tmp_path / "landing", Envelopes()
    shutil.copytree(here / "landing", landing)
    command = ("--write", "append", "--on-incomplete", "wait")
    told: list[dict[str, Any]] = []
    streamed = []
    for batch in ("", envelopes.batch("gap", 2, False, envelopes.me("g2")), None):
        if batch:
            (landing / "gap-2.xml").write_text(batch)
            server.put(landing / "gap-2.xml", "gap-2.xml")
        if batch is not None:
            streamed.append(stream(server, tmp_path))
        found = []
        for url, out in ((str(landing), tmp_path / "here"), (server.url, tmp_path / "there")):
            done = run("ingest", url, "--out", out, *command, "--json", told=server.environment)
            assert done.returncode == 0, done.stderr
            facts = json.loads(done.stdout)
            told.append({name: value for name, value in facts.items() if name not in ("seconds", "stages", "out")})
            found.append(content(out, url))
        assert found[1] == found[0]
    assert told[-1]["rows"] == told[-2]["rows"] == {}
    assert told[-1]["waiting"] == 1
    assert streamed == [1212, 1]


STREAM = """
import sys
from mtosi_jms.spark import local_session, stream_landing

url, place = sys.argv[1:]
with local_session(cores=2) as spark:
    rows = stream_landing(spark, url, "ME", columns="name_text", index=place + "/index.db")
    writing = rows.writeStream.format("parquet").option("checkpointLocation", place + "/state")
    query = writing.trigger(availableNow=True).start(place + "/streamed")
    try:
        query.awaitTermination()
    except Exception as error:
        sys.exit(str(error))  # which can be told only while the session is there
    print(spark.read.parquet(place + "/streamed").count())
"""


def stream(server: Server, place: Path) -> int:
    """What a stream of the landing adds to its table."""
    before: int = sum(pq.read_metadata(file).num_rows for file in (place / "streamed").glob("*.parquet"))
    command = [sys.executable, "-c", STREAM, server.url, str(place)]
    told = environment(server.environment)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=told)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1]) - before


def test_what_cannot_be_read_is_an_error_and_tables_stay(server: Server, here: Path, tmp_path: Path) -> None:
    parent = server.url.rpartition("/")[0]
    told = server.environment
    asked = [(f"{parent}/nothing", told, "no such file or folder")]
    if told:
        wrong = {**told, "AWS_SECRET_ACCESS_KEY": "another-secret-5678"}
        asked += [("s3a://nobodys/landing", told, "nobodys"), (server.url, wrong, "ACCESS_DENIED|403")]
    out = tmp_path / "out"
    assert run("ingest", here / "landing", "--out", out).returncode == 0
    before = content(out, "")
    for url, environment, reason in asked:
        done = run("ingest", url, "--out", out, told=environment)
        assert done.returncode == 1, done.stderr
        assert any(part in done.stderr for part in reason.split("|")), done.stderr
        assert "Traceback" not in done.stderr
        assert not any(secret in done.stderr for secret in (SECRET, "another-secret-5678"))
        growing = ("--write", "append", "--on-incomplete", "wait")
        again = run("ingest", url, "--out", tmp_path / "grown", *growing, told=environment)
        assert (again.returncode, again.stderr.splitlines()[-1]) == (1, done.stderr.splitlines()[-1])
        assert not list((tmp_path / "grown").glob("objectType=*"))
    assert content(out, "") == before
