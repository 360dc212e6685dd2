"""A landing that fsspec reads: the tables of a local one, and errors that are ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from mtosi_jms.cli import main
from mtosi_jms.errors import ConfigError, MtosiError, SpoolError
from mtosi_jms.tables import read, write

from ..packed import zipped

Put = Callable[..., Path]


class Broken(MemoryFileSystem):
    """A file system whose library has errors of its own, and no times."""

    protocol = "broken"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("broken://", "memory://")))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return self._timeless(super().info(path, **options))

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        if path.endswith("/locked"):
            raise ForeignError("no right to list\nwith more lines")
        return [self._timeless(one) for one in super().ls(path, detail=detail, **options)]

    def cat_file(self, path: str, *places: Any, **options: Any) -> bytes:
        if path.endswith("/unreadable.xml"):
            raise ForeignError("no right to read")
        return bytes(super().cat_file(path, *places, **options))

    def _timeless(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in facts.items() if name != "created"}


class ForeignError(Exception):
    pass


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MemoryFileSystem]:
    """The memory of fsspec, empty before and after; what has another scheme is in it, too."""
    monkeypatch.setitem(import_module("fsspec.registry")._registry, "broken", Broken)
    monkeypatch.chdir(tmp_path)
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    assert not [path for path in tmp_path.iterdir() if ":" in path.name]


@pytest.fixture
def landed(remote: MemoryFileSystem, put: Put, landing: Path, envelopes: Any) -> Path:
    """Folders, packed and large files, a duplicate, a gap and rejects, here and in the memory."""
    put("1.xml", envelopes.batch("a", 1, False, envelopes.me("x")))
    put("deep/er/2.xml.gz", envelopes.batch("a", 2, True, envelopes.me("y")))
    put("deep/again.xml", envelopes.batch("a", 1, False, envelopes.me("x")))
    packed = envelopes.batch("b", 2, True, envelopes.me("z"))
    put("packed.zip", zipped(("3.xml", packed), ("wrong.xml", "<order/>")))
    many = "".join(envelopes.me(f"m{number}", f"<me:location>{'here' * 200}</me:location>") for number in range(300))
    put("large.xml", envelopes.batch("c", 1, True, many))
    put("half.xml", "<a>")
    put(".hidden.xml", "<a/>")
    put("notes.txt", "no input")
    for path in landing.rglob("*"):
        if path.is_file():
            remote.pipe(f"/net/{path.relative_to(landing)}", path.read_bytes())
    return landing


def told(table: Any, place: str) -> list[Any]:
    """Rows, ledger and rejects, with names of files from the landing on."""
    rows = [*table.to_arrow().to_pylist(), *table.ledger.to_pylist(), *table.rejects.to_pylist()]
    return sorted(repr(row).replace(place, "") for row in rows)


@pytest.mark.parametrize(
    ("below", "options"),
    [
        ("", {}),
        ("/", {"verify": "full"}),
        ("", {"recursiveFileLookup": False}),
        ("", {"wholeFileBytes": 50_000}),
        ("/deep", {"onIncomplete": "filter"}),
        ("/*/{again,none}.xml", {}),
        ("/[^a-k]*", {}),
        ("/**/2.xml.gz", {}),
        ("/packed.zip", {}),
    ],
)
def test_rows_are_those_of_the_same_files_here(landed: Path, below: str, options: dict[str, Any]) -> None:
    here = told(read(f"{landed}{below}", allow_empty=True, **options), str(landed))
    there = told(read(f"memory://net{below}", allow_empty=True, **options), "memory://net")
    assert here == there
    assert here


def test_ingest_and_alarms_on_the_local_engine(landed: Path, tmp_path: Path) -> None:
    result = write("memory://net", tmp_path / "out", object_type="ALL")
    assert result.rows == {"ME": 303}
    assert sorted(reject.file for reject in result.rejected) == [
        "memory://net/half.xml",
        "memory://net/packed.zip!/wrong.xml",
    ]
    for command in ("ingest", "alarms"):
        assert main([command, "memory://net", "--engine", "local", "--out", str(tmp_path / command)]) == 0


@pytest.mark.parametrize(
    ("path", "error", "said"),
    [
        ("memory://none", SpoolError, "no such file or folder"),
        ("memory://net/*.none", SpoolError, "no such file or folder"),
        ("nobodys://net", ConfigError, "Protocol not known"),
        ("gs://bucket/landing", (ConfigError, SpoolError), "gs://bucket/landing: "),
        ("broken://net/locked", SpoolError, "no right to list"),
        ("sftp://me:secret@host/landing", ConfigError, "has no password"),
    ],
)
def test_what_cannot_be_read_is_an_error_of_ours(
    landed: Path, remote: MemoryFileSystem, path: str, error: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    remote.pipe("/net/locked/1.xml", b"<a/>")
    with pytest.raises(error) as raised:
        read(path)
    assert said in str(raised.value)
    assert "secret" not in str(raised.value)
    assert "more lines" not in str(raised.value)
    assert main(["ingest", path, "--engine", "local"]) in (1, 2)
    assert "internal error" not in capsys.readouterr().err


def test_what_cannot_be_listed_or_read_below_a_landing_is_a_reject(landed: Path, remote: MemoryFileSystem) -> None:
    remote.pipe("/net/locked/1.xml", b"<a/>")
    remote.pipe("/net/unreadable.xml", b"<a/>")
    reasons = {one["file"]: one["reason"] for one in read("broken://net").rejects.to_pylist()}
    assert reasons["broken://net/locked"] == "cannot be read: no right to list"
    assert reasons["broken://net/unreadable.xml"] == "cannot be read: no right to read"
    with pytest.raises(ConfigError, match="has no times"):
        read("broken://net", modifiedAfter="2020-01-01T00:00:00")


def test_a_file_that_changes_ends_the_reading(landed: Path, remote: MemoryFileSystem) -> None:
    table = read("memory://net")
    remote.pipe("/net/1.xml", b"<a/>")
    with pytest.raises(MtosiError, match=r"memory://net/1\.xml: .*has changed"):
        table.to_arrow()
    assert read("memory://net", modifiedBefore="2020-01-01T00:00:00", allow_empty=True).to_arrow().num_rows == 0
