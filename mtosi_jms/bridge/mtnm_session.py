"""Sessions with element managers of MTNM (TMF814): a client must log in to get their events.

    with Orb() as orb, MtnmSession(orb, "corbaname::ems:2809#TMF_MTNM.Class/...", user, password) as session:
        source = session.event_channel().event_source(FlowStyle.PULL)

An `EmsSessionFactory_I` makes the `EmsSession_I`, which gives the event channel. It also gets our `NmsSession_I`,
through which the element manager reports that it lost events, or that it ends the session. Each side pings the other.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from mtosi_jms.bridge._keeper import EventLoss
from mtosi_jms.bridge._mtnm_values import Item, Reading
from mtosi_jms.bridge._objects import Raised, Remote, Servant
from mtosi_jms.bridge.corba import CorbaChannel, Orb
from mtosi_jms.bridge.events import TCKind, TypeCode
from mtosi_jms.closing import Closeable
from mtosi_jms.errors import (
    BridgeError,
    ConfigError,
    EventError,
    IllegalStateError,
    LoginRefusedError,
    MtosiError,
    NamingError,
    ProcessingFailureError,
    TransportError,
)
from mtosi_jms.masking import shown_half_made, without
from mtosi_jms.transport import Backoff
from mtosi_jms.transport.jvm import machine

__all__ = ["MtnmSession"]

log = logging.getLogger(__package__)

_MTNM: Final = "IDL:mtnm.tmforum.org"
_NMS_SESSION: Final = (f"{_MTNM}/nmsSession/NmsSession_I:1.0", f"{_MTNM}/session/Session_I:1.0")
_FAILURE: Final = f"{_MTNM}/globaldefs/ProcessingFailureException:1.0"
_DENIED: Final = "EXCPT_ACCESS_DENIED"
_FAILURES: Final = (
    "EXCPT_NOT_IMPLEMENTED", "EXCPT_INTERNAL_ERROR", "EXCPT_INVALID_INPUT", "EXCPT_OBJECT_IN_USE",
    "EXCPT_TP_INVALID_ENDPOINT", "EXCPT_ENTITY_NOT_FOUND", "EXCPT_TIMESLOT_IN_USE", "EXCPT_PROTECTION_EFFORT_NOT_MET",
    "EXCPT_NOT_IN_VALID_STATE", "EXCPT_UNABLE_TO_COMPLY", "EXCPT_NE_COMM_LOSS", "EXCPT_CAPACITY_EXCEEDED", _DENIED,
    "EXCPT_TOO_MANY_OPEN_ITERATORS", "EXCPT_UNSUPPORTED_ROUTING_CONSTRAINTS", "EXCPT_USERLABEL_IN_USE",
)  # fmt: skip
"""The types of ProcessingFailureException, by number."""
_SESSION: Final = "session"
_EMS: Final = "EMS"


class MtnmSession(Closeable):
    """A session with an element manager; a lost session is started again. Threads may share it.

    Args:
        orb: the ORB that reaches the element manager; close it after the session.
        address: address of the `EmsSessionFactory_I`: `corbaname:...#NAME`, `corbaloc:...`, `IOR:...` or the path of a
            file with the last. With `name`, the address of the naming service.
        password: password of the user; it is in no text, error or log.
        name: name of the factory at the naming service, in the form of CosNaming: `TMF_MTNM.Class/...`.
        ping: seconds between pings.
        on_loss: called when a loss of events may begin, and when it ends: the element manager reports it (source
            `EMS`), or it does not answer or ended the session (source `session`). One thread calls it, which does not
            ping or log in meanwhile. None: the loss is logged.
        backoff: waiting times between attempts to log in again. An element manager that refuses a login may lock the
            user, so keep them long.

    Raises:
        ConfigError: the address is not valid, or the object there makes no sessions.
        NamingError: the naming service does not know the name.
        LoginRefusedError: the element manager refuses user and password.
        ProcessingFailureError: it refuses a session for another reason.
        ReferenceRefusedError: its session is at a host that is not allowed.
        TransportError: it cannot be reached.
    """

    def __init__(
        self,
        orb: Orb,
        address: str,
        user: str,
        password: str,
        *,
        name: str = "",
        ping: float = 30.0,
        on_loss: Callable[[EventLoss], object] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        if not 0 < ping < 86_400:
            raise ConfigError("ping must be a number of seconds above 0")
        self._orb = orb
        self._address = address
        self._at = name
        self._user = user
        self._password = password
        self._ping = ping
        self._on_loss = on_loss
        self._backoff = backoff or Backoff(1.0, 60.0, 1.0)
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._losing = False
        self._logins = 0
        self._session: Remote | None = None
        self._channel: tuple[str, CorbaChannel] | None = None
        self._client: Servant | None = None
        try:
            self._log_in()
        except BaseException:
            self.close()
            raise
        self._keeper = threading.Thread(target=self._keep, name="keeps-mtnm-session", daemon=True)
        self._keeper.start()

    @shown_half_made
    def __repr__(self) -> str:
        return f"<MtnmSession of {self._user!r} at {self.name}>"

    @property
    def name(self) -> str:
        shown = self._address if not self._address.upper().startswith("IOR:") else "IOR:..."
        return f"{shown}#{self._at}" if self._at else shown

    @property
    def is_alive(self) -> bool:
        """Whether there was a session at the last ping."""
        return self._session is not None

    def event_channel(self) -> CorbaChannel:
        """Asks for the element manager's event channel. It is closed if a later session has another one. Raises
        TransportError: there is no session now, or it cannot be reached; ProcessingFailureError: the element manager
        refuses it; IllegalStateError: the session is closed."""
        if self._over.is_set():
            raise IllegalStateError(f"{self.name}: the session is closed")
        ior = self._channel_ior()
        made = self._orb.channel(ior, name=self.name)
        with self._lock:
            self._channel = ior, made
        return made

    def _channel_ior(self) -> str:
        session = self._session
        if session is None:
            raise TransportError(f"{self.name}: there is no session now")
        found = self._call(session, "getEventChannel", gives=True)
        if found is None:
            raise NamingError(self.name, "its event channel is the nil reference")
        return Remote(session.orb, found, self.name).ior

    def _leave_channel(self) -> None:
        """Closes the channel of an earlier session if this one has another; its users then notice and ask again."""
        with self._lock:
            before = self._channel
        try:
            if before is not None and self._channel_ior() != before[0]:
                before[1].close()
        except (TransportError, BridgeError, ConfigError) as error:  # its users notice that it does not answer
            log.info("the channel of %s: %s: %s", self.name, type(error).__name__, error)

    def close(self) -> None:
        """Ends the session; may be called more than once."""
        self._over.set()
        self._work.put(None)
        keeper = getattr(self, "_keeper", None)
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()
        with self._lock:
            session, self._session = self._session, None
            client, self._client = self._client, None
        if session is not None:
            with contextlib.suppress(MtosiError):
                session.call("endSession", waits=False)
        if client is not None:
            client.close()

    def _log_in(self) -> None:
        factory = self._orb.find(self._address, self._at)
        with self._lock:
            if self._client is None:
                self._client = Servant(
                    factory.orb, _NMS_SESSION, self._operations(factory), self._orb.options.answer_timeout
                )
            client = self._client
        found = self._call(factory, "getEmsSession", self._user, self._password, client.reference, gives=True)
        if found is None:
            raise ProcessingFailureError("EXCPT_INTERNAL_ERROR", f"{self.name} gave no session")
        self._orb.check(found)
        self._logins += 1
        self._session = Remote(factory.orb, found, self.name)

    def _call(self, remote: Remote, operation: str, *arguments: Any, gives: bool = False) -> Any:
        """Calls an operation; turns exceptions into errors without the password."""
        try:
            return remote.call(operation, *arguments, gives=gives)
        except Raised as error:
            failure = _failure(remote, error)
        kind, reason = failure.exception_type, without(failure.reason, self._password)
        if kind == _DENIED:
            raise LoginRefusedError(f"{self.name}: {operation} is refused to {self._user!r}: {kind}: {reason}")
        raise ProcessingFailureError(kind, f"{self.name}: {operation}: {reason}")

    def _operations(self, factory: Remote) -> dict[str, Callable[[Any], Any]]:
        """The operations that the element manager calls. They only note the call and return."""

        def texts(arguments: Any, count: int) -> list[str]:
            # A loss counts even if its details cannot be read.
            with machine.blocking(), contextlib.suppress(factory.orb.java.jpype.JException):
                return [str(arguments.read_string()) for _ in range(count)]
            return [""] * count

        def lost(arguments: Any, what: str) -> None:
            start, number = texts(arguments, 2)
            self._work.put(partial(self._lose, _loss(False, f"the element manager lost {what}", start, number)))

        def session(_: Any) -> Any:
            found = self._session
            return lambda out: out.write_Object(None if found is None else found.reference)

        return {
            "ping": lambda _: None,
            "_get_associatedSession": session,
            "eventLossOccurred": lambda arguments: lost(arguments, "events"),
            "alarmLossOccurred": lambda arguments: lost(arguments, "alarms"),
            "eventLossCleared": lambda arguments: self._work.put(
                partial(self._lose, _loss(True, "the element manager loses no more events", texts(arguments, 1)[0]))
            ),
            "endSession": lambda _: self._work.put(
                partial(self._begin_again, "the element manager ended the session", self._logins, ended=True)
            ),
        }

    def _keep(self) -> None:
        """Pings, and handles the element manager's calls; ends with the ORB or the process."""
        with contextlib.suppress(IllegalStateError):
            self._serve()

    def _serve(self) -> None:
        due = time.monotonic() + self._ping
        while not self._over.is_set():
            try:
                work = self._work.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                failed, logins = _ping_error(self._session), self._logins
                due = time.monotonic() + self._ping
                if failed is not None:  # after the reports that came before
                    self._work.put(partial(self._begin_again, f"it does not answer: {failed}", logins, ended=False))
                continue
            if work is None:
                return
            work()

    def _lose(self, loss: EventLoss) -> None:
        self._losing = not loss.over
        self._report_loss(loss)

    def _begin_again(self, reason: str, logins: int, *, ended: bool) -> None:
        """Logs in until that works, unless a login has succeeded since. A session that answers after all is kept."""
        if logins != self._logins:
            return
        before, self._session = self._session, None
        self._report_loss(EventLoss(source=_SESSION, over=False, reason=reason))
        failures = 0
        while not self._over.wait(self._backoff.seconds(failures + 1)):
            try:
                if not ended and before is not None and _ping_error(before) is None:
                    self._session = before
                else:
                    self._log_in()
                    self._leave_channel()
            except IllegalStateError:
                raise
            except MtosiError as error:
                failures += 1
                log.warning("no session at %s: %s: %s", self.name, type(error).__name__, error)
                continue
            if self._losing and self._session is not before:  # its source is gone, and reports no end
                self._losing = False
                self._report_loss(_loss(True, "the element manager has begun again", ""))
            self._report_loss(EventLoss(source=_SESSION, over=True, reason=reason))
            return

    def _report_loss(self, loss: EventLoss) -> None:
        if self._on_loss is None:
            log.warning("%s: %s: %s", self.name, loss.what, loss.reason)
            return
        try:
            self._on_loss(loss)
        except Exception:
            log.exception("on_loss failed")


def _ping_error(session: Remote | None) -> MtosiError | None:
    """The error of a ping; None if the session answers, or there is none."""
    try:
        if session is not None:
            session.call("ping")
    except Raised as error:
        return TransportError(error.repository_id)
    except IllegalStateError:
        raise
    except MtosiError as error:
        return error
    return None


def _loss(over: bool, reason: str, when: str, number: str = "") -> EventLoss:
    return EventLoss(source=_EMS, over=over, reason=reason, time=_time(when), notification_id=number)


def _time(text: str) -> dt.datetime | None:
    try:
        return Reading().moment(Item("", "", TypeCode.of(TCKind.string), text))
    except EventError:
        log.info("is not a time: %.40r", text)
        return None


def _failure(remote: Remote, error: Raised) -> ProcessingFailureError:
    """Turns the exception into an error, with as much as can be read of it."""
    if error.repository_id != _FAILURE:
        return ProcessingFailureError(error.repository_id, "")
    number, reason = -1, ""
    with machine.blocking(), contextlib.suppress(remote.orb.java.jpype.JException):
        number = int(error.members.read_long())
        reason = str(error.members.read_string())
    return ProcessingFailureError(_FAILURES[number] if 0 <= number < len(_FAILURES) else str(number), reason)
