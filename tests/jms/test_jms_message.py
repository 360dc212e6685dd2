"""JmsMessage: immutable, typed, checked, and silent about secrets."""

from __future__ import annotations

import dataclasses
import enum
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Destination, FrozenMap, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms.message import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    DeliveryMode,
    JmsMessage,
    Long,
    MessageType,
    Properties,
    is_property_name,
    is_secret,
    jms_type_name,
)


class Word(enum.StrEnum):
    REQUEST = "REQUEST"


class Number(enum.IntEnum):
    TWO = 2


@pytest.mark.obligation("O1", "O6b", "O7c", "C20", "001-J1")
def test_defaults_follow_the_recommendations() -> None:
    """O1 text, O6b NON_PERSISTENT although JMS itself says PERSISTENT (C20), O7c priority 4, no JMSType (T1.9)."""
    message = JmsMessage(body=b"<e/>")
    assert message.message_type is MessageType.TEXT
    assert message.delivery_mode is DeliveryMode.NON_PERSISTENT
    assert (message.priority, message.time_to_live_ms, message.expiration_ms) == (4, 0, 0)
    assert (message.message_id, message.timestamp_ms, message.jms_type, message.reply_to) == (None, None, None, None)
    assert (message.redelivered, message.delivery_count) == (False, 1)


def test_a_message_cannot_be_changed() -> None:
    given_properties = {"a": 1}
    message = JmsMessage(properties=given_properties)
    given_properties["a"] = 2
    assert message.properties["a"] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.priority = 5
    with pytest.raises(TypeError):
        message.properties["a"] = 3


@pytest.mark.obligation("001-J2")
@pytest.mark.parametrize("name", ["MTOSI_msgType", "a", "_x", "$x", "a$1", "JMSXGroupID", "JMS_Provider", "größe"])
def test_names_that_jms_allows(name: str) -> None:
    assert is_property_name(name)
    assert Properties({name: "v"})[name] == "v"


@pytest.mark.parametrize(
    "name",
    ["", "1a", "a-b", "a b", "a.b", "MTOSI_ failureReplytoURI", "null", "Between", "ESCAPE", "JMSPriority", "JMSfoo"],
)
def test_names_that_jms_does_not_allow(name: str) -> None:
    assert not is_property_name(name)
    with pytest.raises(ConfigError, match="not a name that JMS allows"):
        Properties({name: "v"})


@pytest.mark.obligation("R15c", "R15d", "001-J3")
def test_values_become_the_five_exact_types() -> None:
    """R15: selectors and wires meet plain types; a bool is not an int (R15d), an enumeration's member is its text."""
    made = Properties({"s": Word.REQUEST, "i": Number.TWO, "b": True, "l": Long(2), "d": 2.0})
    assert [type(value) for value in made.values()] == [str, int, bool, Long, float]
    assert made["s"] == "REQUEST"
    assert [jms_type_name(value) for value in made.values()] == ["String", "Integer", "Boolean", "Long", "Double"]


@pytest.mark.obligation("C25")
@pytest.mark.parametrize("value", [INT_MAX + 1, INT_MIN - 1, Long(LONG_MAX + 1), Long(LONG_MIN - 1)])
def test_integers_must_fit_their_type(value: int) -> None:
    """C25: what an Integer cannot hold is refused, never cut."""
    with pytest.raises(ConfigError, match="bits"):
        Properties({"n": value})


@pytest.mark.parametrize("value", [INT_MAX, INT_MIN, Long(LONG_MAX), Long(LONG_MIN)])
def test_integers_at_the_edge_fit(value: int) -> None:
    assert Properties({"n": value})["n"] == value


@pytest.mark.obligation("001-E7")
@pytest.mark.parametrize("value", [None, b"x", [], 1j, Queue("q")])
def test_other_types_are_no_properties(value: object) -> None:
    with pytest.raises(ConfigError, match="not a property type"):
        Properties({"n": value})


@pytest.mark.parametrize("priority", [-1, 10, True, "4", 4.0])
def test_priority_has_ten_values(priority: object) -> None:
    with pytest.raises(ConfigError, match="0 to 9"):
        JmsMessage(priority=priority)


@pytest.mark.obligation("P13")
@pytest.mark.parametrize("life", [-1, 1.5, "60000", True, None, 2**63])
def test_the_time_to_live_is_whole_milliseconds(life: Any) -> None:
    with pytest.raises(ConfigError, match="not negative"):
        JmsMessage(time_to_live_ms=life)


@pytest.mark.parametrize("mode", [0, 3, "PERSISTENT", None])
def test_there_are_two_delivery_modes(mode: Any) -> None:
    with pytest.raises(ConfigError, match="NON_PERSISTENT or PERSISTENT"):
        JmsMessage(delivery_mode=mode)


def test_the_number_of_a_delivery_mode_is_taken_for_it() -> None:
    assert JmsMessage(delivery_mode=2).delivery_mode is DeliveryMode.PERSISTENT


@pytest.mark.obligation("R15b")
def test_other_bad_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="bytes, not str"):
        JmsMessage(body="<e/>")
    with pytest.raises(ConfigError, match="R15b"):
        JmsMessage(reply_to="jms/RtoEms")


def test_bytes_like_bodies_are_copied() -> None:
    body = bytearray(b"abc")
    message = JmsMessage(body=body)
    body[0] = 0
    assert message.body == b"abc"
    assert type(message.body) is bytes


@pytest.mark.obligation("C55")
def test_repr_shows_no_secret_and_no_body() -> None:
    """C55: credentials stay out of logs, wherever they stand."""
    properties = {
        "MTOSI_security": "hunter2",
        "MTOSI_securityType": "hunter2",
        "myPassword": "hunter2",
        "MTOSI_x": "seen",
    }
    message = JmsMessage(body=b"<soap:Envelope xmlns:soap='s'><security>hunter2</security>", properties=properties)
    for text in (repr(message), str(message), repr(message.properties), f"{dataclasses.replace(message, priority=9)}"):
        assert "hunter2" not in text
    assert "seen" in repr(message)
    assert "(58 bytes)" in repr(message)
    assert is_secret("Mtosi_Security")
    assert not is_secret("MTOSI_msgName")


@pytest.mark.obligation("C55")
def test_errors_about_a_secret_do_not_show_it() -> None:
    with pytest.raises(ConfigError) as caught:
        Properties({"MTOSI_security": b"hunter2"})
    assert "hunter2" not in str(caught.value)


def test_messages_compare_hash_and_pickle() -> None:
    message = JmsMessage(
        body=b"x", properties={"a": 1, "b": "c"}, reply_to=TemporaryQueue("t", "c1"), message_id="ID:1"
    )
    twin = pickle.loads(pickle.dumps(message))
    assert twin == message
    assert hash(twin) == hash(message)
    assert type(twin.properties) is Properties
    assert twin.reply_to.owner == "c1"
    assert dataclasses.replace(message, priority=7) != message


def test_repr_tells_of_redelivery_and_routing() -> None:
    message = JmsMessage(message_id="ID:9", destination=Topic("t"), redelivered=True, delivery_count=3)
    assert "message_id=ID:9" in repr(message)
    assert "destination=topic:t" in repr(message)
    assert "redelivered, delivery 3" in repr(message)


@given(
    st.dictionaries(
        st.from_regex(r"\A[A-Za-z_$][A-Za-z0-9_$]{0,8}\Z").filter(is_property_name),
        st.one_of(
            st.text(),
            st.booleans(),
            st.floats(allow_nan=False),
            st.integers(INT_MIN, INT_MAX),
            st.integers(LONG_MIN, LONG_MAX).map(Long),
        ),
    )
)
def test_properties_keep_value_and_type(items: dict[str, str | int | bool | float]) -> None:
    made = Properties(items)
    assert dict(made) == items
    assert [type(made[name]) for name in items] == [type(value) for value in items.values()]
    assert pickle.loads(pickle.dumps(made)) == made


def test_destinations_say_their_kind() -> None:
    texts = [str(d) for d in (Queue("a"), Topic("a"), TemporaryQueue("a", "c"), TemporaryTopic("a"))]
    assert texts == ["queue:a", "topic:a", "temporary-queue:a", "temporary-topic:a"]
    assert Queue("a") != Topic("a")
    assert TemporaryQueue("a", "c1") == TemporaryQueue("a", "c2")
    assert len({Queue("a"), Topic("a"), Queue("a")}) == 2
    assert [d.is_topic for d in (Queue, Topic, TemporaryQueue, TemporaryTopic)] == [False, True, False, True]
    assert [d.is_temporary for d in (Queue, Topic, TemporaryQueue, TemporaryTopic)] == [False, False, True, True]


@pytest.mark.parametrize("name", ["", "a\x00", "a\nb"])
def test_destination_names_are_plain_text(name: str) -> None:
    with pytest.raises(ConfigError, match="control characters"):
        Queue(name)


def test_a_destination_is_of_some_kind() -> None:
    with pytest.raises(ConfigError, match="Queue, a Topic"):
        Destination("x")


MAP = FrozenMap({"b": 1, "a": 2})


def test_it_is_the_mapping_that_it_was_made_of() -> None:
    assert list(MAP) == list(MAP.keys()) == ["b", "a"]
    assert list(MAP.values()) == [1, 2]
    assert list(MAP.items()) == [("b", 1), ("a", 2)]
    assert "a" in MAP
    assert "c" not in MAP
    assert MAP == {"a": 2, "b": 1}
    assert {**MAP} == {"b": 1, "a": 2}
    assert hash(MAP) == hash(FrozenMap({"a": 2, "b": 1}))


@pytest.mark.parametrize("view", [MAP, MAP.keys(), MAP.values(), MAP.items()])
@pytest.mark.parametrize("change", ["pop", "clear", "update", "setdefault", "add", "discard"])
def test_no_view_has_a_way_to_change_it(view: Any, change: str) -> None:
    assert not hasattr(view, change)
