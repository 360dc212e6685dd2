"""A factory of bridges, and its bridges, as CORBA objects of `CosBridgeAdmin` (000-B23)."""

from __future__ import annotations

import threading
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

from mtosi_jms.bridge._java import JavaOrb
from mtosi_jms.bridge._objects import Handler, Servant, Thrown, Write
from mtosi_jms.bridge.admin import (
    Bridge,
    BridgeFactory,
    ExternalEndpoint,
    ExternalEndpointErrorCode,
    ExternalEndpointRole,
    JMSDestination,
    JMSDestinationType,
    MessageType,
)
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.errors import BridgeAlreadyStarted, BridgeInactive, BridgeNotFound, InvalidExternalEndPoints
from mtosi_jms.transport.jvm import machine

Member = TypeVar("Member", bound=Enum)
_MODULE: Final = "IDL:omg.org/CosBridgeAdmin"


class OfferedFactory:
    """A factory of bridges that CORBA clients call."""

    def __init__(self, orb: JavaOrb, factory: BridgeFactory, answer_timeout: float) -> None:
        self._orb = orb
        self._factory = factory
        self._answer_timeout = answer_timeout
        self._bridges: dict[int, Servant] = {}
        self._lock = threading.Lock()
        self._servant = self._offered(
            "BridgeFactory",
            {
                "create_bridge": self._create,
                "get_bridge_with_id": self._with_id,
                "get_all_bridges": lambda _: partial(_write_ids, factory.get_all_bridges()),
            },
        )
        with orb.calling("the factory of bridges"):
            self.ior = str(orb.orb.object_to_string(self._servant.reference))

    def close(self) -> None:
        """Withdraws factory and bridges from CORBA; the bridges go on."""
        self._servant.close()
        with self._lock:
            gone, self._bridges = list(self._bridges.values()), {}
        for servant in gone:
            servant.close()

    def _offered(self, interface: str, handlers: dict[str, Handler]) -> Servant:
        translated = {name: partial(_translated, handler) for name, handler in handlers.items()}
        return Servant(self._orb, [f"{_MODULE}/{interface}:1.0"], translated, self._answer_timeout)

    def _create(self, arguments: Any) -> Write:
        with machine.blocking():
            source, sink = _read_endpoint(arguments), _read_endpoint(arguments)
        bridge, number = self._factory.create_bridge(source, sink)
        reference = self._reference(bridge)

        def write(out: Any) -> None:
            out.write_Object(reference)
            out.write_long(number)

        return write

    def _with_id(self, arguments: Any) -> Write:
        with machine.blocking():
            number = int(arguments.read_long())
        reference = self._reference(self._factory.get_bridge_with_id(number))
        return lambda out: out.write_Object(reference)

    def _reference(self, bridge: Bridge) -> Any:
        with self._lock:
            if bridge.bridge_id not in self._bridges:
                handlers: dict[str, Handler] = {
                    "_get_end_point_receiver": lambda _: partial(_write_endpoint, bridge.end_point_receiver),
                    "_get_end_point_sender": lambda _: partial(_write_endpoint, bridge.end_point_sender),
                    "start_bridge": lambda _: bridge.start_bridge(),
                    "stop_bridge": lambda _: bridge.stop_bridge(),
                    "get_status": lambda _: partial(_write_number, bridge.get_status()),
                    "destroy": lambda _: self._destroy(bridge),
                }
                self._bridges[bridge.bridge_id] = self._offered("Bridge", handlers)
            return self._bridges[bridge.bridge_id].reference

    def _destroy(self, bridge: Bridge) -> None:
        bridge.destroy()
        with self._lock:
            servant = self._bridges.pop(bridge.bridge_id, None)
        if servant is not None:
            servant.close()


def _translated(handler: Handler, arguments: Any) -> Write | None:
    """Calls a handler; turns its errors into exceptions of the IDL."""
    try:
        return handler(arguments)
    except (BridgeAlreadyStarted, BridgeInactive, BridgeNotFound) as error:
        raise Thrown(f"{_MODULE}/{type(error).__name__}:1.0") from error
    except InvalidExternalEndPoints as error:
        errors = error.errors

        def write(out: Any) -> None:
            out.write_long(len(errors))
            for role, code in errors:
                _write_number(ExternalEndpointRole(role), out)
                _write_number(ExternalEndpointErrorCode(code), out)

        raise Thrown(f"{_MODULE}/InvalidExternalEndPoints:1.0", write) from error


# Enumerations have their members in the order of the IDL.


def _write_number(member: Enum, out: Any) -> None:
    out.write_long(list(type(member)).index(member))


def _read_member(kind: type[Member], arguments: Any) -> Member:
    return list(kind)[int(arguments.read_long()) & 0xFFFFFFFF]


def _write_ids(ids: list[int], out: Any) -> None:
    for number in (len(ids), *ids):
        out.write_long(number)


def _read_endpoint(arguments: Any) -> ExternalEndpoint:
    role, chosen = _read_member(ExternalEndpointRole, arguments), _read_member(MessageType, arguments)
    connector: JMSDestination | int
    if chosen is MessageType.JMS_MESSAGE:
        kind = _read_member(JMSDestinationType, arguments)
        connector = JMSDestination(kind, str(arguments.read_string()), str(arguments.read_string()))
    else:
        connector = int(arguments.read_long())
    return ExternalEndpoint(role, connector, _read_member(FlowStyle, arguments), _read_member(MessageType, arguments))


def _write_endpoint(endpoint: ExternalEndpoint, out: Any) -> None:
    _write_number(endpoint.role, out)
    _write_number(endpoint.type, out)
    there = endpoint.connector
    if isinstance(there, JMSDestination):
        _write_number(there.destination_type, out)
        out.write_string(there.destination_name)
        out.write_string(there.factory_name)
    else:
        out.write_long(there)
    _write_number(endpoint.style, out)
    _write_number(endpoint.type, out)
