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

from importlib import metadata

from mtosi_jms import errors, stubs
from mtosi_jms.jms import BindingProfile, JmsMessage, NamingContext, Queue, Topic
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
    "Queue",
    "Requestor",
    "Supplier",
    "Topic",
    "connect",
    "errors",
    "stubs",
]

try:
    __version__ = metadata.version("mtosi-jms")
except metadata.PackageNotFoundError:  # a checkout on the path, not installed
    __version__ = "0+unknown"
