"""A factory of bridges, and its bridges, as CORBA objects of `CosBridgeAdmin` (000-B23)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from mtosi_jms.bridge._bridge import Bridge, BridgeFactory
from mtosi_jms.bridge._java import JavaOrb
from mtosi_jms.bridge._objects import Servant
from mtosi_jms.bridge.admin import (
    BridgeStatus,
    ExternalEndpoint,
    ExternalEndpointRole,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.errors import BridgeAlreadyStarted, BridgeInactive, BridgeNotFound, InvalidExternalEndPoints

_MODULE: Final = "CosBridgeAdmin"


class OfferedFactory:
    """A factory of bridges that CORBA clients call."""

    def __init__(self, orb: JavaOrb, factory: BridgeFactory, answer_timeout: float) -> None:
        self._orb = orb
        self._factory = factory
        self._answer_timeout = answer_timeout
        self._bridges: dict[int, Servant] = {}
        self._lock = threading.Lock()
        operations: dict[str, Callable[..., Any]] = {
            "create_bridge": self._create,
            "get_bridge_with_id": self._with_id,
            "get_all_bridges": lambda: orb.java.jpype.JArray(orb.java.jpype.JInt)(factory.get_all_bridges()),
        }
        self._servant = Servant(orb, f"{_MODULE}.BridgeFactory", _translated(orb, operations), answer_timeout)
        with orb.calling("the factory of bridges"):
            self.ior = str(orb.orb.object_to_string(self._servant.reference))

    def close(self) -> None:
        """Withdraws factory and bridges from CORBA; the bridges go on."""
        self._servant.close()
        with self._lock:
            gone, self._bridges = list(self._bridges.values()), {}
        for servant in gone:
            servant.close()

    def _create(self, source: Any, sink: Any, bridge_id: Any) -> Any:
        bridge, number = self._factory.create_bridge(_from_java(source), _from_java(sink))
        bridge_id.value = number
        return self._offered(bridge)

    def _with_id(self, number: Any) -> Any:
        return self._offered(self._factory.get_bridge_with_id(int(number)))

    def _offered(self, bridge: Bridge) -> Any:
        with self._lock:
            if bridge.bridge_id not in self._bridges:
                operations: dict[str, Callable[..., Any]] = {
                    "end_point_receiver": lambda: _to_java(self._orb, bridge.end_point_receiver),
                    "end_point_sender": lambda: _to_java(self._orb, bridge.end_point_sender),
                    "start_bridge": bridge.start_bridge,
                    "stop_bridge": bridge.stop_bridge,
                    "destroy": lambda: self._destroy(bridge),
                }
                made = Servant(
                    self._orb,
                    f"{_MODULE}.Bridge",
                    _translated(self._orb, operations),
                    self._answer_timeout,
                    lacking={"get_status": lambda _: list(BridgeStatus).index(bridge.get_status())},
                )
                self._bridges[bridge.bridge_id] = made
            return self._bridges[bridge.bridge_id].reference

    def _destroy(self, bridge: Bridge) -> None:
        bridge.destroy()
        with self._lock:
            servant = self._bridges.pop(bridge.bridge_id, None)
        if servant is not None:
            servant.close()


def _translated(orb: JavaOrb, operations: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Operations that turn errors into exceptions of the IDL."""

    def wrapped(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return work(*arguments)
            except (BridgeAlreadyStarted, BridgeInactive, BridgeNotFound) as error:
                return orb.java.omg(f"{_MODULE}.{type(error).__name__}")()
            except InvalidExternalEndPoints as error:
                return _invalid(orb, error)

        return call

    return {name: wrapped(work) for name, work in operations.items()}


def _invalid(orb: JavaOrb, error: InvalidExternalEndPoints) -> Any:
    java = orb.java
    kind, roles, codes = (
        java.omg(f"{_MODULE}.{name}")
        for name in ("ExternalEndpointError", "ExternalEndpointRole", "ExternalEndpointErrorCode")
    )
    listed = java.cls("java.lang.reflect.Array").newInstance(kind, len(error.errors))
    for at, (role, code) in enumerate(error.errors):
        listed[at] = kind(getattr(roles, role), getattr(codes, code))
    return java.omg(f"{_MODULE}.InvalidExternalEndPoints")(listed)


def _from_java(found: Any) -> ExternalEndpoint:
    names = ("JMS_MESSAGE", "STRUCTURED_EVENT", "SEQUENCE_EVENT")
    connector: JMSDestination | int
    if names[int(found.connector.discriminator().value())] == "JMS_MESSAGE":
        there = found.connector.destination()
        connector = JMSDestination(
            list(JMSDestinationType)[int(there.destination_type.value())],
            str(there.destination_name),
            str(there.factory_name),
        )
    else:
        connector = int(found.connector.channel_id())
    return ExternalEndpoint(
        ExternalEndpointRole.SOURCE if int(found.role.value()) == 0 else ExternalEndpointRole.SINK,
        connector,
        FlowStyle.PUSH if int(found.style.value()) == 0 else FlowStyle.PULL,
        MessageType[names[int(found.type.value())]],
    )


def _to_java(orb: JavaOrb, endpoint: ExternalEndpoint) -> Any:
    def constant(kind: str, name: str) -> Any:
        return getattr(orb.java.omg(f"{_MODULE}.{kind}"), name)

    connector = orb.java.omg(f"{_MODULE}.ExternalEndpointConnector")()
    if isinstance(endpoint.connector, JMSDestination):
        there = endpoint.connector
        connector.destination(
            orb.java.omg(f"{_MODULE}.JMSDestination")(
                constant("JMSDestinationType", there.destination_type.name), there.destination_name, there.factory_name
            )
        )
    else:
        connector.channel_id(constant("MessageType", endpoint.type.name), endpoint.connector)
    return orb.java.omg(f"{_MODULE}.ExternalEndpoint")(
        constant("ExternalEndpointRole", endpoint.role.name),
        connector,
        constant("FlowStyle", endpoint.style.name),
        constant("MessageType", endpoint.type.name),
    )
