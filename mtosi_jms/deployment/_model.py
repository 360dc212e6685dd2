"""The deployment of one OS: its interfaces and their destinations, checked before anything is opened (P21).

One destination may serve any number of interfaces, and each side chooses for itself (O9): the three figures of section
3.3 are three values of one class.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtosi_jms.deployment._check import Check
from mtosi_jms.deployment._parts import Address, Asking, Problem, administered, near
from mtosi_jms.deployment._requestors import Requestors
from mtosi_jms.deployment.sheet import sheet_of, text_of
from mtosi_jms.errors import ConfigError
from mtosi_jms.exchange.supplier import Supplier
from mtosi_jms.jms import BindingProfile, Destination, FrozenMap, NamingContext
from mtosi_jms.jms.binding import DEFAULT_PROFILE
from mtosi_jms.jms.profile import TopicCategory
from mtosi_jms.notifications import Publisher
from mtosi_jms.service import SupplierBase
from mtosi_jms.transport import Connection

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The interfaces of one OS and their destinations. Destinations are names of the naming context, or destinations.

    Attributes:
        name: the OS's logical name, its senderURI.
        suppliers: service name to the destination where the OS serves it.
        requestors: service name to how the OS asks for it.
        topics: category to the topic that the OS publishes it on (O10).
        profile: the switches of the binding; with `validation="strict"` what is unusual is an error.
        names: the naming context that the deployment was written for; give it to `connect`.

    Raises:
        ConfigError: no name, or a temporary destination at the server's side (R2a).
    """

    name: str
    suppliers: Mapping[str, Address] = field(default=FrozenMap())
    requestors: Mapping[str, Asking] = field(default=FrozenMap())
    topics: Mapping[TopicCategory, Address] = field(default=FrozenMap())
    profile: BindingProfile = DEFAULT_PROFILE
    names: NamingContext = field(default_factory=NamingContext, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("a deployment needs the logical name of its OS")
        for service, address in self.suppliers.items():
            administered(service, address)
        for category, address in self.topics.items():
            administered(category.value, address)
        for table in ("suppliers", "requestors", "topics"):
            object.__setattr__(self, table, FrozenMap(getattr(self, table)))

    def problems(self, names: NamingContext | None = None) -> tuple[Problem, ...]:
        """Everything that is wrong or unusual, the interfaces in their order.

        Args:
            names: in place of the deployment's own.
        """
        strict = self.profile.validation == "strict"
        found = Check(self, self.names if names is None else names).problems()
        return tuple(Problem(problem.message, problem.fatal or strict) for problem in found)

    def verify(self, names: NamingContext | None = None) -> None:
        """Log what is unusual and refuse what is wrong.

        Raises:
            ConfigError: all that is wrong, in one text.
        """
        found = self.problems(names)
        for problem in found:
            if not problem.fatal:
                log.warning("deployment of %s: %s", self.name, problem.message)
        if wrong := [problem.message for problem in found if problem.fatal]:
            raise ConfigError("; ".join(wrong))

    def open_suppliers(
        self, connection: Connection, services: Sequence[SupplierBase], **options: Any
    ) -> tuple[Supplier, ...]:
        """One supplier for each destination, with all services that it serves, not started yet.

        Args:
            connection: whose naming context has the names.
            services: an instance for each service of `suppliers`.
            options: further arguments of `Supplier`.

        Raises:
            ConfigError: the deployment has a problem, a service that it does not know, or one without an instance.
        """
        self.verify(connection.names)
        given = {service.__service__.name for service in services}
        for name in sorted(given - set(self.suppliers)):
            raise ConfigError(f"the deployment serves no {name}{near(name, self.suppliers)}")
        if missing := [name for name in self.suppliers if name not in given]:
            raise ConfigError(f"there is no instance for {', '.join(missing)}")
        groups: dict[Destination, list[SupplierBase]] = {}
        for service in services:
            groups.setdefault(connection.names.lookup(self.suppliers[service.__service__.name]), []).append(service)
        fixed = {"sender_uri": self.name, "profile": self.profile, **options}
        return tuple(Supplier(connection, destination, group, **fixed) for destination, group in groups.items())

    def open_requestors(self, connection: Connection, **options: Any) -> Requestors:
        """One requestor for each reply destination, and the stubs on them.

        Args:
            connection: whose naming context has the names.
            options: further arguments of `Requestor`.

        Raises:
            ConfigError: the deployment has a problem.
            TransportError: the provider failed.
        """
        self.verify(connection.names)
        return Requestors(self, connection, **options)

    def open_publisher(self, connection: Connection, **options: Any) -> Publisher:
        """The publisher of the OS's topics.

        Args:
            connection: whose naming context has the names.
            options: further arguments of `Publisher`, such as the `system` that the OS belongs to.

        Raises:
            ConfigError: the deployment has a problem, or no topics.
        """
        self.verify(connection.names)
        return Publisher(connection, self.topics, sender_uri=self.name, profile=self.profile, **options)

    def describe(self, names: NamingContext | None = None) -> str:
        """The deployment sheet, in lines (O12b); `mtosi_jms.deployment.sheet` has it as data.

        Args:
            names: in place of the deployment's own.

        Raises:
            ConfigError: the deployment has a problem.
        """
        self.verify(names)
        return text_of(sheet_of(self, self.names if names is None else names))
