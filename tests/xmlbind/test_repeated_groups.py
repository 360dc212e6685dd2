"""Values of repeated groups stay with those that they stood with, in both cores, or writing them is an error."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.errors import EncodeError
from mtosi_jms.xmlbind import Extras
from mtosi_jms.xmlbind._grammar import Grammar, Rounds

MODULE = xmlbind.Module("tests.groups", "urn:groups", prefix="grp", root="tests")
FIELDS = tuple(xmlbind.E(name, name, xmlbind.STRING, max=None) for name in "prvc")


@dataclass(slots=True, kw_only=True)
class Lists(xmlbind.XmlObject):
    """Four lists of texts."""

    p: list[str] = field(default_factory=list)
    r: list[str] = field(default_factory=list)
    v: list[str] = field(default_factory=list)
    c: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Product(Lists):
    """`(p?, (r?, v?)*)`, as ProductInfoType of MTOSI 2.0 has it."""

    __xml__ = MODULE.element(
        "product", FIELDS, model=("seq", 1, 1, (("p", 0, 1), ("seq", 0, None, (("r", 0, 1), ("v", 0, 1)))))
    )


@dataclass(slots=True, kw_only=True)
class Spec(Lists):
    """`(r, v*)+`."""

    __xml__ = MODULE.element("spec", FIELDS, model=("seq", 1, None, (("r", 1, 1), ("v", 0, None))))


@dataclass(slots=True, kw_only=True)
class Failure(Lists):
    """`(c, (r, v+)+)+`, as ServiceAvcFailureEventType of MTOSI 2.0 has it."""

    __xml__ = MODULE.element(
        "failure", FIELDS, model=("seq", 1, None, (("c", 1, 1), ("seq", 1, None, (("r", 1, 1), ("v", 1, None)))))
    )


@dataclass(slots=True, kw_only=True)
class Problem(Lists):
    """`(p | (c, v*) | (r, v*))+`, as UpdateInventoryException of MTOSI 2.0 has it."""

    __xml__ = MODULE.element(
        "problem",
        FIELDS,
        model=(
            "choice",
            1,
            None,
            ("p", ("seq", 1, 1, (("c", 1, 1), ("v", 0, None))), ("seq", 1, 1, (("r", 1, 1), ("v", 0, None)))),
        ),
    )


@pytest.fixture(params=["native", "python"], autouse=True)
def core(request: pytest.FixtureRequest, cores: ModuleType) -> Iterator[None]:
    with cores.core(request.param if xmlbind.core().name == "native" else "python"):
        yield


def read(cls: type[Any], word: str) -> Any:
    """The object of a document: `ra v1` is `<r>a</r><v>1</v>`."""
    inner = "".join(f"<{one[0]}>{one[1:]}</{one[0]}>" for one in word.split())
    return xmlbind.decode(f'<{cls.__xml__.element} xmlns="urn:groups">{inner}</{cls.__xml__.element}>'.encode(), cls)


def written(obj: Any) -> str:
    """What is written, in the same form."""
    return " ".join(f"{etree.QName(child).localname}{child.text}" for child in xmlbind.to_element(obj))


def built(cls: type[Any], word: str, order: str = "") -> Any:
    """An object of the same lists, without an order or with one."""
    lists: dict[str, list[str]] = {}
    for one in word.split():
        lists.setdefault(one[0], []).append(one[1:])
    return cls(**lists, extras=Extras(order=tuple(order)) if order else None)


DECIDED = [
    (Spec, "ra v1 v2"),
    (Spec, "ra rb rc"),
    (Product, "ra v1 rb v2"),
    (Product, "px ra v1"),
    (Product, "ra rb"),
    (Product, "px v1 v2"),
    (Failure, "cx ra v1 v2"),
    (Failure, "cx ra v1 cy rb v2"),
    (Failure, "cx ra v1 rb v2"),
    (Failure, " ".join(f"c{n} r{n} v{n}" for n in range(40))),
    (Problem, "px cy v1 v2"),
    (Problem, f"ra {' '.join(f'v{n}' for n in range(100))}"),
    (Problem, "px py"),
]
OPEN = [
    (Spec, "ra rb v1"),
    (Spec, "ra rb v1 v2"),
    (Product, "ra rb v1"),
    (Product, "ra v1 v2"),
    (Failure, "cx cy ra rb rc v1 v2 v3"),
    (Failure, "cx ra rb v1 v2 v3"),
    (Problem, "ra cx v1"),
    (Problem, "ra rb v1 v2"),
]


@pytest.mark.obligation("GEN8")
@pytest.mark.parametrize(("cls", "word"), DECIDED)
def test_numbers_that_leave_one_way_are_written(cls: type[Any], word: str) -> None:
    assert written(built(cls, word)) == word
    found = read(cls, word)
    assert (written(found), xmlbind.decode(found.to_xml(), cls)) == (word, found)


@pytest.mark.obligation("GEN8")
@pytest.mark.parametrize(("cls", "word"), OPEN)
def test_numbers_that_leave_several_ways_are_an_error_unless_the_order_is_given(cls: type[Any], word: str) -> None:
    made = built(cls, word)
    with pytest.raises(EncodeError, match=r"which of .* stand together.*extras=Extras\(order=") as caught:
        made.to_xml()
    assert caught.value.path == cls.__name__
    model = cls.__xml__.model
    ways = [order for order in set(itertools.permutations(one[0] for one in word.split())) if Rounds.of(model, order)]
    assert len(ways) > 1
    for order in ways:
        made.extras = Extras(order=order)
        assert [one[0] for one in written(made).split()] == list(order)
        again = cls.from_dict(json.loads(json.dumps(made.to_dict())))
        assert (again, written(again)) == (made, written(made))
    for wrong in ((*order, "r"), order[1:], ("v", *(name for name in order if name != "v")) if cls is Spec else ("c",)):
        made.extras = Extras(order=wrong)
        with pytest.raises(EncodeError, match=r"extras\.order is not an order"):
            made.to_xml()


WORDS = [
    (Spec, "ra v1 rb rc v2 v3"),
    (Product, "px ra rb v1 v2 rc"),
    (Failure, "cx ra v1 v2 rb v3 cy rc v4"),
    (Problem, "px ra v1 cx v2 v3 rb"),
]
COPIES: list[Callable[[Any], Any]] = [
    lambda obj: obj,
    copy.copy,
    copy.deepcopy,
    replace,
    lambda obj: pickle.loads(pickle.dumps(obj)),
    lambda obj: type(obj).from_dict(json.loads(obj.to_json())),
    lambda obj: xmlbind.decode(obj.to_xml(), type(obj)),
]


@pytest.mark.obligation("GEN8")
@pytest.mark.parametrize(("cls", "word"), WORDS)
@pytest.mark.parametrize("copied", COPIES)
def test_what_was_read_keeps_its_order(cls: type[Any], word: str, copied: Callable[[Any], Any]) -> None:
    found = copied(read(cls, word))
    assert (written(found), written(copied(found)), found) == (word, word, read(cls, word))


EDITS: list[tuple[type[Any], str, Callable[[Any], Any], str | None]] = [
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.append("d"), "ra v1 rb rc v2 rd"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.insert(0, "d"), "rd ra v1 rb rc v2"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.v.append("3"), "ra v1 rb rc v2 v3"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.__setitem__(1, "d"), "ra v1 rd rc v2"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.remove("b"), "ra v1 rc v2"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.v.clear(), "ra rb rc"),
    (Spec, "ra v1 rb rc v2", lambda obj: (obj.r.pop(0), obj.v.pop(0)), "rb rc v2"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.v.insert(0, "0"), "ra v0 v1 rb rc v2"),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.v.insert(1, "0"), None),  # of a, of b or of c
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.pop(0), None),  # 1 has lost its ref
    (Spec, "ra v1 rb rc v2", lambda obj: (obj.r.pop(0), obj.r.append("d")), None),
    (Spec, "ra v1 rb rc v2", lambda obj: obj.r.reverse(), None),
    (Spec, "ra v1 rb rc v2", lambda obj: (obj.r.append("d"), obj.v.append("3")), None),  # of c or of d
    (Spec, "rx v1 rx", lambda obj: obj.r.pop(), "rx v1"),
    (Product, "px ra rb v1", lambda obj: obj.v.append("2"), "px ra rb v1 v2"),
    (Product, "px ra rb v1", lambda obj: obj.r.append("c"), "px ra rb v1 rc"),
    (Product, "px ra rb v1", lambda obj: (obj.r.append("c"), obj.v.append("2")), "px ra rb v1 rc v2"),
    (Product, "px ra rb v1", lambda obj: obj.v.insert(0, "0"), "px ra v0 rb v1"),
    (Product, "px ra rb v1", lambda obj: obj.r.remove("b"), None),  # 1 has lost its ref
    (Product, "ra v1 rb", lambda obj: obj.p.append("x"), "px ra v1 rb"),
    (Failure, "cx ra v1 v2 rb v3 cy rc v4", lambda obj: obj.v.append("5"), "cx ra v1 v2 rb v3 cy rc v4 v5"),
    (Failure, "cx ra v1 v2 rb v3 cy rc v4", lambda obj: obj.c.pop(), None),
    (Problem, "pa cx v1 pb", lambda obj: obj.p.append("c"), "pa cx v1 pb pc"),
    (Problem, "cx v1 ra", lambda obj: obj.v.append("2"), None),
]


@pytest.mark.obligation("GEN8")
@pytest.mark.parametrize(("cls", "word", "edit", "expected"), EDITS)
def test_neighbours_stay_together_when_lists_are_edited(
    cls: type[Any], word: str, edit: Callable[[Any], Any], expected: str | None
) -> None:
    for copied in COPIES[:5]:
        found = copied(read(cls, word))
        edit(found)
        if expected is not None:
            assert written(found) == written(cls.from_dict(found.to_dict())) == expected
            continue
        for form in (found.to_xml, found.to_dict, found.to_json):
            with pytest.raises(EncodeError, match="stand together"):
                form()


def test_an_order_that_is_given_after_an_edit_counts() -> None:
    found = read(Spec, "ra v1 rb rc v2")
    found.r.append("d")
    found.v.append("3")
    found.extras.order += ("r", "v")
    assert written(found) == "ra v1 rb rc v2 rd v3"


def test_elements_out_of_order_are_written_as_they_came() -> None:
    warnings: list[xmlbind.XmlWarning] = []
    found = xmlbind.decode(b'<spec xmlns="urn:groups"><v>0</v><r>a</r><r>b</r></spec>', Spec, warnings=warnings)
    assert [(warning.rule, warning.message.partition(": ")[2]) for warning in warnings] == [
        ("order", "written as they came")
    ]
    assert written(found) == written(Spec.from_dict(found.to_dict())) == "v0 ra rb"


def test_held_values_show_nowhere() -> None:
    assert "secret" not in repr(read(Spec, "ra vsecret rb").extras)


NAMES = ("r", "v", "c")
LEAVES = st.tuples(st.sampled_from(NAMES), st.integers(0, 1), st.sampled_from([1, 2, None]))


def _groups(items: Any) -> Any:
    most = st.sampled_from([1, None])
    return st.tuples(
        st.sampled_from(["seq", "choice"]), st.integers(0, 1), most, st.lists(items, min_size=1, max_size=3)
    )


def _frozen(item: Any) -> Any:
    return (*item[:3], tuple(map(_frozen, item[3]))) if len(item) == 4 else item


MODELS = _groups(LEAVES | _groups(LEAVES)).map(_frozen)


@given(MODELS, st.fixed_dictionaries({name: st.integers(0, 3) for name in NAMES}))
def test_numbers_decide_only_where_one_way_has_the_fewest_rounds(model: Any, counts: Mapping[str, int]) -> None:
    grammar = Grammar(model)
    counts = {name: count for name, count in counts.items() if count and name in grammar.names}
    if not 0 < sum(counts.values()) <= 6 or grammar.problem(counts) is not None or not grammar.decides(counts):
        return
    chosen = Rounds.of(model, grammar.order(counts))
    if chosen is None:  # no deterministic model: XML Schema has none
        return
    ways = set()
    for order in set(itertools.permutations(name for name, count in counts.items() for _ in range(count))):
        rounds = Rounds.of(model, order)
        if rounds is not None and len(rounds) <= len(chosen):
            word = [(name, order[:place].count(name)) for place, name in enumerate(order)]
            ways.add((len(rounds), frozenset(frozenset(word[one.start : one.stop]) for one in rounds)))
    assert len(ways) == 1
