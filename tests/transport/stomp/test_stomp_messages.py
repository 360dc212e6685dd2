"""Messages to frames and back, for both brokers."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.binding.table2 import restore
from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import (
    DeliveryMode,
    Destination,
    JmsMessage,
    MessageType,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
)
from mtosi_jms.jms.selector import parse
from mtosi_jms.transport._session_core import ConsumerSpec
from mtosi_jms.transport.stomp._dialect import ActiveMQ, Artemis, Dialect, artemis_selector, dialect_of
from mtosi_jms.transport.stomp._messages import RESERVED, incoming, outgoing

BOTH = pytest.mark.parametrize("dialect", [ActiveMQ("5"), Artemis("2")], ids=["activemq", "artemis"])
QUEUE = Queue("q")


def out(dialect: Dialect, **fields: Any) -> tuple[dict[str, str], bytes]:
    sent = JmsMessage(**fields).stamped(QUEUE, message_id=None, timestamp_ms=1_000)
    return outgoing(dialect, dialect.address(QUEUE), sent, sent.reply_to and dialect.reply_address(sent.reply_to))


def back(dialect: Dialect, headers: dict[str, str], body: bytes = b"") -> JmsMessage:
    return incoming(dialect, headers, body, QUEUE, lambda text: None, restore)


@BOTH
class TestSent:
    def test_persistence_is_lower_case_and_never_by_default(self, dialect: Dialect) -> None:
        assert "persistent" not in out(dialect)[0]
        assert out(dialect, delivery_mode=DeliveryMode.PERSISTENT)[0]["persistent"] == "true"

    @pytest.mark.parametrize("name", sorted(RESERVED))
    def test_no_property_takes_the_place_of_a_header(self, dialect: Dialect, name: str) -> None:
        with pytest.raises(ConfigError, match=name):
            out(dialect, properties={name: "x"})


class TestActiveMq:
    def test_small_text_has_no_length(self) -> None:
        """With one alone Java gets a BytesMessage."""
        assert "content-length" not in out(ActiveMQ("5"), body=b"<a/>")[0]

    def test_large_text_has_one_and_is_marked(self) -> None:
        headers, _ = out(ActiveMQ("5"), body=b"x" * 100_000)
        assert (headers["content-length"], headers["amq-msg-type"]) == ("100000", "text")
        message = back(ActiveMQ("5"), headers, b"x" * 100_000)
        assert (message.message_type, dict(message.properties)) == (MessageType.TEXT, {})

    def test_the_prefix_of_selectors_is_the_brokers_to_add(self) -> None:
        headers = ActiveMQ("5").subscribing(ConsumerSpec(QUEUE, "n > 3", parse("n > 3")), 1)
        assert headers == {"activemq.prefetchSize": "1", "selector": "n > 3"}


class TestArtemis:
    def test_the_prefix_of_selectors_is_ours_to_add(self) -> None:
        headers = Artemis("2").subscribing(ConsumerSpec(QUEUE, "n > 3", parse("n > 3")), 1)
        assert headers["selector"] == "convert_string_expressions:n > 3"

    def test_a_window_is_bytes(self) -> None:
        windows = [Artemis("2").subscribing(ConsumerSpec(QUEUE), n)["consumer-window-size"] for n in (1, 2, 50)]
        assert windows == ["1", "10001", "490001"]

    @pytest.mark.parametrize(
        ("selector", "theirs"),
        [
            ("JMSPriority > 5", "AMQPriority > 5"),
            ("JMSDeliveryMode = 'PERSISTENT' AND a = 'it''s'", "AMQDurable = 'DURABLE' AND a = 'it''s'"),
            ("a = 'PERSISTENT' OR b = 'JMSPriority'", "a = 'PERSISTENT' OR b = 'JMSPriority'"),
            ("JMSCorrelationID IS NULL", "JMSCorrelationID IS NULL"),
        ],
    )
    def test_headers_have_other_names_in_selectors(self, selector: str, theirs: str) -> None:
        assert artemis_selector(parse(selector)) == theirs

    def test_what_stands_in_for_a_temporary_destination(self) -> None:
        """A queue to Java clients, temporary again to us."""
        own = TemporaryQueue(f"mtosi-jms.temporary.{'0' * 32}")
        assert Artemis("2").reply_address(own) == f"queue://{own.name}"
        assert Artemis("2").destination(f"queue://{own.name}", {}) == own
        assert Artemis("2").destination("queue://mtosi-jms.temporary.1", {}) == Queue("mtosi-jms.temporary.1")


@BOTH
class TestReceived:
    def test_headers_of_the_frame_are_no_properties(self, dialect: Dialect) -> None:
        told = {
            **dict.fromkeys(RESERVED, "x"),
            **dict.fromkeys(
                ("message-id", "content-length", "amq-msg-type", "JMSPriority", "not", "__HDR_X", "_AMQ_Y", ""), "x"
            ),
        }
        assert dict(back(dialect, told).properties) == {}

    @pytest.mark.parametrize("name", ["priority", "expires", "timestamp", "redelivered", "reply-to", "content-length"])
    @pytest.mark.parametrize("text", ["", "-1", "high", "99", "9" * 400, "\u0662", "\x00"])
    def test_a_peers_nonsense_stops_nothing(self, dialect: Dialect, name: str, text: str) -> None:
        assert back(dialect, {name: text}).body == b""

    @pytest.mark.parametrize("kind", [Queue, Topic, TemporaryQueue, TemporaryTopic])
    def test_the_kind_of_a_reply_destination_survives(self, dialect: Dialect, kind: type[Destination]) -> None:
        """R15b."""
        assert back(dialect, {"reply-to": dialect.reply_address(kind("ID:n:1"))}).reply_to == kind("ID:n:1")


@pytest.mark.parametrize("server", ["ActiveMQ/5.17.2", "ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine"])
def test_a_broker_tells_its_name(server: str) -> None:
    assert dialect_of(server, "a").version in server


@pytest.mark.parametrize("server", ["", "RabbitMQ/3.9", "apache-apollo"])
def test_other_brokers_are_not_guessed(server: str) -> None:
    from mtosi_jms.errors import TransportError

    with pytest.raises(TransportError, match="ActiveMQ"):
        dialect_of(server, "stomp://h:1")
