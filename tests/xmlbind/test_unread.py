"""Unread objects: whoever looks at one, in whatever way, sees what a decoder makes that puts nothing off."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import gc
import os
import pickle
import random
import signal
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import MethodType
from typing import Any

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.errors import DecodeError
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.nrb.cri import ResourceStateEnumType, ResourceStateType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateListType, LayerRateType
from mtosi_jms.stubs.nrf.me import CommunicationStateType, ManagedElementListType, ManagedElementType, Me
from mtosi_jms.xmlbind import Extras, XmlObject
from mtosi_jms.xmlbind import _scan as scan
from mtosi_jms.xmlbind import _scanner as scanner
from mtosi_jms.xmlbind._unread import may_be_unread, publication, unread
from mtosi_jms.xmlbind.columns import Scanner

pytestmark = pytest.mark.usefixtures("python_core")

SLOT: Any = XmlObject.__dict__["extras"]
LABELS = (None, "", "plain", "a & b <c> \"d\" 'e'", "Århus", "Gdańsk & 中 \U0001f600", "x" * 300, "]] > />")
Look = Callable[[Any], Any]


def is_unread(obj: Any) -> bool:
    return type(SLOT.__get__(obj)) is MethodType


def element(number: int) -> Me:
    chance = random.Random(number)

    def some(*values: Any) -> Any:
        return chance.choice((None, *values))

    aliases = [AliasNameListTypeAlias(alias_name=f"n{index}", alias_value="a & b") for index in range(number % 6)]
    rates = [LayerRateType(value=chance.choice(tuple(LayerRateEnumType))) for _ in range(chance.randrange(6))]
    return Me(
        name=some(name("/".join(f"ME={part}" for part in range(1 + number % 5)))),
        user_label=chance.choice(LABELS),
        owner=chance.choice(LABELS),
        alias_name_list=some(AliasNameListType(alias=aliases)),
        resource_state=some(*(ResourceStateType(value=value) for value in ResourceStateEnumType)),
        manufacture_date=some(dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
        is_in_sync_state=some(True, False),
        supported_connection_layer_rate_list=some(LayerRateListType(layer_rate=rates)),
        communication_state=some(*CommunicationStateType),
        asap_ref=some(name("AP=1")),
    )


def document(count: int = 40, first: int = 0) -> bytes:
    elements: list[ManagedElementType] = [element(number) for number in range(first, first + count)]
    data = xmlbind.encode(GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements)))
    return data.replace(b"<coi:owner/>", b"<coi:owner></coi:owner>")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make unread objects even of small documents, from the first on."""
    monkeypatch.setattr(scan, "SMALLEST", 0)
    monkeypatch.setattr(scan, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(scan, "scanners", scan.Recipes(Scanner))
    monkeypatch.setattr(scanner, "LARGE", 0)
    monkeypatch.setattr(scanner, "WORTH_SHELLS", 0)


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """The elements of a document, unread and made at once from the tree."""
    found = xmlbind.decode(data).me_list.me
    assert type(found) is list
    assert all(map(is_unread, found))
    with monkeypatch.context() as patch:
        patch.setattr(scan, "SMALLEST", 1 << 60)
        made = xmlbind.decode(data).me_list.me
    assert not any(map(is_unread, made))
    return found, made


def encoded(obj: Any) -> bytes:
    return xmlbind.encode(GetAllManagedElementsResponse(me_list=ManagedElementListType(me=[obj])))


def leaves(obj: Any) -> Any:
    if isinstance(obj, XmlObject):
        return type(obj), [(field.name, leaves(getattr(obj, field.name))) for field in dataclasses.fields(obj)]
    return type(obj), [leaves(item) for item in obj] if isinstance(obj, list) else obj


WAYS: dict[str, Look] = {
    "repr": repr,
    "str": str,
    "leaves": leaves,
    "pickle": lambda obj: leaves(pickle.loads(pickle.dumps(obj))),
    "old pickle": lambda obj: leaves(pickle.loads(pickle.dumps(obj, 2))),
    "copy": lambda obj: leaves(copy.copy(obj)),
    "deepcopy": lambda obj: leaves(copy.deepcopy(obj)),
    "replace": lambda obj: leaves(dataclasses.replace(obj, owner="new")),
    "asdict": dataclasses.asdict,
    "astuple": dataclasses.astuple,
    "encode": encoded,
    "extras": lambda obj: obj.extras,
    "unknown": lambda obj: obj.unknown_elements(),
    "hasattr": lambda obj: [hasattr(obj, "location"), hasattr(obj, "nothing"), hasattr(obj, "extras")],
    "class": lambda obj: (type(obj), obj.__class__, isinstance(obj, ManagedElementType)),
}


BLANKS = [(b"><", b"><"), (b"><", b">\n\t <"), (b"</me:me>", b"</me:me>\n")]


@pytest.mark.parametrize(("old", "new"), BLANKS, ids=["compact", "spaced", "lines"])
@pytest.mark.parametrize("way", WAYS)
def test_whoever_looks_sees_the_same(way: str, old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in (0, 120):
        found, made = both(document(first=first).replace(old, new), monkeypatch)
        for one, other in zip(found, made, strict=True):
            assert WAYS[way](one) == WAYS[way](other)


def test_they_are_equal_from_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = both(document(), monkeypatch)
    others = xmlbind.decode(document()).me_list.me
    assert found[:20] == made[:20]
    assert made[20:] == found[20:]
    assert found == others
    changed = dataclasses.replace(made[3], owner="another")
    assert xmlbind.decode(document()).me_list.me[3] != changed
    with pytest.raises(TypeError, match="unhashable type: 'Me'"):
        hash(xmlbind.decode(document()).me_list.me[0])


def test_only_what_is_looked_at_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = both(document(), monkeypatch)
    assert len(found) == 40
    assert type(found[1]) is Me
    found[7].location  # noqa: B018
    found.reverse()
    assert [number for number, one in enumerate(found) if not is_unread(one)] == [32]
    assert is_unread(pickle.loads(pickle.dumps(found[3]))) is False


def test_what_is_set_first_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = both(document(), monkeypatch)
    for one, other in zip(found, made, strict=True):
        one.owner = other.owner = "mine"
        one.asap_ref = other.asap_ref = None
        assert one.owner == "mine"
        assert one == other
        assert not is_unread(one)


def test_extras_set_first_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found, made = both(document(), monkeypatch)
    extras = Extras(attributes={"{urn:v}a": "1"})
    for one, other in zip(found, made, strict=True):
        one.extras = other.extras = extras
        assert one == other
        assert one.extras is extras
        del one.extras
        with pytest.raises(AttributeError, match="extras"):
            one.extras  # noqa: B018
        assert one.owner == other.owner


def test_what_is_deleted_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = both(document(1), monkeypatch)
    with pytest.raises(AttributeError, match="owner"):
        del found[0].owner
    assert is_unread(found[0])
    assert found[0].owner == element(0).owner
    del found[0].owner
    with pytest.raises(AttributeError, match="owner"):
        found[0].owner  # noqa: B018


def test_what_no_object_has_is_missed_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = both(document(1), monkeypatch)
    with pytest.raises(AttributeError) as expected:
        name("ME=1").nothing  # noqa: B018
    with pytest.raises(AttributeError) as missed:
        found[0].nothing  # noqa: B018
    assert str(missed.value) == str(expected.value).replace("NamingAttributeType", "Me")
    assert (missed.value.name, missed.value.obj) == ("nothing", found[0])


def test_a_class_of_the_user_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    both(document(1), monkeypatch)

    class Mine(Me):
        def __getattr__(self, name: str) -> str:
            return f"no {name}"

    mine = Mine(owner="o", extras=Extras())
    assert (mine.owner, mine.nothing, mine.extras) == ("o", "no nothing", Extras())
    assert Me(owner="o") == Me(owner="o")


@dataclasses.dataclass(slots=True, kw_only=True)
class Guarded(XmlObject):
    value: str = ""

    def __getattr__(self, name: str) -> str:
        return "guarded"


class Open(XmlObject):
    """Its objects have a dictionary."""


def test_classes_with_ways_of_their_own_have_no_unread_objects() -> None:
    assert not may_be_unread(Guarded)
    assert not may_be_unread(Open)
    assert Guarded.extras is SLOT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"<me:communicationState>", b"<me:communicationState>X"),
        (b"<me:isInSyncState>", b"<me:isInSyncState>un"),
        (b"<me:manufactureDate>", b"<me:manufactureDate>about "),
        (b"</me:me>", b"<me:nothing/></me:me>"),
    ],
)
def test_departures_are_reported_when_a_document_is_decoded(
    old: bytes, new: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, _, tail = document().replace(b"><", b">\n<").rpartition(old)
    data = head + new + tail
    warnings: list[xmlbind.XmlWarning] = []
    found = xmlbind.decode(data, warnings=warnings)
    assert not any(map(is_unread, found.me_list.me))
    with monkeypatch.context() as patch:
        patch.setattr(scan, "SMALLEST", 1 << 60)
        expected: list[xmlbind.XmlWarning] = []
        assert xmlbind.decode(data, warnings=expected) == found
    assert warnings == expected
    assert [warning.line for warning in warnings] == [head.count(b"\n") + 1]
    with pytest.raises(DecodeError):
        xmlbind.decode(data, strict=True)


@pytest.mark.parametrize(("odd", "put_off"), [(2, 38), (16, 24), (30, 0)])
def test_what_no_pattern_describes_is_made_at_once(odd: int, put_off: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all that is left, where there is much of it."""
    vendor = b"<coi:vendorExtensions><v:x xmlns:v='urn:v'>1</v:x></coi:vendorExtensions></me:me>"
    parts = document().split(b"<me:me>")
    data = b"<me:me>".join([parts[0], *[vendor] * odd, *parts[odd + 1 :]])
    found = xmlbind.decode(data)
    assert sum(map(is_unread, found.me_list.me)) == put_off
    with monkeypatch.context() as patch:
        patch.setattr(scan, "SMALLEST", 1 << 60)
        assert xmlbind.decode(data) == found


def test_small_documents_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(10)
    monkeypatch.setattr(scanner, "LARGE", len(data) + 1)
    assert not any(map(is_unread, xmlbind.decode(data).me_list.me))


def test_lists_are_worth_it_after_some_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "WORTH_SHELLS", 100)
    counts = [sum(map(is_unread, xmlbind.decode(document(40)).me_list.me)) for _ in range(5)]
    assert counts == [0, 0, 0, 40, 40]


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What each of some threads that begin together comes to."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait(60)
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.fixture
def switching() -> Any:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_threads_that_look_at_one_object_see_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = ("name", "alias_name_list", "resource_state", "supported_connection_layer_rate_list", "asap_ref", "extras")
    for _ in range(5):
        found, made = both(document(60), monkeypatch)

        def work(number: int, found: list[Any] = found) -> list[Any]:
            return [getattr(one, fields[number]) for one in found]

        seen = in_threads(6, work)
        again = [[getattr(one, field) for one in found] for field in fields]
        for mine, there in zip(seen, again, strict=True):
            assert all(one is other for one, other in zip(mine, there, strict=True))
        assert found == made


@pytest.mark.usefixtures("switching")
def test_nothing_that_a_thread_sets_is_lost_to_one_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = ("owner", "location", "name", "asap_ref")
    for _ in range(5):
        found, made = both(document(60), monkeypatch)

        def work(number: int, found: list[Any] = found) -> None:
            for one in found:
                if number < len(fields):
                    setattr(one, fields[number], f"set {number}")
                else:
                    one.user_label  # noqa: B018

        in_threads(6, work)
        for one, other in zip(found, made, strict=True):
            assert [getattr(one, field) for field in fields] == [f"set {number}" for number in range(len(fields))]
            assert one.user_label == other.user_label


def publisher() -> Callable[[Any, dict[str, Any]], None]:
    """What gives an unread element its values, by field."""
    assert may_be_unread(Me)
    lines, known = publication(Me, {field.name: f"v['{field.name}']" for field in dataclasses.fields(Me)})
    exec("\n".join(["def publish(o, v):", *(f" {line}" for line in lines)]), known)
    made: Callable[[Any, dict[str, Any]], None] = known["publish"]
    return made


@pytest.mark.usefixtures("switching")
def test_one_thread_alone_makes_the_values_of_an_object() -> None:
    publish = publisher()
    made: list[int] = []

    def make(number: int, obj: Any) -> None:
        values = {field.name: str(number) for field in dataclasses.fields(Me)}
        made.append(number)
        Path.cwd()  # whoever asks the system lets other threads run
        publish(obj, values)

    objects = unread(Me, make, range(200))
    seen = in_threads(4, lambda _: [obj.owner for obj in objects])
    assert seen == [[str(number) for number in range(200)]] * 4
    assert sorted(made) == list(range(200))


def test_looking_at_an_object_while_it_is_made_is_no_harm() -> None:
    """As a finalizer may that the collector runs meanwhile."""
    publish = publisher()
    made: list[Any] = []

    def make(number: int, obj: Any) -> None:
        values = {field.name: [len(made), field.name] for field in dataclasses.fields(Me)}
        made.append(values)
        if len(made) == 1:
            assert obj.owner == [1, "owner"]
        publish(obj, values)

    obj = unread(Me, make, [1])[0]
    assert obj.location == [1, "location"]
    assert obj.extras is None
    assert obj.owner is made[1]["owner"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_process_can_read_what_its_parent_could() -> None:
    """Though another thread of the parent was making an object."""
    assert may_be_unread(Me)
    publish = publisher()
    begun, forking = threading.Event(), threading.Event()
    os.register_at_fork(before=forking.set)

    def make(slow: bool, obj: Any) -> None:
        begun.set()
        if slow:
            assert forking.wait(60)
        publish(obj, {field.name: "made" for field in dataclasses.fields(Me)})

    objects = unread(Me, make, [True, False])
    thread = threading.Thread(target=lambda: objects[0].owner)
    thread.start()
    begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(objects[1].owner != "made")
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert [obj.owner for obj in objects] == ["made", "made"]


def test_what_fails_while_an_object_is_made_leaves_it_unread() -> None:
    assert may_be_unread(Me)
    faults = [RecursionError("too deep"), MemoryError()]

    def make(source: str, obj: Any) -> None:
        raise faults.pop()

    obj = unread(Me, make, [""])[0]
    for fault in list(reversed(faults)):
        with pytest.raises(type(fault)):
            obj.owner  # noqa: B018
        assert is_unread(obj)


def test_an_object_keeps_its_own_text_alone_and_only_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = both(document(), monkeypatch)
    texts = [SLOT.__get__(one).__self__ for one in found]
    assert all(text.startswith("<me:me>") and text.count("<me:me>") == 1 for text in texts)
    held = [sys.getrefcount(text) for text in texts]
    for one in found[:20]:
        one.owner  # noqa: B018
    del found[20:]
    assert [sys.getrefcount(text) for text in texts] == [count - 1 for count in held]


def test_an_unread_batch_is_smaller_than_one_that_is_read() -> None:
    data = document(100)
    xmlbind.decode(data)

    def size(look: Look) -> int:
        gc.collect()
        tracemalloc.start()
        try:
            found = xmlbind.decode(data)
            for one in found.me_list.me:
                look(one)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    size(repr)
    assert size(type) < size(leaves)
