"""Names from XML to Python."""

from __future__ import annotations

import itertools
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_codegen.text import camel, constant, escaped, fallbacks, identifier, snake


@pytest.mark.parametrize(
    ("xml", "python"),
    [
        ("meList", "me_list"),
        ("subscriptionID", "subscription_id"),
        ("aTNAName", "a_tna_name"),
        ("replyToURI", "reply_to_uri"),
        ("failureReplytoURI", "failure_replyto_uri"),
        ("m3100.AlarmStatus", "m3100_alarm_status"),
        ("eq-inv", "eq_inv"),
        ("partialSNCs", "partial_sncs"),
        ("getAllMLSNPPLinksWithTNAs", "get_all_mlsnpp_links_with_tnas"),
        ("MultiLayerSNPPLinkRetrieval", "multi_layer_snpp_link_retrieval"),
        ("from", "from_"),
        ("None", "none"),
        ("3rdParty", "n3rd_party"),
        ("_hidden", "hidden"),
        ("x__y", "x_y"),
        ("Größe", "größe"),
        ("", "x"),
        ("...", "x"),
    ],
)
def test_snake_case(xml: str, python: str) -> None:
    assert snake(xml) == python


@pytest.mark.parametrize(
    ("xml", "python"),
    [
        (("ManagedElementType",), "ManagedElementType"),
        (("me",), "Me"),
        (("InventoryDataType", "mdList"), "InventoryDataTypeMdList"),
        (("M3100.ArcQIStatusType",), "M3100ArcQIStatusType"),
        (("eq-inv",), "EqInv"),
        (("none",), "None_"),
        (("2",), "n2"),
    ],
)
def test_camel_case(xml: tuple[str, ...], python: str) -> None:
    assert camel(*xml) == python


@pytest.mark.parametrize(
    ("value", "member"),
    [
        ("CS_AVAILABLE", "CS_AVAILABLE"),
        ("SimpleResponse", "SimpleResponse"),
        ("http://www.w3.org/TR/xpath", "http_www_w3_org_TR_xpath"),
        ("ANSI-92", "ANSI_92"),
        ("EFFORT_SAME ", "EFFORT_SAME"),
        ("10", "n10"),
        ("", "EMPTY"),
        ("+", "x2b_"),
        ("class", "class_"),
    ],
)
def test_enumeration_members(value: str, member: str) -> None:
    assert constant(value) == member


@given(st.text())
def test_every_name_is_an_identifier_and_no_keyword(text: str) -> None:
    for name in (snake(text), camel(text), constant(text), escaped(text), identifier(text)):
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not name.startswith("_")


@given(st.text(alphabet="abAB_.-", min_size=1), st.text(alphabet="abAB_.-", min_size=1))
def test_escaped_names_tell_xml_names_apart(one: str, other: str) -> None:
    stripped = one.lstrip("_"), other.lstrip("_")
    if one != other and stripped == (one, other):
        assert escaped(one) != escaped(other)


def test_fallbacks_never_end() -> None:
    names = list(itertools.islice(fallbacks("a-b", "a_b"), 5))
    assert names[0] == "a_b"
    assert "a_x2d_b" in names
    assert len(set(names)) >= 4
