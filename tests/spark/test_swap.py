"""Tables are replaced together or not at all: kills at every step of a swap, jobs and readers at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mtosi_jms.errors import ConfigError, MtosiError, SpoolError, SpoolInUseError
from mtosi_jms.tables.job import Job, Staging, recover, staging
from mtosi_jms.tables.snapshots import Snapshot

pytestmark = pytest.mark.spark

PROCESS = Path(__file__).with_name("swap_process.py")
TABLES = ("objectType=*",)


def replace(out: Path, content: str, *types: str) -> None:
    with staging(out) as staged:
        for name in types:
            (staged.folder / f"objectType={name}").mkdir()
            (staged.folder / f"objectType={name}" / "part.parquet").write_text(content)
        staged.report("summary.json", content)
        staged.swap(TABLES)


def held(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    replace(tmp_path / "out", "old", "ME", "PTP")
    return tmp_path / "out"


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("swaps")
    done = subprocess.run([sys.executable, str(PROCESS), str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.endurance
def test_whenever_a_job_is_killed_the_next_command_finds_the_old_tables_or_the_new_ones(kills: Any) -> None:
    for name, found in kills.items():
        assert found["wrong"] == [], name
        assert found["steps"] > 40, name
        assert found["finished"] == (["new"] if name == "twice" else ["old", "new"]), name
    assert kills["twice"]["rounds"] > 100


@pytest.mark.endurance
@pytest.mark.skipif(sys.platform != "linux", reason="two folders change places in one step on Linux")
def test_a_table_is_there_whenever_somebody_looks(kills: Any) -> None:
    assert {name: found["bare"] for name, found in kills.items() if name in ("one", "several", "twice")} == {
        "one": ["new", "old"],
        "several": ["new", "old"],
        "twice": ["new", "old"],
    }


def interrupted(out: Path) -> None:
    """A job that replaces the tables by those of `new` and fails before it is at its end."""
    obstacle = out / "_report/summary.json"
    obstacle.unlink()
    obstacle.mkdir()
    with pytest.raises(SpoolError, match="directory"):
        replace(out, "new", "ME", "EQ")
    obstacle.rmdir()
    assert (out / "_swap.json").exists()


NEW = {"objectType=ME/part.parquet": "new", "objectType=EQ/part.parquet": "new", "_report/summary.json": "new"}


def test_a_reader_finishes_what_was_begun(out: Path) -> None:
    interrupted(out)
    assert list(Snapshot(out).tables) == ["ME", "EQ"]
    assert held(out) == NEW


def test_a_job_finishes_what_was_begun_before_it_looks_whose_tables_these_are(out: Path) -> None:
    interrupted(out)
    Job("ingest", out, TABLES, None)
    assert held(out) == NEW
    (out / "_report/summary.json").unlink()
    with pytest.raises(ConfigError, match="that no ingest of ours made"):
        Job("ingest", out, TABLES, None)


@pytest.mark.parametrize(
    "journal",
    ["", "{", "[]", '{"staging": "_staging-1"}', '{"staging": "..", "tables": {"../x": 1}, "gone": [], "reports": []}'],
)
def test_a_journal_that_is_none_is_told_and_nothing_moves(out: Path, journal: str) -> None:
    (out / "_swap.json").write_text(journal)
    before = held(out)
    for use in (Snapshot, recover, lambda out: Job("ingest", out, TABLES, None)):
        with pytest.raises(SpoolError, match=r"_swap\.json: is damaged"):
            use(out)
    assert held(out) == before


def test_a_folder_that_is_not_the_one_of_the_journal_is_not_taken(out: Path) -> None:
    (out / "_staging-1/objectType=ME").mkdir(parents=True)
    plan = {"staging": "_staging-1", "tables": {"objectType=ME": 1}, "gone": [], "reports": []}
    (out / "_swap.json").write_text(json.dumps(plan))
    with pytest.raises(SpoolError, match="cannot be finished"):
        Snapshot(out)
    assert (out / "objectType=ME/part.parquet").read_text() == "old"


def test_a_second_job_is_refused_and_takes_nothing_away(out: Path) -> None:
    with staging(out) as staged:
        (staged.folder / "objectType=ME").mkdir()
        (staged.folder / "objectType=ME/part.parquet").write_text("new")
        with pytest.raises(SpoolInUseError, match="another job works on it"), staging(out):
            pass
        assert list(Snapshot(out).tables) == ["ME", "PTP"], "readers go on"
        staged.swap(TABLES)
    assert held(out) == {"objectType=ME/part.parquet": "new", "_report/summary.json": "old"}
    replace(out, "newer", "ME")
    assert sorted(path.name for path in out.iterdir()) == ["_report", "objectType=ME"]


def fail(staged: Staging, error: BaseException) -> None:
    (staged.folder / "objectType=ME").mkdir()
    raise error


@pytest.mark.parametrize("error", [MtosiError("x"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_job_that_fails_leaves_all_as_it_was(out: Path, error: BaseException) -> None:
    before = held(out)
    with pytest.raises(type(error)), staging(out) as staged:
        fail(staged, error)
    assert held(out) == before


def test_what_killed_jobs_left_goes_with_the_next_one(out: Path) -> None:
    for name in ("_staging", "_staging-dead"):
        (out / name / "objectType=ME").mkdir(parents=True)
    (out / "_lock").touch()
    replace(out, "new", "ME")
    assert sorted(path.name for path in out.iterdir()) == ["_report", "objectType=ME"]


def read(snapshot: Snapshot, new: tuple[str, ...] = (), error: str = "") -> None:
    with snapshot.unchanged():
        if new:
            replace(snapshot.path, "new", *new)
        if error:
            raise MtosiError(error)


def test_what_was_read_while_it_was_replaced_is_not_used(out: Path) -> None:
    read(Snapshot(out))
    for new, error in ((("ME", "PTP"), ""), (("ME",), "Spark: no such file"), (("ME", "EQ"), "")):
        with pytest.raises(MtosiError, match="replaced while they were read"):
            read(Snapshot(out), new, error)
    with pytest.raises(MtosiError, match="something else"):
        read(Snapshot(out), error="something else")


def begin_commits(out: Path, tables: int, *new: str) -> None:
    """An ingest that is killed between two commits."""
    with suppress(MtosiError), staging(out, lake=True) as staged:
        staged.begin_commits(tables, new)
        raise MtosiError("killed")


def test_delta_tables_that_were_committed_in_part_are_not_read(out: Path) -> None:
    begin_commits(out, 2)
    with pytest.raises(SpoolError, match="committed in part, and may not belong together: ingest again"):
        Snapshot(out)
    with pytest.raises(SpoolError, match="ingest again"):
        Job("ingest", out, TABLES, None)
    Job("ingest", out, TABLES, None, lake=True)
    with staging(out, lake=True) as staged:
        staged.begin_commits(2, ())
        staged.report("summary.json", "new")
        staged.swap(())
    assert list(Snapshot(out).tables) == ["ME", "PTP"]
    assert sorted(path.name for path in out.iterdir()) == ["_report", "objectType=ME", "objectType=PTP"]


def test_a_single_delta_table_needs_no_word(tmp_path: Path) -> None:
    replace(tmp_path / "out", "old", "ME")
    begin_commits(tmp_path / "out", 1)
    assert list(Snapshot(tmp_path / "out").tables) == ["ME"]


@pytest.mark.obligation("TAB4")
@pytest.mark.parametrize("log", ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json"])
def test_a_first_commit_that_was_not_done_leaves_nothing(tmp_path: Path, log: str) -> None:
    out = tmp_path / "out"
    tables = {
        "objectType=ME": log,
        "objectType=EQ": f"{Path(log).parent}/snap-1.avro",
        "objectType=PTP": "part.parquet",
    }
    begin_commits(out, 3, *tables)
    for table, file in tables.items():
        (out / table / file).parent.mkdir(parents=True)
        (out / table / file).write_text("")
    with pytest.raises(SpoolError, match="committed in part"):
        Snapshot(out)
    assert len(list(out.glob("objectType=*"))) == 3
    Job("ingest", out, TABLES, None, lake=True)
    assert [path.name for path in out.glob("objectType=*")] == ["objectType=ME"]


@pytest.mark.obligation("TAB4")
def test_a_single_delta_table_that_is_new_needs_a_word(tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin_commits(out, 1, "objectType=ME")
    (out / "objectType=ME").mkdir()
    Job("ingest", out, TABLES, None, lake=True)
    assert not list(out.glob("objectType=*"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="file"), staging(tmp_path / "file" / "out"):
        pass
