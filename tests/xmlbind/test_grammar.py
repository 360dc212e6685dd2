"""Content models as grammars: whatever a model is, it takes what the schema takes.

The judge of models that are made up are the languages of `mtosi-codegen verify`, in every order; libxml2 is that
of the known shapes: it miscounts where optional loops stand in loops.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lxml import etree

from mtosi_codegen.proof import languages
from mtosi_jms.xmlbind._grammar import Grammar, is_group

NAMES = ("a", "b", "c", "d")
TAGS = {"seq": "sequence", "choice": "choice", "all": "all"}


def _occurs(least: int, most: int | None) -> str:
    return f'minOccurs="{least}" maxOccurs="{"unbounded" if most is None else most}"'


def _xsd(item: Any, inside: str = "") -> str:
    if isinstance(item, str):
        item = (item, 1, 1)
    if is_group(item):
        kind, least, most, items = item
        inner = "".join(_xsd(part, kind) for part in items)
        return f"<x:{TAGS[kind]} {_occurs(least, most)}>{inner}</x:{TAGS[kind]}>"
    name, least, most = item
    return f'<x:element name="{name}" type="x:string" {_occurs(least, most)}/>'


def _schema(model: Any) -> etree.XMLSchema | None:
    """The schema of a model; None where libxml2 finds it ambiguous."""
    text = f'<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema"><x:element name="r"><x:complexType>{_xsd(model)}'
    try:
        return etree.XMLSchema(etree.fromstring(f"{text}</x:complexType></x:element></x:schema>"))
    except etree.XMLSchemaParseError:
        return None


def _some_order(schema: etree.XMLSchema, counts: dict[str, int]) -> bool:
    values = [name for name, count in counts.items() for _ in range(count)]
    return any(_valid(schema, order) for order in set(itertools.permutations(values)))


def _valid(schema: etree.XMLSchema, order: Any) -> bool:
    return schema.validate(etree.fromstring("<r>" + "".join(f"<{name}/>" for name in order) + "</r>"))


OCCURS = [(0, 1), (1, 1), (0, None), (1, None), (0, 2), (2, 3)]


@st.composite
def _models(draw: st.DrawFn) -> Any:
    names = list(draw(st.permutations(NAMES)))

    def item(depth: int) -> Any:
        if depth and len(names) > 1 and draw(st.booleans()):
            return group(depth - 1)
        if not names:
            return None
        return (names.pop(), *draw(st.sampled_from(OCCURS)))

    def group(depth: int) -> Any:
        kind = draw(st.sampled_from(["seq", "choice"]))
        items = [item(depth) for _ in range(draw(st.integers(1, 3)))]
        items = [part for part in items if part is not None]
        return (kind, *draw(st.sampled_from(OCCURS[:4])), tuple(items))

    return group(2)


def _language(item: Any) -> languages.Expression:
    if isinstance(item, str):
        item = (item, 1, 1)
    if not is_group(item):
        return languages.repeated(languages.symbol(item[0]), item[1], item[2])
    kind, least, most, items = item
    joined = languages.choice if kind == "choice" else languages.sequence
    return languages.repeated(joined(map(_language, items)), least, most)


def _allowed(model: Any, order: Any) -> bool:
    left = languages.sequence([_language(model), languages.symbol("the end")])
    for name in (*order, "the end"):
        left = languages.after(left, name)
    return left is not None


def _some_order_allowed(model: Any, counts: dict[str, int]) -> bool:
    values = [name for name, count in counts.items() for _ in range(count)]
    return any(_allowed(model, order) for order in set(itertools.permutations(values)))


COUNTS = st.fixed_dictionaries({name: st.integers(0, 2) for name in NAMES})
quick = settings(suppress_health_check=[HealthCheck.filter_too_much])


@quick
@given(_models(), COUNTS)
def test_a_set_of_values_is_taken_if_the_schema_takes_it_in_some_order(model: Any, counts: dict[str, int]) -> None:
    grammar = Grammar(model)
    own = {name: count for name, count in counts.items() if name in grammar.names}
    assume(sum(own.values()) <= 6)
    assume(_schema(model) is not None)
    if grammar.problem(own) is None:
        assert _allowed(model, grammar.order(own))
    else:
        assert not _some_order_allowed(model, own)


@quick
@given(_models(), st.lists(st.sampled_from(NAMES), max_size=7))
def test_an_order_is_allowed_if_the_schema_allows_it(model: Any, order: list[str]) -> None:
    grammar = Grammar(model)
    order = [name for name in order if name in grammar.names]
    assume(_schema(model) is not None)
    assert grammar.allows(order) == _allowed(model, order)


MODELS = [
    ("choice", 1, 1, ("a", "b", ("seq", 1, 1, (("c", 1, 1), ("d", 0, 1))))),
    ("choice", 1, 1, (("a", 0, 1), ("b", 0, 1))),
    ("choice", 0, None, ("a", "b")),
    ("choice", 2, 3, ("a", ("seq", 1, 1, (("b", 1, 1), ("c", 0, None))))),
    ("seq", 1, 1, (("seq", 1, None, (("a", 1, 1), ("b", 0, 1))), ("choice", 0, 1, ("c", "d")))),
    ("seq", 0, None, (("a", 0, 1), ("b", 0, 1))),
    ("seq", 1, 1, (("choice", 0, 1, ("a", "b")), ("choice", 0, 1, ("c", "d")))),
    ("all", 1, 1, (("a", 1, 1), ("b", 0, 1), ("c", 0, 1))),
    ("all", 0, 1, (("a", 1, 1), ("b", 0, 1))),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_known_shapes_in_every_combination(model: Any) -> None:
    schema = _schema(model)
    assert schema is not None
    grammar = Grammar(model)
    for numbers in itertools.product(range(3), repeat=len(grammar.names)):
        if sum(numbers) > 5:
            continue
        counts = dict(zip(grammar.names, numbers, strict=True))
        fits = grammar.problem(counts) is None
        assert fits == _some_order(schema, counts), counts
        assert len(grammar.order(counts)) == sum(numbers)
        assert not fits or _valid(schema, grammar.order(counts))


def test_the_same_name_in_two_alternatives() -> None:
    """The second is an ambiguous model, which is searched."""
    grammar = Grammar(("choice", 1, 1, (("seq", 1, 1, (("a", 1, 1), ("b", 1, 1))), ("seq", 1, 1, (("b", 1, 1),)))))
    assert grammar.problem({"b": 1}) is None
    assert grammar.order({"a": 1, "b": 1}) == ["a", "b"]
    grammar = Grammar(("choice", 1, 1, (("seq", 1, 1, (("a", 1, 1), ("b", 0, 1))), ("seq", 1, 1, (("a", 1, 1), "c")))))
    assert grammar.problem({"a": 1, "c": 1}) is None
    assert grammar.order({"a": 1, "c": 1}) == ["a", "c"]


def test_names_that_the_model_does_not_have() -> None:
    grammar = Grammar(("choice", 1, 1, ("a", "b")))
    assert grammar.problem({"x": 1}) == "x is not part of the content; one of a, b is required"
    assert grammar.problem({"a": 1, "x": 0}) is None
    assert grammar.order({"a": 1, "x": 2}) == ["a", "x", "x"]


def test_inherited_fields_come_first_as_many_as_there_are() -> None:
    grammar = Grammar(("seq", 1, 1, ("a", "b", ("choice", 1, 1, ("c", "d")))))
    assert grammar.order({"b": 2, "d": 1, "a": 3}) == ["a"] * 3 + ["b"] * 2 + ["d"]
    assert grammar.problem({"d": 1}) is None


def test_orders_of_any_length_are_checked_quickly() -> None:
    grammar = Grammar(("seq", 0, None, (("a", 0, None), ("b", 0, None), ("choice", 0, None, ("c", "d")))))
    assert grammar.allows(["a", "b", "c", "d"] * 20_000)
    assert not Grammar(("seq", 0, None, (("a", 0, None), ("b", 1, 1)))).allows(["a", "b"] * 20_000 + ["a"])
    long = {"a": 20_000, "b": 20_000}
    repeated = Grammar(("choice", 0, None, ("a", "b")))
    assert repeated.problem(long) is None
    assert len(repeated.order(long)) == 40_000
