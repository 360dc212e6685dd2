"""Streams over a landing and from a queue: each row once, whatever is done in between; most of it without Spark."""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import ConfigError, JournalDamageError, MtosiError, SpoolError, SpoolInUseError
from mtosi_jms.spark import InventorySource, MessageStreamSource
from mtosi_jms.spark._message_stream import RECEIVER_OPTIONS
from mtosi_jms.spark._source import StreamOptions

from .conftest import examples, section

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


@dataclass
class Query:
    """What Spark does with a source, step by step: a checkpoint, and batches that it names.

    `start` is the end of the last batch, as in a checkpoint; `restart` forgets all else.
    """

    source: type[Any]
    options: dict[str, str]
    start: dict[str, Any] | None = None
    reader: Any = None
    opened: list[Any] = field(default_factory=list)

    def restart(self, **options: str) -> Query:
        if self.reader is not None:
            self.reader.stop()
        self.options.update(options)
        source = self.source(self.options)
        self.reader = source.streamReader(source.schema())
        self.opened.append(self.reader)
        if self.start is not None:
            assert self.reader.partitions(self.start, self.start) == []
        return self

    def latest(self) -> dict[str, Any]:
        """The end of the next batch, as this version of PySpark asks for it: since 4.2 with start and limit."""
        if importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None:
            start = self.start or self.reader.initialOffset()
            found = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        else:
            found = self.reader.latestOffset()
        assert isinstance(found, dict)
        return found

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        parts = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        found = [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]
        return sorted(found, key=lambda row: str(row.get("name_text")))

    def batch(self) -> list[dict[str, Any]]:
        """The rows of the next batch; the last one is committed before."""
        start = self.start or self.reader.initialOffset()
        end = self.latest()
        if self.start is not None and end != start:
            self.reader.commit(start)
        found = self.rows(start, end)
        self.start = end
        return found

    def names(self) -> list[str]:
        """The names in the rows of the next batch."""
        return [row["name_text"].rpartition("=")[2] for row in self.batch()]


@pytest.fixture
def open_query() -> Iterator[Callable[..., Query]]:
    made: list[Query] = []

    def open_one(source: type[Any], **options: str) -> Query:
        made.append(Query(source, options).restart())
        return made[-1]

    yield open_one
    for query in made:
        for reader in query.opened:
            reader.stop()


@pytest.fixture(params=["", "local://"], ids=["path", "URL"])
def query(request: Any, landing: Path, tmp_path: Path, open_query: Callable[..., Query]) -> Query:
    """Of a landing on this machine, and of the same one where fsspec opens it."""
    path, index = f"{request.param}{landing}", str(tmp_path / "index.db")
    return open_query(InventorySource, path=path, index=index, indexTimeout="0")


def test_a_landing_that_grows(query: Query, put: Put, envelopes: Any) -> None:
    """A file that comes late with an old time is not lost, and nothing comes twice."""
    put("b.xml", envelopes.batch("c", 2, False, envelopes.me("2")))
    assert query.names() == ["2"]
    late = put("a.xml", envelopes.batch("c", 1, False, envelopes.me("1")))
    os.utime(late, (1, 1))
    put("deep/er/c.xml.zst", envelopes.batch("c", 3, True, envelopes.me("3")))
    assert query.names() == ["1", "3"]
    assert query.batch() == []
    query.restart()
    assert query.batch() == []


def test_a_batch_is_planned_again_after_a_kill(query: Query, put: Put, envelopes: Any) -> None:
    """Of the same files, whatever has come since; also where its end was returned and nothing else."""
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("1")))
    start = query.reader.initialOffset()
    end = query.latest()
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("2")))
    query.restart()
    later = query.latest()
    first = query.rows(start, end)
    query.restart()
    assert query.rows(start, end) == first
    assert [(row["name_text"], row["complete"]) for row in first] == [("MD=M/ME=1", False)]
    assert [(row["name_text"], row["complete"]) for row in query.rows(end, later)] == [("MD=M/ME=2", True)]
    assert query.rows(start, end) == first


def test_a_limit_of_files(query: Query, put: Put, envelopes: Any) -> None:
    for number in range(1, 6):
        path = put(f"{number}.xml", envelopes.batch("c", number, number == 5, envelopes.me(str(number))))
        os.utime(path, (number, number))
    query.restart(maxFilesPerTrigger="2")
    assert [query.names(), query.restart().names(), query.names(), query.names()] == [["1", "2"], ["3", "4"], ["5"], []]


def test_a_copy_of_an_earlier_message_gives_no_rows(query: Query, put: Put, envelopes: Any) -> None:
    put("2.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    assert query.names() == ["1"]
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    assert query.batch() == []
    put("3.xml", envelopes.batch("c", 1, True, envelopes.me("other")))
    (conflict,) = query.batch()
    assert (conflict["name_text"], conflict["complete"]) == ("MD=M/ME=other", False)


def test_an_archive(query: Query, landing: Path, put: Put, envelopes: Any) -> None:
    put("0.xml", envelopes.batch("c", 1, False, envelopes.me("1")))
    with zipfile.ZipFile(landing / "more.zip", "w") as archive:
        archive.writestr("2.xml", envelopes.batch("c", 2, False, envelopes.me("2")))
        archive.writestr("3.xml", envelopes.batch("c", 3, True, envelopes.me("3")))
    assert query.names() == ["1", "2", "3"]


def test_rejects(query: Query, put: Put, envelopes: Any) -> None:
    put("1.xml", "<order/>")
    put("2.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    query.restart(columnNameOfCorruptRecord="corrupt")
    row, reject = query.batch()
    assert row["name_text"] == "MD=M/ME=1"
    assert reject["corrupt"].endswith("1.xml:1: not SOAP: the root element is order")
    put("3.xml", "<order/>")
    query.restart(mode="FAILFAST")
    with pytest.raises(MtosiError, match=r"3\.xml"):
        query.batch()
    assert len(query.restart(mode="PERMISSIVE").batch()) == 1, "not lost"


@pytest.mark.parametrize("change", ["content", "gone"])
def test_a_file_that_changes_before_it_is_read(query: Query, put: Put, envelopes: Any, change: str) -> None:
    """An error, as often as it is tried; with onChanged=reject its row says so."""
    path = put("1.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    put("2.xml", envelopes.batch("d", 1, True, envelopes.me("2")))
    start, end = query.reader.initialOffset(), query.latest()
    (part,) = query.restart(numPartitions="1").reader.partitions(start, end)
    if change == "gone":
        path.unlink()
    else:
        path.write_text("<order/>")
    with pytest.raises(SpoolError, match=r"1\.xml.*since it was listed"):
        list(query.reader.read(part))
    for _ in range(2):
        with pytest.raises(SpoolError, match=r"1\.xml.*onChanged=reject"):
            query.restart().reader.partitions(start, end)
    query.restart(onChanged="reject", columnNameOfCorruptRecord="corrupt")
    row, reject = query.rows(start, end)
    assert row["name_text"] == "MD=M/ME=2"
    assert "1.xml" in reject["corrupt"]


def test_a_file_that_changes_after_it_was_read(query: Query, put: Put, envelopes: Any) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    assert query.names() == ["1"]
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("another")))
    put("2.xml", envelopes.batch("d", 1, True, envelopes.me("2")))
    with pytest.raises(SpoolError, match=r"1\.xml: has changed"):
        query.latest()
    assert query.restart(onChanged="reject").names() == ["2"]


def test_a_landing_that_is_gone(query: Query, landing: Path, put: Put, envelopes: Any) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    assert query.names() == ["1"]
    landing.rename(landing.with_name("elsewhere"))
    with pytest.raises(SpoolError, match="no such file or folder"):
        query.latest()
    landing.mkdir()
    assert query.batch() == []
    landing.rmdir()
    landing.with_name("elsewhere").rename(landing)
    assert query.batch() == []


def test_two_queries_on_one_index(query: Query, open_query: Callable[..., Query]) -> None:
    query.latest()
    second = open_query(InventorySource, **query.options)
    with pytest.raises(SpoolInUseError, match="another process has this index of a stream open"):
        second.latest()
    query.reader.stop()
    assert second.latest() == second.reader.initialOffset()


def test_a_checkpoint_of_something_else(
    query: Query, open_query: Callable[..., Query], landing: Path, put: Put, envelopes: Any, tmp_path: Path
) -> None:
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("1")))
    query.latest()
    query.reader.stop()
    shutil.copy(tmp_path / "index.db", tmp_path / "old.db")
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("2")))
    end = query.restart().latest()
    start = query.reader.initialOffset()
    with pytest.raises(ConfigError, match="another source, or of another version"):
        query.reader.partitions(start, {"files": 3})
    with pytest.raises(ConfigError, match="another source, or of another version"):
        query.reader.partitions(start, {**end, "format": 2})
    with pytest.raises(ConfigError, match="not the index of this checkpoint"):
        query.restart(index=str(tmp_path / "other.db")).reader.partitions(start, end)
    with pytest.raises(JournalDamageError, match="at position 2, and the index ends at 1"):
        query.restart(index=str(tmp_path / "old.db")).reader.partitions(start, end)
    with pytest.raises(ConfigError, match="is the index of"):
        query.restart(path=str(landing / "deep"), index=str(tmp_path / "index.db")).latest()
    (tmp_path / "text.db").write_text("no database" * 100)
    with pytest.raises(JournalDamageError, match="damaged"):
        query.restart(path=str(landing), index=str(tmp_path / "text.db")).latest()


@pytest.mark.parametrize("clean", ["delete", "archive"])
def test_files_that_are_done_with(query: Query, landing: Path, put: Put, envelopes: Any, clean: str) -> None:
    """They go when the next batch is in the checkpoint; what was trimmed cannot be asked for again."""
    kept = landing.with_name("kept")
    more = {"sourceArchiveDir": str(kept)} if clean == "archive" else {}
    query.restart(cleanSource=clean, **more)
    start = query.reader.initialOffset()
    put("1.xml", envelopes.batch("c", 1, False, envelopes.me("1")))
    assert query.names() == ["1"]
    assert (landing / "1.xml").exists()
    put("2.xml", envelopes.batch("c", 2, True, envelopes.me("2")))
    assert query.names() == ["2"]
    assert [path.name for path in landing.iterdir()] == ["2.xml"]
    assert [path.name for path in kept.rglob("*.xml")] == (["1.xml"] if clean == "archive" else [])
    put("1.xml", envelopes.batch("e", 1, False, envelopes.me("new")))
    assert query.names() == ["new"], "a name that is free again"
    put("3.xml", envelopes.batch("f", 1, True, envelopes.me("3")))
    assert query.names() == ["3"]
    assert sorted(path.name for path in kept.rglob("*.xml")) == (
        ["1.xml", "2-1.xml", "2.xml"] if clean == "archive" else []
    )
    put("1.xml", envelopes.batch("e", 2, True, envelopes.me("newer")))
    assert query.names() == ["newer"], "also for the next batch of a sequence"
    assert query.start is not None
    with pytest.raises(JournalDamageError, match="was trimmed up to 4"):
        query.restart().reader.partitions(start, query.start)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"index": ""}, r"option\('index', FILE\)"),
        ({"onIncomplete": "filter"}, "onIncomplete of a stream"),
        ({"bulkFiles": "/mnt"}, "bulkFiles is not for streams"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger is '0'"),
        ({"cleanSource": "burn"}, "cleanSource is 'burn'"),
        ({"cleanSource": "archive"}, "sourceArchiveDir"),
        ({"cleanSource": "archive", "sourceArchiveDir": "LANDING/kept"}, "is in the landing"),
        ({"onChanged": "no"}, "onChanged is 'no'"),
        ({"indexTimeout": "soon"}, "indexTimeout is 'soon'"),
    ],
)
def test_options_that_do_not_fit(query: Query, options: dict[str, str], said: str) -> None:
    given = {name: value.replace("LANDING", query.options["path"]) for name, value in options.items()}
    with pytest.raises(ConfigError, match=said):
        query.restart(**given).latest()


def test_options_of_streams_are_refused_by_a_batch(query: Query) -> None:
    source = InventorySource(query.options)
    with pytest.raises(ConfigError, match="is for readStream"):
        source.reader(source.schema())


# Messages, by the provider of this process.


@dataclass
class Provider:
    """A provider of this process, and its queue."""

    url: str = field(default_factory=lambda: f"memory:{uuid.uuid4()}")

    def __post_init__(self) -> None:
        self.connection = mtosi.connect(self.url)
        self.session = self.connection.session()

    def send(self, text: str, **properties: str) -> None:
        self.session.send("queue:Q", mtosi.JmsMessage(body=text.encode(), properties=properties))

    def waiting(self) -> int:
        return len(self.session.browse("queue:Q"))


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.connection.close()


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def messages(provider: Provider, spool: Path, open_query: Callable[..., Query]) -> Query:
    options = {"url": provider.url, "destination": "queue:Q", "path": str(spool), "drainSeconds": "0.05"}
    return open_query(MessageStreamSource, **options, indexTimeout="0")


def bodies(spool: Path) -> int:
    return len(list(spool.glob("*.xml")))


def test_messages_of_a_queue(messages: Query, provider: Provider, spool: Path, envelopes: Any) -> None:
    """They are acknowledged when they are in the spool, and leave it when their batch is committed."""
    for number in (1, 2, 3):
        provider.send(envelopes.batch("c", number, number == 3, envelopes.me(str(number))))
    assert messages.names() == ["1", "2", "3"]
    assert (provider.waiting(), bodies(spool)) == (0, 3)
    messages.restart()
    provider.send(envelopes.batch("d", 1, True, envelopes.me("4")))
    assert messages.names() == ["4"]
    assert bodies(spool) == 1
    messages.restart()
    assert messages.batch() == []


def test_a_message_that_comes_again(messages: Query, provider: Provider, spool: Path, envelopes: Any) -> None:
    """Its acknowledgement was lost with the process: once before its first copy is in a batch, once long after."""
    provider.send(envelopes.batch("c", 1, True, envelopes.me("1")))
    (again,) = provider.session.browse("queue:Q")
    with mtosi.DurableLanding(spool) as landing:
        landing.land(again)
        assert messages.names() == ["1"]
        provider.send(envelopes.batch("c", 2, True, envelopes.me("2")))
        assert messages.restart().names() == ["2"]
        landing.land(again)
        assert messages.restart().batch() == []
    assert bodies(spool) == 1


def test_an_id_that_the_sender_gave(messages: Query, provider: Provider, envelopes: Any) -> None:
    """The same message sent twice is one; another body under the same id is another message."""
    text = envelopes.batch("c", 1, True, envelopes.me("1"))
    for _ in range(2):
        provider.send(text, MTOSIX_messageId="id-1")
    provider.send(envelopes.batch("d", 1, True, envelopes.me("2")), MTOSIX_messageId="id-1")
    assert messages.names() == ["1", "2"]


def test_the_receiver_waits_for_room(messages: Query, provider: Provider, spool: Path, envelopes: Any) -> None:
    for number in range(1, 13):
        provider.send(envelopes.batch("c", number, number == 12, envelopes.me(f"{number:02}")))
    messages.restart(maxSpooledMessages="4", maxMessagesPerTrigger="3")
    seen = messages.names()
    assert bodies(spool) == 4
    assert provider.waiting() >= 8
    while len(seen) < 12:
        found = messages.names()
        assert len(found) <= 3
        assert bodies(spool) <= 4 + 3
        seen += found
    assert seen == [f"{number:02}" for number in range(1, 13)]


def test_others_fill_the_spool(spool: Path, envelopes: Any, open_query: Callable[..., Query]) -> None:
    """Without a provider the stream reads what is there; what is not an envelope is rejected."""
    query = open_query(MessageStreamSource, path=str(spool), columnNameOfCorruptRecord="corrupt")
    assert query.batch() == []
    with mtosi.DurableLanding(spool) as landing:
        landing.land(mtosi.JmsMessage(body=envelopes.batch("c", 1, True, envelopes.me("1")).encode()))
        landing.land(mtosi.JmsMessage(body=b"hello"))
    row, reject = query.batch()
    assert (row["name_text"], reject["name_text"]) == ("MD=M/ME=1", None)
    assert "hello" not in reject["corrupt"]


def test_a_selector(messages: Query, provider: Provider, envelopes: Any) -> None:
    for number in (1, 2):
        provider.send(envelopes.batch("c", number, None, envelopes.me(str(number))), colour=["red", "blue"][number - 1])
    assert messages.restart(selector="colour = 'blue'").names() == ["2"]
    with pytest.raises(MtosiError):
        messages.restart(selector="colour = = 1").latest()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "stomp://user:hunter2@host:1"}, "url holds a password"),
        ({"connect.password": "hunter2"}, r"connect\.password is a secret"),
        ({"destination": ""}, "no destination"),
        ({"url": ""}, "no url"),
        ({"consumers": "2", "durable": "d"}, "only a shared durable subscription"),
        ({"shared": "perhaps"}, "shared is 'perhaps'"),
        ({"maxMessagePerTrigger": "1"}, r"did you mean maxMessagesPerTrigger"),
        ({"paths": '["a", "b"]'}, "one spool"),
    ],
)
def test_options_of_messages_that_do_not_fit(messages: Query, options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        messages.restart(**options)
    assert "hunter2" not in str(caught.value)


def test_what_a_worker_gets_does_not_name_the_provider(messages: Query, provider: Provider) -> None:
    messages.latest()
    assert provider.url.encode() not in pickle.dumps(messages.reader.__getstate__())


def test_a_provider_that_is_not_there(messages: Query) -> None:
    with pytest.raises(MtosiError, match=r"127\.0\.0\.1"):
        messages.restart(**{"url": "stomp://127.0.0.1:9", "connect.connect_timeout": "1"}).latest()


# With Spark: the code of the guide.


@pytest.fixture
def guide(spark: Any, tmp_path: Path) -> Callable[[int, dict[str, str]], list[str]]:
    """Runs a block of the guide to the end of its stream; the names in its table."""

    def run(number: int, more: dict[str, str]) -> list[str]:
        code = examples("Streams")[number]
        places = {"/mnt/": f"{tmp_path}/", 'processingTime="10 seconds"': "availableNow=True", **more}
        for there, here in places.items():
            assert there in code or there not in more
            code = code.replace(there, here)
        space: dict[str, Any] = {"spark": spark, "mtosi": mtosi}
        exec(compile(code, f"spark.md stream {number}", "exec"), space)
        try:
            space["query"].awaitTermination()
        finally:
            space["query"].stop()
        (table,) = (tmp_path / "tables").iterdir()
        found = spark.read.parquet(str(table)).select("name_text").collect()
        return sorted(row["name_text"].rpartition("=")[2] for row in found)

    return run


def test_a_landing_with_spark(guide: Callable[..., list[str]], put: Put, envelopes: Any, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    for number in (1, 2):
        put(f"{number}.xml", envelopes.batch("c", number, number == 2, envelopes.me(str(number))))
        assert guide(0, {}) == ["1", "2"][:number]


def test_a_queue_with_spark(
    guide: Callable[..., list[str]], activemq: BrokerProcess, envelopes: Any, tmp_path: Path
) -> None:
    queue = f"STREAM.{uuid.uuid4()}"
    word = tmp_path / "word"
    word.write_text(activemq.endpoints.password)
    given = {
        "broker:61613": f"127.0.0.1:{activemq.endpoints.ports['stomp']}",
        '"spark"': f'"{activemq.endpoints.user}"',
        "/run/secrets/broker": str(word),
        "queue:INVENTORY": f"queue:{queue}",
    }
    with mtosi.connect(activemq.endpoints.url("stomp")) as connection, connection.session() as session:
        for number in (1, 2):
            body = envelopes.batch("c", number, number == 2, envelopes.me(str(number)))
            session.send(f"queue:{queue}", mtosi.JmsMessage(body=body.encode()))
        seen: list[str] = []
        for _ in range(5):  # a busy broker may take longer than the stream waits
            seen = seen if len(seen) == 2 else guide(1, given)
        assert seen == ["1", "2"]
        assert session.browse(f"queue:{queue}") == []


def test_the_guide_names_every_option() -> None:
    page = section("Streams")
    for name in (*StreamOptions.names(), *StreamOptions.names("maxMessagesPerTrigger"), *RECEIVER_OPTIONS):
        assert f"`{name}`" in page, name
