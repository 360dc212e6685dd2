"""MTOSI over JMS: typed stubs from WSDL and XSD, SOAP envelopes on JMS destinations, batched inventory into Spark.

    wsdl/ + xsd/ --codegen--> stubs --xmlbind--> XML element --soap--> envelope --binding--> JmsMessage --transport-->
    JMS provider, and back; what is received --spool--> Spark tables

A requestor in five lines:

    import mtosi_jms as mtosi
    from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

    with mtosi.connect("memory:", names={"jms/InventoryOS": "queue:OS", "jms/EmsOS": "queue:EMS"}) as connection:
        mer = ManagedElementRetrieval(mtosi.Requestor(connection, sender_uri="jms/InventoryOS"), "jms/EmsOS")
        for me in mer.get_all_managed_elements.objects(batch_size=500): ...
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mtosi_jms import errors, spark, stubs
    from mtosi_jms.binding import BindingProfile
    from mtosi_jms.errors import (
        ConfigError,
        IncompleteBatchError,
        MtosiError,
        MtosiFault,
        ReplyTimeoutError,
        TransportError,
        UnknownOutcomeError,
    )
    from mtosi_jms.exchange import Dispatcher, Requestor, Supplier
    from mtosi_jms.jms import JmsMessage, NamingContext, Queue, Topic
    from mtosi_jms.notifications import Publisher, Subscriber
    from mtosi_jms.patterns import Timeouts
    from mtosi_jms.service import CallOptions, RequestContext
    from mtosi_jms.spool import DurableLanding, Inbox, Outbox
    from mtosi_jms.transport import connect

    __version__: str

__all__ = [
    "BindingProfile",
    "CallOptions",
    "ConfigError",
    "Dispatcher",
    "DurableLanding",
    "Inbox",
    "IncompleteBatchError",
    "JmsMessage",
    "MtosiError",
    "MtosiFault",
    "NamingContext",
    "Outbox",
    "Publisher",
    "Queue",
    "ReplyTimeoutError",
    "RequestContext",
    "Requestor",
    "Subscriber",
    "Supplier",
    "Timeouts",
    "Topic",
    "TransportError",
    "UnknownOutcomeError",
    "connect",
    "errors",
    "spark",
    "stubs",
]

# Imported when they are first asked for: a command or the generator needs few of them, and Spark comes with an extra.
_HOMES: Final = {
    "BindingProfile": "binding",
    "CallOptions": "service",
    "ConfigError": "errors",
    "Dispatcher": "exchange",
    "DurableLanding": "spool",
    "Inbox": "spool",
    "IncompleteBatchError": "errors",
    "JmsMessage": "jms",
    "Timeouts": "patterns",
    "MtosiError": "errors",
    "MtosiFault": "errors",
    "NamingContext": "jms",
    "Outbox": "spool",
    "Publisher": "notifications",
    "Queue": "jms",
    "ReplyTimeoutError": "errors",
    "RequestContext": "service",
    "Requestor": "exchange",
    "Subscriber": "notifications",
    "Supplier": "exchange",
    "Topic": "jms",
    "TransportError": "errors",
    "UnknownOutcomeError": "errors",
    "connect": "transport",
}
_MODULES: Final = ("errors", "spark", "stubs")


def _version() -> str:
    from importlib import metadata  # 70 ms, which only those pay who ask

    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:  # a checkout on the path, not installed
        return "0+unknown"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
