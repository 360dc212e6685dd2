"""Looks a deployment through with a naming context: everything that is wrong or unusual."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mtosi_jms.deployment._parts import Address, Problem, near
from mtosi_jms.errors import NamingError
from mtosi_jms.jms import Destination, NamingContext
from mtosi_jms.service.registry import services_of
from mtosi_jms.xmlbind import registered_packages

if TYPE_CHECKING:
    from mtosi_jms.deployment._model import Deployment


class Check:
    """One look through one deployment.

    Args:
        deployment: what is looked through.
        names: the naming context that its destinations are looked up in.
    """

    def __init__(self, deployment: Deployment, names: NamingContext) -> None:
        self._deployment = deployment
        self._names = names
        self._served: dict[Destination, str] = {}
        self._receivers: dict[Destination, tuple[object, str]] = {}

    def problems(self) -> Iterator[Problem]:
        """The problems: services without stubs, suppliers, requestors, topics."""
        known = {service.name for package in registered_packages() for service in services_of(package)}
        for name in dict.fromkeys((*self._deployment.suppliers, *self._deployment.requestors)):
            if name not in known:
                yield Problem(f"no stubs are known for a service {name}{near(name, known)}")
        yield from self._suppliers()
        yield from self._requestors()
        yield from self._topics()

    def _resolved(self, what: str, address: Address) -> tuple[Destination | None, list[Problem]]:
        try:
            return self._names.lookup(address), []
        except NamingError as error:
            return None, [Problem(f"{what}: {error}")]

    def _suppliers(self) -> Iterator[Problem]:
        for service, address in self._deployment.suppliers.items():
            found, problems = self._resolved(service, address)
            yield from problems
            if found is not None:
                self._served.setdefault(found, service)
                if found.is_topic:
                    yield Problem(f"{service} is served from {found}; queues are for requests (O2)", fatal=False)

    def _requestors(self) -> Iterator[Problem]:
        for service, asking in self._deployment.requestors.items():
            yield from self._resolved(service, asking.destination)[1]
            ends = [] if asking.temporary_reply else [asking.reply_to or self._deployment.name]
            ends += [asking.failure_reply_to] if asking.failure_reply_to else []
            resolved = [self._resolved(f"replies of {service}", end) for end in ends]
            for _, problems in resolved:
                yield from problems
            places = tuple(place for place, _ in resolved if place is not None)
            owner = (asking.temporary_reply, places)
            for place in places:
                yield from self._receives(service, place, owner)

    def _receives(self, service: str, place: Destination, owner: object) -> Iterator[Problem]:
        """A consumer takes what another one waits for, where both receive at one queue."""
        other_owner, other = self._receivers.setdefault(place, (owner, service))
        if other_owner != owner:
            yield Problem(
                f"{service} and {other} would take each other's replies from {place}: give both the same ends"
            )
        if place in self._served:
            yield Problem(f"replies of {service} and requests of {self._served[place]} both come in at {place}")

    def _topics(self) -> Iterator[Problem]:
        used: dict[Destination, str] = {place: name for place, (_, name) in self._receivers.items()}
        used |= self._served
        for category, address in self._deployment.topics.items():
            found, problems = self._resolved(category.value, address)
            yield from problems
            if found is None:
                continue
            if found in used:
                yield Problem(
                    f"{category.value} and {used[found]} share {found}; a topic is for one (O10b)", fatal=False
                )
            used.setdefault(found, category.value)
            if not found.is_topic:
                yield Problem(f"{category.value} goes to {found}; topics are for notifications (O2)", fatal=False)
