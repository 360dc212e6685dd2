"""Handles requests that JacORB cannot read: it answers them with an exception and never calls our objects.

A server interceptor passes such a request to the thread of its object. It is composed of parts of the JDK, since no
Python code may run in Java's threads (see `_servants`).
"""

from __future__ import annotations

from typing import Any, Final

from mtosi_jms.bridge._java import JavaOrb, made_of
from mtosi_jms.transport.jvm import machine

UNREAD: Final = "send_exception"
"""An operation of the interceptor: an object's handler of this name gets requests that cannot be read."""
_INFO: Final = "PortableInterceptor.ServerRequestInfo"
_TRANSIENT: Final = "IDL:omg.org/CORBA/TRANSIENT:1.0"


def interceptor(orb: JavaOrb, oid: Any, forward: Any) -> Any:
    """An interceptor for failed requests to one object. It skips failures by TRANSIENT, which we raise ourselves.

    Args:
        orb: the ORB that gets the requests.
        forward: method handle that passes a request on; see `_servants.call_handle`.
    """
    java = orb.java
    handles, method_type = java.cls("java.lang.invoke.MethodHandles"), java.cls("java.lang.invoke.MethodType")
    anything, text, method = (java.cls(f"java.lang.{one}") for one in ("Object", "String", "reflect.Method"))
    arguments, octets = java.cls("[Ljava.lang.Object;"), java.cls("[B")
    truth, info = java.cls("java.lang.Boolean").TYPE, java.omg(_INFO)
    classes, objects = java.jpype.JArray(java.cls("java.lang.Class")), java.jpype.JArray(anything)
    public = handles.publicLookup()

    def got(owner: Any, name: str, result: Any) -> Any:
        return public.findVirtual(owner, name, method_type.methodType(result))

    def is_text(wanted: str) -> Any:
        equals = public.findVirtual(text, "equals", method_type.methodType(truth, anything)).bindTo(text(wanted))
        return equals.asType(method_type.methodType(truth, text))

    def then(*steps: Any) -> Any:
        found = steps[0]
        for step in steps[1:]:
            found = handles.filterReturnValue(found, step)
        return found

    def of_info(*steps: Any) -> Any:
        first = handles.insertArguments(handles.arrayElementGetter(arguments), 1, objects([java.jpype.JInt(0)]))
        test = then(first.asType(method_type.methodType(info, arguments)), *steps)
        return handles.dropArguments(test, 0, classes([method]))

    an_any, code = java.omg("CORBA.Any"), java.omg("CORBA.TypeCode")
    same = public.findStatic(java.cls("java.util.Arrays"), "equals", method_type.methodType(truth, octets, octets))
    # Its other methods need to return nothing but a name.
    named = got(method, "getName", text).asType(method_type.methodType(anything, method))
    nothing = handles.dropArguments(named, 1, classes([arguments]))
    is_ours = of_info(
        got(info, "sending_exception", an_any), got(an_any, "type", code), got(code, "id", text), is_text(_TRANSIENT)
    )
    target = handles.guardWithTest(is_ours, nothing, forward)
    target = handles.guardWithTest(of_info(got(info, "object_id", octets), same.bindTo(oid)), target, nothing)
    target = handles.guardWithTest(then(got(method, "getName", text), is_text(UNREAD)), target, nothing)
    return made_of(java, java.omg("PortableInterceptor.ServerRequestInterceptor"), target)


class UnreadRequest:
    """A request that JacORB could not read.

    Attributes:
        message: all of its bytes.
    """

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
