"""Generated networks and their suppliers: the same for the same numbers, valid, found by name, of each technology."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.simulator import TECHNOLOGIES, InventoryEms, ManagedElementEms, Network
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault, InvalidInputFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import FilterType
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.mri.rir import GetInventoryRequest, GranularityType, SimpleFilterType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType
from mtosi_jms.testing import exchange
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import encode

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


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(SchemaSet.load())


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


SLOTTED = sorted(set(TECHNOLOGIES) - {"MIXED"})


def last(found: Any) -> str:
    return found.name.rdn[-1].value


def layers(found: Any) -> list[str]:
    return [str(one.layer_rate.value) for one in found.transmission_parameters_list.transmission_parameters]


def inventory(network: Network, size: int | None = None) -> list[Any]:
    context = RequestContext.__new__(RequestContext)
    object.__setattr__(context, "batch_size", size)
    return list(InventoryEms(network).get_inventory(GetInventoryRequest(), context))


def test_the_mixed_network_is_what_it_always_was() -> None:
    """Its inventory, byte for byte, by a digest written down when the technologies were added."""
    (response,) = inventory(Network(elements=25, ports=3, channels=2))
    assert (
        hashlib.sha256(encode(response)).hexdigest()
        == "38bcb0e56dcaae1f8692fda68a17f306834c69e22ada7dba5605d76eb5505369"
    )


@pytest.mark.parametrize(
    ("technology", "channels", "first", "rate"),
    [
        ("SDH", 66, ["/sts3c_au4-j=1", "/sts3c_au4-j=1/vt2_tu12-k=1-l=1-m=1"], "LR_STS3c_and_AU4_VC4"),
        ("OTN", 4, ["/frequency=192.10", "/frequency=192.10/odu2=1"], "LR_Optical_Channel"),
        ("ETHERNET", 2, ["/ethernet=1", "/ethernet=2"], "LR_Ethernet"),
        ("MICROWAVE", 2, ["/sts3c_au4-j=1", "/sts3c_au4-j=1/vt2_tu12-k=1-l=1-m=1"], "LR_STS3c_and_AU4_VC4"),
    ],
)
def test_channels_are_called_and_layered_as_the_technology_has_it(
    technology: str, channels: int, first: list[str], rate: str
) -> None:
    network = Network(elements=1, technology=technology, channels=channels)
    found = [network.channel(0, 0, number) for number in range(channels)]
    assert [last(one) for one in found[:2]] == first
    assert layers(found[0]) == [rate]
    assert all(str(one.name).startswith("MD=EMS1/ME=NE-1/PTP=%2Frack") for one in found)


def test_channels_of_a_synchronous_port_are_those_of_the_multiplex() -> None:
    network = Network(elements=1, technology="SDH", channels=128)
    names = [last(network.channel(0, 0, number)) for number in range(128)]
    tributaries = {
        f"/sts3c_au4-j=2/vt2_tu12-k={k}-l={place}-m={m}"
        for k, place, m in itertools.product(range(1, 4), range(1, 8), range(1, 4))
    }
    assert names[64] == "/sts3c_au4-j=2"
    assert set(names[65:]) == tributaries


@pytest.mark.parametrize("technology", SLOTTED)
def test_a_port_has_room_for_so_many_channels_and_no_two_of_one_name(technology: str) -> None:
    room = TECHNOLOGIES[technology].capacity
    assert room is not None
    network = Network(elements=1, technology=technology, channels=room)
    assert len({TECHNOLOGIES[technology].channel(number)[0] for number in range(room)}) == room
    assert layers(network.channel(0, 0, room - 1))
    with pytest.raises(ConfigError, match=f"room for {room} channels"):
        Network(technology=technology, channels=room + 1)


@pytest.mark.parametrize("technology", TECHNOLOGIES.values(), ids=list(TECHNOLOGIES))
def test_layers_and_causes_are_known_ones(technology: Any) -> None:
    told = [*technology.rates, *technology.port_rates, technology.link_rate]
    told += [rate for rate in (technology.channel(number)[1] for number in range(10)) if rate]
    assert [rate for rate in told if not LayerRateEnumType(rate).is_known] == []
    assert [cause for cause in technology.causes if not ProbableCauseEnumType(cause).is_known] == []


def test_racks_shelves_slots_and_sub_slots() -> None:
    network = Network(elements=1, technology="SDH", racks=2, shelves=2, slots=3, sub_slots=2, ports=30)
    holders = list(network.holders(0))
    kinds = Counter(str(one.holder_type.value) for one in holders)
    assert kinds == {"rack": 2, "shelf": 4, "slot": 12, "sub_slot": 24}
    paths = [last(one) for one in holders]
    assert paths[:4] == ["/rack=1", "/rack=1/shelf=1", "/rack=1/shelf=1/slot=1", "/rack=1/shelf=1/slot=1/sub_slot=1"]
    for path in paths:
        assert path.count("/") == 1 or path.rpartition("/")[0] in paths[: paths.index(path)]
    cards = {str(one.name): one for one in network.equipment(0)}
    assert len(cards) == 12 + 24
    wanted = [one.expected_or_installed_equipment_ref for one in holders if one.expected_or_installed_equipment_ref]
    assert [str(one) for one in wanted] == list(cards)
    ports = [last(network.port(0, number)) for number in range(30)]
    assert ports[:3] == [f"/rack=1/shelf=1/slot=1/sub_slot={n}/port={p}" for n, p in ((1, 1), (1, 2), (2, 1))]
    assert {path.rpartition("/")[0] for path in ports} < {path for path in paths if "sub_slot" in path}


@given(
    st.sampled_from(SLOTTED),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(0, 2)),
    st.integers(0, 30),
    st.integers(1, 6),
    st.sampled_from(["none", "ring", "mesh"]),
)
def test_names_are_unique_and_every_object_is_found_by_its_own(
    technology: str, frame: tuple[int, int, int, int], ports: int, elements: int, topology: Any
) -> None:
    racks, shelves, slots, sub_slots = frame
    network = Network(
        technology=technology, elements=elements, ports=ports, channels=1, ftps=1, topology=topology,
        racks=racks, shelves=shelves, slots=slots, sub_slots=sub_slots,
    )  # fmt: skip
    some = [*network.objects_of(elements - 1), *network.links(), *network.descriptors()]
    names = [str(one.name) for one in some]
    assert len(set(names)) == len(names)
    for one in some[:: max(len(some) // 10, 1)]:
        assert network.find(one.name) == one
    holders = {last(one) for one in network.holders(0)}
    assert all(last(network.port(0, number)).rpartition("/")[0] in holders for number in range(ports))


@pytest.mark.parametrize(
    "text",
    [
        *("MD=EMS1", "OS=EMS1", "MD=EMS1/TL=TL-0", "MD=EMS1/TL=TL-6", "MD=EMS1/TL=TL-1/X=1", "MD=EMS1/ME=NE-6"),
        *("MD=2/ME=NE-1", "MD=EMS1/ME=NE-1/PTP=p", "MD=EMS1/TMD=OTN port", "MD=EMS1/ME=NE-1/PTP=%2Frack=1"),
    ],
)
def test_names_of_no_object(text: str) -> None:
    assert Network(elements=5, technology="SDH").find(name(text)) is None


class TestLinks:
    @given(st.sampled_from(["ring", "mesh"]), st.integers(0, 40), st.integers(0, 9), st.integers(0, 5))
    def test_ends_exist_and_no_port_has_two_links(self, shape: Any, elements: int, ports: int, seed: int) -> None:
        network = Network(elements=elements, ports=ports, seed=seed, topology=shape, technology="OTN", channels=0)
        links = list(network.links())
        ends = [str(end) for link in links for end in (*link.a_end_tp_ref_list.name, *link.z_end_tp_ref_list.name)]
        there = {str(network.port(index, port).name) for index in range(elements) for port in range(ports)}
        assert len(set(ends)) == len(ends) == 2 * len(links)
        assert set(ends) <= there
        pairs = [frozenset(end.rpartition("/")[0] for end in ends[at : at + 2]) for at in range(0, len(ends), 2)]
        assert all(len(pair) == 2 for pair in pairs), "no link goes from an element to itself"
        assert len(set(pairs)) == len(pairs), "no two links join the same elements"
        assert links == [link for index in range(elements) for link in network.links_of(index)]
        edges = {
            str(found.name)
            for index in range(elements)
            for found in (network.port(index, port) for port in range(ports))
            if found.is_edge_point
        }
        assert edges == there - set(ends)

    @pytest.mark.parametrize(
        ("shape", "elements", "ports", "count"),
        [
            ("ring", 12, 2, 12),
            ("ring", 2, 2, 1),
            ("ring", 1, 2, 0),
            ("ring", 12, 1, 0),
            ("mesh", 12, 2, 12),
            ("mesh", 12, 4, 24),
            ("mesh", 12, 8, 36),
            ("mesh", 4, 8, 4),
            ("none", 12, 8, 0),
            (None, 12, 8, 12),
        ],
    )
    def test_how_many_there_are(self, shape: Any, elements: int, ports: int, count: int) -> None:
        network = Network(elements=elements, ports=ports, topology=shape, technology="SDH")
        assert len(list(network.links())) == count

    def test_a_ring_joins_all(self) -> None:
        network = Network(elements=9, technology="SDH")
        following = {}
        for link in network.links():
            (a,), (z,) = link.a_end_tp_ref_list.name, link.z_end_tp_ref_list.name
            following[a.rdn[1].value] = z.rdn[1].value
        at, seen = "NE-1", []
        while at not in seen:
            seen.append(at)
            at = following[at]
        assert len(seen) == 9

    def test_the_seed_chooses_the_chords(self) -> None:
        chosen = {Network(elements=100, technology="SDH", topology="mesh", seed=n).circle.strides for n in range(20)}
        assert len(chosen) > 10

    def test_a_mixed_network_has_links_where_it_is_told_so(self) -> None:
        assert list(Network(elements=3).links()) == []
        network = Network(elements=3, topology="ring")
        (end,) = network.link(0).z_end_tp_ref_list.name
        assert str(end) == str(network.port(1, 1).name)


@pytest.mark.parametrize("wrong", [
    {"elements": -1},
    {"ports": -1},
    {"channels": -1},
    {"domain": ""},
    {"technology": "TDM"},
    {"topology": "star"},
    {"ftps": -1},
    {"slots": 3},
    {"technology": "SDH", "slots": 0},
    {"technology": "SDH", "sub_slots": -1},
])  # fmt: skip
def test_networks_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Network(**wrong)


def test_a_network_of_any_size_is_made_only_where_it_is_looked_at() -> None:
    network = Network(elements=10**9, technology="OTN", topology="mesh", channels=160, slots=20, ports=100)
    far = 10**9 - 1
    assert str(network.link(far * 3).a_end_tp_ref_list.name[0]) == str(network.port(far, 0).name)
    assert network.find(network.channel(far, 99, 159).name) == network.channel(far, 99, 159)
    assert str(next(network.objects()).name) == "MD=EMS1/ME=NE-1"
    assert network.managed_element(far) == Network(elements=1, technology="OTN").managed_element(far)


def messages(network: Network) -> Iterator[bytes]:
    with exchange() as pair:
        pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=5)
        pair.stub(ResourceInventoryRetrieval).get_inventory.batches(batch_size=5)
        for service in (ManagedElementEms(network), InventoryEms(network)):
            yield from (reply.body for reply in pair.scripted.take().replies([service]))


FRAMES = ({}, {"racks": 2, "shelves": 2, "slots": 2, "sub_slots": 2, "ftps": 2}, {"ports": 0})
SLOTS = [{"elements": 6, "technology": one, "topology": "mesh", **frame} for one in SLOTTED for frame in FRAMES]


@pytest.mark.parametrize(
    "options", [*SLOTS, {"elements": 60}, {"elements": 0}, {"elements": 2, "ports": 0}, {"elements": 2, "channels": 0}]
)
def test_every_object_is_valid(options: dict[str, Any], validator: Validator) -> None:
    """In responses of both services, as they go over the wire."""
    network = Network(**options)
    bodies = list(messages(network))
    assert len(bodies) == 2 * max(-(-network.elements // 5), 1)
    for body in bodies:
        assert [str(issue) for issue in validator.validate_bytes(body).issues] == []


def test_the_nested_inventory_has_everything_in_its_place() -> None:
    network = Network(elements=5, technology="SDH", slots=2, sub_slots=1, ftps=1)
    first, second = (response.inventory_data for response in inventory(network, 3))
    md, rest = first.md_list.md[0], second.md_list.md[0]
    assert [one.tl_attrs for one in (*md.tl_list.tl_inv, *rest.tl_list.tl_inv)] == list(network.links())
    assert [one.tmd_attrs for one in first.tmd_list.tmd] == list(network.descriptors())
    assert first.os_list.os[0].os_attrs == network.operations_system()
    assert (second.tmd_list, second.os_list) == (None, None)
    element = md.me_list.me_inv[0]
    assert [one.ftp_attrs for one in element.ftp_list.ftp_inv] == [network.ftp(0, 0)]

    def flat(nodes: list[Any]) -> Iterator[Any]:
        for node in nodes:
            yield node
            yield from flat(node.eh_list.eh_inv if node.eh_list else [])

    holders = list(flat(element.eh_list.eh_inv))
    assert len(element.eh_list.eh_inv) == 1
    assert [one.eh_attrs for one in holders] == list(network.holders(0))
    assert [one.eq_inv.eq_attrs for one in holders if one.eq_inv] == list(network.equipment(0))


def test_parts_of_an_inventory_come_without_what_all_share() -> None:
    network = Network(elements=5, technology="SDH")
    with exchange([InventoryEms(network)]) as pair:
        ask = pair.stub(ResourceInventoryRetrieval).get_inventory
        wanted = SimpleFilterType(base_instance=[network.element_name(3)], granularity=GranularityType.FULL)
        data = ask(filter=wanted).inventory_data
    assert (data.tmd_list, data.os_list) == (None, None)
    assert [one.tl_nm for one in data.md_list.md[0].tl_list.tl_inv] == ["TL-4"]
