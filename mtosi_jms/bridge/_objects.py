"""Objects on both sides of an ORB: ours, which Python threads serve, and those of peers.

A call by the ORB goes into a Java queue and waits a limited time for its answer; a Python thread takes it out and
answers. What waits is a class of Java's (`java/Call.java`), so no Python code runs in a Java thread. JPype could run
Python there (`JImplements`), but then a foreign thread takes Python's lock inside the ORB, where it can neither be
interrupted nor ended: a process that exits meanwhile crashes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from mtosi_jms.bridge._java import Java, JavaOrb, made_of
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.transport.jvm import machine

log = logging.getLogger(__package__)

_LOOK: Final = 0.25
"""Seconds between checks whether the process ends; a servant that is closed is woken."""

UNREAD: Final = "send_exception"
"""An operation of the interceptor: an object's handler of this name gets requests that cannot be read."""
_ATTEMPTS: Final = 5


class Servant:
    """Our object that the ORB offers to peers.

    Args:
        interface: its IDL interface, below `org.omg`, or the repository ids of interfaces without classes in Java.
        handlers: handlers by the name of the operation, called with the Java arguments. Operations without a handler do
            nothing. If a handler raises, the peer gets TRANSIENT. The handler `UNREAD` gets the requests that JacORB
            cannot read. Without classes in Java, a handler is called with the stream of the arguments and returns None,
            a reference or the number of an enumeration's value, and an operation without a handler is a BAD_OPERATION.
        answer_timeout: seconds after which a peer gets TRANSIENT, whatever the handler does; a call that no handler
            has begun by then is dropped.
        object_id: id of an object that has the same reference in the next process; None: it ends with this process.
        on_late: called with the name of an operation that finished after its peer had got TRANSIENT.
        lacking: handlers of operations that the classes in Java lack, called as if there were no classes.
    """

    def __init__(
        self,
        orb: JavaOrb,
        interface: str | Sequence[str],
        handlers: dict[str, Callable[..., Any]],
        answer_timeout: float,
        object_id: bytes | None = None,
        on_late: Callable[[str], object] | None = None,
        lacking: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        java = orb.java
        self._orb = orb
        by_name = (lacking or {}) if isinstance(interface, str) else handlers
        self._handlers = {**handlers, "_invoke": _by_name(java, by_name)}
        self._on_late = on_late
        self._queue = java.cls("java.util.concurrent.LinkedBlockingQueue")()
        self._transient = java.omg("CORBA.TRANSIENT")("not taken; it may come again")
        answered = java.cls("java.util.concurrent.CompletableFuture").completedFuture(None)
        self._over = java.cls("java.util.Arrays").asList(None, None, answered)
        self._closed = threading.Event()
        call = java.cls("mtosi_jms.corba.Call")(self._queue, self._transient, int(answer_timeout * 1_000))
        name = interface.rpartition(".")[2] if isinstance(interface, str) else interface[0]
        with orb.calling(name):
            self._poa = orb.poa() if object_id is None else orb.lasting_poa()
            handler = made_of(java, java.omg("CORBA.portable.InvokeHandler"), call)
            own, offered = java.cls("java.util.HashMap")(), java.cls("mtosi_jms.corba.Offered")
            if isinstance(interface, str):
                operations = made_of(java, java.omg(f"{interface}Operations"), call)
                made = java.omg(f"{interface}POATie")(operations, self._poa)
                for operation in by_name:
                    own.put(operation, handler)
                if by_name:
                    made = offered(made, own, made._all_interfaces(self._poa, None))
            else:
                made = offered(handler, own, list(interface))
            if object_id is None:
                self._oid = self._poa.activate_object(made)
            else:
                self._oid = java.jpype.JArray(java.jpype.JByte)(object_id)
                self._poa.activate_object_with_id(self._oid, made)
            if UNREAD in handlers:
                orb.intercept(self._oid, interceptor(orb, self._oid, call))
            self.reference = self._poa.id_to_reference(self._oid)
            if isinstance(interface, str):
                self.reference = java.omg(f"{interface}Helper").unchecked_narrow(self.reference)
        self._thread = threading.Thread(target=self._serve, name=f"serves-{name}", daemon=True)
        self._thread.start()
        if object_id is not None:
            with orb.calling(name):
                self._poa.the_POAManager().activate()

    def _serve(self) -> None:
        machine.attach()
        unit = self._orb.java.cls("java.util.concurrent.TimeUnit").MILLISECONDS
        with contextlib.suppress(IllegalStateError):  # the process ends: Java must not be called any longer
            while not self._closed.is_set():
                with machine.blocking():
                    call = self._queue.poll(int(_LOOK * 1_000), unit)
                    # A call for which nobody waits any longer is done.
                    work = None if call is None or call.get(2).isDone() else self._work(call)
                if work is not None:
                    self._answer(call, *work)
            with machine.blocking():
                while (call := self._queue.poll()) is not None:
                    call.get(2).complete(self._transient)

    def _work(self, call: Any) -> tuple[str, tuple[Any, ...]]:
        arguments = call.get(1)
        return str(call.get(0).getName()), tuple(arguments) if arguments is not None else ()

    def _answer(self, call: Any, name: str, arguments: tuple[Any, ...]) -> None:
        handler = self._handlers.get(name)
        found, done = None, False
        if handler is not None:
            try:
                found, done = handler(*arguments), True
            except Exception as error:  # noqa: BLE001 - the peer gets TRANSIENT, and tries again
                log.warning("%s was not done: %s: %s", name, type(error).__name__, error)
                found = self._transient
        with machine.blocking():
            in_time = bool(call.get(2).complete(found))
        if done and not in_time and self._on_late is not None:
            self._on_late(name)

    def close(self, *, leave: bool = False) -> None:
        """Removes the object once no handler is running; waiting calls get TRANSIENT. `leave`: whether to hide from
        peers that it is gone: it comes back in the next process."""
        self._closed.set()
        with contextlib.suppress(Exception), self._orb.calling():
            self._queue.put(self._over)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        with contextlib.suppress(Exception), self._orb.calling():
            if UNREAD in self._handlers:
                self._orb.intercept(self._oid, None)
            if not leave:
                self._poa.deactivate_object(self._oid)


def _by_name(java: Java, handlers: dict[str, Callable[..., Any]]) -> Callable[[Any, Any, Any], Any]:
    """A function that answers all operations, by the handler of the operation's name."""

    def invoke(operation: Any, arguments: Any, reply: Any) -> Any:
        with machine.blocking():
            handler = handlers.get(str(operation))
        if handler is None:
            return java.omg("CORBA.BAD_OPERATION")(f"no operation {operation}")
        found = handler(arguments)
        with machine.blocking():
            out = reply.createReply()
            if isinstance(found, int):
                out.write_long(found)
            elif found is not None:
                out.write_Object(found)
        return out

    return invoke


def interceptor(orb: JavaOrb, oid: Any, call: Any) -> Any:
    """An interceptor for failed requests to one object, which go to what takes its calls."""
    handler = orb.java.cls("mtosi_jms.corba.Unread")(oid, call)
    return made_of(orb.java, orb.java.omg("PortableInterceptor.ServerRequestInterceptor"), handler)


class UnreadRequest:
    """A request that JacORB could not read."""

    def __init__(self, orb: JavaOrb, info: Any) -> None:
        with machine.blocking():
            field = info.getClass().getDeclaredField("request")
            field.setAccessible(True)
            self._request = field.get(info)
            self._nothing = orb.java.jpype.JInt(0)
            self.operation = str(self._request.operation())
            self.message = bytes(self._request.get_in().getBufferCopy())

    def answer(self) -> None:
        """Answers the request as if the object had been called and had returned."""
        with machine.blocking():
            for name, value in (("replyStatus", self._nothing), ("sys_ex", None), ("out", None)):
                field = self._request.getClass().getDeclaredField(name)
                field.setAccessible(True)
                field.set(self._request, value)


class Raised(Exception):
    """An exception of the IDL that a peer raised. `members`: the stream of its members, behind the id."""

    def __init__(self, repository_id: str, members: Any) -> None:
        self.repository_id = repository_id
        self.members = members
        super().__init__(repository_id)


class Remote:
    """An object behind an ORB."""

    def __init__(self, orb: JavaOrb, reference: Any, name: str) -> None:
        self.orb = orb
        self.reference = reference
        self.name = name

    @property
    def ior(self) -> str:
        with self.orb.calling(self.name):
            return str(self.orb.orb.object_to_string(self.reference))

    def call(self, operation: str, *arguments: Any, gives: bool = False, waits: bool = True) -> Any:
        """Calls an operation. `arguments`: a str is a string, anything else a reference. Returns the reference; None
        where it is the nil reference. Raises Raised: an exception of the IDL; MtosiError: see
        `mtosi_jms.bridge._java.error_of`."""
        portable = "CORBA.portable"
        again, raised = (
            self.orb.java.omg(f"{portable}.{name}") for name in ("RemarshalException", "ApplicationException")
        )
        with self.orb.calling(self.name):
            for _ in range(_ATTEMPTS):
                out, back = self.reference._request(operation, waits), None
                for one in arguments:
                    out.write_string(one) if isinstance(one, str) else out.write_Object(one)
                try:
                    back = self.reference._invoke(out)
                    return back.read_Object() if gives else None
                except again:  # it was forwarded, or learnt of another charset
                    continue
                except raised as error:
                    members = error.getInputStream()
                    members.read_string()
                    raise Raised(str(error.getId()), members) from None
                finally:
                    self.reference._releaseReply(back)
        raise TransportError(f"{self.name}: forwarded too often")
