"""Durable subscriptions keep messages while nobody reads them; one consumer at a time has each."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IllegalStateError, InvalidDestinationError, TransportError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.transport import Capability, Connection

from .conftest import name_of, take, text

pytestmark = pytest.mark.capability(Capability.DURABLE)


@pytest.fixture
def noc(started: Any) -> Connection:
    """A started connection with a client id."""
    return started(client_id="noc")  # type: ignore[no-any-return]


class TestKeeping:
    @pytest.mark.obligation("P8", "F2", "001-I12", "001-R5")
    @pytest.mark.parametrize("mode", list(DeliveryMode))
    def test_what_is_sent_while_it_is_away_is_kept(
        self, noc: Connection, topic: Topic, mode: DeliveryMode, bodies: Any
    ) -> None:
        session = noc.session()
        session.send(topic, text("before", delivery_mode=mode))
        with session.consumer(topic, durable="noc-1") as consumer:
            assert (consumer.durable, consumer.selector) == ("noc-1", None)
            plain = session.consumer(topic)
            session.send(topic, text("there", delivery_mode=mode))
            assert bodies(consumer) == ["there"]
            plain.close()
        for word in ("away", "still away"):
            session.send(topic, text(word, delivery_mode=mode))
        assert bodies(session.consumer(topic)) == []
        with session.consumer(topic, durable="noc-1") as consumer:
            session.send(topic, text("back", delivery_mode=mode))
            assert bodies(consumer) == ["away", "still away", "back"]
        session.unsubscribe("noc-1")

    @pytest.mark.obligation("P8")
    def test_it_outlives_its_connection(self, started: Any, connection: Connection, topic: Topic, bodies: Any) -> None:
        with started(client_id="outlives") as first:
            first.session().consumer(topic, durable="sub")
        connection.session().send(topic, text("away"))
        with started(client_id="outlives") as second:
            session = second.session()
            with session.consumer(topic, durable="sub") as consumer:
                assert bodies(consumer) == ["away"]
            session.unsubscribe("sub")

    @pytest.mark.obligation("P13")
    def test_expiry_counts_while_it_is_away(self, provider: Any, noc: Connection, topic: Topic, bodies: Any) -> None:
        session = noc.session()
        session.consumer(topic, durable="expiry").close()
        session.send(topic, text("short", time_to_live_ms=500))
        session.send(topic, text("long", time_to_live_ms=3_600_000))
        provider.pass_time(0.75)
        with session.consumer(topic, durable="expiry") as consumer:
            assert bodies(consumer) == ["long"]
        session.unsubscribe("expiry")

    def test_two_names_are_two_subscriptions(self, noc: Connection, topic: Topic, bodies: Any) -> None:
        session = noc.session()
        session.consumer(topic, durable="one").close()
        session.consumer(topic, durable="two").close()
        session.send(topic, text(1))
        for durable in ("one", "two"):
            with session.consumer(topic, durable=durable) as consumer:
                assert bodies(consumer) == ["1"]
            session.unsubscribe(durable)

    def test_names_are_a_clients_own(self, started: Any, connection: Connection, topic: Topic, bodies: Any) -> None:
        ours, theirs = started(client_id="ours").session(), started(client_id="theirs").session()
        ours.consumer(topic, durable="same").close()
        with theirs.consumer(topic, durable="same") as consumer:
            connection.session().send(topic, text(1))
            assert bodies(consumer) == ["1"]
        theirs.unsubscribe("same")
        with ours.consumer(topic, durable="same") as consumer:
            assert bodies(consumer) == ["1"]
        ours.unsubscribe("same")

    @pytest.mark.capability(Capability.DURABLE_RULES)
    def test_a_client_is_connected_once(self, started: Any, provider: Any) -> None:
        first = started(client_id="once")
        assert first.client_id == "once"
        with pytest.raises(ConfigError, match="once"):
            provider.connect(client_id="once")
        first.close()
        provider.connect(client_id="once").close()


class TestRules:
    def test_one_consumer_at_a_time(self, noc: Connection, topic: Topic, bodies: Any) -> None:
        session = noc.session()
        consumer = session.consumer(topic, durable="single")
        with pytest.raises(IllegalStateError, match="single"):
            noc.session().consumer(topic, durable="single")
        with pytest.raises(IllegalStateError, match="single"):
            session.unsubscribe("single")
        session.send(topic, text(1))
        assert bodies(consumer) == ["1"]
        consumer.close()
        session.unsubscribe("single")

    @pytest.mark.capability(Capability.DURABLE_RULES)
    @pytest.mark.parametrize("what", ["topic", "selector"])
    def test_a_change_replaces_it(self, noc: Connection, topic: Topic, what: str, bodies: Any) -> None:
        session = noc.session()
        session.consumer(topic, "n = 1", durable="change").close()
        session.send(topic, text("old", properties={"n": 1}))
        other = Topic(f"{topic.name}.other") if what == "topic" else topic
        changed = session.consumer(other, "n = 1" if what == "topic" else "n = 2", durable="change")
        assert bodies(changed) == []
        session.send(topic, text("to the old", properties={"n": 1}))
        session.send(other, text("new", properties={"n": 1 if what == "topic" else 2}))
        assert bodies(changed) == ["new"]
        changed.close()
        session.unsubscribe("change")

    def test_the_same_again_is_no_change(self, noc: Connection, topic: Topic, bodies: Any) -> None:
        session = noc.session()
        session.consumer(topic, "n = 1", durable="same").close()
        for number in (1, 2):
            session.send(topic, text(number, properties={"n": number}))
        with session.consumer(topic, "n = 1", durable="same") as consumer:
            assert bodies(consumer) == ["1"]
        session.unsubscribe("same")

    @pytest.mark.obligation("001-I12")
    @pytest.mark.capability(Capability.DURABLE_RULES)
    def test_unsubscribed_is_gone(self, noc: Connection, topic: Topic, bodies: Any) -> None:
        session = noc.session()
        session.consumer(topic, durable="gone").close()
        session.send(topic, text(1))
        session.unsubscribe("gone")
        with pytest.raises(InvalidDestinationError, match="gone"):
            session.unsubscribe("gone")
        with session.consumer(topic, durable="gone") as consumer:
            assert bodies(consumer) == []
        session.unsubscribe("gone")

    @pytest.mark.obligation("001-I11")
    def test_only_topics_have_them(self, noc: Connection, queue: Queue) -> None:
        session = noc.session()
        for destination in (queue, session.temporary_queue(), session.temporary_topic()):
            with pytest.raises(ConfigError, match="administered topic"):
                session.consumer(destination, durable="noc-1")

    @pytest.mark.parametrize("durable", ["", "  "])
    def test_it_needs_a_name(self, noc: Connection, topic: Topic, durable: str) -> None:
        with pytest.raises(ConfigError, match="name"):
            noc.session().consumer(topic, durable=durable)


class TestAcknowledging:
    @pytest.mark.obligation("P19", "T1.10")
    def test_what_was_not_acknowledged_comes_again(self, noc: Connection, topic: Topic, drain: Any) -> None:
        with noc.session() as session:
            consumer = session.consumer(topic, durable="again")
            for number in range(3):
                session.send(topic, text(number))
            take(consumer)
            take(consumer).acknowledge()
        session = noc.session()
        with session.consumer(topic, durable="again") as consumer:
            again = drain(consumer)
        assert [(name_of(message), message.redelivered) for message in again] == [("0", True), ("2", False)]
        session.unsubscribe("again")

    def test_it_cannot_end_while_messages_are_out(self, noc: Connection, topic: Topic) -> None:
        session = noc.session()
        with session.consumer(topic, durable="out") as consumer:
            session.send(topic, text(1))
            delivery = take(consumer)
        with pytest.raises(IllegalStateError, match="acknowledged"):
            session.unsubscribe("out")
        delivery.acknowledge()
        session.unsubscribe("out")

    @pytest.mark.obligation("P18")
    @pytest.mark.capability(Capability.TRANSACTED_RECEIVE)
    def test_in_a_transaction(self, noc: Connection, topic: Topic, nothing: Any) -> None:
        session = noc.session(transacted=True)
        consumer = session.consumer(topic, durable="transaction")
        session.send(topic, text(1))
        assert nothing(consumer)
        session.commit()
        take(consumer)
        session.rollback()
        assert take(consumer).message.redelivered
        session.commit()
        assert nothing(consumer)
        consumer.close()
        session.unsubscribe("transaction")


@pytest.mark.capability(Capability.SHARED_DURABLE)
class TestSharing:
    def test_each_message_goes_to_one_of_them(self, started: Any, topic: Topic) -> None:
        first, second = (started().session() for _ in range(2))
        one, other = (each.consumer(topic, durable="shared", shared=True) for each in (first, second))
        sender = started().session()
        for number in range(4):
            sender.send(topic, text(number))
        taken = [take(consumer) for consumer in (one, other, one, other)]
        assert sorted(each.message.body for each in taken) == [text(number).body for number in range(4)]
        for each in taken:
            each.acknowledge()
        one.close()
        other.close()
        first.unsubscribe("shared")

    def test_it_keeps_what_comes_while_nobody_is_there(self, started: Any, topic: Topic, nothing: Any) -> None:
        session = started().session()
        session.consumer(topic, "n = 1", durable="kept", shared=True).close()
        for number in (1, 2):
            session.send(topic, text(number, properties={"n": number}))
        other = started().session()
        with other.consumer(topic, "n = 1", durable="kept", shared=True) as consumer:
            delivery = take(consumer)
            assert delivery.message.body == text(1).body
            delivery.acknowledge()
            assert nothing(consumer)
        other.unsubscribe("kept")

    def test_another_selector_is_refused_while_one_is_there(self, started: Any, topic: Topic) -> None:
        session = started().session()
        other = started().session()
        first = session.consumer(topic, "n = 1", durable="changed", shared=True)
        with pytest.raises((IllegalStateError, TransportError)):
            other.consumer(topic, "n = 2", durable="changed", shared=True)
        first.close()
        session.unsubscribe("changed")

    @pytest.mark.parametrize("options", [{}, {"durable": "both", "no_local": True}], ids=str)
    def test_it_is_durable_and_hears_its_own(self, connection: Connection, topic: Topic, options: Any) -> None:
        with pytest.raises(ConfigError, match="shared"):
            connection.session().consumer(topic, shared=True, **options)
