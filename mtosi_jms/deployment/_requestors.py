"""The requestors of a deployment: one for each reply destination, shared by the stubs whose replies come in there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mtosi_jms.deployment._parts import Asking
from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange import Requestor
from mtosi_jms.service import Service
from mtosi_jms.transport import Connection

if TYPE_CHECKING:
    from mtosi_jms.deployment._model import Deployment

S = TypeVar("S", bound=Service)


class Requestors:
    """Open requestors, and stubs on them; `Deployment.open_requestors` makes it.

    Args:
        deployment: verified already.
        connection: an open connection, which stays open.
        options: further arguments of `Requestor`.

    Raises:
        TransportError: the provider failed.
    """

    def __init__(self, deployment: Deployment, connection: Connection, **options: Any) -> None:
        self._deployment = deployment
        self._by_service: dict[str, Requestor] = {}
        made: dict[object, Requestor] = {}
        fixed = {"sender_uri": deployment.name, "profile": deployment.profile, **options}
        with ExitStack() as stack:
            for service, asking in deployment.requestors.items():
                key = _ends(deployment, asking, connection)
                if key not in made:
                    ends = {
                        "reply_to": asking.reply_to,
                        "failure_reply_to": asking.failure_reply_to,
                        "temporary_reply": asking.temporary_reply,
                    }
                    made[key] = stack.enter_context(Requestor(connection, **{**fixed, **ends}))
                self._by_service[service] = made[key]
            self._open = stack.pop_all()

    def requestor(self, service: str) -> Requestor:
        """The requestor that a service's replies come in at.

        Raises:
            ConfigError: the deployment asks for no such service.
        """
        if service not in self._by_service:
            raise ConfigError(f"the deployment asks for no {service}; it has {', '.join(self._by_service) or 'none'}")
        return self._by_service[service]

    def stub(self, service: type[S]) -> S:
        """A stub of a generated service class, at its destination and with its replies where the deployment says.

        Raises:
            ConfigError: the deployment asks for no such service.
        """
        name = service.__service__.name
        return service(self.requestor(name), self._deployment.requestors[name].destination)

    def __iter__(self) -> Iterator[Requestor]:
        return iter(dict.fromkeys(self._by_service.values()))

    def close(self) -> None:
        """Closes the requestors; the connection stays open."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ends(deployment: Deployment, asking: Asking, connection: Connection) -> object:
    """What tells one requestor from another: where it receives."""
    names = connection.names
    named = None if asking.temporary_reply else names.lookup(asking.reply_to or deployment.name)
    return named, names.lookup(asking.failure_reply_to) if asking.failure_reply_to else None
