"""Objects on both sides of an ORB: ours, which Python threads serve, and those of peers. Their IDL is known here alone.

A call by the ORB goes into a Java queue and waits a limited time for its answer; a Python thread takes it out and
answers. What waits is a class of Java's (`java/Offered.java`), so no Python code runs in a Java thread. JPype could run
Python there (`JImplements`), but then a foreign thread takes Python's lock inside the ORB, where it can neither be
interrupted nor ended: a process that exits meanwhile crashes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from mtosi_jms.bridge._java import JavaOrb
from mtosi_jms.errors import IllegalStateError, TransportError
from mtosi_jms.transport.jvm import machine

log = logging.getLogger(__package__)

_LOOK: Final = 0.25
"""Seconds between checks whether the process ends; a servant that is closed is woken."""
_ATTEMPTS: Final = 5

Write: TypeAlias = Callable[[Any], object]
"""Writes values into a stream."""
Handler: TypeAlias = Callable[[Any], Write | None]
"""Answers a call: gets the stream of its arguments, and returns what writes its results; None where there are none."""


class Thrown(Exception):
    """An exception of the IDL that a handler throws. `write`: writes its members."""

    def __init__(self, repository_id: str, write: Write = lambda _: None) -> None:
        self.repository_id = repository_id
        self.write = write
        super().__init__(repository_id)


class Servant:
    """Our object that the ORB offers to peers.

    Args:
        interfaces: repository ids, that of the most derived interface first.
        handlers: handlers by the name of the operation. If a handler raises anything but `Thrown`, the peer gets
            TRANSIENT; for an operation without a handler it gets BAD_OPERATION.
        answer_timeout: seconds after which a peer gets TRANSIENT, whatever the handler does; a call that no handler
            has begun by then is dropped.
        object_id: id of an object that has the same reference in the next process; None: it ends with this process.
        on_late: called with the name of an operation that finished after its peer had got TRANSIENT.
    """

    def __init__(
        self,
        orb: JavaOrb,
        interfaces: Sequence[str],
        handlers: Mapping[str, Handler],
        answer_timeout: float,
        object_id: bytes | None = None,
        on_late: Callable[[str], object] | None = None,
    ) -> None:
        java = orb.java
        self._orb = orb
        self._handlers = handlers
        self._on_late = on_late
        self._queue = java.cls("java.util.concurrent.LinkedBlockingQueue")()
        self._transient = java.omg("CORBA.TRANSIENT")("not taken; it may come again")
        answered = java.cls("java.util.concurrent.CompletableFuture").completedFuture(None)
        self._over = java.cls("java.util.Arrays").asList(None, None, None, answered)
        self._closed = threading.Event()
        with orb.calling(interfaces[0]):
            self._poa = orb.poa() if object_id is None else orb.lasting_poa()
            milliseconds = int(answer_timeout * 1_000)
            offered = java.cls("mtosi_jms.corba.Offered")
            made = offered(self._queue, self._transient, milliseconds, list(interfaces))
            if object_id is None:
                self._oid = self._poa.activate_object(made)
            else:
                self._oid = java.jpype.JArray(java.jpype.JByte)(object_id)
                self._poa.activate_object_with_id(self._oid, made)
            self.reference = self._poa.id_to_reference(self._oid)
        self._thread = threading.Thread(target=self._serve, name=f"serves-{interfaces[0]}", daemon=True)
        self._thread.start()
        if object_id is not None:
            with orb.calling(interfaces[0]):
                self._poa.the_POAManager().activate()

    def _serve(self) -> None:
        machine.attach()
        unit = self._orb.java.cls("java.util.concurrent.TimeUnit").MILLISECONDS
        with contextlib.suppress(IllegalStateError):  # the process ends: Java must not be called any longer
            while not self._closed.is_set():
                with machine.blocking():
                    call = self._queue.poll(int(_LOOK * 1_000), unit)
                    work = None if call is None else tuple(call)
                    # A call for which nobody waits any longer is done.
                    if work is not None and work[3].isDone():
                        work = None
                if work is not None:
                    self._answer(*work)
            with machine.blocking():
                while (call := self._queue.poll()) is not None:
                    call.get(3).complete(self._transient)

    def _answer(self, operation: Any, arguments: Any, reply: Any, answer: Any) -> None:
        name = str(operation)
        handler, done = self._handlers.get(name), False
        if handler is None:
            found = self._orb.java.omg("CORBA.BAD_OPERATION")(f"no operation {name}")
        else:
            try:
                found, done = self._reply(handler, arguments, reply, answer), True
            except Exception as error:  # noqa: BLE001 - the peer gets TRANSIENT, and tries again
                log.warning("%s was not done: %s: %s", name, type(error).__name__, error)
                found = self._transient
        with machine.blocking():
            in_time = bool(answer.complete(found))
        if done and not in_time and self._on_late is not None:
            self._on_late(name)

    def _reply(self, handler: Handler, arguments: Any, reply: Any, answer: Any) -> Any:
        """Has a handler answer a call; returns the stream of the answer, None where nobody waits for it any longer."""
        thrown, write = None, None
        try:
            write = handler(arguments)
        except Thrown as error:
            thrown, write = error, error.write
        with machine.blocking():
            if answer.isDone():
                return None
            out = reply.createReply() if thrown is None else reply.createExceptionReply()
            if thrown is not None:
                out.write_string(thrown.repository_id)
            if write is not None:
                write(out)
            return out

    def close(self, *, leave: bool = False) -> None:
        """Removes the object once no handler is running; waiting calls get TRANSIENT. `leave`: whether to hide from
        peers that it is gone: it comes back in the next process."""
        self._closed.set()
        with contextlib.suppress(Exception), self._orb.calling():
            self._queue.put(self._over)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        if not leave:
            with contextlib.suppress(Exception), self._orb.calling():
                self._poa.deactivate_object(self._oid)


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
