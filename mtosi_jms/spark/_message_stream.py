"""Streams of messages: `readStream.format("mtosi-jms")` receives from a JMS provider into a spool and reads the spool.

    spark.dataSource.register(MessageStreamSource)
    spark.readStream.format("mtosi-jms").option("url", "stomp://broker:61613").option("destination", "queue:INVENTORY")
         .load("spool/")

The receiver writes and syncs each message into the spool, then acknowledges it; docs/design/streams.md explains how.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema

from mtosi_jms.errors import AuthenticationError, ConfigError, IllegalStateError, MtosiError, TransportError
from mtosi_jms.jms import DUPLICATE_ID
from mtosi_jms.masking import is_secret, passwords_in
from mtosi_jms.spark._known import StreamIndex
from mtosi_jms.spark._source import FileStream, StreamOptions, check_streamable, narrowed, seconds
from mtosi_jms.spool import DurableLanding, SpoolEntry, open_entry, scan
from mtosi_jms.tables.columns import full_schema
from mtosi_jms.tables.files import local_path, remove, state_of
from mtosi_jms.tables.options import SourceOptions, hint, own_options, whole_number
from mtosi_jms.transport import AckMode, Backoff, Consumer, connect

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
_LOOK: Final = 0.1
"""Seconds between checks whether to stop and whether the spool has room again."""
_CLOSE_SECONDS: Final = 30.0
_BACKOFF: Final = Backoff(initial=0.5, maximum=15.0)


class MessageStreamSource(DataSource):
    """A stream of inventory objects or messages from a JMS provider, each once; the path is the folder of a spool.

    It takes the options of `InventorySource`, of its streams, and of the provider; docs/spark.md lists them. It needs
    `spark.readStream`.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        names = (*StreamOptions.names(MOST_MESSAGES), *RECEIVER_OPTIONS)
        own = {name.lower() for name in names}
        given = own_options(options)
        of_stream = {name: given.pop(name) for name in own & given.keys()}
        known = {*SourceOptions.names(), *names}
        unknown = sorted(given.keys() - {name.lower() for name in known})
        if unknown:
            raise ConfigError(f"the source mtosi-jms has no option {unknown[0]!r}{hint(unknown[0], known)}")
        self._settings = SourceOptions.parse(given)
        if len(self._settings.paths) != 1:
            raise ConfigError("a stream of messages has one spool: load(FOLDER)")
        self._options = StreamOptions.parse(of_stream, most=MOST_MESSAGES, clean="delete")
        check_streamable(self._settings, self._options)
        local_path(self._options.archive, "the option sourceArchiveDir")
        connection = {
            name.lower().removeprefix(_CONNECT): _value(value)
            for name, value in options.items()
            if name.lower().startswith(_CONNECT)
        }
        self._receiver = _receiver_options(of_stream, connection)
        self._drain = seconds("drainSeconds", of_stream.get("drainseconds", "1"))

    @classmethod
    def name(cls) -> str:
        return "mtosi-jms"

    def schema(self) -> StructType:
        """Return the columns, as the format `mtosi` has them. Raises ConfigError: an object type, a stubs package or
        one of `columns` does not exist."""
        return from_arrow_schema(full_schema(self._settings))

    def reader(self, schema: StructType) -> DataSourceReader:
        raise ConfigError("mtosi-jms is for readStream; spark.read.format('mtosi') reads what lies in a spool")

    def streamReader(self, schema: StructType) -> FileStream:  # noqa: N802
        """Return a reader of messages that are received while it runs. Raises ConfigError: `schema` has a column that
        does not exist or has another type."""
        columns = narrowed(full_schema(self._settings), schema)
        return SpoolStream(self._settings, self._options, columns, self._receiver, self._drain)


class SpoolStream(FileStream):
    """A stream of the messages in a spool, which a receiver or another program fills."""

    def __init__(
        self,
        settings: SourceOptions,
        options: StreamOptions,
        schema: pa.Schema,
        receiver: ReceiverOptions | None,
        drain: float,
    ) -> None:
        super().__init__(settings, options, schema)
        self._from = receiver
        self._drain = drain
        self._landing: DurableLanding | None = None
        self._receiver: Receiver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_from": None, "_landing": None, "_receiver": None}

    @property
    def folder(self) -> str:
        return local_path(self.settings.paths[0], "a spool")

    def open_index(self) -> StreamIndex:
        self._landing = DurableLanding(self.folder)
        path = self.options.index or str(Path(self.folder) / INDEX)
        return StreamIndex(path, json.dumps(["spool", self.folder]), patience=self.options.patience)

    def look(self, index: StreamIndex) -> None:
        """Give positions to new messages, and remove copies of earlier ones."""
        self._receive(bounded=True)
        new = [path for path in scan(self.folder).envelopes if str(path) not in index]
        found = [state_of(str(path))._replace(key=key_of(open_entry(path))) for path in new]
        for copy in index.add(found)[1]:
            _log.info("%s is a copy of an earlier message, and is removed", copy)
            for file in (copy, str(Path(copy).with_suffix(".json"))):
                remove(file)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Receive all messages that the provider has, even beyond `maxSpooledMessages`."""
        index = self.index
        self._receive(bounded=False)
        self.look(index)
        self._end = index.last

    def _receive(self, *, bounded: bool) -> None:
        """Start the receiver at the first call, which waits for the messages that the provider has.

        If not `bounded`, every call waits for them.
        """
        if self._from is None or self._landing is None:
            return
        begins = self._receiver is None
        if self._receiver is None:
            self._receiver = Receiver(self._from, self._landing)
        if begins or not bounded:
            self._receiver.drain(self._drain, bounded=bounded)
        self._receiver.check()

    def clean(self, path: str) -> None:
        super().clean(path)
        super().clean(str(Path(path).with_suffix(".json")))

    def stop(self) -> None:
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
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if value is None or isinstance(value, bool | int | float) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions:
    """The source of messages and the limits of receiving; docs/spark.md has the options.

    Attributes:
        most: receiving pauses when the spool has this many entries.
        connection: further options of `mtosi_jms.connect`.

    Raises:
        ConfigError: an option that would show a secret, or options that exclude each other.
    """

    url: str
    destination: str
    selector: str
    durable: str
    shared: bool
    names: str
    consumers: int
    most: int
    connection: Mapping[str, Any]

    def __post_init__(self) -> None:
        secret = next((name for name in self.connection if is_secret(name) and not name.endswith("_file")), None)
        if passwords_in(self.url) or secret is not None:
            raise ConfigError(
                f"{'url holds a password' if secret is None else f'connect.{secret} is a secret'}, and Spark shows "
                "options: give connect.password_file, or set MTOSI_JMS_PASSWORD_FILE where the driver runs"
            )
        if self.consumers > 1 and (self.connection.get("client_id") or (self.durable and not self.shared)):
            raise ConfigError("several consumers have no client_id in common, and only a shared durable subscription")


class Receiver:
    """Threads that receive into a spool until `stop`, and reconnect a lost connection without end.

    All threads stop if a first connection fails, a login is refused, options do not fit, or the spool cannot be
    written; `check` then raises the error.
    """

    def __init__(self, options: ReceiverOptions, landing: DurableLanding) -> None:
        self._options = options
        self._landing = landing
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._room = 0
        self._is_bounded = True
        self._failure: MtosiError | None = None
        self._quiet: dict[int, float] = {}
        """The seconds that each connected thread has waited without a message."""
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"mtosi-receiver-{number}", daemon=True)
            for number in range(options.consumers)
        ]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Check that the receiver still works. Raises MtosiError: the error that ended it."""
        if self._failure is not None:
            raise self._failure

    def drain(self, quiet: float, *, bounded: bool = True) -> None:
        """Wait until no message has arrived for `quiet` seconds or, if `bounded`, the spool is full."""
        self._is_bounded = bounded
        while not (self._is_quiet(quiet) or (bounded and self._is_full())):
            self.check()
            if self._stop.wait(_LOOK / 2):
                break
        self._is_bounded = True
        self.check()

    def _is_quiet(self, quiet: float) -> bool:
        with self._lock:
            waited = list(self._quiet.values())
        return len(waited) == len(self._threads) and 0 < min(waited) >= quiet

    def stop(self) -> None:
        """Stop all threads; the provider redelivers messages that were not acknowledged. May be called again."""
        self._stop.set()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, number: int) -> None:
        failures = 0
        was_connected = False
        while not self._stop.is_set():
            try:
                self._receive_on(number)
            except (TransportError, IllegalStateError) as error:
                is_connected = number in self._quiet
                was_connected = was_connected or is_connected
                if isinstance(error, AuthenticationError) or not was_connected:
                    self._fail(error)
                    return
                failures = 1 if is_connected else failures + 1
                _log.warning("receiving from %s: %s", self._options.destination, error)
                self._stop.wait(_BACKOFF.seconds(failures))
            except MtosiError as error:
                self._fail(error)
                return
            finally:
                with self._lock:
                    self._quiet.pop(number, None)

    def _fail(self, error: MtosiError) -> None:
        self._failure = self._failure or error
        self._stop.set()

    def _receive_on(self, number: int) -> None:
        options = self._options
        opened = connect(options.url, names=options.names or None, **options.connection)
        with opened as connection, connection.session(ack_mode=AckMode.CLIENT) as session:
            consumer = session.consumer(
                options.destination, options.selector or None, durable=options.durable or None, shared=options.shared
            )
            connection.start()
            self._waited(number, None)
            self._receive(consumer, number)

    def _receive(self, consumer: Consumer, number: int) -> None:
        while not self._stop.is_set():
            if self._is_bounded and not self._take_room():
                self._stop.wait(_LOOK)
                self._waited(number, _LOOK)
                continue
            delivery = consumer.receive(_LOOK)
            self._waited(number, _LOOK if delivery is None else None)
            if delivery is None:
                continue
            self._landing.land(delivery.message)
            try:
                delivery.acknowledge()
            except (TransportError, IllegalStateError) as error:  # the index recognizes the redelivery
                _log.debug("a message in the spool was not acknowledged: %s", error)

    def _waited(self, number: int, seconds: float | None) -> None:
        """Note that a thread has waited some seconds without a message; None if it has one, or has just connected."""
        with self._lock:
            self._quiet[number] = 0.0 if seconds is None else self._quiet.get(number, 0.0) + seconds

    def _take_room(self) -> bool:
        with self._lock:
            if self._room > 0:
                self._room -= 1
                return True
        room = self._options.most - len(scan(self._landing.spool.folder).envelopes)
        with self._lock:
            self._room = min(room, 100) - 1
        return room > 0

    def _is_full(self) -> bool:
        return len(scan(self._landing.spool.folder).envelopes) >= self._options.most
