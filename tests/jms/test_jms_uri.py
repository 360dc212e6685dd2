"""JMS URIs after RFC 6167: both directions, what a wrong one says, and that parameters stay unseen."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import MtosiError, NamingError
from mtosi_jms.jms import FrozenMap, JmsUri, NamingContext, Queue, Topic, is_jms_uri, shown
from mtosi_jms.jms.message import DeliveryMode

pytestmark = pytest.mark.obligation("C42")

CASES = [
    ("jms:queue:MTOSI.EMS", JmsUri("queue", "MTOSI.EMS")),
    ("jms:topic:Fault%20Topic", JmsUri("topic", "Fault Topic")),
    ("jms:jndi:jms/EmsOS", JmsUri("jndi", "jms/EmsOS")),
    ("jms:vnd.example.ex:X:Y", JmsUri("vnd.example.ex", "X:Y")),
    ("jms:queue:%2Fa%3Fb%25%23%C3%9C", JmsUri("queue", "/a?b%#Ü")),
    (
        "jms:queue:Q?timeToLive=1000&priority=2",
        JmsUri("queue", "Q", FrozenMap({"timeToLive": "1000", "priority": "2"})),
    ),
    ("jms:jndi:Q?jndiURL=file%3A%2FC%3A%2FA", JmsUri("jndi", "Q", FrozenMap({"jndiURL": "file:/C:/A"}))),
    ("jms:queue:Q?x=&y=%26%3D", JmsUri("queue", "Q", FrozenMap({"x": "", "y": "&="}))),
]


@pytest.mark.parametrize(("text", "uri"), CASES)
def test_a_uri_reads_and_writes(text: str, uri: JmsUri) -> None:
    assert JmsUri.parse(text) == uri
    assert str(uri) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("JMS:Queue:Q", "jms:queue:Q"),
        (" jms:topic:T\n", "jms:topic:T"),
        ("jms:jndi:Q?jndiURL=file:/C:/A", "jms:jndi:Q?jndiURL=file%3A%2FC%3A%2FA"),
        ("jms:queue:Q?priority=1&priority=7", "jms:queue:Q?priority=7"),
    ],
)
def test_what_others_write_is_read(text: str, same: str) -> None:
    assert str(JmsUri.parse(text)) == same


def test_the_parameters_are_typed() -> None:
    uri = JmsUri.parse(
        "jms:jndi:jms/EmsOS?deliveryMode=PERSISTENT&timeToLive=60000&priority=6&replyToName=jms/OS"
        "&jndiConnectionFactoryName=jms/CF&jndiInitialContextFactory=com.example.F&jndiURL=ldap://host&selector=a"
    )
    assert (uri.delivery_mode, uri.time_to_live_ms, uri.priority) == (DeliveryMode.PERSISTENT, 60000, 6)
    assert (uri.reply_to, uri.connection_factory, uri.destination) == ("jms/OS", "jms/CF", None)
    assert uri.parameters["jndiInitialContextFactory"] == "com.example.F"
    assert uri.parameters["selector"] == "a", "kept"
    plain = JmsUri.parse("jms:topic:T")
    found = (plain.delivery_mode, plain.time_to_live_ms, plain.priority, plain.reply_to, plain.connection_factory)
    assert found == (None,) * 5
    assert plain.destination == Topic("T")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("jms:queue:Q?replyToName=R", "queue:R"),
        ("jms:topic:T?replyToName=R", "queue:R"),
        ("jms:queue:Q?topicReplyToName=R", "topic:R"),
        ("jms:jndi:jms/Q?replyToName=jms/R", "jms/R"),
        ("jms:jndi:jms/Q?topicReplyToName=R", None),
    ],
)
def test_a_reply_name_is_of_the_kind_that_the_variant_says(text: str, name: str | None) -> None:
    assert JmsUri.parse(text).reply_to == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "reads jms:queue:X"),
        ("queue:X", "reads jms:queue:X"),
        ("jms:X", "reads jms:queue:X"),
        ("jms://host/X", "reads jms:queue:X"),
        ("jms:queue:", "names a destination"),
        ("jms:queue:a%zz", "percent"),
        ("jms:queue:%ff", "UTF-8"),
        ("jms:queue:Q?priority", "name=value"),
        ("jms:queue:Q?=1", "without a name"),
        ("jms:queue:Q?priority=12", "priority: 0 to 9"),
        ("jms:queue:Q?timeToLive=1.5", "whole milliseconds"),
        ("jms:queue:Q?timeToLive=99999999999999999999", "whole milliseconds"),
        ("jms:queue:Q?deliveryMode=MAYBE", "PERSISTENT or NON_PERSISTENT"),
        ("jms:queue:Q?replyToName=a&topicReplyToName=b", "exclude each other"),
    ],
)
def test_a_wrong_uri_is_a_typed_error(text: str, words: str) -> None:
    with pytest.raises(NamingError, match=words):
        JmsUri.parse(text)


def test_no_parameter_is_shown() -> None:
    text = "jms:jndi:jms/X?jndiURL=tcp://oss:hunter2@broker&jndi-java.naming.security.credentials=hunter2"
    assert "hunter2" not in repr(JmsUri.parse(text))
    assert shown(text) == "jms:jndi:jms/X"
    for wrong in (text, f"{text}&priority=x", f"{text}&novalue"):
        with pytest.raises(NamingError) as caught:
            NamingContext().lookup(wrong)
        assert "hunter2" not in f"{caught.value}{caught.value.name}"
    assert "hunter2" in str(JmsUri.parse(text)), "the URI itself is whole"


def test_names_that_begin_alike_are_no_uris() -> None:
    assert [text for text in ("jms/X", "jms://host/x", "jms:x", "queue:jms:x", "jms:?a:b") if is_jms_uri(text)] == []
    assert is_jms_uri("JMS:queue:x")
    assert shown("queue:a?b") == "queue:a?b"


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(
    st.sampled_from(["jndi", "queue", "topic", "vnd.x"]), TEXT, st.dictionaries(TEXT, st.just("") | TEXT, max_size=4)
)
def test_every_uri_survives_its_text(variant: str, name: str, parameters: dict[str, str]) -> None:
    try:
        uri = JmsUri(variant, name, FrozenMap(parameters))
    except NamingError:
        return
    assert JmsUri.parse(str(uri)) == uri
    assert pickle.loads(pickle.dumps(uri)) == uri
    assert hash(JmsUri.parse(str(uri))) == hash(uri)


@given(st.text())
def test_any_text_is_a_uri_or_an_error_of_ours(text: str) -> None:
    for candidate in (text, f"jms:queue:{text}", f"jms:queue:Q?{text}"):
        try:
            uri = JmsUri.parse(candidate)
            assert uri.destination in (None, Queue(uri.name), Topic(uri.name))
        except MtosiError:
            continue
