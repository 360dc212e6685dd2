"""What departs from the rules in a landing and around its tables is told with its name; no row is lost in silence."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from mtosi_jms.cli import main
from mtosi_jms.compression import NOT_REGULAR
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.spark.jobs import IngestOptions, run_ingest
from mtosi_jms.spool import Spool
from mtosi_jms.tables import write
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import Reject, documents_of, list_files
from mtosi_jms.tables.ingest import run_local
from mtosi_jms.tables.landing import Plan, plan_landing
from mtosi_jms.tables.reader import reader_for
from mtosi_jms.tables.snapshots import Snapshot

from ..packed import zipped
from .troubles import repeating

pytestmark = pytest.mark.spark

Put = Callable[..., Path]
ODD = b"caf-\xe9.xml"


def found(*paths: Path | str) -> tuple[list[str], dict[str, str]]:
    """The names of the files that are input, and the rejects by name."""
    rejects: list[Reject] = []
    files = {file.path for file in list_files(list(map(str, paths)), rejects)}
    documents = sorted(path for file in files for path in documents_of(file, rejects))
    return [Path(path).name for path in documents], {
        Path(reject.file).name: reject.reason.removeprefix("cannot be read: ") for reject in rejects
    }


@pytest.mark.obligation("TAB9")
def test_what_is_no_file_or_has_an_odd_name_is_rejected_by_name(put: Put, landing: Path) -> None:
    put("a.xml", "<a/>")
    put("ignored.txt", "<a/>")
    os.mkfifo(landing / "pipe.xml")
    os.mkfifo(landing / "pipe.zip")
    os.mkfifo(landing / "pipe.txt")
    (landing / "broken.xml").symlink_to("nowhere")
    (landing / "round.xml").symlink_to("round.xml")
    (landing / "share").symlink_to("not-mounted")
    (landing / ".#lock").symlink_to("an editor's")
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(landing)  # the name of a socket must be short
        listening.bind("socket.xml")
        os.chdir(before)
    (Path(os.fsdecode(os.fsencode(landing) + b"/" + ODD))).write_text("<a/>")
    Path(os.fsdecode(os.fsencode(landing) + b"/folder-\xff")).mkdir()
    put("z.zip", zipped(("in.xml", "<a/>")))
    expected = {
        "pipe.xml": NOT_REGULAR,
        "pipe.zip": NOT_REGULAR,
        "socket.xml": NOT_REGULAR,
        "broken.xml": "No such file or directory",
        "round.xml": "Too many levels of symbolic links",
        "caf-\\xe9.xml": "its name is not UTF-8; rename it",
    }
    names, rejects = found(landing)
    assert names == ["a.xml", "in.xml"]
    folders = {"share": "No such file or directory", "folder-\\xff": "its name is not UTF-8; rename it"}
    assert rejects == {**expected, **folders}
    assert found(landing / "*.xml") == (["a.xml"], {name: why for name, why in expected.items() if "zip" not in name})
    with pytest.raises(SpoolError, match=NOT_REGULAR):
        found(landing / "pipe.xml")
    with pytest.raises(ConfigError, match=r"caf-\\xe9\.xml: its name is not UTF-8"):
        found(os.fsdecode(os.fsencode(landing) + b"/" + ODD))


@pytest.mark.obligation("TAB9")
def test_links_are_followed_and_each_folder_is_read_once(put: Put, landing: Path, tmp_path: Path) -> None:
    put("z/a.xml", "<a/>")
    (tmp_path / "else").mkdir()
    (tmp_path / "else/b.xml").write_text("<a/>")
    (landing / "a-link-to-z").symlink_to("z")
    (landing / "z/up").symlink_to("..")
    (landing / "out").symlink_to(tmp_path / "else")
    (landing / "c.xml").symlink_to("z/a.xml")
    paths = [file.path.removeprefix(f"{landing}/") for file in list_files([str(landing)], [])]
    assert sorted(paths) == ["c.xml", "out/b.xml", "z/a.xml"]
    (tmp_path / "link").symlink_to(landing)
    assert len(found(tmp_path / "link")[0]) == 3
    assert found(landing, tmp_path / "link") == found(landing)


@pytest.mark.obligation("TAB9")
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("{a,b}*.xml", ["a1.xml", "b1.xml"]),
        ("[^a]*.xml", ["b1.xml", "c1.xml"]),
        ("**/d.xml", ["d.xml"]),
        (".hidden/*", ["d.xml"]),
        ("*/d.xml", ["d.xml"]),
        ("?1.xml", ["a1.xml", "b1.xml", "c1.xml"]),
    ],
)
def test_globs_are_those_of_hadoop(put: Put, landing: Path, pattern: str, names: list[str]) -> None:
    for name in ("a1.xml", "b1.xml", "c1.xml", ".hidden/d.xml", ".hidden.xml"):
        put(name, "<a/>")
    assert found(landing / pattern) == (names, {})


def planned(landing: Path, **options: str) -> tuple[SourceOptions, Plan]:
    settings = SourceOptions.parse({"path": str(landing), "columnNameOfCorruptRecord": "bad", **options})
    return settings, plan_landing(settings)


def changed(path: Path, how: str, other: str) -> None:
    facts = path.stat()
    data = other.encode()
    if how == "gone":
        path.unlink()
    elif how == "a pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "touched":
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    elif how == "replaced":
        path.write_bytes(data)
    elif how == "another end, same size and time":
        while path.stat().st_ctime_ns == facts.st_ctime_ns:  # clocks of file systems tick rarely
            path.write_bytes(path.read_bytes()[:-8] + b"<!--b-->")
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        assert how == "replaced, same size and time"
        with path.open("r+b") as file:
            file.write(data[:1] and path.read_bytes().replace(b"<hdr:correlationId>c<", b"<hdr:correlationId>Z<"))
        assert path.stat().st_size == facts.st_size
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


WAYS = (
    *("gone", "a pipe", "touched", "replaced", "replaced, same size and time"),
    "another end, same size and time",
)


@pytest.mark.obligation("TAB1", "TAB2")
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("more", [{}, {"wholeFileBytes": "100"}, {"mode": "DROPMALFORMED"}, {"objectType": "MESSAGE"}])
def test_a_file_that_is_not_what_was_planned_ends_the_task(
    put: Put, landing: Path, envelopes: Any, how: str, more: dict[str, str]
) -> None:
    path = put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")) + " " * 200_000 + "<!--a-->")
    settings, plan = planned(landing, **more)
    assert sum(batch.num_rows for batch in reader_for(settings, full_schema(settings)).read(plan.files)) == 1
    changed(path, how, envelopes.batch("Z", 7, False, envelopes.me("b")))
    cause = "has changed since the landing was planned|No such file|a named pipe"
    with pytest.raises(SpoolError, match=rf"1\.xml: cannot be read on host {socket.gethostname()}: ({cause})"):
        list(reader_for(settings, full_schema(settings)).read(plan.files))


@pytest.mark.obligation("TAB2")
def test_an_archive_that_is_not_what_was_planned_ends_the_task(put: Put, landing: Path, envelopes: Any) -> None:
    for name in ("c", "Z"):
        put("a.zip", zipped(("in.xml", envelopes.batch(name, 1, True, envelopes.me("a")))))
        if name == "c":
            settings, plan = planned(landing)
    with pytest.raises(SpoolError, match=r"a\.zip!/in\.xml: cannot be read on host"):
        list(reader_for(settings, full_schema(settings)).read(plan.files))


@pytest.mark.obligation("TAB3")
@pytest.mark.parametrize("kind", ["ME", "ALL"])
def test_rows_that_executors_write_elsewhere_replace_nothing(
    spark: Any, put: Put, landing: Path, envelopes: Any, tmp_path: Path, kind: str
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    options = IngestOptions(landing=landing, out=out, object_type=kind)
    run_local(options)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    elsewhere.mkdir()
    # The tasks, and they alone, see another folder under the name of OUT.
    settings = {f"fs.viewfs.mounttable.{tmp_path.name}.link.{out}": elsewhere.as_uri()}
    settings["fs.defaultFS"] = f"viewfs://{tmp_path.name}/"
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        with pytest.raises(SpoolError, match=r"tasks wrote 1 rows, and 0 are there.*executors must share this folder"):
            run_ingest(options, spark=spark)
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert list(elsewhere.rglob("*.parquet"))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert list(Snapshot(out).tables) == ["ME"]


@pytest.mark.obligation("TAB7")
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_object_that_each_batch_repeats_has_one_row(
    request: pytest.FixtureRequest, put: Put, landing: Path, envelopes: Any, tmp_path: Path, engine: str
) -> None:
    """This process replaces the table, Spark adds to it; `test_engines.py` holds that both replace alike."""
    repeating(put, envelopes)
    options = IngestOptions(landing=landing, out=tmp_path / "out", object_type="ALL")
    if engine == "local":
        result = run_local(options)
    else:
        adding = replace(options, write="append", on_incomplete="wait")
        result = run_ingest(adding, spark=request.getfixturevalue("spark"))
    assert (result.rows, result.copies) == ({"ME": 5, "MD": 2}, {"ME": 1, "MD": 3})
    rows = pq.read_table(tmp_path / "out/objectType=MD", columns=["name_text", "batch_number"], partitioning=None)
    assert sorted((row["name_text"], row["batch_number"]) for row in rows.to_pylist()) == [("MD=M", 2), ("MD=N", 2)]
    assert "Rows left out because their sequence has the object already: 1 of ME, 3 of MD." in (
        (tmp_path / "out/_report/report.html").read_text()
    )


@pytest.mark.obligation("TAB7")
def test_two_answers_and_batches_in_conflict_keep_their_rows(
    put: Put, landing: Path, envelopes: Any, tmp_path: Path
) -> None:
    put("1.xml", envelopes.batch("one", 1, True, envelopes.me("a")))
    put("2.xml", envelopes.batch("two", 1, True, envelopes.me("a") + envelopes.me("a")))
    put("3.xml", envelopes.batch("three", 1, True, envelopes.me("a", "<coi:userLabel>x</coi:userLabel>")))
    put("4.xml", envelopes.batch("three", 1, True, envelopes.me("a", "<coi:userLabel>y</coi:userLabel>")))
    put("5.xml", envelopes.batch(None, None, None, envelopes.me("a")))
    label = "<coi:userLabel>x</coi:userLabel>"
    put("6.xml", envelopes.batch("six", 1, False, envelopes.me("a", f"{label}<me:location>here</me:location>")))
    put("7.xml", envelopes.batch("six", 2, True, envelopes.me("a", label)))
    result = write(landing, tmp_path / "out")
    assert (result.rows, result.copies, result.differing) == ({"ME": 6}, {"ME": 2}, {"ME": 1})
    rows = pq.read_table(tmp_path / "out/objectType=ME", columns=["correlation_id", "location"], partitioning=None)
    assert [row["location"] for row in rows.to_pylist() if row["correlation_id"] == "six"] == ["here"]


@pytest.mark.obligation("TAB10")
@pytest.mark.parametrize(
    "command",
    [
        "ingest landing --out s3a://net/tables",
        "ingest landing --out S3A:/net/tables",
        "alarms landing --out hdfs://name/out",
        "diff old new --out abfss://c@a/out",
        "diff s3a://net/old s3a://net/new --out out",
        "topology gs://net/tables --out out",
        "topology old --out gs://net/out",
        "spool show s3a://net/box",
        "demo --out s3a://net/demo",
        "new requestor s3a://net/project",
        "ingest landing --bulk-files s3a://net/files",
    ],
)
def test_a_place_that_a_command_cannot_write_is_refused(
    command: str, landing: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(landing.parent)
    assert main(command.split()) != 0
    error = capsys.readouterr().err
    assert "must be on a file system of this machine" in error or "invalid choice" in error, error
    assert sorted(path.name for path in landing.parent.iterdir()) == ["landing"]


@pytest.mark.obligation("TAB10")
def test_a_place_that_the_library_cannot_write_is_refused(landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(landing.parent)
    for make in (
        lambda: Spool("s3a://net/spool"),
        lambda: Spool(Path("s3a://net/spool")),
        lambda: run_ingest(IngestOptions(landing=landing, out=Path("s3a://net/out"))),
        lambda: Snapshot(Path("s3a://net/out")),
    ):
        with pytest.raises(MtosiError, match=r"s3a:/+net.*must be .*file system of this machine"):
            make()
    assert sorted(path.name for path in landing.parent.iterdir()) == ["landing"]


@pytest.mark.obligation("TAB10")
def test_a_file_url_is_a_folder_of_this_machine(
    put: Put, landing: Path, envelopes: Any, tmp_path: Path, in_session: None
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a")))
    out = tmp_path / "o u t"
    assert main(["ingest", landing.as_uri(), "--out", out.as_uri(), "--json"]) == 0
    assert list(Snapshot(out.as_uri()).tables) == ["ME"]
    shutil.rmtree(out)
