"""What a pattern proves holds: the values can be made, and are those that a decoder makes that tries each of them."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import random
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from mtosi_jms import stubs
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind import EnumType, SimpleType, XmlObject
from mtosi_jms.xmlbind import _simpletypes as simpletypes
from mtosi_jms.xmlbind._pieces import OCTETS, REFERENCES, Piece
from mtosi_jms.xmlbind._plan import LEAF
from mtosi_jms.xmlbind._proofs import form_of, maker_of
from mtosi_jms.xmlbind._scanner import Shells
from mtosi_jms.xmlbind._scanplan import INSIDE, ScanCompiler
from mtosi_jms.xmlbind.columns import NOT_PLAIN, OBJECT, STRING, Cell, Islands, Shape, Unable, plan_of

SAMPLES: dict[SimpleType, tuple[str, ...]] = {
    simpletypes.BOOLEAN: ("true", "false", "1"),
    simpletypes.DATE: ("2024-02-29", "2000-02-29", "1900-02-28", "0001-01-01", "9999-12-31", "0000-02-29"),
    simpletypes.DATE_TIME: ("2024-02-29T23:59:59.12345+13:59", "2024-01-31T00:00:00Z", "2024-04-30T10:00:00.5-14:00"),
    simpletypes.DECIMAL: ("-0.0", "12.50", "0.00000001", "7"),
    simpletypes.ANY_URI: ("a b", "urn:x"),
    simpletypes.TOKEN: ("a", "a b c", ""),
}
PROVEN = [
    kind
    for name in simpletypes.__all__
    if not getattr(simpletypes, name).plain and form_of(getattr(simpletypes, name)) is not None
    for kind in [getattr(simpletypes, name)]
]


def samples(kind: SimpleType) -> list[str]:
    if kind in SAMPLES:
        return list(SAMPLES[kind])
    facets: Any = kind.facets or simpletypes.INT.facets
    bounds = {0, 99, -100, facets.minimum or 10**25, facets.maximum or -(10**25)}
    return [str(bound + step) for bound in bounds for step in (-1, 0, 1)]


@pytest.mark.parametrize("many", [5_000, pytest.param(20_000, marks=pytest.mark.endurance)])
@pytest.mark.parametrize("kind", PROVEN, ids=lambda kind: kind.name)
def test_a_form_finds_the_texts_that_we_would_write_and_no_others(kind: SimpleType, many: int) -> None:
    chance = random.Random(kind.name)
    found = re.compile(str(form_of(kind)))
    make: Any = maker_of(kind)
    seen = {True: 0, False: 0}
    for _ in range(many):
        text = chance.choice(samples(kind))
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(("", *"0123456789-+:.TZ etrufals\t")) + text[at + chance.randrange(2) :]
        try:
            value = kind.exact(text)
        except (ValueError, ArithmeticError):
            value = None
        assert bool(found.fullmatch(text)) is (value is not None), text
        seen[value is not None] += 1
        if value is not None:
            again = text if make is None else make[text] if isinstance(make, dict) else make(text)
            assert (type(again), str(again), again) == (type(value), str(value), value)
    assert min(seen.values()) > many // 200


def test_integers_are_proven_and_texts_with_facets_are_not() -> None:
    names = {kind.name for kind in PROVEN}
    assert {"int", "unsignedByte", "integer", "date", "dateTime", "boolean", "anyURI"} <= names
    assert names.isdisjoint({"language", "NCName", "double", "time", "duration", "base64Binary", "QName", "NMTOKENS"})


def all_classes(package: ModuleType) -> Iterator[Any]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, XmlObject) and cls.__module__ == module.__name__:
                yield cls


def enumerations() -> dict[str, EnumType]:
    found: dict[str, EnumType] = {}
    for cls in all_classes(stubs):
        for slot in plan_of(cls.__xml__).slots.values():
            if slot.kind == LEAF and isinstance(slot.target, EnumType):
                found[slot.target.name] = slot.target
    return found


def test_of_an_enumeration_a_form_finds_its_values() -> None:
    kinds = enumerations()
    assert len(kinds) > 10
    for kind in kinds.values():
        found = re.compile(str(form_of(kind)))
        texts = [str(text) for text in kind.known]
        assert all(found.fullmatch(text) for text in texts)
        others = {text[:-1] for text in texts} | {f"{text}." for text in texts} | {text.lower() for text in texts}
        assert not any(found.fullmatch(text) for text in others - set(texts))


PREFIX = "p{}"
TEXTS = ("", "x", "a & b", "<&>\"'", "Gdańsk", "é & ü", " blanks ", "\U0001f600")


class Maker:
    """Writes elements at random, as their class has them; now and then a text that does not fit.

    Attributes:
        names: namespaces by the prefixes that stand for them.
    """

    def __init__(self, chance: random.Random, blank: str, faults: float) -> None:
        self._chance = chance
        self._blank = blank
        self._faults = faults
        self._prefixes: dict[str, str] = {}

    @property
    def names(self) -> dict[str | None, str]:
        return {prefix: space for space, prefix in self._prefixes.items()}

    def element(self, tag: str, table: Any, depth: int = 0) -> str:
        plan = plan_of(table)
        slots = sorted((slot for name, slot in plan.slots.items() if slot.field.tag == name), key=lambda s: s.order)
        inside = "".join(self._field(slot, depth) for slot in slots)
        return self.tagged(tag, self.text(plan.text) if plan.text is not None else self._blank + inside)

    def tagged(self, tag: str, inside: str) -> str:
        space, local = split_clark(tag)
        name = f"{self._prefixes.setdefault(space, PREFIX.format(len(self._prefixes)))}:{local}"
        return f"<{name}>{inside}</{name}>{self._blank}"

    def _field(self, slot: Any, depth: int) -> str:
        least = slot.field.min
        most = self._chance.choice((0, 1, 1, 1, 2, 3, 4, 6)) if slot.many else self._chance.randrange(2)
        wanted = max(least, most if depth < 4 else 0)
        return "".join(self._one(slot, depth) for _ in range(wanted))

    def _one(self, slot: Any, depth: int) -> str:
        if slot.kind in (STRING, LEAF):
            return self.tagged(slot.field.tag, self.text(slot))
        if slot.kind == OBJECT:
            return self.element(slot.field.tag, slot.target, depth + 1)
        return self.tagged(slot.field.tag, "")

    def text(self, slot: Any) -> str:
        texts = TEXTS
        if slot.kind == LEAF and self._chance.random() >= self._faults:
            known = [text for text in slot.target.known if text]
            texts = tuple(known) or SAMPLES.get(slot.target, ("0", "1", "12"))
        text = self._chance.choice(texts)
        return text.replace("&", "&amp;").replace("<", "&lt;")


def looked_at(value: Any) -> Any:
    if isinstance(value, XmlObject):
        return type(value), [(field.name, looked_at(getattr(value, field.name))) for field in dataclasses.fields(value)]
    return type(value), [looked_at(item) for item in value] if isinstance(value, list) else value


def compared(cls: Any, chance: random.Random) -> tuple[int, int]:
    """Read elements of a class in both ways; how many were compared, and whether they could be unread."""
    maker = Maker(chance, chance.choice(("", "", "\n ")), chance.choice((0.0, 0.0, 0.1)))
    tag = cls.__xml__.tag or "{urn:test}x"
    texts = [maker.element(tag, cls.__xml__) for _ in range(chance.randrange(1, 5))]
    name = f"{maker.names and maker.tagged(tag, '').partition('>')[0][1:]}"
    whole = "".join(texts).encode().decode("latin-1")
    layout = ScanCompiler(maker.names, whole).element(name, cls.__xml__)
    if not isinstance(layout, Shape):
        raise Unable
    piece = Piece(layout, cls, Islands(maker.names))
    care = REFERENCES | OCTETS
    shells = Shells(layout, piece)
    try:
        expected = piece.take_all(whole, 0, care)
    except NOT_PLAIN:
        with pytest.raises(NOT_PLAIN):
            shells.take_all(whole, 0, care)
        return 0, 1
    found, end = shells.take_all(whole, 0, care)
    assert end == expected[1]
    assert looked_at(found) == looked_at(expected[0])
    return int(end == len(whole)), 1


def test_elements_with_nothing_that_can_be_in_them_are_counted(c: ModuleType) -> None:
    """As those of a list all of whose fields are of namespaces that the document does not name."""
    plan = plan_of(c.Store.__xml__)
    slot = next(slot for slot in plan.slots.values() if slot.name == "box")
    empty = Shape(slot.target, "<c:box></c:box>", tag="c:box")
    shape = Shape(c.Store.__xml__, "<c:store>", tag="c:store")
    shape.add("((?:<c:box></c:box>)*+)", Cell(slot, INSIDE, 0, empty, re.compile(empty.pattern), "c:box"), 1)
    shape.pattern += "</c:store>"
    whole = "".join(f"<c:store>{'<c:box></c:box>' * count}</c:store>" for count in range(7))
    shells = Shells(shape, Piece(shape, c.Store, Islands({"c": "urn:test:constructs"})))
    found, end = shells.take_all(whole, 0, 0)
    assert end == len(whole)
    assert [len(store.box) for store in found] == list(range(7))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.endurance) for seed in range(1, 5))])
def test_of_every_class_unread_objects_are_as_others(seed: int, package: str) -> None:
    chance = random.Random(seed)
    classes = [*all_classes(stubs), *all_classes(importlib.import_module(package))]
    assert len(classes) > 100
    able = alike = 0
    for cls in classes:
        if cls.__xml__.abstract:
            continue
        try:
            same, tried = compared(cls, chance)
        except Unable:
            continue
        alike += same
        able += tried
    assert able > 100
    assert alike > 50
