"""Handles requests that JacORB cannot read: it answers them with an exception and never calls our objects.

A server interceptor (`java/Unread.java`) passes such a request to the thread of its object.
"""

from __future__ import annotations

from typing import Any, Final

from mtosi_jms.bridge._java import JavaOrb, made_of
from mtosi_jms.transport.jvm import machine

UNREAD: Final = "send_exception"
"""An operation of the interceptor: an object's handler of this name gets requests that cannot be read."""


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
