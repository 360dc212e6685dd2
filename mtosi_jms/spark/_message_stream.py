"""Streams of messages: `readStream.format("mtosi-jms")` receives from a JMS provider into a spool and reads the spool.

    spark.dataSource.register(MessageStreamSource)
    spark.readStream.format("mtosi-jms").option("url", "stomp://broker:61613").option("destination", "queue:INVENTORY")
         .load("spool/")

docs/design/streams.md explains how.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import DUPLICATE_ID
from mtosi_jms.spark._known import StreamIndex
from mtosi_jms.spark._receiver import Receiver, ReceiverOptions
from mtosi_jms.spark._source import narrowed
from mtosi_jms.spark._streams import FileStream, StreamOptions, admitted, check_streamable, seconds
from mtosi_jms.spool import DurableLanding, SpoolEntry, open_entry, scan
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import local_path, state_of
from mtosi_jms.tables.options import SourceOptions, hint, own_options, whole_number

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log = logging.getLogger(__package__)

MOST_MESSAGES: Final = "maxMessagesPerTrigger"
_CONNECT: Final = "connect."
RECEIVER_OPTIONS: Final = (
    "url", "destination", "selector", "durable", "shared", "names", "consumers", "maxSpooledMessages", "drainSeconds",
)  # fmt: skip
"""The options that only a stream of messages has."""
INDEX: Final = "_stream.db"
"""The name of the index in the folder of a spool, unless the option `index` names another file."""


class MessageStreamSource(DataSource):
    """A stream of inventory objects or messages from a JMS provider, each once; the path is the folder of a spool.

    It takes the options of `InventorySource`, of its streams, and of the provider; docs/spark.md lists them. It needs
    `spark.readStream`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        own = {name.lower() for name in (*StreamOptions.names(MOST_MESSAGES), *RECEIVER_OPTIONS)}
        given = own_options(options)
        self._given = {name: value for name, value in given.items() if name not in own}
        self._of_stream = {name: value for name, value in given.items() if name in own}
        self._of_connection = {
            name.lower().removeprefix(_CONNECT): _value(value)
            for name, value in options.items()
            if name.lower().startswith(_CONNECT)
        }
        check_names(self._given)
        settings = SourceOptions.parse(self._given)
        if len(settings.paths) != 1:
            raise ConfigError("a stream of messages has one spool: load(FOLDER)")
        self._settings = settings
        self._options = StreamOptions.parse(self._of_stream, most=MOST_MESSAGES, clean="delete")
        check_streamable(settings, self._options)
        local_path(self._options.archive, "the option sourceArchiveDir")
        self._receiver = _receiver_options(self._of_stream, self._of_connection)
        self._drain = seconds("drainSeconds", self._of_stream.get("drainseconds", "1"))

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "mtosi-jms"

    def schema(self) -> StructType:
        """Return the columns, as the format `mtosi` has them. Raises ConfigError: an object type, a stubs package or
        one of `columns` does not exist."""
        return from_arrow_schema(full_schema(self._settings))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Refuse to read a batch. Raises ConfigError: always."""
        raise ConfigError("mtosi-jms is for readStream; spark.read.format('mtosi') reads what lies in a spool")

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        """Return a reader of messages that are received while it runs. Raises ConfigError: `schema` has a column that
        does not exist or has another type."""
        columns = narrowed(full_schema(self._settings), schema)
        made = admitted(SpoolStream)(self._settings, self._options, columns)
        if isinstance(made, SpoolStream):
            made.receive_from(self._receiver, self._drain)
        return made


class SpoolStream(FileStream):
    """A stream of the messages in a spool, which a receiver or another program fills."""

    def __init__(self, settings: SourceOptions, options: StreamOptions, schema: pa.Schema) -> None:
        super().__init__(settings, options, schema)
        self._from: ReceiverOptions | None = None
        self._drain = 0.0
        self._landing: DurableLanding | None = None
        self._receiver: Receiver | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs; it does not receive messages."""
        return {**super().__getstate__(), "_from": None, "_landing": None, "_receiver": None}

    def receive_from(self, options: ReceiverOptions | None, drain: float) -> None:
        """Set the provider from which messages are received."""
        self._from, self._drain = options, drain

    @property
    def folder(self) -> str:
        """The folder of the spool."""
        return local_path(self.settings.paths[0], "a spool")

    def open_index(self) -> StreamIndex:
        """Open the index of the spool; make the spool if it does not exist."""
        self._landing = DurableLanding(self.folder)
        path = self.options.index or str(Path(self.folder) / INDEX)
        return StreamIndex(path, json.dumps(["spool", self.folder]), patience=self.options.patience)

    def look(self, index: StreamIndex) -> None:
        """Give positions to new messages, and remove copies of earlier ones."""
        self._receive(bounded=True)
        new = [path for path in scan(self.folder).envelopes if not index.has(str(path))]
        found = [state_of(str(path))._replace(key=key_of(open_entry(path))) for path in new]
        for copy in index.add(found).copies:
            _log.info("%s is a copy of an earlier message, and is removed", copy)
            self.remove(Path(copy))

    def available(self) -> int:
        """Receive all messages that the provider has, even beyond `maxSpooledMessages`; return the last position."""
        index = self.index
        self._receive(bounded=False)
        self.look(index)
        return index.last

    def _receive(self, *, bounded: bool) -> None:
        """Start the receiver at the first call, which waits for the messages that the provider has.

        If not `bounded`, every call waits for them.
        """
        if self._from is None or self._landing is None:
            return
        begins = self._receiver is None
        if self._receiver is None:
            self._receiver = Receiver(self._from, self._landing)
            self._receiver.start()
        if begins or not bounded:
            self._receiver.drain(self._drain, bounded=bounded)
        self._receiver.check()

    def clean(self, path: str) -> None:
        """Remove or archive both files of an entry, the envelope first."""
        super().clean(path)
        super().clean(str(Path(path).with_suffix(".json")))

    def remove(self, path: Path) -> None:
        """Remove both files of an entry."""
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)

    def stop(self) -> None:
        """Stop the receiver, and close the index."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None
        if self._landing is not None:
            self._landing.close()
            self._landing = None
        super().stop()


def key_of(entry: SpoolEntry) -> str | None:
    """Return a key that a message and its copies share, and no other message; None if there is none."""
    if entry.facts is None or entry.sha256 is None:
        return None
    own = entry.facts.properties.get(DUPLICATE_ID)
    if own:
        return f"{own} {entry.sha256}"
    if entry.facts.message_id is None:
        return None
    return f"{entry.facts.message_id} {entry.facts.timestamp_ms} {entry.sha256}"


def check_names(given: Mapping[str, str]) -> None:
    """Check that all options are known."""
    known = {*SourceOptions.names(), *StreamOptions.names(MOST_MESSAGES), *RECEIVER_OPTIONS}
    unknown = sorted(set(given) - {name.lower() for name in known})
    if unknown:
        raise ConfigError(f"the source mtosi-jms has no option {unknown[0]!r}{hint(unknown[0], known)}")


def _receiver_options(given: Mapping[str, str], connection: Mapping[str, Any]) -> ReceiverOptions | None:
    if not given.get("url"):
        if given.get("destination") or connection:
            raise ConfigError("no url: option('url', URL) says where messages come from")
        return None
    if not given.get("destination"):
        raise ConfigError("no destination: option('destination', 'queue:NAME'), topic:NAME, or a name of names")
    return ReceiverOptions(
        url=given["url"],
        destination=given["destination"],
        selector=given.get("selector", ""),
        durable=given.get("durable", ""),
        shared=_flag("shared", given.get("shared", "false")),
        names=given.get("names", ""),
        consumers=whole_number("consumers", given.get("consumers", "1")),
        most=whole_number("maxSpooledMessages", given.get("maxspooledmessages", "10000")),
        connection=connection,
    )


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{name} is {text!r}; there are true and false")
    return text.lower() == "true"


def _value(text: str) -> object:
    """Return the value of an option of the connection: a number, true or false, null, or a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, bool | int | float) else text
