"""content: content models as fields."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_codegen.passes.content import is_plain, leaves, occurrences, simplified
from mtosi_codegen.xsd.model import ONCE, Compositor, ElementUse, Occurs, Particle, Place, QName

PLACE = Place("a.xsd", 1)


def element(name: str, low: int = 1, high: int | None = 1) -> ElementUse:
    return ElementUse(QName("", name), PLACE, Occurs(low, high))


def seq(*items: Particle, low: int = 1, high: int | None = 1) -> Compositor:
    return Compositor("sequence", Occurs(low, high), items)


def choice(*items: Particle, low: int = 1, high: int | None = 1) -> Compositor:
    return Compositor("choice", Occurs(low, high), items)


A, B, C = element("a"), element("b"), element("c")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (seq(A, B), {"a": (1, 1), "b": (1, 1)}),
        (seq(A, B, low=0), {"a": (0, 1), "b": (0, 1)}),
        (seq(A, A), {"a": (2, 2)}),
        (choice(A, B), {"a": (0, 1), "b": (0, 1)}),
        (choice(A, seq(A, B)), {"a": (1, 1), "b": (0, 1)}),
        (choice(A, B, high=None), {"a": (0, None), "b": (0, None)}),
        (seq(choice(A, B), C, high=3), {"a": (0, 3), "b": (0, 3), "c": (1, 3)}),
        (seq(element("a", 0, None), B, high=2), {"a": (0, None), "b": (1, 2)}),
    ],
)
def test_how_often_an_element_may_stand(model: Compositor, expected: dict[str, tuple[int, int | None]]) -> None:
    counted = {key[2]: tuple(occurs) for key, occurs in occurrences(model).items()}
    assert counted == expected


@pytest.mark.parametrize(
    ("model", "plain"),
    [
        (seq(A, B), True),
        (seq(seq(A, B), C), True),
        (seq(choice(A), B), True),
        (seq(seq(A, high=None), B), True),
        (choice(seq(A, B)), True),
        (seq(A, B, A), False),
        (choice(A, B), False),
        (seq(A, B, high=2), False),
        (seq(A, seq(B, C, low=0)), False),
        (Compositor("all", ONCE, (A, B)), False),
        (seq(A, element("b", 0, 0)), True),
    ],
)
def test_what_needs_a_model(model: Compositor, plain: bool) -> None:
    simple = simplified(model)
    assert simple is not None
    assert is_plain(simple) is plain


@pytest.mark.parametrize(
    ("model", "occurs"),
    [
        (seq(element("a", 0, None), high=1), (0, None)),
        (seq(A, low=0, high=None), (0, None)),
        (seq(element("a", 0, 1), low=2, high=5), (0, 5)),
        (choice(seq(A), low=0), (0, 1)),
    ],
)
def test_a_group_of_one_is_the_one(model: Compositor, occurs: tuple[int, int | None]) -> None:
    simple = simplified(model)
    assert isinstance(simple, ElementUse)
    assert tuple(simple.occurs) == occurs


def test_a_group_of_one_with_holes_stays_a_group() -> None:
    simple = simplified(seq(element("a", 2, 2), low=0, high=2))
    assert isinstance(simple, Compositor)
    assert [leaf.occurs for leaf in leaves(simple)] == [Occurs(2, 2)]


@pytest.mark.parametrize("model", [None, seq(), seq(seq(), choice()), seq(A, high=0)])
def test_nothing_is_nothing(model: Any) -> None:
    assert simplified(model) is None


@pytest.mark.parametrize(
    ("least", "most", "found"),
    [
        ("0", "unbounded", (0, None)),
        ("+2", "0999999999", (2, 999_999_999)),
        ("9" * 4000, "unbounded", (999_999_999, None)),
        ("0", "9" * 5000, (0, None)),
        ("1", "1000000000", (1, None)),
        ("-1", "1", (1, 1)),
        ("x", "1", (1, 1)),
    ],
)
def test_how_often_is_a_number_within_reason(
    build: Any, xsd: Any, least: str, most: str, found: tuple[int, int]
) -> None:
    element = f'<x:element name="a" type="x:int" minOccurs="{least}" maxOccurs="{most}"/>'
    result = build({"a.xsd": xsd(f'<x:complexType name="T"><x:sequence>{element}</x:sequence></x:complexType>')})
    (field,) = result.model.classes[0].fields
    assert (field.minimum, field.maximum) == found
    assert [finding.rule for finding in result.findings] == ["xsd-unsupported"] * (found == (1, 1))
    assert all(len(finding.message) < 200 for finding in result.findings)


def test_the_deepest_content_model_is_still_python(build: Any, xsd: Any) -> None:
    content = '<x:element name="a" type="x:int"/>'
    for level in range(60):
        kind = ("choice", "sequence")[level % 2]
        content = f'<x:{kind} maxOccurs="2"><x:element name="e{level}" type="x:int"/>{content}</x:{kind}>'
    result = build({"a.xsd": xsd(f'<x:complexType name="T">{content}</x:complexType>')})
    assert result.findings == ()
    assert [compile(text, path, "exec").co_filename for path, text in result.files.items()] == list(result.files)
