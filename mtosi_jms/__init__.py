"""MTOSI over JMS: typed stubs from WSDL and XSD, SOAP envelopes on JMS destinations, batched inventory into Spark.

    wsdl/ + xsd/ --codegen--> stubs --xmlbind--> XML element --soap--> envelope --jms--> JmsMessage --transport--> JMS
    provider, and back; what is received --spool--> Spark tables

A requestor in five lines:

    import mtosi_jms as mtosi
    from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

    with mtosi.connect("memory:", names={"jms/InventoryOS": "queue:OS", "jms/EmsOS": "queue:EMS"}) as connection:
        mer = ManagedElementRetrieval(mtosi.Requestor(connection, sender_uri="jms/InventoryOS"), "jms/EmsOS")
        for batch in mer.get_all_managed_elements.batches(batch_size=500): ...
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from mtosi_jms import errors, stubs
from mtosi_jms.jms import BindingProfile, JmsMessage, NamingContext, Queue, Topic
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.patterns import Limits
from mtosi_jms.requestor import Requestor
from mtosi_jms.service import CallOptions
from mtosi_jms.spool.landing import DurableLanding
from mtosi_jms.supplier import Supplier
from mtosi_jms.transport import connect

__all__ = [
    "BindingProfile",
    "CallOptions",
    "DurableLanding",
    "JmsMessage",
    "Limits",
    "NamingContext",
    "Publisher",
    "Queue",
    "Requestor",
    "Subscriber",
    "Supplier",
    "Topic",
    "connect",
    "errors",
    "spark",
    "stubs",
]

if TYPE_CHECKING:
    from mtosi_jms import spark

try:
    __version__ = metadata.version("mtosi-jms")
except metadata.PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    # Spark comes with an extra: `mtosi_jms.spark` is imported when it is first asked for.
    if name == "spark":
        return importlib.import_module("mtosi_jms.spark")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
