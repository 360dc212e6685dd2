"""What objects hold: names, kept XML, nil, enumerations; and what two threads may do at once."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.errors import ConfigError, DecodeError, EncodeError, ForbiddenXmlError, MalformedXmlError
from mtosi_jms.stubs.fmw import hdr
from mtosi_jms.stubs.fmw.hdr import Header, MessageTypeType
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, RelativeDistinguishNameType, name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import (
    NIL,
    Nil,
    RawXml,
    XmlObject,
    decode,
    escape_name_part,
    find_element,
    known_prefix,
    register_package,
    registered_packages,
)
from mtosi_jms.xmlbind import _registry as registry
from mtosi_jms.xmlbind._registry import prefix_for

from .conftest import doc

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KINDS = TEXTS.filter(bool)


def _name(parts: list[tuple[str, str]]) -> NamingAttributeType:
    return NamingAttributeType(rdn=[RelativeDistinguishNameType(type=kind, value=value) for kind, value in parts])


def test_names_are_written_as_people_write_them() -> None:
    assert str(_name([("MD", "EMS1"), ("ME", "NE-7")])) == "MD=EMS1/ME=NE-7"
    assert str(_name([("PTP", "/rack=1%")])) == "PTP=%2Frack%3D1%25"
    assert name("a=%2f%3d%25").rdn[0].value == "/=%"
    assert escape_name_part(None) == ""


def test_a_name_without_parts_is_no_text() -> None:
    """A peer may send one: it must not fail where it is shown or compared."""
    empty = NamingAttributeType(rdn=[])
    assert (str(empty), hash(empty), empty < NamingAttributeType.parse("MD=a")) == ("", hash(""), True)


TYPES = st.sampled_from(["MD", "ME", "EH", "PTP", "CTP", "rack", "Slot", "XX", "ehNm"])
PLACES = st.sampled_from(["", "/", "/rack=1", "/rack=1/shelf=2", "/XX=1/ME=2", "a=b", "%2F", "%00", "=/", "a/b=c"])


@given(st.lists(st.tuples(TYPES, TEXTS | PLACES), min_size=1, max_size=5))
def test_names_of_any_values_come_from_pairs_and_survive_their_text(parts: list[tuple[str, str]]) -> None:
    made = name(*parts)
    assert [(part.type, part.value) for part in made.rdn] == parts
    again = name(str(made))
    assert (again, hash(again), str(again)) == (made, hash(made), str(made))
    if all(value for _, value in parts):
        assert str(made) == "/".join(f"{kind}={escape_name_part(value)}" for kind, value in parts)


@pytest.mark.obligation("GEN4")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("MD=E/ME=N/PTP=/rack=1/shelf=1", [("MD", "E"), ("ME", "N"), ("PTP", "/rack=1/shelf=1")]),
        ("EH=/rack=1/EQ=2", [("EH", "/rack=1"), ("EQ", "2")]),
        (
            "PTP=/rack=1/shelf=a%2Fb/CTP=/sts3c_au4-j=1/vt2=2",
            [("PTP", "/rack=1/shelf=a/b"), ("CTP", "/sts3c_au4-j=1/vt2=2")],
        ),
        ("ME=/CTP=x", [("ME", ""), ("CTP", "x")]),
        ("ME=a=b/EQ=c=d", [("ME", "a=b"), ("EQ", "c=d")]),
        ("rack=1/shelf=2", [("rack", "1"), ("shelf", "2")]),
        ("PTP=%00/rack=1", [("PTP", ""), ("rack", "1")]),
    ],
)
def test_places_of_ports_as_people_write_them(text: str, parts: list[tuple[str, str]]) -> None:
    made = name(text)
    assert made == _name(parts) == name(str(made))


@pytest.mark.obligation("GEN4")
@pytest.mark.parametrize(
    "text",
    [
        "PTP=/Rack=1",  # neither a type nor a step of a place
        "PTP=/XX=1/YY=2",
        "PTP=/rack=1/Slot=2",
        "XPORT=/rack=1",  # a vendor's type
        "PTP=rack=1/shelf=2",
        "PTP=/rack=1/",
        "PTP=/rack/shelf",
    ],
)
def test_a_text_that_can_be_read_in_two_ways_says_how_to_write_it(text: str) -> None:
    with pytest.raises(EncodeError, match=r"%2F.*pairs: name\(\("):
        name(f"MD=E/ME=N/{text}")


@pytest.mark.parametrize(
    "parts", [[("MD",)], [("", "x")], [("MD", 1)], [("MD", None)], ["MD=E", ("ME", "N")], [("MD", "E"), "ME=N"], [None]]
)
def test_pairs_that_are_no_part_of_a_name(parts: list[Any]) -> None:
    with pytest.raises(EncodeError, match="name is"):
        name(*parts)


@pytest.mark.parametrize(
    "text", ["", "ME", "=x", "ME=1/", "/ME=1", "ME=1//EQ=2", "ME=%", "ME=%2", "ME=%zz", "ME=%\n", "ME=a%41"]
)
def test_texts_that_are_no_name(text: str) -> None:
    with pytest.raises(EncodeError):
        name(text)


def test_kept_xml_is_equal_by_its_canonical_form() -> None:
    one = RawXml(b'<v:a xmlns:v="urn:v" xmlns:w="urn:w" b="1"  a="2"><!-- c --></v:a>')
    two = RawXml(b"<?xml version='1.0'?>\n<v:a a='2' b='1' xmlns:v='urn:v'></v:a>")
    assert one == two
    assert hash(one) == hash(two)
    assert one != RawXml(b'<v:a xmlns:v="urn:v" a="2"/>')
    assert one != one.xml
    assert min([RawXml(b"<b/>"), RawXml(b"<a/>")]).tag == "a"
    with pytest.raises(TypeError):
        assert one < one.xml  # type: ignore[operator]


def test_kept_xml_stands_for_itself() -> None:
    root = etree.fromstring(
        '<w xmlns="urn:d" xmlns:p="urn:p" xmlns:q="urn:q" xmlns:r="urn:r" xmlns:s="urn:s" xmlns:t="urn:t">'
        '<a k="p:x"><b>q:y r:z</b><c/>/s:path[1]</a>tail</w>'
    )
    kept = RawXml.from_element(root[0])
    alone = etree.fromstring(kept.xml)
    assert {prefix: alone.nsmap.get(prefix) or alone[0].nsmap.get(prefix) for prefix in "pqrs"} == {
        "p": "urn:p", "q": "urn:q", "r": "urn:r", "s": "urn:s",
    }  # fmt: skip
    assert alone.tag == "{urn:d}a"
    assert b"urn:t" not in kept.xml
    assert b"tail" not in kept.xml
    assert kept.text == "q:y r:z/s:path[1]"


def test_kept_xml_survives_copies_and_shows_no_content() -> None:
    raw = RawXml(b'<v:a xmlns:v="urn:v">hunter2</v:a>')
    for twin in (copy.copy(raw), copy.deepcopy(raw), pickle.loads(pickle.dumps(raw))):
        assert (twin, twin.tag, twin.element().text) == (raw, "{urn:v}a", "hunter2")
    assert "hunter2" not in repr(raw)
    assert "{urn:v}a" in repr(raw)


@pytest.mark.parametrize("text", [b"", b"no xml", b"<a>", b"<a/><b/>"])
def test_kept_xml_must_be_xml(text: bytes) -> None:
    with pytest.raises(MalformedXmlError):
        RawXml(text)


def test_kept_xml_of_any_size_can_be_parsed_again() -> None:
    limits = xmlbind.XmlLimits(huge=True, max_depth=1000)
    deep = xmlbind.parse_xml("<a>" * 600 + "x" * 11_000_000 + "</a>" * 600, limits=limits)
    kept = RawXml.from_element(deep)
    assert len(pickle.loads(pickle.dumps(kept)).text) == 11_000_000


def test_nil() -> None:
    assert not NIL
    assert repr(NIL) == "NIL"
    assert Nil() == NIL == Nil(text="1")
    assert Nil({"a": "b"}) != NIL
    assert repr(Nil({"a": "b"})) == "Nil({'a': 'b'})"
    assert pickle.loads(pickle.dumps(NIL)) == copy.deepcopy(NIL) == NIL


def test_enumerations(c: ModuleType) -> None:
    red, pink = c.ColourType("red"), c.ColourType("pink")
    assert (red, str(red), f"{red:>4}", repr(red)) == ("red", "red", " red", "ColourType('red')")
    assert (pink, str(pink), pink.value, pink.name, repr(pink)) == ("pink",) * 4 + ("ColourType('pink')",)
    assert {red: 1}["red"] == 1
    assert len({pink, c.ColourType("pink"), "pink"}) == 1
    for member in (red, pink):
        for twin in (copy.copy(member), copy.deepcopy(member), pickle.loads(pickle.dumps(member))):
            assert twin == member
            assert type(twin) is c.ColourType
            assert twin.is_known == member.is_known
    assert len(c.ColourType) == 3
    with pytest.raises(ValueError):
        c.ColourType(1)


def test_objects_show_their_fields_and_compare_all(c: ModuleType) -> None:
    team = c.Team(lead="l", member=["a", "b"])
    assert repr(team) == "Team(lead='l', member=['a', 'b'])"
    assert team != c.Team(lead="l", member=["a"])
    extra = xmlbind.decode(xmlbind.encode(team).replace(b"</c:team>", b"<c:x/></c:team>"))
    assert extra != team
    assert repr(extra) == repr(team)
    with pytest.raises(AttributeError):
        team.leader = "x"
    with pytest.raises(TypeError):
        c.Team("l", ["a", "b"])


def test_a_credential_shows_nowhere() -> None:
    header = hdr.Header(security="hunter2", security_type="password", correlation_id="1")
    assert "hunter2" not in repr(header)
    assert "password" in repr(header)
    read = xmlbind.decode(xmlbind.encode(header).replace(b">hunter2<", b"> hunter2 <"))
    assert read.security == " hunter2 "
    assert "hunter2" not in repr(read)
    assert read != hdr.Header(security="other", security_type="password", correlation_id="1")


@pytest.mark.parametrize(
    "inner",
    [
        "<hdr:security>hunter2<x/></hdr:security>",
        "<hdr:security a='b'>hunter2</hdr:security>",
        "<hdr:security>one</hdr:security><hdr:security>hunter2</hdr:security>",
        "<hdr:security xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true'>hunter2</hdr:security>",
        "<hdr:security>hunter2\x01</hdr:security>",
        "<hdr:security xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:type='secret'>hunter2</hdr:security>",
    ],
)
def test_a_credential_stands_in_no_warning_and_no_error(inner: str) -> None:
    xml = f'<hdr:header xmlns:hdr="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1">{inner}</hdr:header>'
    warnings: list[xmlbind.XmlWarning] = []
    shown = ""
    try:
        value = xmlbind.decode(xml, warnings=warnings)
        shown = f"{value!r} {value.extras}"
        xmlbind.decode(xml, strict=True)
    except xmlbind.MtosiFault.__mro__[1] as error:  # MtosiError
        shown += f"{error} {error!r} {error.__cause__}"
    assert "hunter2" not in shown + "".join(map(str, warnings))


def test_a_credential_stands_in_no_error_of_writing() -> None:
    with pytest.raises(EncodeError) as caught:
        xmlbind.encode(hdr.Header(security="hunter2\x00"))
    assert "hunter2" not in str(caught.value)
    assert caught.value.path == "Header.security"
    with pytest.raises(EncodeError) as caught:
        xmlbind.encode(hdr.Header(security=b"hunter2"))  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)


def _at_once(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:  # noqa: BLE001 - handed to the assertion
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_prefixes_are_given_once(package: str) -> None:
    spaces = [f"urn:prefix:{number}" for number in range(200)]
    found = _at_once(lambda _: [prefix_for(space, "pfx") for space in spaces])
    assert all(prefixes == found[0] for prefixes in found)
    assert len(set(found[0])) == 200
    assert known_prefix("urn:prefix:0") == "pfx"
    assert known_prefix("urn:prefix:unknown") is None
    assert prefix_for("http://www.w3.org/XML/1998/namespace") == "xml"


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Packages that a test makes up are not known after it: they are nowhere, and others would import them."""
    registered_packages()  # those of the checkout are
    known = registry._packages
    yield
    registry._packages = known


@pytest.mark.usefixtures("c", "forgotten")
def test_packages_may_come_while_others_are_asked(package: str, c: ModuleType) -> None:
    def work(number: int) -> Any:
        for turn in range(200):
            if number == 0:
                register_package(f"nowhere{turn}", {})
            elif find_element("{urn:test:constructs}leaves") is not c.Leaves:
                return turn
        return None

    assert _at_once(work) == [None] * 8


@pytest.mark.usefixtures("forgotten")
def test_a_damaged_package_is_a_config_error() -> None:
    register_package("mtosi_jms_no_such_package", {"urn:damaged": "types"})
    with pytest.raises(ConfigError, match=r"mtosi_jms_no_such_package\.types cannot be loaded"):
        find_element("{urn:damaged}x")


_FIRST_USE = """
import sys, threading
sys.setswitchinterval(1e-6)
from mtosi_jms import xmlbind
data = open(sys.argv[1], "rb").read()
barrier = threading.Barrier(12)
out = []
def work():
    barrier.wait()
    warnings = []
    value = xmlbind.decode(data, warnings=warnings)
    out.append((xmlbind.encode(value), [str(warning) for warning in warnings]))
threads = [threading.Thread(target=work) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(out), len({text for text, _ in out}), [found for _, found in out if found])
"""


def test_first_use_by_many_threads(tmp_path: Path, read: Callable[..., Any]) -> None:
    """Plans, enumerations, prefixes and modules are all made at first use: in a process that has used none of them."""
    event = (
        "<alm:alarm><ei:objectName><nam:rdn><nam:type>ME</nam:type><nam:value>1</nam:value></nam:rdn></ei:objectName>"
        "<alm:layerRate>LR_Ethernet</alm:layerRate><alm:probableCause><prc:probableCause>LOS</prc:probableCause>"
        "</alm:probableCause><alm:perceivedSeverity>MINOR</alm:perceivedSeverity></alm:alarm>"
    )
    xml = f"<notmsg:notify><notmsg:topic>t</notmsg:topic><notmsg:message>{event * 3}</notmsg:message></notmsg:notify>"
    file = tmp_path / "notify.xml"
    file.write_bytes(doc(xml))
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_USE, str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == ["12", "1", "[]"], done.stderr
    assert len(read(xml).value.message.common_event_information) == 3


@pytest.mark.parametrize("namespace", ["urn:v", "vendor.v1"])
@pytest.mark.parametrize("between", ["<!-- c -->", "<?p i?>", "<?p v:x?><!-- v:y -->"])
def test_kept_xml_of_another_parser_loses_comments_and_no_text(between: str, namespace: str) -> None:
    plain = f'<a xmlns:v="{namespace}"><b>one</b>two v:T<b>three</b> v:U</a>'
    dressed = (
        plain.replace("</b>", f"</b>{between}").replace("two", f"t{between}wo").replace("<b>", f"{between}<b>{between}")
    )
    kept = RawXml.from_element(etree.fromstring(dressed))
    assert kept.text == "onetwo v:Tthree v:U"
    assert kept.element().nsmap == {"v": namespace}
    assert kept == RawXml(plain.encode()) == RawXml(dressed.encode())


def test_kept_xml_does_not_depend_on_what_follows_it() -> None:
    root = etree.fromstring('<w xmlns:p="urn:p"><a>1</a> p:x<a>1</a></w>')
    assert RawXml.from_element(root[0]) == RawXml.from_element(root[1])


def test_kept_xml_is_of_an_element_without_references() -> None:
    root = etree.fromstring("<a><!-- c --><?p i?></a>")
    for node in root:
        with pytest.raises(MalformedXmlError, match="not an element"):
            RawXml.from_element(node)
    text = '<!DOCTYPE a [<!ENTITY e "x">]><a>1&e;2</a>'
    with pytest.raises(ForbiddenXmlError, match="entity"):
        RawXml.from_element(etree.fromstring(text, etree.XMLParser(resolve_entities=False)))


# Objects as plain values: what each kind of value becomes, and what is said of values that do not fit.

NAME = "MD=EMS1/ME=NE-7"


def test_text_and_numbers_stay_and_the_rest_is_text() -> None:
    header = Header(
        msg_type=MessageTypeType.REQUEST,
        requested_batch_size=5,
        batch_sequence_end_of_reply=False,
        timestamp=dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC),
    )
    assert header.to_dict() == {
        "msg_type": "REQUEST",
        "requested_batch_size": 5,
        "batch_sequence_end_of_reply": False,
        "timestamp": "2026-05-04T12:00:00Z",
    }


def test_names_are_text_unless_that_loses_something() -> None:
    plain = ManagedElementType(name=name(NAME), user_label="x").to_dict()
    assert plain == {"name": NAME, "user_label": "x"}
    half = ManagedElementType(name=NamingAttributeType(rdn=[RelativeDistinguishNameType(type="", value="7")]))
    assert half.to_dict() == {"name": {"rdn": [{"type": "", "value": "7"}]}}
    assert ManagedElementType.from_dict(half.to_dict()) == half


def test_nil_and_types_are_kept(c: ModuleType) -> None:
    kept = ManagedElementType(user_label=Nil({"{urn:v}why": "unknown"}, "1"))  # type: ignore[arg-type]
    assert kept.to_dict() == {"user_label": {"@nil": "1", "@attributes": {"{urn:v}why": "unknown"}}}
    again = ManagedElementType.from_dict(kept.to_dict())
    assert again == kept
    assert again.user_label.text == "1"  # type: ignore[union-attr]
    drawing = c.Drawing(circle=c.RingType(id="a", radius=2, hole=1))
    assert drawing.to_dict()["circle"]["@type"] == "{urn:test:constructs}RingType"
    assert c.Drawing.from_dict(drawing.to_dict()) == drawing


def test_what_the_schema_does_not_know_survives(c: ModuleType) -> None:
    xml = '<c:leaves new="1">stray<c:int> 07 </c:int><v:more>x</v:more>tail<c:flag>maybe</c:flag></c:leaves>'
    obj = decode(doc(xml))
    again = type(obj).from_dict(obj.to_dict())
    assert again == obj
    assert again.to_xml() == obj.to_xml()
    obj.int = 8  # the kept form of the old value speaks of nothing any more
    assert type(obj).from_dict(obj.to_dict()) == obj


@pytest.mark.parametrize(
    ("cls", "data", "path", "message"),
    [
        (Header, [], "Header", "a dict is needed, not list"),
        (Header, {"msgType": "REQUEST"}, "Header", "no field 'msgType'"),
        (Header, {"requested_batch_size": "many"}, "Header.requested_batch_size", "not an integer"),
        (Header, {"requested_batch_size": 1.5}, "Header.requested_batch_size", "an int is needed"),
        (Header, {"timestamp": 5}, "Header.timestamp", "a datetime is needed"),
        (Header, {"msg_type": 5}, "Header.msg_type", "text is needed"),
        (Header, {"sender_uri": {"a": 1}}, "Header.sender_uri", "a simple value is needed"),
        (Header, {"vendor_extensions": "x"}, "Header.vendor_extensions", "a dict is needed, not str"),
        (Header, {"vendor_extensions": {"any_": [{"@xml": "<a"}]}}, "Header.vendor_extensions.any_[0]", "no XML"),
        (Header, {"vendor_extensions": {"any_": [{"b": 1}]}}, "Header.vendor_extensions.any_[0]", "@element"),
        (Header, {"vendor_extensions": {"any_": [{"@element": 7}]}}, "Header.vendor_extensions.any_[0]", "text"),
        (Header, {"vendor_extensions": {"any_": {}}}, "Header.vendor_extensions.any_", "a list is needed"),
        (Header, {"@extras": {"leaves": [{"field": "priority"}]}}, "Header.@extras", "index"),
        (Header, {"@extras": {"leaves": [{"field": "no", "index": 0, "text": ""}]}}, "Header.@extras", "no"),
        (Header, {"@extras": {"texts": [["a"]]}}, "Header.@extras", "extras"),
        (Header, {"@extras": 5}, "Header.@extras", "a dict is needed"),
        (GetManagedElementRequest, {"me_ref": "NE-7"}, "GetManagedElementRequest.me_ref", "not a name of the form"),
        (GetManagedElementRequest, {"me_ref": 7}, "GetManagedElementRequest.me_ref", "a dict is needed, not int"),
        (GetManagedElementRequest, {"me_ref": {"rdn": [{}]}}, "GetManagedElementRequest.me_ref.rdn[0]", "not there"),
        (
            GetManagedElementResponse,
            {"me": {"@type": "{http://www.tmforum.org/mtop/fmw/xsd/nam/v1}NamingAttributeType", "rdn": []}},
            "GetManagedElementResponse.me",
            "ManagedElementType is needed",
        ),
    ],
)  # fmt: skip
def test_wrong_values_are_an_error_with_the_path(cls: Any, data: Any, path: str, message: str) -> None:
    with pytest.raises(DecodeError, match=message) as told:
        cls.from_dict(data)
    assert told.value.path == path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["rdn", "type", "value", "me_ref", "vendor_extensions", "any_", "timestamp", "property", "xml", "field",
             "index", "text", "after", "leaves", "texts", "elements", "order", "excused", "attributes",
             "@nil", "@xml", "@type", "@element", "@package", "@extras", "@attributes"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize("cls", [Header, GetManagedElementRequest, NamingAttributeType, ManagedElementType])
@given(data=JSON)
def test_any_plain_value_gives_an_object_or_a_decode_error(cls: type[XmlObject], data: Any) -> None:
    try:
        obj = cls.from_dict(data)
    except DecodeError:
        return
    assert isinstance(obj, cls)


def test_values_of_another_kind_are_an_error_with_the_path() -> None:
    wrong: Any = [GetManagedElementResponse(me=ManagedElementType(user_label=object())),  # type: ignore[arg-type]
                  GetManagedElementResponse(me="NE-7")]  # type: ignore[arg-type] # fmt: skip
    for obj, path in zip(wrong, ("me.user_label", "me"), strict=True):
        with pytest.raises(EncodeError) as told:
            obj.to_dict()
        assert told.value.path == path
    with pytest.raises(ConfigError, match="not a generated class"):
        XmlObject.from_dict({})


def test_a_type_has_no_document_of_its_own() -> None:
    assert GetManagedElementRequest(me_ref=name(NAME)).to_xml().startswith(b"<?xml")
    with pytest.raises(EncodeError, match="is a type"):
        name(NAME).to_xml()


def test_deep_and_circular_objects_are_an_error() -> None:
    holder = NamingAttributeType()
    holder.rdn.append(holder)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="nested too deep"):
        holder.to_dict()
    data: Any = {}
    for _ in range(10_000):
        data = {"rdn": [data]}
    with pytest.raises(DecodeError):
        NamingAttributeType.from_dict(data)


def test_names_are_keys_and_have_an_order() -> None:
    names = [name(f"MD=EMS1/ME={number}") for number in (3, 1, 2)]
    assert [str(one) for one in sorted(names)] == ["MD=EMS1/ME=1", "MD=EMS1/ME=2", "MD=EMS1/ME=3"]
    assert {name(NAME): 1}[name(NAME)] == 1
    assert len({name(NAME), name(NAME), name("MD=EMS1")}) == 2
    assert name("MD=EMS1") < name(NAME) <= name(NAME) > name("MD=A/ME=1")
    assert f"{name(NAME):>20}|{name(NAME)}" == f"{NAME:>20}|{NAME}"
    with pytest.raises(TypeError):
        assert name(NAME) < NAME


def test_xml_and_nil_in_lists() -> None:
    header = Header(vendor_extensions=None)
    header.vendor_extensions = type(header).__xml__.field("vendor_extensions").table().cls(any_=[RawXml(b"<v/>")])
    assert header.to_dict() == {"vendor_extensions": {"any_": [{"@xml": "<v></v>"}]}}
    assert Header.from_dict(header.to_dict()) == header
    assert Nil() == NIL
