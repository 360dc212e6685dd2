"""The generated network and its suppliers: the same for the same numbers, valid, and found by name."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.service import CallOptions
from mtosi_jms.simulator import InventoryEms, ManagedElementEms, Network
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import FilterType
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.mri.rir import GranularityType, SimpleFilterType
from mtosi_jms.testing import exchange
from mtosi_jms.validation import SchemaSet, Validator

SMALL = Network(elements=12, ports=2, channels=2)


def everything(network: Network) -> Iterator[Any]:
    yield from network.managed_elements()
    for index in range(network.elements):
        yield from network.holders(index)
        yield from network.equipment(index)
        for port in range(network.ports):
            yield network.port(index, port)
            yield from (network.channel(index, port, number) for number in range(network.channels))


def attributes(*objects: Any) -> list[dict[str, Any]]:
    """What objects hold, whatever their class: an element comes back as the class of its element, not of its type."""
    return [{field.name: getattr(one, field.name) for field in dataclasses.fields(one)} for one in objects]


def test_the_same_numbers_make_the_same_network() -> None:
    assert list(everything(SMALL)) == list(everything(Network(elements=12, ports=2, channels=2)))
    assert list(everything(SMALL)) != list(everything(Network(elements=12, ports=2, channels=2, seed=2)))


def test_it_is_the_same_network_on_every_machine() -> None:
    """Attribute values of the first element, written down once."""
    element = Network(elements=1).managed_element(0)
    assert (element.user_label, element.location) == ("Haarlem 00001", "Haarlem, room 33")
    assert (element.manufacturer, element.product_name, element.software_version) == ("Transvega", "TV-10K", "R14")


def test_an_element_does_not_depend_on_how_many_there_are() -> None:
    assert Network(elements=5).managed_element(3) == Network(elements=500_000).managed_element(3)


def test_elements_differ() -> None:
    elements = list(Network(elements=300).managed_elements())
    assert len({str(element.name) for element in elements}) == 300
    for field in ("location", "manufacturer", "product_name", "software_version", "communication_state"):
        assert len({getattr(element, field) for element in elements}) > 1, field
    assert any(element.vendor_extensions for element in elements)


@given(st.integers(0, 10**6), st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_names_and_numbers_go_to_and_fro(index: int, domain: str) -> None:
    network = Network(elements=10**6 + 1, domain=domain)
    found = network.element_name(index)
    assert network.index_of(found) == index
    assert network.index_of(name(str(found))) == index


@pytest.mark.parametrize(
    "text",
    [
        "MD=EMS1",
        "ME=NE-1",
        "MD=EMS2/ME=NE-1",
        "MD=EMS1/ME=NE-0",
        "MD=EMS1/ME=NE-13",
        "MD=EMS1/ME=NE-01",
        "MD=EMS1/ME=1",
        "MD=EMS1/ME=NE--1",
        "MD=EMS1/ME=NE-٣",
        "MD=EMS1/ME=NE-" + "9" * 5000,
        "MD=EMS1/EH=NE-1",
        "MD=EMS1/ME=NE-1/EH=1",
    ],
)
def test_names_of_nothing(text: str) -> None:
    assert SMALL.index_of(name(text)) is None


def test_a_name_without_values_is_a_name_of_nothing() -> None:
    assert SMALL.index_of(NamingAttributeType(rdn=[])) is None


def test_networks_that_cannot_be() -> None:
    for wrong in ({"elements": -1}, {"ports": -1}, {"channels": -1}, {"domain": ""}):
        with pytest.raises(ConfigError):
            Network(**wrong)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(SchemaSet.load())


def test_every_object_is_valid(validator: Validator) -> None:
    """In responses of both services, as they go over the wire."""
    with exchange() as pair:
        asked = []
        pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=5)
        asked.append((pair.scripted.take(), ManagedElementEms(Network(elements=60))))
        for network in (SMALL, Network(elements=0), Network(elements=2, ports=0), Network(elements=2, channels=0)):
            pair.stub(ResourceInventoryRetrieval).get_inventory.batches(batch_size=5)
            asked.append((pair.scripted.take(), InventoryEms(network)))
        messages = [one.message for one, _ in asked] + [
            reply for one, service in asked for reply in one.replies([service])
        ]
    assert len(messages) > 20
    for message in messages:
        report = validator.validate_bytes(message.body)
        assert [str(issue) for issue in report.issues] == []


def test_faults_are_valid(validator: Validator) -> None:
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_managed_element.batches(me_ref=name("MD=EMS1/ME=none"), batch_size=1)
        asked = pair.scripted.take()
        (known,) = asked.replies([ManagedElementEms(SMALL)])
        (bare,) = asked.replies([InventoryEms(SMALL)])
    for message in (known, bare):
        assert [str(issue) for issue in validator.validate_bytes(message.body).issues] == []


def test_managed_elements_over_jms() -> None:
    with exchange([ManagedElementEms(SMALL)]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        expected = attributes(*SMALL.managed_elements())
        one = SMALL.managed_element(0)
        wanted = FilterType(manufacturer=one.manufacturer, resource_state=one.resource_state)
        for found in (
            stub.get_all_managed_elements(),
            stub.get_all_managed_elements(md_or_mlsn_ref=name("MD=EMS1")),
            stub.get_all_managed_elements_wrt_os(os_ref=name("OS=EMS1")),
            stub.get_all_managed_elements_passing_filter(),
        ):
            assert attributes(*found.me_list.me) == expected
        assert attributes(stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-3")).me) == [expected[2]]
        passing = attributes(*stub.get_all_managed_elements_passing_filter(filter=wanted).me_list.me)
        assert passing == [
            each
            for each in expected
            if (each["manufacturer"], each["resource_state"]) == (one.manufacturer, one.resource_state)
        ]


def test_what_is_not_there() -> None:
    nowhere = name("MD=EMS9")
    with exchange([ManagedElementEms(SMALL), InventoryEms(SMALL)]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        for action in (
            lambda: stub.get_all_managed_elements(md_or_mlsn_ref=nowhere),
            lambda: stub.get_all_managed_elements_passing_filter(md_ref=nowhere),
            lambda: stub.get_all_managed_elements_wrt_os(md_ref=nowhere),
            lambda: stub.get_all_managed_elements_wrt_os(os_ref=name("OS=other")),
            lambda: stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-13")),
        ):
            with pytest.raises(EntityNotFoundFault, match="there is no"):
                action()
        with pytest.raises(InvalidInputFault):
            stub.get_managed_element()
        with pytest.raises(InvalidInputFault):
            pair.stub(ResourceInventoryRetrieval).get_inventory(filter=_from("MD=EMS1/ME=NE-99"))


def _from(*bases: str) -> SimpleFilterType:
    return SimpleFilterType(base_instance=[name(base) for base in bases], granularity=GranularityType.FULL)


def test_the_nested_inventory_over_jms() -> None:
    with exchange([InventoryEms(SMALL)]) as pair:
        inventory = pair.stub(ResourceInventoryRetrieval)
        batches = [one.inventory_data.md_list.md[0] for one in inventory.get_inventory.batches(batch_size=5)]
        assert [len(md.me_list.me_inv) for md in batches] == [5, 5, 2]
        elements = list(itertools.chain.from_iterable(md.me_list.me_inv for md in batches))
        assert [one.me_attrs for one in elements] == list(SMALL.managed_elements())
        assert [one.me_nm for one in elements] == [f"NE-{number}" for number in range(1, 13)]
        first = elements[0]
        assert [one.eh_attrs for one in first.eh_list.eh_inv] == list(SMALL.holders(0))
        assert [one.ptp_attrs for one in first.ptp_list.ptp_inv] == [SMALL.port(0, 0), SMALL.port(0, 1)]
        assert first.ptp_list.ptp_inv[1].ctp_list.ctp_inv[1].ctp_attrs == SMALL.channel(0, 1, 1)


def test_parts_of_the_inventory() -> None:
    with exchange([InventoryEms(SMALL)]) as pair:
        inventory = pair.stub(ResourceInventoryRetrieval)

        def ask(*bases: str) -> list[str]:
            data = inventory.get_inventory(filter=_from(*bases)).inventory_data
            return [one.me_nm for one in data.md_list.md[0].me_list.me_inv]

        assert ask("MD=EMS1/ME=NE-7", "MD=EMS1/ME=NE-2", "MD=EMS1/ME=NE-7") == ["NE-7", "NE-2"]
        assert len(ask("MD=EMS1/ME=NE-7", "MD=EMS1")) == 12


def test_an_empty_network() -> None:
    with exchange([ManagedElementEms(Network(elements=0)), InventoryEms(Network(elements=0))]) as pair:
        batches = list(pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3))
        assert [len(one.me_list.me) for one in batches] == [0]
        (one,) = list(pair.stub(ResourceInventoryRetrieval).get_inventory.batches(batch_size=3))
        assert one.inventory_data.md_list.md[0].me_list is None


def test_a_domain_with_signs_of_names() -> None:
    network = Network(elements=2, domain="North/East=100%")
    with exchange([ManagedElementEms(network), InventoryEms(network)]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        (first, _) = stub.get_all_managed_elements(md_or_mlsn_ref=network.domain_name()).me_list.me
        assert str(first.name) == "MD=North%2FEast%3D100%25/ME=NE-1"
        assert stub.get_managed_element(me_ref=first.name).me.location == first.location
        md = pair.stub(ResourceInventoryRetrieval).get_inventory(options=CallOptions()).inventory_data.md_list.md[0]
        assert (md.md_nm, str(md.md_attrs.name)) == ("North/East=100%", "MD=North%2FEast%3D100%25")


def test_objects_are_made_only_when_asked_for() -> None:
    endless = Network(elements=10**9)
    assert str(next(endless.managed_elements()).name) == "MD=EMS1/ME=NE-1"
    assert str(endless.managed_element(10**9 - 1).name) == "MD=EMS1/ME=NE-1000000000"
