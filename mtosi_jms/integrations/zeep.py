"""zeep over JMS: zeep's client, types and calls from a WSDL alone, with the SDK's exchanges. No stubs are generated.

    from mtosi_jms.integrations.zeep import client

    ems = client("ManagedElementRetrieval.wsdl", requestor, "queue:mtosi/mer")
    answer = ems.service.getManagedElement(meRef={"rdn": [{"type": "MD", "value": "EMS1"}]})
    for answer in ems.batches("getAllManagedElements", batch_size=200):
        ...

zeep reads a copy of the WSDL that the generator's repairs have mended. `client(wsdl, url=...)` speaks the same WSDL
over HTTP. Needs the extra `zeep`.
"""

from __future__ import annotations

from mtosi_jms.integrations._zeep.calls import Batches, SoapFault
from mtosi_jms.integrations._zeep.client import Client, client, read_wsdl

__all__ = ["Batches", "Client", "SoapFault", "client", "read_wsdl"]
