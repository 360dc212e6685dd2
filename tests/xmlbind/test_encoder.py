"""What must not be sent is refused with the path of what is at fault; what is written is safe."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.errors import EncodeError
from mtosi_jms.stubs.fmw import hdr
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.xmlbind import NIL, RawXml, Writer

from .conftest import canonical


@pytest.fixture(autouse=True, params=["python", ""])
def way(request: pytest.FixtureRequest, cores: ModuleType) -> Iterator[None]:
    """Everything is written by the Python core, and by the one that runs."""
    with cores.core(request.param):
        yield


def _raw(text: str) -> RawXml:
    return RawXml(text.encode())


REFUSED: dict[str, tuple[Callable[[ModuleType, ModuleType], Any], str, str]] = {
    "missing-element": (lambda c, o: c.Team(lead=None, member=["a", "b"]), "Team.lead", "required"),
    "missing-deep": (
        lambda c, o: c.Drawing(part=[c.CircleType(id="1", radius=1), c.CircleType(id="2", radius=None)]),
        "Drawing.part[1].radius",
        "required",
    ),
    "missing-attribute": (lambda c, o: c.Drawing(circle=c.Circle(id=None, radius=1)), "Drawing.circle.id", "required"),
    "missing-text": (lambda c, o: c.Price(value=None), "Price.value", "required"),
    "missing-list": (lambda c, o: c.Team(lead="l"), "Team.member", "0 where 2 to 3 are needed"),
    "list-none": (lambda c, o: c.Team(lead="l", member=None), "Team.member", "required"),
    "too-few": (lambda c, o: c.Team(lead="l", member=["a"]), "Team.member", "1 where 2 to 3 are needed"),
    "too-many": (lambda c, o: c.Team(lead="l", member=["a"] * 4), "Team.member", "4 where 2 to 3 are needed"),
    "too-many-substitutes": (lambda c, o: c.History(event=[c.Started()] * 4), "History.event", "4 where 0 to 3"),
    "too-many-any": (lambda c, o: c.Foreign(any_=[_raw("<v xmlns='u'/>")] * 3), "Foreign.any_", "3 where 0 to 2"),
    "no-list": (lambda c, o: c.Leaves(many="abc"), "Leaves.many", "a list is needed, not str"),
    "generator": (lambda c, o: c.Leaves(many=(x for x in "ab")), "Leaves.many", "a list is needed, not generator"),
    "list-for-one": (lambda c, o: c.Leaves(string=["a"]), "Leaves.string", "a str is needed, not list"),
    "none-in-a-list": (lambda c, o: c.Leaves(many=["a", None]), "Leaves.many[1]", "a str is needed, not NoneType"),
    "int-for-string": (lambda c, o: c.Leaves(string=1), "Leaves.string", "a str is needed, not int"),
    "bytes-for-string": (lambda c, o: c.Leaves(string=b"a"), "Leaves.string", "a str is needed, not bytes"),
    "string-for-int": (lambda c, o: c.Leaves(int="1"), "Leaves.int", "an int is needed, not str"),
    "bool-for-int": (lambda c, o: c.Leaves(int=True), "Leaves.int", "an int is needed, not bool"),
    "int-for-bool": (lambda c, o: c.Leaves(flag=1), "Leaves.flag", "a bool is needed, not int"),
    "int-too-large": (lambda c, o: c.Leaves(int=2**31), "Leaves.int", "more than 2147483647"),
    "unsigned-negative": (lambda c, o: c.Leaves(unsigned=-1), "Leaves.unsigned", "less than 0"),
    "integer-endless": (lambda c, o: c.Leaves(integer=10**5000), "Leaves.integer", "no integer"),
    "decimal-infinite": (lambda c, o: c.Leaves(decimal=Decimal("Infinity")), "Leaves.decimal", "finite"),
    "float-for-decimal": (lambda c, o: c.Leaves(decimal=1.5), "Leaves.decimal", "a Decimal is needed, not float"),
    "double-too-large": (lambda c, o: c.Leaves(double=10**400), "Leaves.double", "no double"),
    "datetime-for-date": (
        lambda c, o: c.Leaves(day=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)), "Leaves.day", "a date is needed",
    ),
    "date-for-datetime": (lambda c, o: c.Leaves(moment=dt.date(2026, 1, 1)), "Leaves.moment", "a datetime is needed"),
    "zone-of-seconds": (
        lambda c, o: c.Leaves(moment=dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=30)))),
        "Leaves.moment", "whole minutes",
    ),
    "zone-too-far": (
        lambda c, o: c.Leaves(moment=dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=15)))),
        "Leaves.moment", "at most 14:00",
    ),
    "duration-of-two-signs": (
        lambda c, o: c.Leaves(span=xmlbind.Duration(1, Decimal(-1))), "Leaves.span", "the same sign",
    ),
    "string-for-duration": (lambda c, o: c.Leaves(span="PT1S"), "Leaves.span", "a Duration is needed"),
    "string-for-bytes": (lambda c, o: c.Leaves(base64="abc"), "Leaves.base64", "bytes are needed, not str"),
    "float-for-hex": (lambda c, o: c.Leaves(hex=1.5), "Leaves.hex", "bytes are needed, not float"),
    "year-with-letters": (lambda c, o: c.Leaves(year="MMXXVI"), "Leaves.year", "does not match the pattern"),
    "no-ncname": (lambda c, o: c.Leaves(ncname="1a"), "Leaves.ncname", "does not match the pattern"),
    "unknown-enum": (lambda c, o: c.Leaves(colour="pink"), "Leaves.colour", "not a member of ColourType"),
    "member-of-another-enum": (
        lambda c, o: c.Leaves(colour=o.LevelType("low")), "Leaves.colour", "not a member of ColourType",
    ),
    "enum-in-a-list": (lambda c, o: c.Leaves(levels=["low", "lower"]), "Leaves.levels", "not a member of LevelType"),
    "string-for-a-list": (lambda c, o: c.Leaves(numbers="1 2"), "Leaves.numbers", "a list is needed, not str"),
    "item-of-a-list": (lambda c, o: c.Leaves(numbers=[1, "2"]), "Leaves.numbers", "an int is needed"),
    "union": (lambda c, o: c.Leaves(size=1.5), "Leaves.size", "none of the types of the union"),
    "pattern": (lambda c, o: c.Facets(pattern="ab12"), "Facets.pattern", "does not match the pattern"),
    "short": (lambda c, o: c.Facets(length="a"), "Facets.length", "shorter than 2"),
    "long": (lambda c, o: c.Facets(length="abcde"), "Facets.length", "longer than 4"),
    "below": (lambda c, o: c.Facets(range=0), "Facets.range", "less than 1"),
    "above": (lambda c, o: c.Facets(range=10), "Facets.range", "not below 10"),
    "digits": (lambda c, o: c.Facets(digits=Decimal("123.45")), "Facets.digits", "more than 4 digits"),
    "fraction": (lambda c, o: c.Facets(digits=Decimal("1.234")), "Facets.digits", "more than 2 digits after"),
    "early": (lambda c, o: c.Facets(after=dt.date(1999, 12, 31)), "Facets.after", "less than 2000-01-01"),
    "list-length": (lambda c, o: c.Facets(pair=[1]), "Facets.pair", "shorter than 2"),
    "two-alternatives": (lambda c, o: c.Route(road="1", rail="2"), "Route", "rail may not stand together with road"),
    "alternative-and-group": (lambda c, o: c.Route(road="1", port="2"), "Route", "may not stand together"),
    "no-alternative": (lambda c, o: c.Route(), "Route", "one of road, rail, port, ship is required"),
    "half-a-group": (lambda c, o: c.Route(ship="s"), "Route", "port is required"),
    "half-a-nested-group": (lambda c, o: c.Plan(start=[1], from_="a"), "Plan", "to is required"),
    "more-ends-than-starts": (lambda c, o: c.Plan(start=[1], end=[1, 2]), "Plan", "end"),
    "all-without-required": (lambda c, o: c.Settings(width=None, title="t"), "Settings.width", "required"),
    "exception-without-kind": (
        lambda c, o: __import__("mtosi_jms.stubs.mri.mer", fromlist=["x"]).GetManagedElementException(),
        "GetManagedElementException", "is required",
    ),
    "another-class": (lambda c, o: c.Drawing(circle=c.Team(lead="l")), "Drawing.circle", "Circle is needed, not Team"),
    "a-base-class": (
        lambda c, o: c.Drawing(part=[c.BoxType()]), "Drawing.part[0]", "ShapeType is needed, not BoxType",
    ),
    "name-as-text": (lambda c, o: Me(name="MD=1"), "Me.name", "write name(...) of mtosi_jms.stubs.fmw.nam"),
    "name-as-a-pair": (lambda c, o: Me(name=("MD", "1")), "Me.name", "write name(...) of mtosi_jms.stubs.fmw.nam"),
    "namesake": (
        lambda c, o: c.Drawing(circle=type("Circle", (), {"__module__": "elsewhere"})()), "Drawing.circle",
        "constructs.Circle is needed, not elsewhere.Circle",
    ),
    "no-class": (lambda c, o: c.Drawing(circle="round"), "Drawing.circle", "Circle is needed, not str"),
    "xml-for-an-object": (lambda c, o: c.Drawing(circle=_raw("<a/>")), "Drawing.circle", "not RawXml"),
    "abstract-type": (lambda c, o: c.Drawing(part=[c.ShapeType(id="1")]), "Drawing.part[0]", "ShapeType is abstract"),
    "abstract-element": (lambda c, o: c.History(event=[c.Event()]), "History.event[0]", "Event is abstract"),
    "abstract-root": (lambda c, o: c.Event(), "Event", "event is abstract"),
    "no-member-of-the-group": (lambda c, o: c.History(event=[c.Tree()]), "History.event[0]", "is needed, not Tree"),
    "element-for-another": (
        lambda c, o: Notify(topic="t", message=NotifyMessage(common_event_information=[Me()])),
        "Notify.message.common_event_information[0]", "is needed, not mtosi_jms.stubs.nrf.me.Me",
    ),
    "nil-not-nillable": (lambda c, o: c.Store(plain=NIL), "Store.plain", "nil where the schema does not allow it"),
    "nil-object-not-nillable": (lambda c, o: c.Store(strict=NIL), "Store.strict", "nil where"),
    "nil-in-a-wildcard": (lambda c, o: c.Foreign(any_=[NIL]), "Foreign.any_[0]", "nil where"),
    "wildcard-own-namespace": (lambda c, o: c.Foreign(any_=[c.Leaves()]), "Foreign.any_[0]", "##other"),
    "wildcard-not-listed": (lambda c, o: c.Listed(any_=[_raw("<v xmlns='u'/>")]), "Listed.any_[0]", "urn:test:other"),
    "wildcard-text": (lambda c, o: c.Foreign(any_=["<a/>"]), "Foreign.any_[0]", "RawXml or an element's object"),
    "wildcard-type": (lambda c, o: c.Paragraph(content=[c.CircleType(id="1", radius=1)]), "Paragraph.content[0]",
                      "CircleType is a type"),
    "mixed-number": (lambda c, o: c.Paragraph(content=["a", 1]), "Paragraph.content[1]", "RawXml or an element's"),
    "mixed-text": (lambda c, o: c.Paragraph(content="abc"), "Paragraph.content", "a list is needed"),
    "any-type-text": (lambda c, o: c.Holder(content="x"), "Holder.content", "RawXml is needed, not str"),
    "any-type-other-name": (lambda c, o: c.Holder(content=_raw("<x/>")), "Holder.content", "RawXml of"),
    "attribute-type": (lambda c, o: c.Tagged(number="1"), "Tagged.number", "an int is needed, not str"),
    "simple-content": (lambda c, o: c.Price(value="1"), "Price.value", "a Decimal is needed, not str"),
    "control-character": (lambda c, o: c.Leaves(string="a\0"), "Leaves.string", "U+0000 is not allowed"),
    "control-character-in-a-list": (lambda c, o: c.Leaves(many=["a", "\x1b"]), "Leaves.many[1]", "U+001B"),
    "surrogate": (lambda c, o: c.Leaves(string="\ud800"), "Leaves.string", "U+D800"),
    "no-character": (lambda c, o: c.Tagged(number=1, mark="\uffff"), "Tagged.mark", "U+FFFF"),
    "control-character-deep": (
        lambda c, o: c.Tree(node=[c.NodeType(), c.NodeType(name="\x08")]), "Tree.node[1].name", "U+0008",
    ),
    "control-character-in-mixed": (lambda c, o: c.Paragraph(content=["\x01"]), "Paragraph.content[0]", "U+0001"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, c: ModuleType, o: ModuleType) -> None:
    make, path, message = REFUSED[name]
    with pytest.raises(EncodeError) as caught:
        xmlbind.encode(make(c, o))
    assert caught.value.path == path
    assert message in caught.value.message
    assert str(caught.value) == f"{path}: {caught.value.message}"
    assert isinstance(caught.value, ValueError)


def test_no_class_of_a_package() -> None:
    for value in (object(), "text", None, 1, NIL):
        with pytest.raises(EncodeError, match="not a class of a generated package"):
            xmlbind.encode(value)


def test_a_type_is_no_document(c: ModuleType) -> None:
    with pytest.raises(EncodeError, match="CircleType is a type"):
        xmlbind.encode(c.CircleType(id="1", radius=1))


def test_an_object_that_holds_itself(c: ModuleType) -> None:
    node = c.NodeType()
    node.node = [node]
    with pytest.raises(EncodeError, match="holds itself"):
        xmlbind.encode(c.Tree(node=[node]))


def test_deep_objects_are_written_or_refused(c: ModuleType) -> None:
    tree = c.Tree()
    leaf = tree
    for _ in range(100):
        leaf.node = [c.NodeType()]
        leaf = leaf.node[0]
    assert xmlbind.decode(xmlbind.encode(tree)) == tree
    for _ in range(100_000):
        leaf.node = [c.NodeType()]
        leaf = leaf.node[0]
    with pytest.raises(EncodeError, match="nested too deep"):
        xmlbind.encode(tree)
    while tree.node:  # taken apart from the top: Python would free it recursively
        tree = tree.node.pop()


def test_a_refused_object_can_be_mended(c: ModuleType) -> None:
    team = c.Team(lead="l", member=["a"])
    with pytest.raises(EncodeError):
        xmlbind.encode(team)
    team.member.append("b")
    assert len(xmlbind.to_element(team)) == 3


def test_tuples_are_lists(c: ModuleType, o: ModuleType) -> None:
    assert len(xmlbind.to_element(c.Leaves(many=("a", "b")))) == 2
    assert xmlbind.to_element(c.Leaves(numbers=(1, 2)))[0].text == "1 2"
    assert len(xmlbind.to_element(c.Log(note=("a", "b"), count=(1,)))) == 3


def test_strings_of_other_types_are_strings(c: ModuleType, o: ModuleType) -> None:
    class Text(str):
        __slots__ = ()

    leaves = xmlbind.to_element(c.Leaves(string=Text("a"), token=o.LevelType("low"), colour="red"))
    assert [child.text for child in leaves] == ["a", "low", "red"]


def test_subclasses_of_users_are_their_base(c: ModuleType) -> None:
    class Mine(c.Team):  # type: ignore[name-defined,misc]
        __slots__ = ()

    assert canonical(xmlbind.encode(Mine(lead="l", member=["a", "b"]))) == canonical(
        xmlbind.encode(c.Team(lead="l", member=["a", "b"]))
    )


def test_all_namespaces_are_declared_once_at_the_root(c: ModuleType, o: ModuleType) -> None:
    data = xmlbind.encode(c.Foreign(any_=[o.Thing(name="a"), o.Thing(name="b")]))
    assert data.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<c:foreign xmlns:c="urn:test:constructs" ')
    assert data.count(b"xmlns:") == 2
    assert xmlbind.encode(Alarm()).count(b"xmlns:") >= 1


def test_namespaces_of_peers_get_prefixes_of_the_document_alone(read: Callable[..., Any]) -> None:
    from mtosi_jms.xmlbind import known_prefix

    for number in range(3):
        value = read(f"<c:leaves xmlns:q='urn:peer:{number}' q:a='1' q:b='2'/>").value
        assert etree.fromstring(xmlbind.encode(value)).get(f"{{urn:peer:{number}}}a") == "1"
        assert known_prefix(f"urn:peer:{number}") is None


def test_an_attribute_that_would_break_out(read: Callable[..., Any]) -> None:
    value = read("""<c:leaves a='"&gt;&lt;x/&gt;&amp;&#10;&#9;&#13;'/>""").value
    assert etree.fromstring(xmlbind.encode(value)).get("a") == '"><x/>&\n\t\r'


def test_a_writer_holds_several_objects(c: ModuleType) -> None:
    writer = Writer()
    writer.root(c.Leaves(string="1"))
    writer.root(_raw("<v xmlns='u'/>"))
    writer.root(hdr.Header())
    text = f"<w{writer.names.declarations()}>{writer.content().decode()}</w>"
    assert [etree.QName(child).localname for child in etree.fromstring(text)] == ["leaves", "v", "header"]


def test_raw_xml_is_written_as_it_is() -> None:
    raw = _raw('<v:a xmlns:v="urn:v" b="&lt;">x</v:a>')
    assert xmlbind.encode(raw) == b'<?xml version="1.0" encoding="UTF-8"?>\n' + raw.xml
    assert xmlbind.to_element(raw).text == "x"


def test_an_element_of_an_object_has_no_bounds() -> None:
    """What an application made is not a document of a stranger's: limits on size and attributes are not for it."""
    crowded = etree.Element("x", {f"a{number}": "y" for number in range(1_500)})
    assert len(xmlbind.to_element(xmlbind.RawXml.from_element(crowded)).attrib) == 1_500
