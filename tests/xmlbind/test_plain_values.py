"""Objects as plain values: what each kind of value becomes, and what is said of values that do not fit."""

from __future__ import annotations

import datetime as dt
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, DecodeError, EncodeError
from mtosi_jms.stubs.fmw.hdr import Header, MessageTypeType
from mtosi_jms.stubs.fmw.nam import NamingAttributeType, RelativeDistinguishNameType, name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import NIL, Nil, RawXml, XmlObject, decode

from .conftest import doc

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
