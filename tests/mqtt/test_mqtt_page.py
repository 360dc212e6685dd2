"""docs/mqtt.md: each cell of its tables is what a broker did, and its code prints what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mtosi_jms.jms import DeliveryMode, JmsMessage, MessageType, Queue, Topic

from .pages import COLUMNS, PAGE, table, tables
from .wire import CONNACK_ACCEPTED, Wire, connect_packet, subscribe_packet

DOES_NOT = "-"
Take = Callable[[Any], JmsMessage]
pytestmark = pytest.mark.broker


def told(bench: Any, packet: bytes) -> str:
    """What a broker says to a CONNECT."""
    with Wire(bench.broker) as wire:
        wire.send(packet)
        answer = wire.packet()
    if not answer:
        return "the connection is closed"
    code = answer[3]
    return f"refused, code {code}" if code else "accepted"


def version(name: str) -> Callable[[Any], str]:
    return lambda bench: "yes" if bench.device(version=name).is_connected else "no: the connection is closed"


VERSIONS: Mapping[str, Callable[[Any], str]] = {
    "MQTT 3.1": version("3.1"),
    "MQTT 3.1.1": version("3.1.1"),
    "MQTT 5": version("5"),
    "wrong password": lambda bench: told(bench, connect_packet(bench, bench.name(), password="wrong")),
    "unknown version": lambda bench: told(bench, connect_packet(bench, bench.name(), protocol=(b"MQTT", 9))),
    "a client id of 24 characters, MQTT 3.1": lambda bench: told(
        bench, connect_packet(bench, bench.name().ljust(24, "x"), protocol=(b"MQIsdp", 3))
    ),
    "a client id of 24 characters, MQTT 3.1.1": lambda bench: told(
        bench, connect_packet(bench, bench.name().ljust(24, "x"))
    ),
    "no client id, subscriptions kept": lambda bench: told(bench, connect_packet(bench, "", flags=0)),
}


def measured(head: str, measures: Mapping[str, Any], bench: Any, *more: Any) -> dict[str, str]:
    """What the broker does, by the rows of a table; each has a measure, and each measure a row."""
    assert {row[0] for row in table(head)} == measures.keys()
    return {name: measure(bench, *more) for name, measure in measures.items()}


def cells(head: str, kind: str) -> dict[str, str]:
    return {row[0]: row[COLUMNS[kind]] for row in table(head)}


@pytest.mark.obligation("001-M14", "001-M15")
def test_versions(bench: Any) -> None:
    assert measured("protocol", VERSIONS, bench) == cells("protocol", bench.kind)


def arrived(bench: Any, take: Take, *, version: str = "3.1.1", qos: int = 1, **properties: object) -> JmsMessage:
    """What JMS has of a message that a device published; None where the device cannot connect."""
    name, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        bench.device(version=version).publish(name, b"<a/>", qos, **properties)
        return take(consumer)


def mode(qos: int) -> Callable[[Any, Take], str]:
    return lambda bench, take: arrived(bench, take, qos=qos).delivery_mode.name


def shown(values: Any) -> str:
    return ", ".join(map(str, values)) or "none"


def headers(message: JmsMessage) -> str:
    return shown(one for one in (message.reply_to, message.correlation_id, message.jms_type) if one is not None)


def user_properties(bench: Any, take: Take) -> str:
    if bench.kind == "activemq":
        return DOES_NOT
    message = arrived(
        bench,
        take,
        version="5",
        UserProperty=[("MTOSI_msgName", "notify")],
        ContentType="text/xml",
        ResponseTopic="MTOSI/Reply",
        CorrelationData=b"call-1",
    )
    assert headers(message) == "none"
    return shown(message.properties)


def expiry(bench: Any, take: Take) -> str:
    if bench.kind == "activemq":
        return DOES_NOT
    message = arrived(bench, take, version="5", MessageExpiryInterval=60)
    assert message.timestamp_ms is not None
    return "JMSExpiration" if message.expiration_ms - message.timestamp_ms == 60_000 else "none"


def retained_live(bench: Any, take: Take) -> str:
    name, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        bench.device().publish(name, b"live", retain=True)
        message = take(consumer)
    assert message.body == b"live"
    return f"the message, {f'with {message.properties}' if message.properties else 'without a mark'}"


def retained_late(bench: Any, take: Take) -> str:
    name, topic = bench.topic()
    device = bench.device()
    device.publish(name, b"kept", retain=True)
    with bench.session.consumer(topic) as consumer:
        device.publish(name, b"later")
        return {b"later": "nothing", b"kept": "the message"}[take(consumer).body]


def durable(bench: Any, take: Take) -> str:
    name, topic = bench.topic()
    bench.session.consumer(topic, durable=name).close()
    device = bench.device()
    for qos in (0, 1, 2):
        device.publish(name, b"%d" % qos, qos)
    with bench.session.consumer(topic, durable=name) as consumer:
        kept = {take(consumer).body for _ in range(3)}
    bench.session.unsubscribe(name)
    return "kept, QoS 0 too" if kept == {b"0", b"1", b"2"} else str(kept)


def selected(bench: Any, take: Take) -> str:
    name, topic = bench.topic()
    with (
        bench.session.consumer(topic, "MTOSI_msgName IS NOT NULL") as having,
        bench.session.consumer(topic, "MTOSI_msgName IS NULL") as lacking,
    ):
        bench.device().publish(name, b"of a device")
        bench.send(topic, b"of JMS", properties={"MTOSI_msgName": "notify"})
        assert take(having).body == b"of JMS"
        return {b"of a device": "NULL"}[take(lacking).body]


FROM_DEVICE: Mapping[str, Callable[[Any, Take], str]] = {
    **{f"QoS {qos}": mode(qos) for qos in (0, 1, 2)},
    "payload, received over STOMP": lambda bench, take: arrived(bench, take).message_type.value,
    "priority": lambda bench, take: str(arrived(bench, take).priority),
    "properties": lambda bench, take: shown(arrived(bench, take).properties),
    "reply destination, correlation id, JMSType": lambda bench, take: headers(arrived(bench, take)),
    "user properties, content type, response topic, correlation data (MQTT 5)": user_properties,
    "message expiry interval (MQTT 5)": expiry,
    "retain flag, to JMS consumers that are there": retained_live,
    "retain flag, to JMS consumers that come later": retained_late,
    "to a durable JMS subscription that is away": durable,
    "what a selector on a property of Table 2 sees": selected,
}
BY_JAVA = "payload, received by `jvm:`"


@pytest.mark.obligation("001-M3")
def test_from_a_device_to_jms(bench: Any, take: Take) -> None:
    head = "what a device publishes"
    java = {BY_JAVA: lambda bench, take: cells(head, bench.kind)[BY_JAVA]}  # the next test's
    assert measured(head, FROM_DEVICE | java, bench, take) == cells(head, bench.kind)


@pytest.mark.parametrize("client", ["jvm-activemq", "jvm-artemis"])
def test_from_a_device_to_java(
    client: str, request: pytest.FixtureRequest, make_bench: Any, take: Take, connect_by_java: Callable[..., Any]
) -> None:
    kind = client.removeprefix("jvm-")
    bench = make_bench(kind)
    name, topic = bench.topic()
    with connect_by_java(kind, bench.broker) as connection:
        connection.start()
        consumer = connection.session().consumer(topic)
        bench.device().publish(name, b"<a/>")
        message = take(consumer)
    assert message.body == b"<a/>"
    assert message.message_type.value == cells("what a device publishes", kind)[BY_JAVA]


def delivered(bench: Any, *, version: str = "3.1.1", **options: Any) -> Any:
    """What a device has of a message of JMS."""
    name, topic = bench.topic()
    device = bench.device(version=version)
    assert device.subscribe(name) == [2]
    bench.send(topic, **options)
    return device.receive()


def qos_of(mode: DeliveryMode) -> Callable[[Any], str]:
    return lambda bench: f"QoS {delivered(bench, delivery_mode=mode).qos}"


ALL_OF_IT = {
    "properties": {"MTOSI_msgName": "notify"},
    "reply_to": Queue("R"),
    "correlation_id": "call-1",
    "jms_type": "MTOSI",
    "time_to_live_ms": 60_000,
}


def payload(kind: MessageType, name: str) -> Callable[[Any], str]:
    body = "<a>größe</a>".encode()
    return lambda bench: name if delivered(bench, body=body, message_type=kind).payload == body else "others"


def map_text(bench: Any) -> str:
    found = delivered(bench, body=b"", message_type=MessageType.MAP, content={"n": 7}).payload
    return "the text `<map>`" if found == b'<map><n dt="i4">7</n></map>' else str(found)


def properties_3(bench: Any) -> str:
    message = delivered(bench, **ALL_OF_IT)
    assert message.payload == b"<a/>"
    return "none" if getattr(message, "properties", None) is None else str(message.properties)


def properties_5(bench: Any) -> str:
    if bench.kind == "activemq":
        return DOES_NOT
    found = delivered(bench, version="5", **ALL_OF_IT).properties.json()
    return shown(found.keys() - {"MessageExpiryInterval"})


def life_5(bench: Any) -> str:
    if bench.kind == "activemq":
        return DOES_NOT
    found = delivered(bench, version="5", **ALL_OF_IT).properties
    return "message expiry interval" if 50 <= found.MessageExpiryInterval <= 60 else "none"


def to_queue(bench: Any) -> str:
    name, topic = bench.topic()
    device = bench.device()
    device.subscribe(name)
    bench.session.send(Queue(topic.name), JmsMessage(body=b"to the queue"))
    bench.send(Topic(topic.name), b"to the topic")
    return {b"to the topic": "nothing"}[device.receive().payload]


TO_DEVICE: Mapping[str, Callable[[Any], str]] = {
    **{mode.name: qos_of(mode) for mode in DeliveryMode},
    "TextMessage": payload(MessageType.TEXT, "the text in UTF-8"),
    "BytesMessage": payload(MessageType.BYTES, "the octets"),
    "MapMessage, sent over STOMP": map_text,
    "properties, JMSReplyTo, JMSCorrelationID, JMSType": properties_3,
    "properties, JMSReplyTo, JMSCorrelationID, JMSType (MQTT 5)": properties_5,
    "time to live (MQTT 5)": life_5,
    "a message to a queue of that name": to_queue,
}


def test_from_jms_to_a_device(bench: Any) -> None:
    head = "what JMS sends"
    assert measured(head, TO_DEVICE, bench) == cells(head, bench.kind)


def test_names_of_topics(bench: Any, take: Take) -> None:
    head, device, found = "topic in MQTT", bench.device(), {}
    for row in table(head):
        own = bench.name()
        in_mqtt, in_jms = (row[column].strip("`").replace("MTOSI", own) for column in (0, COLUMNS[bench.kind]))
        with bench.session.consumer(Topic(in_jms)) as consumer:
            device.publish(in_mqtt, b"to JMS")
            assert take(consumer).body == b"to JMS"
        device.subscribe(in_mqtt)
        bench.send(Topic(in_jms), b"from JMS")
        message = device.receive()
        assert (message.topic, message.payload) == (in_mqtt, b"from JMS")
        found[row[0]] = row[COLUMNS[bench.kind]]
    assert found == cells(head, bench.kind)


SENT = ("MTOSI", "MTOSI.Fault", "MTOSI.Fault.Optical", "MTOSI.Inventory")


def in_order(bench: Any, topic: Topic, body: bytes) -> None:
    """Sends, and returns when the broker has it."""
    bench.send(topic, body, delivery_mode=DeliveryMode.PERSISTENT)


def test_filters_of_topics(bench: Any) -> None:
    head, own, found = "a device subscribes to", bench.name(), {}
    for row in table(head):
        device = bench.device()
        device.subscribe(row[0].strip("`").replace("MTOSI", own))
        for name in SENT:
            in_order(bench, Topic(name.replace("MTOSI", own)), name.encode())
        in_order(bench, Topic(f"{own}.Fault"), b"the end")  # each filter takes it; among topics there is no order
        wanted = row[COLUMNS[bench.kind]].count("`") // 2
        received = {device.receive().payload.decode() for _ in range(wanted + 1)}
        assert "the end" in received
        found[row[0]] = ", ".join(f"`{name}`" for name in SENT if name in received)
    assert found == cells(head, bench.kind)


@pytest.mark.obligation("001-M20")
def test_the_lesser_quality_of_service(bench: Any) -> None:
    name, _ = bench.topic()
    publisher, found = bench.device(), [[str(qos)] for qos in (0, 1, 2)]
    for asked in (0, 1, 2):
        device = bench.device()
        assert device.subscribe(name, qos=asked) == [asked]
        for sent in (0, 1, 2):
            publisher.publish(name, b"x", sent)
            got = device.receive().qos
            assert got == min(asked, sent)
            found[sent].append(str(got))
        device.close()
    assert found == table("published")


def kept(bench: Any, publish: Callable[[str, Topic], None], count: int, *, clean: bool = False) -> str:
    """Whether a device gets what came while it was away."""
    name, topic = bench.topic()
    own = bench.name()
    with Wire(bench.broker) as away:
        away.send(connect_packet(bench, own, flags=0))
        assert away.packet() == CONNACK_ACCEPTED
        away.send(subscribe_packet(name, 2))
        assert away.packet() == bytes.fromhex("9003000102")
        away.disconnect()  # the broker knows that it is away: QoS 0 on its way to a device is lost
    publish(name, topic)
    end = f"{name}/end" if clean else name
    if clean:
        new = bench.device(own)
        new.subscribe(end)  # by then the broker has forgotten the session
        new.close()
    back = bench.device(own, keeps=True)
    if clean:
        back.subscribe(end)
    bench.device().publish(end, b"the end")
    got = [back.receive().payload for _ in range(1 if clean else count + 1)]
    back.close()
    bench.device(own).close()  # the broker forgets the session
    return "no" if got == [b"the end"] else "yes" if set(got) > {b"the end"} else str(got)


def of_qos(*kinds: int) -> Callable[[Any], Callable[[str, Topic], None]]:
    def publisher(bench: Any) -> Callable[[str, Topic], None]:
        device = bench.device()
        return lambda name, topic: [device.publish(name, b"%d" % qos, qos) for qos in kinds] and None

    return publisher


def both_modes(bench: Any) -> Callable[[str, Topic], None]:
    return lambda name, topic: [bench.send(topic, b"%d" % one, delivery_mode=one) for one in DeliveryMode] and None


def retained(bench: Any) -> str:
    name, _ = bench.topic()
    publisher = bench.device()
    publisher.publish(name, b"old", retain=True)
    publisher.publish(name, b"kept", retain=True)
    device = bench.device()
    device.subscribe(name)
    message = device.receive()
    assert (message.payload, message.qos) == (b"kept", 1)
    publisher.publish(name, b"", retain=True)
    return "with the flag" if message.retain else "without the flag"


def retained_for_one_that_is_there(bench: Any) -> str:
    name, _ = bench.topic()
    device, publisher = bench.device(), bench.device()
    device.subscribe(name)
    publisher.publish(name, b"kept", retain=True)
    message = device.receive()
    publisher.publish(name, b"", retain=True)
    return "with the flag" if message.retain else "without the flag"


def of_jms_retained(bench: Any) -> str:
    name, topic = bench.topic()
    in_order(bench, topic, b"of JMS")
    device = bench.device()
    device.subscribe(name)
    bench.device().publish(name, b"the end")
    return {b"the end": "no", b"of JMS": "yes"}[device.receive().payload]


def will(bench: Any, take: Take, leave: Callable[[Wire], None], *, keep_alive: int = 60) -> str:
    """What becomes of the will of a device that leaves in some way."""
    name, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        with Wire(bench.broker) as wire:
            own = bench.name()
            wire.send(connect_packet(bench, own, will=(name, b"gone", 1), keep_alive=keep_alive))
            assert wire.packet() == CONNACK_ACCEPTED
            leave(wire)
            if keep_alive < 60:
                assert wire.packet() == b"", "the broker ends the connection"
        if leave is Wire.disconnect:
            bench.device().publish(name, b"the end")
        message = take(consumer)
    return {b"gone": "published", b"the end": "not published"}[message.body]


BROKEN = "will, the connection breaks"
SILENT = "will, the device is silent for 1.5 times its keep alive"
LEFT = "will, the device says DISCONNECT"
SESSIONS: Mapping[str, Callable[[Any, Take], str]] = {
    "kept for a device whose session is not clean, QoS 0": lambda bench, _: kept(bench, of_qos(0)(bench), 1),
    "kept for a device whose session is not clean, QoS 1 and 2": lambda bench, _: kept(bench, of_qos(1, 2)(bench), 2),
    "kept for it of JMS, PERSISTENT and NON_PERSISTENT": lambda bench, _: kept(bench, both_modes(bench), 2),
    "kept after it connected with a clean session": lambda bench, _: kept(bench, of_qos(1, 2)(bench), 2, clean=True),
    "retained message, to a device that subscribes later": lambda bench, _: retained(bench),
    "retained message, to a device that is there": lambda bench, _: retained_for_one_that_is_there(bench),
    "a JMS message is retained": lambda bench, _: of_jms_retained(bench),
    BROKEN: lambda bench, take: will(bench, take, Wire.close),
    LEFT: lambda bench, take: will(bench, take, Wire.disconnect),
}


@pytest.mark.obligation("001-M8", "001-M11", "001-M12", "001-M18", "001-E10")
def test_connections_and_sessions(bench: Any, take: Take) -> None:
    silent = {SILENT: lambda bench, take: "published"}  # the next test's
    assert measured("", SESSIONS | silent, bench, take) == cells("", bench.kind)


@pytest.mark.obligation("001-M12", "001-M13")
@pytest.mark.parametrize("kind", ["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def test_a_device_that_is_silent_is_taken_for_gone(kind: str, make_bench: Any, take: Take) -> None:
    assert will(make_bench(kind), take, lambda wire: None, keep_alive=1) == cells("", kind)[SILENT]


def test_each_table_is_measured() -> None:
    heads = [one[0][0] for one in tables()]
    measured = ["protocol", "what a device publishes", "what JMS sends", "topic in MQTT", "a device subscribes to"]
    assert heads == [*measured, "published", "repetition", ""]


def test_the_code_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "mqtt.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\) +# (.*)", block)
