"""What was read and never looked at is written as it came, and says the same as if it were written anew."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms import xmlbind
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType, Me
from mtosi_jms.xmlbind import scan

from .unread_documents import document, element, from_the_first, is_unread

BLANKS = {"compact": (b"><", b"><"), "spaced": (b"><", b">\n\t <"), "lines": (b"</me:me>", b"</me:me>\n")}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from_the_first(monkeypatch)


def response(elements: list[Any]) -> GetAllManagedElementsResponse:
    return GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements))


def elements_of(data: bytes) -> list[Any]:
    found: list[Any] = xmlbind.decode(data).me_list.me
    return found


@pytest.fixture
def written_before() -> None:
    """The functions that write the classes are made."""
    for _ in range(20):
        xmlbind.encode(response([element(number) for number in range(10)]))


def elements_from_a_tree(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setattr(scan, "SMALLEST", 1 << 60)
        return elements_of(data)


@pytest.mark.usefixtures("written_before")
@pytest.mark.parametrize(("old", "new"), BLANKS.values(), ids=BLANKS)
def test_it_says_the_same_and_stays_unread(old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in range(0, 200, 40):
        came = document(first=first).replace(old, new)
        found = elements_of(came)
        written = xmlbind.encode(response(found))
        assert all(map(is_unread, found))
        assert elements_from_a_tree(written, monkeypatch) == elements_from_a_tree(came, monkeypatch)


@pytest.mark.usefixtures("written_before")
def test_the_very_text_is_written() -> None:
    data = document().replace(b"<coi:userLabel>plain", b"<coi:userLabel>&quot;plain&apos; ->\t\xc3\x85")
    data = re.sub(rb"<([^<>/ ?]+)/>", rb"<\1></\1>", data)
    inside = data[data.index(b"<me:me>") : data.rindex(b"</mer:")]
    assert b"&apos;" in inside
    assert inside in xmlbind.encode(response(elements_of(data)))


@pytest.mark.usefixtures("written_before")
@pytest.mark.parametrize("prefix", [b"nam", b"coi", b"lay"])
def test_other_prefixes_are_not_taken_over(prefix: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    data = document()
    for old in (b"<%b:", b"</%b:", b"xmlns:%b="):
        data = data.replace(old % prefix, old % (b"other" + prefix))
    found = elements_of(data)
    assert all(map(is_unread, found))
    written = xmlbind.encode(response(found))
    assert b"other" not in written
    assert elements_from_a_tree(written, monkeypatch) == elements_from_a_tree(data, monkeypatch)


@pytest.mark.usefixtures("written_before")
def test_prefixes_that_trade_their_meaning_are_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document()
    for before, after in ((b"nam", b"swap"), (b"coi", b"nam"), (b"swap", b"coi")):
        for old in (b"<%b:", b"</%b:", b"xmlns:%b="):
            data = data.replace(old % before, old % after)
    found = elements_of(data)
    assert all(map(is_unread, found))
    written = xmlbind.encode(response(found))
    assert elements_from_a_tree(written, monkeypatch) == elements_from_a_tree(data, monkeypatch)


@pytest.mark.usefixtures("written_before")
def test_a_field_that_was_set_is_written() -> None:
    came = [element(number) for number in range(10)]
    found = elements_of(document(10))
    found[3].owner = came[3].owner = "the new one & others"
    found[4].asap_ref = came[4].asap_ref = None
    assert found[5].location == came[5].location
    assert elements_of(xmlbind.encode(response(found))) == came
    assert [number for number, one in enumerate(found) if not is_unread(one)] == [3, 4, 5]


@pytest.mark.usefixtures("written_before")
def test_extras_that_were_set_are_written() -> None:
    found = elements_of(document(10))
    found[2].extras = xmlbind.Extras(attributes={"{urn:v}grade": "1"})
    written = xmlbind.encode(response(found))
    assert b"grade=" in written
    assert elements_of(written)[2].extras.attributes == {"{urn:v}grade": "1"}


@pytest.mark.usefixtures("written_before")
def test_it_may_stand_in_another_element() -> None:
    data = document(10)
    for number, one in enumerate(elements_of(data)):
        assert is_unread(one)
        written = xmlbind.encode(GetManagedElementResponse(me=one))
        assert etree.fromstring(written)[0].tag.endswith("}me")
        anew = xmlbind.encode(GetManagedElementResponse(me=element(number)))
        assert xmlbind.decode(written) == xmlbind.decode(anew)


@pytest.mark.usefixtures("written_before")
def test_it_may_be_the_root() -> None:
    for number, one in enumerate(elements_of(document(12))):
        if isinstance(one, Me):
            assert xmlbind.decode(xmlbind.encode(one)) == element(number)


class Mediator(ManagedElementRetrieval.Supplier):
    """Hands on what it has from elsewhere."""

    def __init__(self, elements: list[ManagedElementType]) -> None:
        self._elements = elements

    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        return iter(self._elements)


@pytest.mark.usefixtures("written_before")
def test_a_supplier_hands_on_what_it_has_read() -> None:
    names = {"jms/Os": "queue:OS", "jms/Mediator": "queue:MEDIATOR"}
    held = elements_of(document(40))
    with (
        mtosi.connect("memory:hands-on", names=names) as connection,
        mtosi.Supplier(connection, "jms/Mediator", services=[Mediator(held)]),
        mtosi.Requestor(connection, sender_uri="jms/Os") as requestor,
    ):
        service = ManagedElementRetrieval(requestor, "jms/Mediator")
        batches = list(service.get_all_managed_elements.batches(batch_size=15))
    assert [len(batch.me_list.me) for batch in batches] == [15, 15, 10]
    assert all(map(is_unread, held))
    assert [one for batch in batches for one in batch.me_list.me] == [element(number) for number in range(40)]
