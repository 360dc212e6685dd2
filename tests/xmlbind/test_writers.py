"""Both cores write the same of an object: the same bytes, or the same error."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms import xmlbind as x
from mtosi_jms.errors import EncodeError
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage, UnsubscribeResponse
from mtosi_jms.stubs.mri import rir
from mtosi_jms.stubs.mri.eir import GetEquipmentIteratorRequest
from mtosi_jms.xmlbind import NIL, Extras, RawXml, Writer, XmlObject

STRANGE: tuple[Any, ...] = (
    None,
    "",
    "plain",
    "a & b",
    "<b>",
    "]]>",
    "line\r\nline",
    "caf\u00e9 \U0001f600",
    "\ud800",
    "\x00",
    "\ufffe",
    0,
    -1,
    True,
    1.5,
    Decimal("1.0"),
    dt.date(2026, 1, 1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    b"bytes",
    [],
    ["text"],
    [None],
    ("text",),
    {},
    NIL,
    object(),
    RawXml(b"<v xmlns='urn:v'/>"),
)


def _objects_in(value: Any) -> list[XmlObject]:
    """An object and all below it."""
    if isinstance(value, list):
        return [found for item in value for found in _objects_in(item)]
    if not isinstance(value, XmlObject):
        return []
    fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value, *(found for item in fields for found in _objects_in(item))]


def test_elements_that_hold_nothing(both: Callable[[Any], tuple[Any, Any]]) -> None:
    for cls in (GetEquipmentIteratorRequest, UnsubscribeResponse):
        for _ in range(3):
            natively, in_python = both(cls())
            assert natively == in_python
            assert etree.fromstring(natively[1]).tag == cls.__xml__.tag


@pytest.mark.parametrize("seed", range(60))
def test_changed_at_random(both: Callable[[Any], tuple[Any, Any]], seed: int) -> None:
    chance = random.Random(seed)
    network = Network(elements=3, ports=2, channels=1, seed=seed)
    events = network.events(6, seed=seed, start=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    documents: list[Any] = [
        rir.GetInventoryResponse(inventory_data=InventoryEms(network).data(range(3))),
        *(Notify(topic="fault", message=NotifyMessage(common_event_information=[event])) for event in events),
    ]
    for document in documents:
        natively, in_python = both(document)
        assert natively == in_python
        assert natively[0] == "bytes", natively
    for document in documents:
        for _ in range(5):
            owner = chance.choice(_objects_in(document))
            field = chance.choice([field.name for field in dataclasses.fields(owner)])
            kept = getattr(owner, field)
            strange = chance.choice(STRANGE if field != "extras" else (None, Extras(attributes={"{urn:v}a": "1"})))
            setattr(owner, field, [*kept, strange] if isinstance(kept, list) and chance.random() < 0.5 else strange)
            natively, in_python = both(document)
            assert natively == in_python
            setattr(owner, field, kept)


# What both cores write of each kind of field: the same, byte for byte, and the same errors.


class Loud(str):
    """A text that says something else of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "<LOUD>"


class Mode(str, enum.Enum):  # noqa: UP042 - such a one is written otherwise than it is held
    """An enumeration of somebody else's."""

    ON = "on"


_PACKAGE = "mtosi_test_kinds"
_M = x.Module(f"{_PACKAGE}.types", "urn:test:kinds", prefix="kinds", root=_PACKAGE)
_OTHER = x.Module(f"{_PACKAGE}.other", "urn:test:other-kinds", prefix="okinds", root=_PACKAGE)


class Colour(x.XmlEnum):
    """Colours, one of which has to be escaped."""

    RED = "red"
    BOTH = "r&b"
    BLUE = "bl\u00e5"


@dataclass(slots=True, kw_only=True)
class Words(XmlObject):
    """Small enough to be written where it stands."""

    one: Any = None
    two: Any = None
    three: Any = None

    __xml__ = _OTHER.complex_type(
        "Words",
        (x.E("one", "one", x.STRING, min=1), x.E("two", "two", x.STRING), x.E("three", "drei\u00df", x.STRING)),
    )


@dataclass(slots=True, kw_only=True)
class MoreWords(Words):
    """What has to say what it is."""

    four: Any = None

    __xml__ = _M.complex_type("MoreWords", (x.E("four", "four", x.STRING),))


@dataclass(slots=True, kw_only=True)
class Pair(XmlObject):
    """Nothing but two texts, none of which must be there."""

    left: Any = None
    right: Any = None

    __xml__ = _M.complex_type("Pair", (x.E("left", "left", x.STRING), x.E("right", "right", x.STRING)))


@dataclass(slots=True, kw_only=True)
class Paint(XmlObject):
    """An enumeration with an attribute."""

    value: Any = None
    shade: Any = None

    __xml__ = _M.complex_type("Paint", (x.TEXT("value", x.enum("types:Colour")), x.A("shade", "shade", x.STRING)))


@dataclass(slots=True, kw_only=True)
class Label(XmlObject):
    """A text with an attribute."""

    value: Any = None
    shade: Any = None

    __xml__ = _M.complex_type("Label", (x.TEXT("value", x.STRING), x.A("shade", "shade", x.STRING)))


@dataclass(slots=True, kw_only=True)
class Strict(XmlObject):
    """Whose fields must all be there."""

    words: Any = None
    some: Any = None
    colour: Any = None

    __xml__ = _M.complex_type(
        "Strict",
        (
            x.E("words", "words", "types:Words", min=1),
            x.E("some", "some", "types:Words", min=1, max=2),
            x.E("colour", "colour", x.enum("types:Colour"), min=1),
        ),
    )


@dataclass(slots=True, kw_only=True)
class Nest(XmlObject):
    """Lists in lists, and one of its own class."""

    words: Any = field(default_factory=list)
    nest: Any = None

    __xml__ = _M.complex_type("Nest", (x.E("words", "words", "types:Words", max=3), x.E("nest", "nest", "types:Nest")))


@dataclass(slots=True, kw_only=True)
class MoreNest(Nest):
    """A list of what is empty."""

    nothing: Any = field(default_factory=list)

    __xml__ = _M.complex_type("MoreNest", (x.E("nothing", "nothing", "types:Nothing", max=None),))


@dataclass(slots=True, kw_only=True)
class Knot(XmlObject):
    """For which others may stand."""

    text: Any = None
    knot: Any = None

    __xml__ = _M.element("knot", (x.E("text", "text", x.STRING), x.E("knot", "knot", "types:Knot", head=True)))


@dataclass(slots=True, kw_only=True)
class Bow(Knot):
    """What stands for a knot."""

    __xml__ = _M.element("bow", substitutes="types:Knot")


@dataclass(slots=True, kw_only=True)
class Nothing(XmlObject):
    """Nothing can be in it."""

    __xml__ = _M.complex_type("Nothing")


_ALPHABET = "ab &<>\r\n\t]\u00e9\u0144\uf001\u3042\U0001f600\u0085\u00a0"
_TEXTS = st.text(_ALPHABET, max_size=6) | st.sampled_from(["", "plain", "\x00", "\ud800", "\uffff", "a" * 200])
_WORDS = st.builds(Words, one=_TEXTS, two=st.none() | _TEXTS, three=st.none() | _TEXTS)
_PAINTS = st.builds(
    Paint, value=st.sampled_from([*Colour, Colour("new"), "red"]), shade=st.sampled_from([None] * 9 + ["s"])
)
_NESTS = st.recursive(
    st.builds(Nest, words=st.lists(_WORDS, max_size=4)),
    lambda inner: st.builds(Nest, words=st.lists(_WORDS, max_size=2), nest=inner),
    max_leaves=3,
)
_KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    **{f"text{number}": (x.STRING, _TEXTS) for number in range(6)},
    "token": (x.TOKEN, _TEXTS),
    "flag": (x.BOOLEAN, st.booleans()),
    "small": (x.UNSIGNED_BYTE, st.integers(-2, 257)),
    "number": (x.INT, st.integers()),
    "endless": (x.INTEGER, st.integers() | st.just(10**5000)),
    "even": (x.simple(x.INT, pattern="[0-9]*[02468]"), st.integers(0, 9)),
    "text6": (x.STRING, _TEXTS),
    "price": (x.DECIMAL, st.decimals() | st.integers()),
    "share": (x.DOUBLE, st.floats()),
    "moment": (x.DATE_TIME, st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.timezones())),
    "day": (x.DATE, st.dates()),
    "colour": (x.enum("types:Colour"), st.sampled_from([*Colour, Colour("n<w"), "red"])),
    "either": (x.union(x.INT, x.simple(x.STRING, max_length=2)), st.integers() | _TEXTS),
    "numbers": (x.list_of(x.INT), st.lists(st.integers(0, 3), max_size=2)),
    "words": ("types:Words", _WORDS | st.builds(MoreWords, one=_TEXTS)),
    "pair": ("types:Pair", st.builds(Pair, left=st.none() | _TEXTS, right=st.none() | _TEXTS)),
    "paint": ("types:Paint", _PAINTS),
    "label": ("types:Label", st.builds(Label, value=_TEXTS)),
    "nest": ("types:Nest", _NESTS),
    "strict": (
        "types:Strict",
        st.builds(Strict, words=_WORDS, some=st.lists(_WORDS, max_size=3), colour=st.just("red")),
    ),
}
_LISTS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "all_texts": (x.STRING, _TEXTS),
    "all_words": ("types:Words", _WORDS),
    "all_paints": ("types:Paint", _PAINTS),
    "all_colours": (x.enum("types:Colour"), st.sampled_from(Colour)),
    "all_days": (x.DATE, st.dates()),
}

Kinds: Any = dataclass(slots=True, kw_only=True)(
    type(
        "Kinds",
        (XmlObject,),
        {
            "__doc__": "A field of each kind.",
            "__annotations__": {
                "must": Any, **dict.fromkeys(_KINDS, Any), **dict.fromkeys(_LISTS, Any), "any_": Any
            },
            "must": "",
            **dict.fromkeys(_KINDS),
            **dict.fromkeys(_LISTS),
            "any_": None,
            "__xml__": _M.element(
                "kinds",
                (
                    x.E("must", "must", x.STRING, min=1),
                    *(x.E(name, name, kind) for name, (kind, _) in _KINDS.items()),
                    *(x.E(name, f"{name}-\u00fc", kind, max=None) for name, (kind, _) in _LISTS.items()),
                    x.ANY("any_"),
                ),
            ),
        },
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def kinds() -> Any:
    """An object that has everything."""
    module = ModuleType(f"{_PACKAGE}.types")
    for cls in (Colour, Words, MoreWords, Pair, Paint, Label, Nest, MoreNest, Nothing, Knot, Bow, Strict, Kinds):
        setattr(module, cls.__name__, cls)
    sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
    sys.modules[module.__name__] = module
    words = [Words(one="1", two="2", three="3")]
    plain: dict[str, Any] = {
        **{name: "text" for name, (kind, _) in _KINDS.items() if kind in (x.STRING, x.TOKEN)},
        "flag": True, "small": 1, "number": -1, "endless": 10**30, "even": 2, "price": Decimal("1.50"), "share": 0.5,
        "moment": dt.datetime(2026, 1, 1, 12, 0, 0, 500, tzinfo=dt.UTC), "day": dt.date(2026, 1, 1),
        "colour": Colour.BOTH, "either": "ab", "numbers": [1, 2], "words": words[0], "pair": Pair(left="l"),
        "paint": Paint(value=Colour.RED), "label": Label(value=""), "nest": Nest(words=words, nest=Nest(words=words)),
        "strict": Strict(words=words[0], some=words, colour=Colour.RED),
        "all_texts": ["a", ""], "all_words": words, "all_paints": [Paint(value=Colour.BLUE)],
        "all_colours": list(Colour), "all_days": [dt.date(2026, 1, 1)], "any_": [],
    }  # fmt: skip
    return Kinds(must="x", **plain)


def test_an_object_with_everything(kinds: Any, both: Callable[[Any], tuple[Any, Any]]) -> None:
    natively, in_python = both(kinds)
    assert natively == in_python
    assert x.decode(natively[1], Kinds) == dataclasses.replace(kinds, any_=None)


_PLAIN = (
    "",
    "plain",
    "a" * 100,
    "\u00e9",
    "\u0144 \U0001f600",
    "\u0085",
    "\u00a0",
    "\ud7ff",
    "\uf001",
    "]]>",
    "\n\t",
    *"&<>\r",
)
_FORBIDDEN = ("\x00", "\x1f", "\x0b", "\ud800", "\udfff", "\ufffe", "\uffff")
_OTHERS = (0, True, 1.5, b"bytes", [], ["text"], ("text",), {}, NIL, object(), Loud("loud"), Mode.ON, Label(value="x"))
_PLACES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "must": lambda value: {"must": value},
    "first of a run": lambda value: {"text0": value},
    "last of a run": lambda value: {"text3": value},
    "after a run": lambda value: {"text5": value},
    "alone": lambda value: {"text6": value},
    "token": lambda value: {"token": value},
    "required, in a small class": lambda value: {"words": Words(one=value, two="2")},
    "optional, in a small class": lambda value: {"words": Words(one="1", three=value)},
    "in a class of texts": lambda value: {"pair": Pair(left=value)},
    "simple content": lambda value: {"label": Label(value=value)},
    "in a list of a class": lambda value: {"nest": Nest(words=[Words(one="1"), Words(one="1", two=value)])},
    "in a list": lambda value: {"all_texts": ["a", value]},
    "in a list of objects": lambda value: {"all_words": [Words(one=value), Words(one="2")]},
    "in a derived class": lambda value: {"words": MoreWords(one="1", four=value)},
}


@pytest.mark.parametrize("place", _PLACES)
def test_texts_in_every_place(place: str, kinds: Any, both: Callable[[Any], tuple[Any, Any]]) -> None:
    for value in (*_PLAIN, *_FORBIDDEN, *_OTHERS):
        natively, in_python = both(dataclasses.replace(kinds, **_PLACES[place](value)))
        assert natively == in_python, value
        assert natively[0] == "error" or value not in _FORBIDDEN
        assert natively[0] == "bytes" or value not in _PLAIN


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("flag", [True, False, None], [0, 1, "true"]),
        ("small", [0, 255], [-1, 256, True, 1.0, "1"]),
        ("number", [-(2**31), 0, 2**31 - 1], [-(2**31) - 1, 2**31, False]),
        ("endless", [0, -(10**40)], [10**5000, 1.0]),
        ("even", [2, 12], [1, -2]),
        ("moment", [dt.datetime(1, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 10, tzinfo=dt.UTC)], [dt.date(2026, 1, 1)]),
        ("moment", [dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(minutes=m))) for m in (0, -90, 60)], ["x"]),
        ("day", [dt.date(1, 1, 1)], [dt.datetime(2026, 1, 1), "2026-01-01"]),
        ("colour", ["red", Colour("n<w"), Colour("\u0144"), Colour("")], ["new", Mode.ON, Colour("\x00")]),
        ("either", [1, "ab", "&"], ["abc", 1.0]),
        ("paint", [Paint(value=Colour.BLUE, shade="<")], [Paint(), Paint(value=1), Label(value="red")]),
        (
            "nest",
            [Nest(words=[Words(one="1")] * 3), Nest(words=None)],
            [Nest(words=[Words(one="1")] * 4), Nest(words=[1])],
        ),
        ("strict", [Strict(words=Words(one=""), some=(Words(one="1"),), colour=Colour.RED)], [Strict()]),
        ("strict", [None], [Strict(words=Words(one=""), some=[Words(one="")], colour=None)]),
        ("strict", [None], [Strict(words=Words(one=""), some=[Words(one="")] * n, colour="red") for n in (0, 3)]),
        ("strict", [None], [Strict(words=None, some=[Words(one="")], colour="red"), Strict(words=Words(one=""))]),
        ("all_colours", [[], (), [Colour.BOTH], None], ["red", [None], [NIL]]),
        ("any_", [[], (), None, [RawXml(b"<v xmlns='urn:v'/>")]], ["", 0, {}, [None]]),
    ],
)
def test_what_is_right_and_what_is_wrong(
    name: str, right: list[Any], wrong: list[Any], kinds: Any, both: Callable[[Any], tuple[Any, Any]]
) -> None:
    for value in (*right, *wrong):
        natively, in_python = both(dataclasses.replace(kinds, **{name: value}))
        assert natively == in_python, value
        assert natively[0] == ("bytes" if any(value is one for one in right) else "error"), value


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_the_fields_hold(kinds: Any, both: Callable[[Any], tuple[Any, Any]], data: st.DataObject) -> None:
    strange = st.sampled_from(_OTHERS)
    changed = data.draw(
        st.lists(st.sampled_from(["must", *_KINDS, *_LISTS, "any_"]), min_size=1, max_size=5, unique=True)
    )
    values: dict[str, Any] = {}
    for name in changed:
        if name in _KINDS:
            likely = st.none() | _KINDS[name][1]
        else:
            item = _LISTS[name][1] if name in _LISTS else _TEXTS
            likely = _TEXTS if name == "must" else st.lists(item | item | item | strange, max_size=3)
        values[name] = data.draw(likely | likely | likely | strange)
    natively, in_python = both(dataclasses.replace(kinds, **values))
    assert natively == in_python


def test_long_objects_beside_texts(kinds: Any, c: ModuleType, both: Callable[[Any], tuple[Any, Any]]) -> None:
    long = dataclasses.replace(kinds, text0="\u0144" * 3000)
    for wrong in ("\x00", "\ud800", "\uffff"):
        bad = dataclasses.replace(long, text6=wrong)
        for content in (["a", long, "\u00e5", kinds], [long, wrong], [long, bad], [bad, long]):
            natively, in_python = both(c.Paragraph(content=content))
            assert natively == in_python
            assert natively[0] == ("error" if wrong in content or bad in content else "bytes")
        writer = Writer()
        writer.root(long)
        writer.root(bad)
        with pytest.raises(EncodeError, match=r"Kinds\.text6: character U\+"):
            writer.content()


def test_objects_that_hold_nothing_in_a_list(kinds: Any, both: Callable[[Any], tuple[Any, Any]]) -> None:
    for count in (1, 2, 3):
        nest = MoreNest(nothing=[Nothing() for _ in range(count)])
        natively, in_python = both(dataclasses.replace(kinds, nest=nest))
        assert natively == in_python
        assert natively[1].count(b"<kinds:nothing/>") == count


@pytest.mark.parametrize("wrong", [1, "\x00"])
@pytest.mark.usefixtures("kinds")
def test_what_is_wrong_is_looked_for_once_however_deep(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    real = Writer._object
    monkeypatch.setattr(Writer, "_object", lambda *given: (written.append(given[1]), real(*given))[1])
    knot = Bow(text=wrong)
    for _ in range(12):
        knot = Bow(knot=knot)
    with pytest.raises(EncodeError, match=r"Bow\.knot\.knot"):
        x.encode(knot)
    assert len(written) < 100
