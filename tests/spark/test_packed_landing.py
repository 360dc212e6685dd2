"""Packed files and BulkResponse in a landing: rows as from plain files, rejects with reasons (C18)."""

from __future__ import annotations

import gzip
import io
import json
import logging
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from mtosi_jms.bulk import Archive
from mtosi_jms.compression import ZSTD
from mtosi_jms.errors import ArchiveError, SpoolError
from mtosi_jms.inventory import MESSAGE
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import SHELF, ArchiveShelf, documents_of, list_files, opened, split_member
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.tables.reader import reader_for

from ..packed import tarred, zipped

pytestmark = pytest.mark.obligation("C18")

Put = Callable[..., Path]
CORRUPT = "reason"


zstd = import_module(ZSTD).compress
PACKERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "a.zip": lambda members: zipped(*members.items()),
    "a.tar": lambda members: tarred(*members.items()),
    "a.TAR.GZ": lambda members: tarred(*members.items(), mode="w:gz"),
    "a.tgz": lambda members: tarred(*members.items(), mode="w:gz"),
    "a.tar.zst": lambda members: zstd(tarred(*members.items())),
}


@pytest.fixture
def save(landing: Path) -> Callable[[str, bytes], Path]:
    def write(name: str, data: bytes) -> Path:
        (landing / name).parent.mkdir(parents=True, exist_ok=True)
        (landing / name).write_bytes(data)
        return landing / name

    return write


@pytest.fixture
def members(envelopes: Any) -> dict[str, bytes]:
    """Three batches of five elements, the last but one packed by itself."""
    batches = [
        envelopes.batch("reply", n, n == 3, "".join(envelopes.me(f"{n}{i}") for i in range(5))) for n in (1, 2, 3)
    ]
    plain = [batch.encode() for batch in batches]
    return {"1.xml": plain[0], "sub/2.xml.gz": gzip.compress(plain[1]), "3.xml": plain[2], "note.txt": b"no"}


def rows(path: Path | str, object_type: str = "ME", **options: str) -> list[dict[str, Any]]:
    """What the source gives, without Spark."""
    given = {"path": str(path), "objectType": object_type, "columnNameOfCorruptRecord": CORRUPT, **options}
    settings = SourceOptions.parse(given)
    plan = plan_landing(settings)
    reader = reader_for(settings, full_schema(settings))
    return [row for batch in reader.read(plan.files, plan.rejects) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("whole", ["8388608", "100"], ids=["whole", "streamed"])
def test_rows_are_those_of_plain_files(landing: Path, save: Any, members: Any, name: str, whole: str) -> None:
    path = save(name, PACKERS[name](members))
    for given in (landing, path, path.as_uri(), landing / "a*"):
        found = rows(given, wholeFileBytes=whole)
        assert sorted(row["name_text"] for row in found) == sorted(f"MD=M/ME={n}{i}" for n in "123" for i in range(5))
        assert {row["source_file"] for row in found} == {f"{path}!/{m}" for m in ("1.xml", "sub/2.xml.gz", "3.xml")}
        assert all(row["complete"] and row[CORRUPT] is None and row["source_line"] for row in found)
    assert [each.name for each in landing.iterdir()] == [name], "nothing was unpacked there"


def test_messages_and_duplicates_across_archives(landing: Path, save: Any, members: Any, put: Put) -> None:
    save("a.zip", zipped(*members.items()))
    save("b.tar.gz", tarred(*members.items(), mode="w:gz"))
    put("c/1.xml", members["1.xml"])
    found = rows(landing, MESSAGE)
    assert [row["source_file"].removeprefix(f"{landing}/") for row in found] == [
        "a.zip!/1.xml",
        "a.zip!/3.xml",
        "a.zip!/sub/2.xml.gz",
    ]
    assert [len(row["duplicate_files"]) for row in found] == [2, 1, 1]
    assert {row["body_digest"] for row in found if row["batch_number"] == 1} == {found[0]["body_digest"]}
    assert found[0]["body"] == members["1.xml"]


BOMB = zipped(("1.xml", b"<a>" + bytes(70_000_000)))
HOSTILE = {
    "traversal.zip": (zipped(("../1.xml", b"<a/>")), "unsafe name"),
    "bomb.zip": (BOMB, "too many for its size"),
    "cut.tgz": (tarred(("1.xml", b"<a/>"), mode="w:gz")[:-20], "damaged archive"),
    "empty.tar": (b"", "empty file"),
}
"""Some of each kind: `tests/bulk` has all."""


def test_hostile_archives_are_rejected_with_a_reason(landing: Path, save: Any, members: Any, envelopes: Any) -> None:
    bomb = envelopes.batch("bomb", 1, True, " " * 70_000_000).encode()
    hostile = {
        **HOSTILE,
        "bomb.xml.gz": (gzip.compress(bomb), "too many for its size"),
        "bomb.xml.zst": (zstd(bomb), "too many for its size"),
    }
    for name, (data, _) in hostile.items():
        save(name, data)
    bad = {**members, "1.xml": b"<order/>", "3.xml": members["3.xml"][:-40]}
    save("mixed.zip", zipped(*bad.items()))
    found = rows(landing)
    assert [row["name_text"] for row in found if not row[CORRUPT]] == [f"MD=M/ME=2{i}" for i in range(5)]
    reasons = {row["source_file"].removeprefix(f"{landing}/"): row[CORRUPT] for row in found if row[CORRUPT]}
    assert set(reasons) == {*hostile, "mixed.zip!/1.xml", "mixed.zip!/3.xml"}
    for name, (_, reason) in hostile.items():
        assert reason in reasons[name], name
    assert "not SOAP" in reasons["mixed.zip!/1.xml"]
    assert "ends early" in reasons["mixed.zip!/3.xml"]


def test_without_the_library_a_file_is_rejected_with_what_to_install(
    landing: Path, save: Any, members: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("plain.xml", members["1.xml"])
    save("a.xml.zst", zstd(members["3.xml"]))
    save("b.tar.zst", zstd(tarred(*members.items())))
    save("c.zip", zipped(("1.xml.zst", zstd(members["3.xml"]))))
    monkeypatch.setitem(sys.modules, ZSTD, None)
    found = rows(landing)
    assert len([row for row in found if not row[CORRUPT]]) == 5
    reasons = {row["source_file"].removeprefix(f"{landing}/"): row[CORRUPT] for row in found if row[CORRUPT]}
    assert set(reasons) == {"a.xml.zst", "b.tar.zst", "c.zip!/1.xml.zst"}
    for reason in reasons.values():
        assert reason.endswith(f"cannot be read: {ZSTD} is not installed: pip install 'mtosi-jms[zstd]'")


@pytest.mark.parametrize("whole", ["8388608", "100"], ids=["whole", "streamed"])
def test_a_member_that_is_damaged_where_planning_did_not_look(
    landing: Path, save: Any, envelopes: Any, whole: str
) -> None:
    batch = envelopes.batch("c", 1, True, "".join(envelopes.me(f"{i}") for i in range(500)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("1.xml", batch)
    data = bytearray(out.getvalue())
    place = data.index(b"<nam:value>250<")
    data[place + 11 : place + 14] = b"999"
    save("a.zip", bytes(data))
    (row,) = rows(landing, wholeFileBytes=whole)
    assert "damaged archive" in row[CORRUPT]


def test_a_file_that_is_named_outright_is_looked_into_whatever_its_name(landing: Path, save: Any) -> None:
    save("x.dat", zipped(("1.xml", b"<a/>")))
    save("plain.xml", b"<a/>")
    assert [file.path for file in list_files([str(landing)], [])] == [str(landing / "plain.xml")]
    (named,) = list_files([str(landing / "x.dat")], [])
    assert list(documents_of(named.path, [])) == [f"{landing}/x.dat!/1.xml"]


# The shelf


def test_an_archive_is_opened_once_for_all_its_members(
    landing: Path, save: Any, members: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives: list[str] = []

    class Counting(Archive):
        def __init__(self, path: str, *, file: Any) -> None:
            archives.append(path)
            super().__init__(path, file=file)

    monkeypatch.setattr("mtosi_jms.tables.files.Archive", Counting)
    path = save("a.tgz", tarred(*((f"{n}.xml", members["1.xml"]) for n in range(50)), mode="w:gz"))
    plan = plan_landing(SourceOptions.parse({"path": str(landing)}))
    assert archives == [str(path)]
    assert len(plan.files) == 1
    assert len(plan.files[0].duplicates) == 49
    assert not len(SHELF), "and closed at the end"


def test_an_archive_that_is_replaced_meanwhile_is_read_anew(landing: Path, save: Any) -> None:
    path = save("a.zip", zipped(("1.xml", b"<a/>")))
    with SHELF.held():
        with opened(f"{path}!/1.xml") as stream:
            assert stream.read() == b"<a/>"
        path.unlink()
        save("b.zip", b"")
        save("a.zip", zipped(("1.xml", b"<bcd/>")))
        with opened(f"{path}!/1.xml") as stream:
            assert stream.read() == b"<bcd/>"
        path.unlink()
        with pytest.raises(SpoolError, match="No such file"), opened(f"{path}!/1.xml"):
            pass


def test_several_archives_may_be_read_at_once(landing: Path, save: Any) -> None:
    paths = [str(save(f"{n}.zip", zipped(("1.xml", b"<a/>"), ("2.xml", b"<b/>")))) for n in range(3)]
    shelf = ArchiveShelf()

    @contextmanager
    def member(path: str, name: str) -> Iterator[Any]:
        with shelf.archive(path) as archive, archive.open(name) as stream:
            yield stream

    with shelf.held(), member(paths[0], "1.xml") as first, member(paths[1], "2.xml") as second:
        seen: list[bytes] = []

        def read() -> None:
            with member(paths[0], "2.xml") as third:
                seen.append(third.read())

        thread = threading.Thread(target=read)
        thread.start()
        thread.join(20)
        assert (first.read(), second.read(), seen) == (b"<a/>", b"<b/>", [b"<b/>"])
    assert not len(shelf)
    with pytest.raises(ArchiveError, match="no such member"), member(paths[0], "3.xml"):
        pass
    assert not len(shelf)


def test_a_path_that_looks_like_a_member_may_be_a_file(landing: Path, put: Put) -> None:
    odd = put("odd!/1.xml", "<a/>")
    assert split_member(str(odd)) == (str(odd), "")
    archive = put("a!/b.zip", zipped(("x!/1.xml", b"<a/>")))
    assert split_member(f"{archive}!/x!/1.xml") == (str(archive), "x!/1.xml")


# Replies of BulkResponse


@pytest.fixture
def reply(envelopes: Any) -> Callable[..., str]:
    """The reply of a BulkResponse exchange that names a file."""

    def make(uri: str, cid: str = "reply", **fields: Any) -> str:
        header = envelopes.header(
            activityName="getAllManagedElements",
            msgType="RESPONSE",
            correlationId=cid,
            communicationPattern="BulkResponse",
            fileLocationURI=uri,
            **fields,
        )
        text: str = envelopes.envelope(header, "<mer:getAllManagedElementsResponse/>")
        return text

    return make


@pytest.fixture
def transfer(tmp_path: Path, members: Any) -> Path:
    folder = tmp_path / "transfer"
    folder.mkdir()
    (folder / "data.zip").write_bytes(zipped(*members.items()))
    return folder


def test_by_default_no_file_is_followed(landing: Path, put: Put, reply: Any, transfer: Path) -> None:
    path = put("reply.xml", reply((transfer / "data.zip").as_uri()))
    plan = plan_landing(SourceOptions.parse({"path": str(landing)}))
    assert plan.counts == {"bulk response": 1}
    assert plan.rejects == ()
    assert plan.sequences == ()
    assert [(found.file, "bulkFiles" in found.reason) for found in plan.unfollowed] == [(str(path), True)]
    assert rows(landing) == []
    assert [row["kind"] for row in rows(landing, MESSAGE)] == ["bulk response"]


@pytest.mark.parametrize("several", [False, True])
def test_below_a_folder_that_is_allowed_the_file_is_read(
    landing: Path, put: Put, reply: Any, transfer: Path, several: bool
) -> None:
    put("reply.xml", reply((transfer / "data.zip").as_uri()))
    allowed = json.dumps(["/no/such", str(transfer)]) if several else str(transfer)
    found = rows(landing, bulkFiles=allowed)
    assert len(found) == 15
    assert {row["complete"] for row in found} == {True}
    assert {row["source_file"].partition("!/")[0] for row in found} == {str(transfer / "data.zip")}
    plan = plan_landing(SourceOptions.parse({"path": str(landing), "bulkFiles": allowed}))
    assert plan.counts == {"bulk response": 1, "response": 3}
    assert plan.unfollowed == ()
    assert [(sequence.batches, sequence.complete) for sequence in plan.sequences] == [(3, True)]


def test_a_file_that_lies_in_the_landing_too_is_read_once(landing: Path, put: Put, reply: Any, members: Any) -> None:
    path = put("data.zip", zipped(*members.items()))
    put("reply.xml", reply(path.as_uri()))
    assert len(rows(landing, bulkFiles=str(landing))) == 15


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("file:///etc/passwd", "outside"),
        ("ftp://user:pa55@host/x", "not ftp"),
        ("file://{0}/none.zip", "no such file"),
        ("file://{0}/../landing/reply.xml", ". or .."),
        ("file://{0}/bad.zip", "damaged archive"),
    ],
)
def test_what_may_not_be_followed_is_rejected(
    landing: Path, put: Put, reply: Any, transfer: Path, uri: str, reason: str
) -> None:
    (transfer / "bad.zip").write_bytes(BOMB[:200])
    put("reply.xml", reply(uri.format(transfer)))
    (row,) = rows(landing, bulkFiles=str(transfer))
    assert reason in row[CORRUPT]
    assert "pa55" not in row[CORRUPT]


def test_a_file_that_was_followed_leads_to_no_other(landing: Path, put: Put, reply: Any, transfer: Path) -> None:
    (transfer / "chain.xml").write_text(reply((transfer / "data.zip").as_uri(), "other"))
    put("reply.xml", reply((transfer / "chain.xml").as_uri()))
    plan = plan_landing(SourceOptions.parse({"path": str(landing), "bulkFiles": str(transfer)}))
    assert plan.counts == {"bulk response": 2}
    assert [found.file for found in plan.unfollowed] == [str(transfer / "chain.xml")]


def test_a_document_of_a_file_is_no_reply(landing: Path, put: Put, reply: Any) -> None:
    put("numbered.xml", reply("file:///x", batchSequenceNumber=1, batchSequenceEndOfReply="true"))
    plan = plan_landing(SourceOptions.parse({"path": str(landing)}))
    assert (plan.counts, plan.unfollowed) == ({"response": 1}, ())


# Through Spark, and the command


@pytest.mark.spark
def test_spark_reads_what_a_supplier_wrote(spark: Any, landing: Path, tmp_path: Path, put: Put) -> None:
    from mtosi_jms.simulator import ManagedElementEms, Network
    from mtosi_jms.spark import InventorySource
    from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
    from mtosi_jms.testing import exchange

    transfer = tmp_path / "transfer"
    transfer.mkdir()
    with exchange([ManagedElementEms(Network(elements=30))], supplier={"bulk_folders": transfer}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        uri = (transfer / "me.tar.gz").as_uri()
        reply = operation.bulk(file_location_uri=uri, compression="GZIP", packing="TAR", batch_size=7)
    put("reply.xml", reply.envelope.to_bytes())
    spark.dataSource.register(InventorySource)
    reader = spark.read.format("mtosi").option("columns", "name_text,complete,source_file")
    followed = reader.option("bulkFiles", str(transfer)).load(str(landing)).collect()
    assert len({row.name_text for row in followed}) == len(followed) == 30
    assert {row.complete for row in followed} == {True}
    assert {row.source_file for row in followed} == {f"{transfer}/me.tar.gz!/00000{n}.xml" for n in range(1, 6)}


def test_the_source_warns_of_what_it_does_not_follow(
    landing: Path, put: Put, reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyspark")
    from mtosi_jms.spark._source import InventoryReader

    path = put("reply.xml", reply("file:///x"))
    with caplog.at_level(logging.WARNING):
        options = SourceOptions.parse({"path": str(landing)})
        InventoryReader(options, full_schema(options)).partitions()
    assert f"not followed {path}" in caplog.text


def test_the_command_takes_packed_files_and_tells_of_replies(
    landing: Path,
    save: Any,
    put: Put,
    reply: Any,
    members: Any,
    transfer: Path,
    tmp_path: Path,
) -> None:
    from mtosi_jms.tables import write

    put("reply.xml", reply((transfer / "data.zip").as_uri()))
    save("bad.zip", b"PK\x03\x04")
    result = write(landing, tmp_path / "out")
    assert result.rows == {"ME": 0}
    assert [found.file for found in result.unfollowed] == [str(landing / "reply.xml")]
    assert [found.file for found in result.rejected] == [str(landing / "bad.zip")]
    summary = json.loads((tmp_path / "out" / "_report" / "summary.json").read_text())
    assert summary["unfollowed"][0]["file"] == str(landing / "reply.xml")
    page = (tmp_path / "out" / "_report" / "report.html").read_text()
    assert f"1 replies name files that were not read: see summary.json. {landing}/reply.xml names" in page
    result = write(landing, tmp_path / "out2", bulk_files=(str(transfer),))
    assert (result.rows, result.unfollowed, result.complete) == ({"ME": 15}, (), True)
    save("data.zip", zipped(*members.items()))
    result = write(landing, tmp_path / "out3", object_type="ALL")
    assert result.rows == {"ME": 15}
