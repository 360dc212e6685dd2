"""`connect`: which provider, with which options, at which level of JMS; and how the parts follow one another."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.jms import Queue, TemporaryQueue, Topic
from mtosi_jms.jms._naming import NamingContext
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import ALL_CAPABILITIES, PROVIDERS, AckMode, Capability, ConnectionMetadata, connect, memory
from mtosi_jms.transport._descriptor import check_jms_version
from mtosi_jms.transport._threads import ReconnectPauses

TOO_OLD = ["1.0", "1.0.2", "1.0.2b", "0.9", "0.99"]
WELCOME = ["1.1", "2.0", "3.0", "3.1", "2.0a", "10.0"]
NO_VERSION = ["", "2", "two", "1.", ".1", "1.1 ", "-1.1", "1.1.", 1.1, 2, True, b"1.1"]
QUEUE = Queue("memory.queue")


def clock_of_1000() -> float:
    return 1_000.0


class TestLevel:
    @pytest.mark.obligation("R1")
    @pytest.mark.parametrize("version", WELCOME)
    def test_1_1_or_later_is_welcome(self, version: str) -> None:
        assert check_jms_version(version) == version
        with connect("memory:level", jms_version=version) as connection:
            assert connection.metadata.jms_version == "2.0"

    @pytest.mark.obligation("R1")
    @pytest.mark.parametrize("version", TOO_OLD)
    def test_less_is_refused(self, version: str) -> None:
        with pytest.raises(ConfigError, match="R1"):
            connect("memory:level", jms_version=version)
        with pytest.raises(ConfigError, match="R1"):
            ConnectionMetadata("old broker", "3", version)

    @pytest.mark.parametrize("version", NO_VERSION)
    def test_what_is_no_version(self, version: object) -> None:
        with pytest.raises(ConfigError, match="JMS version"):
            connect("memory:level", jms_version=version)

    @pytest.mark.obligation("R1")
    def test_memory_tells_what_it_is(self) -> None:
        with connect("memory:level") as connection:
            assert connection.metadata == ConnectionMetadata("mtosi-jms memory", "", "2.0")
            assert connection.capabilities == ALL_CAPABILITIES - {Capability.DELIVERY_DELAY}


class TestConnect:
    @pytest.mark.parametrize("url", ["memory:", "memory:connect-same", "MEMORY:connect-same", "memory://connect-same"])
    def test_the_same_name_is_the_same_provider(self, url: str) -> None:
        with connect(url) as one, connect(url.lower()) as two:
            one.session().send(Queue(f"same.{url}"), JmsMessage(body=b"x"))
            two.start()
            delivery = two.session(AckMode.AUTO).consumer(Queue(f"same.{url}")).receive(0)
        assert delivery is not None
        assert one.id != two.id

    def test_another_name_is_another_provider(self) -> None:
        with connect("memory:connect-a") as one, connect("memory:connect-b") as two:
            one.session().send(QUEUE, JmsMessage())
            two.start()
            assert two.session().consumer(QUEUE).receive(0) is None
        assert memory.provider("connect-a").depth(QUEUE) == 1

    @pytest.mark.parametrize("names", [{"jms/EmsOS": "queue:E"}, NamingContext({"jms/EmsOS": "queue:E"})])
    def test_names_come_with_the_connection(self, names: Any) -> None:
        with connect("memory:connect-names", names=names) as connection:
            assert connection.names.lookup("jms/EmsOS") == Queue("E")
        with connect("memory:connect-names") as connection:
            assert connection.names.names() == {}

    @pytest.mark.parametrize("url", ["nosuch://oss:hunter2@broker:61613", "oss-hunter2", ""])
    def test_an_unknown_scheme_lists_what_there_is(self, url: str) -> None:
        with pytest.raises(ConfigError, match="use one of jvm:, memory:") as caught:
            connect(url)
        assert "hunter2" not in str(caught.value)

    def test_the_first_clock_stays(self) -> None:
        with connect("memory:connect-clock", clock=clock_of_1000) as connection:
            assert connection.session().send(QUEUE, JmsMessage()).timestamp_ms == 1_000_000
        with connect("memory:connect-clock") as connection:
            assert connection.session().send(QUEUE, JmsMessage()).timestamp_ms == 1_000_000
        with connect("memory:connect-clock", clock=clock_of_1000), pytest.raises(ConfigError, match="another clock"):
            connect("memory:connect-clock", clock=lambda: 2_000.0)

    def test_every_scheme_has_its_module(self) -> None:
        assert dict(PROVIDERS) == {
            "jvm": "mtosi_jms.transport.jvm",
            "memory": "mtosi_jms.transport.memory",
            "stomp": "mtosi_jms.transport.stomp",
            "stomp+ssl": "mtosi_jms.transport.stomp",
        }


class TestOptions:
    def test_every_option_is_named_when_one_is_wrong(self) -> None:
        with pytest.raises(ConfigError) as caught:
            connect("memory:options", password="hunter2")
        assert all(option.name in str(caught.value) for option in fields(memory.MemoryOptions))
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"heartbeat": "3"}, "memory: takes no option heartbeat; it takes capacity, client_id"),
            ({"max_delivery": 3}, "takes no option max_delivery; did you mean max_deliveries?"),
            ({"send_timeout": "3"}, "option send_timeout: it must be a number of seconds of at least 0, not '3'"),
            ({"completion_timeout": -1}, "it must be a number of seconds greater than 0, not -1"),
            ({"capacity": 2.5}, "option capacity: it must be a whole number of at least 1, not 2.5"),
            ({"strict_2012": "yes"}, "option strict_2012: it must be True or False, not 'yes'"),
            ({"dead_letter": Topic("T")}, "it must be an administered queue, or its name, not Topic"),
        ],
    )
    def test_an_error_says_what_to_write(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(ConfigError) as caught:
            connect("memory:options", **options)
        assert words in str(caught.value)

    @pytest.mark.parametrize("url", [5, b"memory:", ["memory:"]])
    def test_a_url_is_text(self, url: Any) -> None:
        with pytest.raises(ConfigError, match="must be text such as 'memory:'"):
            connect(url)

    def test_a_connection_is_no_url(self) -> None:
        with connect("memory:open-already") as connection, pytest.raises(ConfigError, match="open already"):
            connect(connection)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("option", "values"),
        [
            ("capacity", [0, -1, True, "8", 1.5]),
            ("client_id", [5, b"x", True]),
            ("clock", [5]),
            ("completion_timeout", [0, True, "30", float("nan")]),
            ("dead_letter", [Topic("t"), TemporaryQueue("t"), 5, ""]),
            ("max_deliveries", [0, -1, True, "3", 1.5]),
            ("on_completion_error", ["log"]),
            ("send_timeout", [-1, float("nan"), "5", True]),
            ("strict_2012", [1]),
        ],
    )
    def test_values_of_the_wrong_kind(self, option: str, values: list[object]) -> None:
        for value in values:
            with pytest.raises(ConfigError, match="queue" if option == "dead_letter" else option):
                connect("memory:options", **{option: value})

    def test_nothing_given_is_nothing_changed(self) -> None:
        limits: dict[str, Any] = {"capacity": 7, "send_timeout": 0.5, "max_deliveries": 3, "dead_letter": Queue("D")}
        with connect("memory:limits", **limits), connect("memory:limits"):
            pass
        with connect("memory:limits", capacity=None, jms_version=None, clock=None, client_id=None) as connection:
            assert connection.client_id == ""
        found = memory.provider("limits").limits
        assert {name: getattr(found, name) for name in limits} == limits
        with connect("memory:limits", max_deliveries=9):
            assert memory.provider("limits").limits == found.changed(max_deliveries=9)

    def test_a_refused_option_changes_nothing(self) -> None:
        with pytest.raises(ConfigError):
            connect("memory:refused", capacity=3, max_deliveries=0)
        assert memory.provider("refused").limits == memory.QueueLimits()


@pytest.mark.obligation("P17", "P4", "F3", "P3")
def test_the_chain_from_names_to_messages() -> None:
    """Administered objects looked up by name; connection, session, producer and consumer; start, exchange, stop."""
    names = {"jms/RtoNMSQA": "queue:PHYSICAL.Q1", "jms/FaultTopic": "topic:FAULTS"}
    with connect("memory:chain", names=names) as connection:
        queue, topic = (connection.names.lookup(name) for name in names)
        session = connection.session(AckMode.AUTO)
        producers = [session.producer(destination) for destination in (queue, topic)]
        consumers = [session.consumer(destination) for destination in (queue, topic)]
        connection.start()
        for producer in producers:
            producer.send(JmsMessage(body=producer.destination.name.encode()))
        deliveries = [consumer.receive(1) for consumer in consumers]
        connection.stop()
    assert [one.message.body for one in deliveries if one] == [b"PHYSICAL.Q1", b"FAULTS"]


def test_pauses_between_attempts_grow_until_a_connection_holds() -> None:
    """A broker that accepts a client and drops it, again and again, is given longer and longer pauses too."""
    pauses = ReconnectPauses()
    seen = []
    for _ in range(14):
        pauses.after(0.0)
        seen.append(pauses.next())
    least = [0.0, *(min(0.1 * 2**number, 30.0) for number in range(13))]
    assert seen[0] == 0.0
    assert all(shortest <= pause <= shortest + 0.5 for pause, shortest in zip(seen[1:], least[1:], strict=True))
    assert len(set(seen[9:])) > 1
    pauses.after(5.0)
    assert pauses.next() >= 30.0
    pauses.after(60.0)
    assert pauses.next() == 0.0
