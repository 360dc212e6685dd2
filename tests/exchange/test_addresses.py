"""Names at the ends of an exchange: connection factories, and what the JMS URI of a stub's destination asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ConfigError, NamingError
from mtosi_jms.jms import DeliveryMode, NamingContext, Queue
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import exchange

from .conftest import NE1, SmallEms, numbers

PERSISTENT = "deliveryMode=PERSISTENT&timeToLive=16100&priority=6"


@pytest.mark.obligation("P17", "P9")
@pytest.mark.parametrize(
    "url", ["jndi:jms/QueueConnectionFactory", "jms:jndi:x?jndiConnectionFactoryName=jms/QueueConnectionFactory"]
)
def test_a_connection_is_opened_by_the_name_of_its_factory(url: str, tmp_path: Path) -> None:
    """Factory, then destination, both by name: only the file knows the URL and the physical names."""
    file = tmp_path / "jndi.properties"
    file.write_text(
        "connectionfactory.jms/QueueConnectionFactory = memory:by-factory\n"
        "queue.jms/RtoNMSQA = NMS\nqueue.jms/RtoInventoryOSQA = OS\n"
    )
    with (
        mtosi.connect(url, names=file) as connection,
        mtosi.Supplier(connection, "jms/RtoNMSQA", [SmallEms()]),
        mtosi.Requestor(connection, sender_uri="jms/RtoInventoryOSQA") as requestor,
    ):
        found = ManagedElementRetrieval(requestor, "jms/RtoNMSQA").get_managed_element(me_ref=NE1)
        assert found.me.location == "Hall 1"


@pytest.mark.obligation("P17")
def test_what_is_wrong_with_a_factory_shows_no_credential() -> None:
    names = {"connectionfactory": {"jms/CF": "tcp://oss:hunter2@broker:61616"}}
    with pytest.raises(ConfigError, match="scheme 'tcp' is not supported") as caught:
        mtosi.connect("jndi:jms/CF", names=names)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="IBM MQ is jvm:ibm-mq"):
        mtosi.connect("mq://host:1414")
    with pytest.raises(NamingError, match="did you mean jms/CF") as caught:
        mtosi.connect("jndi:jms/CG", names=names)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="jndiConnectionFactoryName"):
        mtosi.connect("jms:queue:X", names=names)


@pytest.mark.obligation("C42", "P11")
def test_the_address_says_how_a_request_travels() -> None:
    with exchange() as pair:
        stub = ManagedElementRetrieval(pair.requestor, f"jms:jndi:jms/SupplierOS?{PERSISTENT}")
        stub.get_all_managed_elements.batches(batch_size=1).close()
        stub.get_all_managed_elements.batches(
            batch_size=1, options=CallOptions(priority=1, time_to_live=5, persistent=False)
        ).close()
        asked, told = pair.scripted.take(), pair.scripted.take()
    assert asked.message.delivery_mode is DeliveryMode.PERSISTENT
    assert asked.message.time_to_live_ms == 16100
    assert asked.message.priority == 6
    assert asked.message.properties["MTOSI_destinationURI"] == "jms:jndi:jms/SupplierOS", "no parameter leaves"
    assert told.message.delivery_mode is DeliveryMode.NON_PERSISTENT, "the call comes before the address"
    assert (told.message.time_to_live_ms, told.message.priority) == (5000, 1)


@pytest.mark.obligation("C42")
def test_an_address_may_name_where_replies_go() -> None:
    with exchange([SmallEms()], failure_reply_to="jms/FailureOS") as pair:
        own = ManagedElementRetrieval(pair.requestor, "jms:queue:SUPPLIER.OS?replyToName=FAILURE.OS")
        assert numbers(own.get_all_managed_elements()) == [1, 2, 3, 4, 5]
        strange = ManagedElementRetrieval(pair.requestor, "jms:jndi:jms/SupplierOS?replyToName=jms/SupplierOS")
        with pytest.raises(ConfigError, match="jms/SupplierOS, where this requestor does not receive"):
            strange.get_all_managed_elements()
        assert pair.requestor.pending == 0


@pytest.mark.obligation("C42", "P22")
def test_the_address_of_a_wsdl_is_a_name() -> None:
    address = ManagedElementRetrieval.__service__.address
    names = NamingContext({"jms/OS": "queue:OS", address: "queue:EMS"})
    with (
        mtosi.connect("memory:wsdl-address", names=names) as connection,
        mtosi.Supplier(connection, address, [SmallEms()]) as supplier,
        mtosi.Requestor(connection, sender_uri="jms/OS") as requestor,
    ):
        assert supplier.destination == Queue("EMS")
        assert numbers(ManagedElementRetrieval(requestor, address).get_all_managed_elements()) == [1, 2, 3, 4, 5]
