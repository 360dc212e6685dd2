"""Calls of objects behind an ORB whose interfaces have no classes in Java: their IDL is known here alone."""

from __future__ import annotations

from typing import Any, Final

from mtosi_jms.bridge._java import JavaOrb
from mtosi_jms.errors import TransportError

_ATTEMPTS: Final = 5


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
