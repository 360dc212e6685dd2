"""A requestor and a supplier joined in memory, on a provider that nobody else knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import BindingProfile, Destination, NamingContext
from mtosi_jms.jms.binding import DEFAULT_PROFILE
from mtosi_jms.service import Service, SupplierBase
from mtosi_jms.testing._clock import Timer
from mtosi_jms.testing._interception import InterceptedConnection, Interceptor
from mtosi_jms.testing._scripted import ScriptedSupplier
from mtosi_jms.testing._sending import Tamper
from mtosi_jms.transport import Connection
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

REQUESTOR: Final = "jms/RequestorOS"
"""The requestor's logical name, whose destination the replies go to."""
SUPPLIER: Final = "jms/SupplierOS"
"""The name of the supplier's destination."""
NAMES: Final[Mapping[str, str]] = {
    REQUESTOR: "queue:REQUESTOR.OS",
    SUPPLIER: "queue:SUPPLIER.OS",
    "jms/FailureOS": "queue:FAILURE.OS",
}
"""The naming context of a pair; `jms/FailureOS` is there for failureReplytoURI."""

S = TypeVar("S", bound=Service)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both ends of an exchange.

    Attributes:
        connection: that both use.
        provider: behind the connection; `depth` and `held` tell what is in it.
        requestor: on the queue of `REQUESTOR`.
        supplier: on the queue of `SUPPLIER`; a `ScriptedSupplier` where there were no services, or tampering.
    """

    connection: Connection
    provider: MemoryProvider
    requestor: Requestor
    supplier: Supplier | ScriptedSupplier

    @property
    def destination(self) -> Destination:
        """Where the supplier listens."""
        return self.supplier.destination

    @property
    def scripted(self) -> ScriptedSupplier:
        """The supplier of a pair without services.

        Raises:
            ConfigError: it is a real one.
        """
        if not isinstance(self.supplier, ScriptedSupplier):
            raise ConfigError("this pair has a Supplier; make it without services, or with tamper")
        return self.supplier

    def stub(self, service: type[S]) -> S:
        """A service stub whose requests the supplier gets."""
        return service(self.requestor, SUPPLIER)


def connect_privately(names: Mapping[str, str] = NAMES, **options: Any) -> MemoryConnection:
    """A connection to an embedded provider of its own.

    Args:
        names: the naming context.
        options: of `MemoryProvider`, such as `clock`.
    """
    return MemoryConnection(MemoryProvider("private", **options), NamingContext(names))


@contextmanager
def exchange(
    services: Sequence[SupplierBase] = (),
    *,
    tamper: Tamper | None = None,
    timer: Timer | None = None,
    names: Mapping[str, str] = NAMES,
    profile: BindingProfile = DEFAULT_PROFILE,
    provider: Mapping[str, Any] | None = None,
    supplier: Mapping[str, Any] | None = None,
    threads: int = 1,
    intercept: Interceptor | None = None,
    intercept_supplier: Interceptor | None = None,
    **requestor: Any,
) -> Iterator[Pair]:
    """A requestor and a supplier joined in memory, ended and cleared away with the block.

    Args:
        services: instances of generated supplier classes; none: a `ScriptedSupplier` that the test drives.
        tamper: gets the replies that the services make to a request and returns those that are delivered.
        timer: delivers replies that `tamper`, or the test, made late; usually a `ManualClock`.
        names: the naming context; it has `REQUESTOR` and `SUPPLIER`.
        profile: the switches, at both ends.
        provider: options of the embedded provider, such as `clock`.
        supplier: further arguments of `Supplier`.
        threads: how many threads the supplier answers with.
        intercept: gets each step of the requestor's sessions (`InterceptedConnection`).
        intercept_supplier: the same for the supplier.
        requestor: further arguments of `Requestor`.
    """
    with ExitStack() as stack:
        embedded = stack.enter_context(connect_privately(names, **provider or {}))
        connection = _intercepted(embedded, intercept)
        other = _intercepted(
            stack.enter_context(MemoryConnection(embedded.provider, embedded.names)), intercept_supplier
        )
        serving: Supplier | ScriptedSupplier
        if services and tamper is None:
            serving = Supplier(other, SUPPLIER, services, **{"profile": profile, **(supplier or {})})
            stack.callback(serving.stop)
            serving.start(threads)
        else:
            serving = stack.enter_context(ScriptedSupplier(other, SUPPLIER, timer=timer))
            if tamper is not None:
                change = tamper
                serving.start(lambda asked: change(asked.replies(services, profile=profile)))
        asking = Requestor(connection, **{"sender_uri": REQUESTOR, "profile": profile, **requestor})
        yield Pair(connection, embedded.provider, stack.enter_context(asking), serving)


def _intercepted(connection: Connection, interceptor: Interceptor | None) -> Connection:
    return connection if interceptor is None else InterceptedConnection(connection, interceptor)
