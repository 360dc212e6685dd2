"""Requestor and supplier over real brokers: one answer, many batches, a fault; on fixed and temporary reply queues."""

from __future__ import annotations

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

pytestmark = pytest.mark.broker


@pytest.mark.obligation("C62", "P32", "R2b")
@pytest.mark.parametrize("temporary", [False, True])
def test_an_inventory(broker: BrokerProcess, temporary: bool, request: pytest.FixtureRequest) -> None:
    """The message id of a request is not known here, so replies are paired by the XML correlationId."""
    unique = f"{request.node.name}".replace("[", ".").replace("]", "")
    names = {"jms/InventoryOS": f"queue:INVENTORY.{unique}", "jms/EmsOS": f"queue:EMS.{unique}"}
    url = broker.endpoints.url("stomp")
    with (
        mtosi.connect(url, names=names) as theirs,
        mtosi.connect(url, names=names) as ours,
        mtosi.Supplier(theirs, "jms/EmsOS", services=[ManagedElementEms(Network(elements=60))]),
        mtosi.Requestor(ours, sender_uri="jms/InventoryOS", temporary_reply=temporary) as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        sizes = [len(batch.me_list.me) for batch in retrieval.get_all_managed_elements.batches(batch_size=25)]
        assert sizes == [25, 25, 10]
        with pytest.raises(EntityNotFoundFault):
            retrieval.get_managed_element(me_ref=name("MD=EMS1/ME=nobody"))
