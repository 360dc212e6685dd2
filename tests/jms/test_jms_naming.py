"""Naming: the forms of C42, the files of O3, near matches, and no name for what is temporary (R2d)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, MtosiError, NamingError
from mtosi_jms.jms import Destination, NamingContext, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.jms._jndi import read_properties

JNDI = r"""
# what a deployment holds
! in the syntax of Java
java.naming.factory.initial = org.example.ContextFactory
java.naming.provider.url = tcp://broker:61616
connectionFactory.ConnectionFactory = tcp://oss:hunter2@broker:61616
connectionfactory.qpid = amqp://broker:5672
queue.jms/EmsOS = MTOSI.EMS
queue.jms/Rto\:X : MTOSI.RTO
topic.jms/FaultTopic MTOSI.\
    FAULT
queue.jms/\u00dc=MTOSI.UE
"""


@pytest.fixture
def names() -> NamingContext:
    return NamingContext(
        {
            "jms/RtoNMSQA": Queue("PHYS.Q1"),
            "jms/FaultTopic": "topic:PHYS.FAULT",
            "jms://aserver/mtosi/ManagedElementRetrieval": "queue:PHYS.MER",
            "/MTOSI/EmsOS": "queue:PHYS.EMS",
            "queue:shadow": "queue:PHYS.SHADOW",
        }
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("jms/RtoNMSQA", Queue("PHYS.Q1")),
        ("  jms/RtoNMSQA\n", Queue("PHYS.Q1")),
        ("jms/FaultTopic", Topic("PHYS.FAULT")),
        ("jms://aserver/mtosi/ManagedElementRetrieval", Queue("PHYS.MER")),
        ("/MTOSI/EmsOS", Queue("PHYS.EMS")),
        ("queue:shadow", Queue("PHYS.SHADOW")),
        ("queue:X", Queue("X")),
        ("Queue:X", Queue("X")),
        ("topic:X.Y", Topic("X.Y")),
        ("queue:a:b?c", Queue("a:b?c")),
        ("jms:queue:X", Queue("X")),
        ("JMS:Topic:X", Topic("X")),
        ("jms:queue:A%20B?timeToLive=1000", Queue("A B")),
        ("jms:jndi:jms/RtoNMSQA", Queue("PHYS.Q1")),
        ("jms:jndi:jms/RtoNMSQA?jndiURL=tcp://x", Queue("PHYS.Q1")),
        ("dynamicQueues/A.B", Queue("A.B")),
        ("dynamicTopics/A/B", Topic("A/B")),
        ("dynamicQueues/A?consumer.prefetchSize=1", Queue("A")),
        ("jms:jndi:dynamicQueues/A", Queue("A")),
    ],
)
@pytest.mark.obligation("C42", "O3", "R16c", "P9")
def test_every_form_of_an_address_resolves(names: NamingContext, text: str, found: Destination) -> None:
    """C42: the exact name first, whatever its form; then the forms that say what they are."""
    assert names.lookup(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "X",
        "jms/Unknown",
        "jms://bserver/mtosi/X",
        "jms:X",
        "jms:jndi:jms/Unknown",
        "queue:",
        "jms:queue:",
        "queue:\x01",
        "dynamicQueues/",
        "dynamicqueues/X",
        "jms:vnd.example:X",
    ],
)
@pytest.mark.obligation("C42")
def test_what_no_form_decides_is_never_guessed(names: NamingContext, text: str) -> None:
    with pytest.raises(NamingError) as caught:
        names.lookup(text)
    assert caught.value.name == text


def test_an_unknown_name_lists_near_ones(names: NamingContext) -> None:
    with pytest.raises(NamingError, match="did you mean jms/RtoNMSQA") as caught:
        names.lookup("jms/RtoNMSQ")
    assert caught.value.near[0] == "jms/RtoNMSQA"
    assert names.near("EmsOS")[0] == "/MTOSI/EmsOS"
    assert names.near("JMS/FAULTTOPIC")[0] == "jms/FaultTopic"
    assert names.near("zzzzzzzz") == []


@pytest.mark.obligation("R2d")
@pytest.mark.parametrize("temporary", [TemporaryQueue("t", "c"), TemporaryTopic("t", "c")])
def test_temporary_destinations_have_no_name(names: NamingContext, temporary: Destination) -> None:
    """R2d, P5: they cannot be bound, nor found by what they print as."""
    with pytest.raises(NamingError, match="R2d"):
        names.bind("jms/x", temporary)
    with pytest.raises(NamingError, match="R2d"):
        names.lookup(str(temporary))
    assert names.lookup(temporary) is temporary


def test_a_destination_stands_for_itself(names: NamingContext) -> None:
    assert names.lookup(Queue("any")) == Queue("any")


def test_one_name_stands_for_one_destination(names: NamingContext) -> None:
    names.bind("jms/RtoNMSQA", "queue:PHYS.Q1")
    with pytest.raises(ConfigError, match=r"stands for queue:PHYS\.Q1 already"):
        names.bind("jms/RtoNMSQA", Topic("PHYS.Q1"))


def test_reverse_look_up(names: NamingContext) -> None:
    assert names.name_of(Queue("PHYS.Q1")) == "jms/RtoNMSQA"
    assert names.name_of(Topic("PHYS.Q1")) is None
    assert names.knows(Topic("PHYS.FAULT"))
    assert not names.knows(Queue("elsewhere"))
    assert len(names.names()) == 5


@pytest.mark.obligation("O3", "P9")
def test_jndi_properties() -> None:
    names = NamingContext.from_properties(JNDI)
    assert names.lookup("jms/EmsOS") == Queue("MTOSI.EMS")
    assert names.lookup("jms/Rto:X") == Queue("MTOSI.RTO")
    assert names.lookup("jms/FaultTopic") == Topic("MTOSI.FAULT")
    assert names.lookup("jms/Ü") == Queue("MTOSI.UE")
    assert names.factory("qpid") == "amqp://broker:5672"
    assert names.environment["java.naming.provider.url"] == "tcp://broker:61616"
    assert "hunter2" not in repr(names)
    with pytest.raises(NamingError, match="did you mean qpid"):
        names.factory("qpit")


ACTIVEMQ = """
java.naming.factory.initial = org.apache.activemq.jndi.ActiveMQInitialContextFactory
java.naming.provider.url = tcp://broker:61616
java.naming.security.credentials = hunter2
connectionFactoryNames = jms/CF, jms/Other,
connection.jms/Other.brokerURL = tcp://other:61616
queue.jms/EmsOS = MTOSI.EMS?consumer.prefetchSize=10&consumer.exclusive=true
queue.jms/Odd = what?
topic.jms/FaultTopic = MTOSI.FAULT
"""


@pytest.mark.obligation("O3")
def test_activemq_names_factories_over_one_url_and_has_destination_options() -> None:
    names = NamingContext.from_properties(ACTIVEMQ)
    assert names.factory("jms/CF") == "tcp://broker:61616"
    assert names.factory("jms/Other") == "tcp://other:61616"
    assert names.lookup("jms/EmsOS") == Queue("MTOSI.EMS")
    assert names.options == {"jms/EmsOS": {"consumer.prefetchSize": "10", "consumer.exclusive": "true"}}
    assert names.lookup("jms/Odd") == Queue("what?")
    assert names.environment["java.naming.security.credentials"] == "hunter2"
    assert "hunter2" not in repr(names)


@pytest.mark.obligation("O3")
def test_activemq_has_three_factories_where_none_is_named() -> None:
    names = NamingContext.from_properties(ACTIVEMQ.replace("connectionFactoryNames", "other"))
    assert names.factory("QueueConnectionFactory") == "tcp://broker:61616"
    with pytest.raises(NamingError):
        NamingContext.from_properties("java.naming.provider.url=tcp://a").factory("ConnectionFactory")


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("queue:X", Queue("X")),
        ("topic:X", Topic("X")),
        ("X; {create: always, node: {type: queue}}", Queue("X")),
        ("ADDR:X/key; {node: {'type': 'topic', durable: True}}", Topic("X/key")),
        ("direct://amq.direct//message_queue?routingkey='key'", Queue("message_queue")),
        ("BURL:direct://amq.direct/key/message_queue", Queue("message_queue")),
        ("topic://amq.topic/news.uk", Topic("news.uk")),
        ("topic://amq.topic/news.uk/own?exclusive='true'", Topic("news.uk")),
    ],
)
@pytest.mark.obligation("O3", "C42")
def test_qpid_addresses_that_say_what_they_name(address: str, found: Destination) -> None:
    assert NamingContext.from_properties(f"destination.jms/X = {address}").lookup("jms/X") == found


@pytest.mark.parametrize(
    "address",
    ["X", "X; {create: always}", "amq.topic/x", "direct://amq.direct/key", "topic://amq.topic", "fanout://f//q"],
)
@pytest.mark.obligation("C42")
def test_qpid_addresses_that_do_not_say_it_are_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: destination 'jms/X': .* neither queue nor topic"):
        NamingContext.from_properties(f"# one\ndestination.jms/X = {address}")


def test_what_is_no_destination_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        NamingContext({"jms/CF": "tcp://oss:hunter2@broker:61616"})
    assert "hunter2" not in str(caught.value)


class Directory:
    """A back-end as a user writes one."""

    def __init__(self, *entries: tuple[str, Destination], listed: bool = True) -> None:
        self.entries = dict(entries)
        self.listed = listed
        self.asked: list[str] = []

    def lookup(self, name: str) -> Destination | None:
        self.asked.append(name)
        return self.entries.get(name)

    def names(self) -> dict[str, Destination]:
        return self.entries if self.listed else {}


@pytest.mark.obligation("O3", "R2d")
def test_back_ends_are_asked_in_their_order_for_what_is_not_registered() -> None:
    first = Directory(("jms/A", Queue("FIRST")), ("jms/T", TemporaryQueue("t")))
    second = Directory(("jms/A", Queue("SECOND")), ("jms/B", Topic("B")), ("jms/Own", Queue("HIDDEN")))
    unlisted = Directory(("jms/C", Queue("C")), listed=False)
    names = NamingContext({"jms/Own": "queue:OWN"}, backends=[first, second, unlisted])
    assert names.lookup("jms/A") == Queue("FIRST")
    assert names.lookup("jms:jndi:jms/B") == Topic("B")
    assert names.lookup(" jms/C ") == Queue("C")
    assert names.lookup("jms/Own") == Queue("OWN")
    assert "jms/Own" not in first.asked
    assert names.knows(Topic("B"))
    assert not names.knows(Queue("HIDDEN"))
    assert not names.knows(Queue("C")), "not listed"
    assert names.name_of(Queue("FIRST")) == "jms/A"
    assert names.near("jms/a")[0] == "jms/A"
    with pytest.raises(NamingError, match="R2d"):
        names.lookup("jms/T")
    with pytest.raises(NamingError, match="did you mean"):
        names.lookup("jms/BB")


def test_headers_name_a_destination_without_the_parameters() -> None:
    names = NamingContext({"jms/A": "queue:A", "jms:queue:X?own=1": "queue:Y"})
    assert names.uri_of(Queue("A")) == "jms/A"
    assert names.uri_of(Queue("B")) == "queue:B"
    assert names.uri_of("jms:queue:X?jndiURL=secret") == "jms:queue:X"
    assert names.uri_of("jms:queue:X?own=1") == "jms:queue:X?own=1", "a registered name is a name"


def test_toml() -> None:
    names = NamingContext.from_toml(
        '"jms/Flat" = "topic:T"\n[queue]\n"jms/EmsOS" = "MTOSI.EMS"\n[connectionfactory]\nmain = "memory:"\n'
    )
    assert names.lookup("jms/Flat") == Topic("T")
    assert names.lookup("jms/EmsOS") == Queue("MTOSI.EMS")
    assert names.factory("main") == "memory:"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"x" = "MTOSI.EMS"', "neither queue nor topic"),
        ('"x" = 5', "neither queue nor topic"),
        ("[queue]\nx = 5", "physical name"),
        ('[queues]\nx = "a"', "only queue, topic"),
        ('[queue]\nx = "a"\n[topic]\nx = "a"', "already"),
        ("x = ", "not TOML"),
    ],
)
def test_toml_at_fault(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        NamingContext.from_toml(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\nqueue.a =\n", "line 2: .*physical name"),
        ("queue.a=b\ntopic.a=b", "line 2: .*already"),
        ("queue.a=b\ntopic.b=\\u00g4", "line 2: .*four hexadecimal digits"),
        ("queue.\\\\\\u12=b", "line 1: .*four hexadecimal digits"),
    ],
)
def test_properties_at_fault(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        NamingContext.from_properties(text)


def test_the_source_decides_the_form(tmp_path: Path) -> None:
    properties = tmp_path / "jndi.properties"
    properties.write_bytes("queue.jms/Ü=Q".encode("latin-1"))
    toml = tmp_path / "names.toml"
    toml.write_text('[queue]\n"a" = "Q"')
    ready = NamingContext({"b": "queue:Q"})
    assert NamingContext.of(properties).lookup("jms/Ü") == Queue("Q")
    assert NamingContext.of(str(toml)).lookup("a") == Queue("Q")
    assert NamingContext.of({"a": "queue:Q"}).lookup("a") == Queue("Q")
    assert NamingContext.of(ready) is ready
    assert NamingContext.of(None).names() == {}
    for source in (5, b"names.toml", ["a"]):
        with pytest.raises(ConfigError, match="a table or the path"):
            NamingContext.of(source)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    for name, text in (("jndi.properties", "queue.a=Q"), ("names.toml", 'a="queue:Q"')):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert NamingContext.of(tmp_path / name).lookup("a") == Queue("Q")


def test_a_file_at_fault_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: the names cannot be read"):
        NamingContext.of(tmp_path / "absent.toml")
    bad = tmp_path / "bad.properties"
    bad.write_text("queue.a=")
    with pytest.raises(ConfigError, match=r"bad\.properties: line 1"):
        NamingContext.of(bad)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b", [(1, "a", "b")]),
        ("  a : b ", [(1, "a", "b ")]),
        ("a b=c", [(1, "a", "b=c")]),
        ("a\\ b=c", [(1, "a b", "c")]),
        ("a\\=b=c", [(1, "a=b", "c")]),
        ("a=b\\\\\nc=d", [(1, "a", "b\\"), (2, "c", "d")]),
        ("a=b\\\n   c\r\nd", [(1, "a", "bc"), (3, "d", "")]),
        ("a=x\\\n# no comment", [(1, "a", "x# no comment")]),
        ("\ufeff# c\n\n!d\n a=\\u0041\\tz", [(4, "a", "A\tz")]),
        ("a=b\\", [(1, "a", "b")]),
        ("a=\\uD83D\\uDE00\\\\u", [(1, "a", "\U0001f600\\u")]),
        ("=v", [(1, "", "v")]),
        ("", []),
    ],
)
def test_property_files_read_as_java_reads_them(text: str, entries: list[tuple[int, str, str]]) -> None:
    assert list(read_properties(text)) == entries


def attempt(action: Callable[[str], object], text: str) -> object:
    try:
        return action(text)
    except MtosiError as exc:
        return exc


@given(st.text())
def test_any_text_is_a_context_or_an_error_of_ours(text: str) -> None:
    for make in (NamingContext.from_properties, NamingContext.from_toml):
        assert isinstance(attempt(make, text), (NamingContext, ConfigError))


@given(st.text())
def test_any_name_is_found_or_an_error_of_ours(text: str) -> None:
    found = attempt(NamingContext({"a": "queue:b"}).lookup, text)
    assert isinstance(found, (Destination, NamingError))
