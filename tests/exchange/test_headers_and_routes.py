"""What stands in the headers of requests and replies, what a call may set, and where replies go."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import (
    ConfigError,
    EncodeError,
    HeaderError,
    InvalidDestinationError,
    MtosiFault,
    NamingError,
    ReplyTimeoutError,
    ResourceLimitError,
)
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.soap import FIELD_NAMES, header_text, parse
from mtosi_jms.stubs.fmw.hdr import ActivityStatusEnumType, ActivityStatusType
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.testing import SUPPLIER, InterceptedConnection, Recorder, connect_privately, exchange
from mtosi_jms.transport.memory import MemoryConnection

from ..waiting import PATIENCE
from .conftest import NE1, NE7, FaultyEms, SmallEms

NOON = dt.datetime(2026, 5, 4, 12, 0, 0, tzinfo=dt.UTC)


def fields(header: Any) -> dict[str, str]:
    """The header's simple fields by XML name, as text."""
    return {field: text for field in FIELD_NAMES if (text := header_text(header, field)) is not None}


@pytest.mark.obligation("R3d", "R14", "O6b", "O7b", "O13a", "P1", "C53")
def test_a_request_has_the_header_that_the_rules_want(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange(new_id=lambda: "id-1")
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(
        batch_size=2, options=CallOptions(header={"timestamp": NOON})
    )
    asked = pair.scripted.take()
    assert fields(asked.envelope.header) == {
        "activityName": "getAllManagedElements",
        "msgName": "getAllManagedElementsRequest",
        "msgType": "REQUEST",
        "senderURI": "jms/RequestorOS",
        "destinationURI": "jms/SupplierOS",
        "correlationId": "id-1",
        "communicationPattern": "MultipleBatchResponse",
        "communicationStyle": "MSG",
        "requestedBatchSize": "2",
        "timestamp": "2026-05-04T12:00:00Z",
    }
    assert dict(asked.message.properties) == {
        "MTOSI_activityName": "getAllManagedElements",
        "MTOSI_communicationPattern": "MultipleBatchResponse",
        "MTOSI_communicationStyle": "MSG",
        "MTOSI_destinationURI": "jms/SupplierOS",
        "MTOSI_msgName": "getAllManagedElementsRequest",
        "MTOSI_msgType": "REQUEST",
        "MTOSI_requestedBatchSize": 2,
    }
    assert asked.message.reply_to == Queue("REQUESTOR.OS")
    assert (asked.message.priority, asked.message.time_to_live_ms) == (4, 1_800_000)
    assert asked.message.delivery_mode is DeliveryMode.NON_PERSISTENT
    assert asked.message.correlation_id is None  # O13a
    assert asked.envelope.warnings == []
    assert batches.correlation_id == "id-1"


@pytest.mark.obligation("R3c", "R3d", "R5a", "R5b", "R6a", "R6b", "O13c", "C03", "C13", "T2.15")
def test_replies_have_the_header_that_the_rules_want(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange(new_id=lambda: "id-1")
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
    asked = pair.scripted.take()
    replies = asked.replies([SmallEms(3)])
    assert len(replies) == 2
    for number, (message, last) in enumerate(zip(replies, ("false", "true"), strict=True), 1):
        header = fields(parse(message.body).header)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", header.pop("timestamp"))
        assert header == {
            "activityName": "getAllManagedElements",
            "msgName": "getAllManagedElementsResponse",
            "msgType": "RESPONSE",
            "senderURI": "jms/SupplierOS",
            "destinationURI": "jms/RequestorOS",
            "activityStatus": "SUCCESS",
            "correlationId": "id-1",
            "communicationPattern": "MultipleBatchResponse",
            "communicationStyle": "MSG",
            "requestedBatchSize": "2",
            "batchSequenceNumber": str(number),
            "batchSequenceEndOfReply": last,
        }
        assert message.properties["MTOSI_batchSequenceNumber"] == number
        assert message.properties["MTOSI_batchSequenceEndOfReply"] is (last == "true")
        assert message.properties["MTOSI_senderURI"] == "jms/SupplierOS"
        assert "id-1" not in message.properties.values()  # R3d
        assert (message.reply_to, message.correlation_id) == (None, asked.message.message_id)  # C13, O13c


@pytest.mark.obligation("O13c", "C17")
def test_a_fault_carries_the_header_inside_its_detail(mtosi_exchange: Any) -> None:
    """C17: WSDL declares no header for faults; one in the SOAP header too only where the profile says so."""
    for in_header in (False, True):
        pair = mtosi_exchange(profile=BindingProfile(fault_in_header=in_header))
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_managed_element.invoke_batches(None, 5, CallOptions(correlation_id="id-1"), me_ref=NE7)
        asked = pair.scripted.take()
        (message,) = asked.replies([SmallEms()], profile=BindingProfile(fault_in_header=in_header))
        assert (b"<soap:Header>" in message.body) is in_header
        header = fields(parse(message.body).header)
        assert (header["msgType"], header["activityStatus"], header["correlationId"]) == ("ERROR", "FAILURE", "id-1")
        assert (header["msgName"], header["destinationURI"]) == ("getManagedElementException", "jms/RequestorOS")
        assert message.properties["MTOSI_activityStatus"] == "FAILURE"
        assert message.correlation_id == asked.message.message_id


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\ufffe\uffff"), min_size=1, max_size=40)


@pytest.mark.obligation("R3b", "R3c", "R6a")
@given(TEXT)
@example(" \tin\n the\tmiddle ")
@example("漢字 𝄞 ñ")
@example("x" * 300)
@example("<&>'\"]]>")
@example("\r")
@example("a\rb\r\n")
@example("\x00")
@example("\x85 ")
def test_any_correlation_id_pairs_or_is_refused_before_anything_is_sent(identifier: str) -> None:
    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
            return mer.GetManagedElementResponse()

    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        seen: list[Any] = []
        options = CallOptions(correlation_id=identifier, timeout=5, on_reply=lambda one: seen.append(one.header))
        try:
            batches = stub.get_managed_element.batches(batch_size=1, options=options)
        except (HeaderError, EncodeError):
            assert pair.provider.held() == 0
            return
        asked = pair.scripted.take()
        pair.scripted.send(asked.replies([Ems()]))
        assert len(list(batches)) == 1
        assert [header.correlation_id for header in seen] == [identifier]
        assert pair.requestor.orphans == 0


@pytest.mark.obligation("R3b")
@pytest.mark.parametrize("identifier", ["", "   ", "\n"])
def test_a_request_without_correlation_id_is_not_sent(identifier: str, mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    stub = pair.stub(ManagedElementRetrieval)
    for options in (
        CallOptions(correlation_id=identifier),
        CallOptions(header={"correlation_id": None}),
        CallOptions(header={"correlation_id": identifier, "communication_style": "RPC"}),
    ):
        with pytest.raises(HeaderError) as caught:
            stub.get_managed_element(me_ref=NE1, options=options)
        assert caught.value.field == "correlationId"
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)


def test_an_id_in_use_is_refused(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    stub = pair.stub(ManagedElementRetrieval)
    first = stub.get_all_managed_elements.batches(batch_size=1, options=CallOptions(correlation_id="id"))
    with pytest.raises(ConfigError, match="pending"):
        stub.get_managed_element(me_ref=NE1, options=CallOptions(correlation_id="id"))
    assert pair.requestor.pending == 1
    first.close()
    assert pair.requestor.pending == 0


@pytest.mark.obligation("O6a", "C22", "C60")
def test_call_options_are_honoured(mtosi_exchange: Any) -> None:
    standing = {"clock": lambda: 1_700_000_000.0}  # a millisecond to live must not run out on the way
    pair = mtosi_exchange(profile=BindingProfile(delivery_mode=DeliveryMode.PERSISTENT), provider=standing)
    stub = pair.stub(ManagedElementRetrieval)

    def sent(**options: Any) -> JmsMessage:
        stub.get_managed_element.batches(me_ref=NE1, batch_size=1, options=CallOptions(**options))
        return pair.scripted.take().message

    plain = sent()
    assert plain.delivery_mode is DeliveryMode.PERSISTENT
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(plain.properties["MTOSIX_messageId"]))
    assert sent().properties["MTOSIX_messageId"] != plain.properties["MTOSIX_messageId"]
    assert sent(persistent=False).delivery_mode is DeliveryMode.NON_PERSISTENT
    assert "MTOSIX_messageId" not in sent(persistent=False).properties
    assert sent(priority=7).priority == 7
    assert b"priority>7<" in sent(priority=7).body
    assert sent(priority=0).priority == 0
    assert sent(time_to_live=2.5).time_to_live_ms == 2500
    assert sent(time_to_live=0).expiration_ms == 0
    assert sent(time_to_live=0.0001).time_to_live_ms == 1  # not 0, which is for ever
    status = ActivityStatusType(value=ActivityStatusEnumType.WARNING)
    headed = sent(header={"originator_uri": "jms/Gui", "activity_status": status})
    assert b"originatorURI>jms/Gui<" in headed.body
    assert headed.properties["MTOSI_activityStatus"] == "WARNING"


def test_requests_that_come_in_turn_keep_their_own_headers() -> None:
    heard: list[RequestContext] = []

    class Ems(ManagedElementRetrieval.Supplier):
        def get_managed_element(self, request: Any, context: RequestContext) -> mer.GetManagedElementResponse:
            heard.append(context)
            return mer.GetManagedElementResponse()

    calls = (
        ("jms/Ems", "jms/Ems", None, 4),
        ("jms/Ems", "jms/Ems", CallOptions(priority=7), 7),
        ("queue:E", "queue:E", None, 4),
        ("jms:queue:E?priority=2", "jms:queue:E", CallOptions(correlation_id="<&>"), 2),
        ("jms/Ems", "jms/Ems", CallOptions(header={"originator_uri": "jms/Gui"}), 4),
    )
    names = {"jms/Os": "queue:O", "jms/Ems": "queue:E"}
    with (
        connect_privately(names) as connection,
        Supplier(connection, "jms/Ems", services=[Ems()]),
        Requestor(connection, sender_uri="jms/Os") as requestor,
    ):
        stubs = {address: ManagedElementRetrieval(requestor, address) for address, *_ in calls}
        for _ in range(4):
            for address, uri, options, priority in calls:
                stubs[address].get_managed_element(me_ref=NE1, options=options)
                header = fields(heard[-1].header)
                assert (header["destinationURI"], heard[-1].message.priority) == (uri, priority)  # type: ignore[union-attr]
                assert header.get("originatorURI") == (options and options.header.get("originator_uri"))
                assert (header["correlationId"] == "<&>") is (priority == 2)
    own = {context.correlation_id for context in heard}
    assert len(own) == len(heard) - 3  # four of them have the id that their call gave


@pytest.mark.obligation("C25")
@pytest.mark.parametrize("size", ["2147483648", "4294967295"])
def test_a_batch_size_beyond_an_integer_is_not_echoed(mtosi_exchange: Any, size: str) -> None:
    """XML allows it, and a peer may mean `everything` by it: the answer comes, without the number."""
    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
    asked = pair.scripted.take()
    body = asked.message.body.replace(b"requestedBatchSize>2<", f"requestedBatchSize>{size}<".encode())
    asked = dataclasses.replace(asked, message=dataclasses.replace(asked.message, body=body))
    (message,) = asked.replies([SmallEms(3)])
    header = fields(parse(message.body).header)
    assert (header["msgType"], header["batchSequenceEndOfReply"]) == ("RESPONSE", "true")
    assert "requestedBatchSize" not in header


@pytest.mark.obligation("C53")
def test_a_destination_object_is_named_in_the_header(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    session = pair.connection.session()
    for target, uri in ((pair.destination, SUPPLIER), (Queue("X"), "queue:X")):
        stub = ManagedElementRetrieval(pair.requestor, target)
        stub.get_managed_element.batches(me_ref=NE1, batch_size=1)
        delivery = session.consumer(target).receive(0) if uri == "queue:X" else None
        message = delivery.message if delivery else pair.scripted.take().message
        assert message.properties["MTOSI_destinationURI"] == uri


# Reply addresses


@pytest.mark.obligation("R16b")
def test_replies_to_another_name() -> None:
    """R16b: replyToURI decides; senderURI becomes a property."""
    names = {"jms/OS": "queue:OS", "jms/Replies": "queue:R", SUPPLIER: "queue:S"}
    with exchange([SmallEms()], names=names, sender_uri="jms/OS", reply_to="jms/Replies") as pair:
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
    with exchange(names=names, sender_uri="jms/OS", reply_to="jms/Replies") as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE1, batch_size=1)
        message = pair.scripted.take().message
        assert message.reply_to == Queue("R")
        assert message.properties["MTOSI_senderURI"] == "jms/OS"


@pytest.mark.obligation("R2b", "C15", "C43")
def test_a_temporary_reply_queue() -> None:
    """R2b, C15: the logical name stays the sender; no replyToURI, since a temporary queue has no name."""
    names = {SUPPLIER: "queue:S"}
    with exchange([SmallEms()], names=names, sender_uri="jms/NotInTheContext", temporary_reply=True) as pair:
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None
        assert len(list(pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2))) == 3
    with exchange(names=names, sender_uri="jms/NotInTheContext", temporary_reply=True) as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE1, batch_size=1)
        asked = pair.scripted.take()
        assert asked.message.reply_to is not None
        assert asked.message.reply_to.is_temporary
        assert "replyToURI" not in fields(asked.envelope.header)


@pytest.mark.obligation("P29", "T2.7", "C16")
def test_failures_to_a_destination_of_their_own() -> None:
    """P29, C16: errors go to failureReplytoURI, successes to JMSReplyTo; the requestor looks at both."""
    with exchange([SmallEms()], failure_reply_to="jms/FailureOS") as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(EntityNotFoundFault) as caught:
            stub.get_managed_element(me_ref=NE7)
        assert caught.value.header.destination_uri == "jms/FailureOS"
        assert stub.get_managed_element(me_ref=NE1).me is not None
    with exchange(failure_reply_to="jms/FailureOS") as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE7, batch_size=1)
        asked = pair.scripted.take()
        assert [one.destination for one in asked.replies([SmallEms()])] == [Queue("FAILURE.OS")]
        assert asked.message.properties["MTOSI_failureReplytoURI"] == "jms/FailureOS"


@pytest.mark.obligation("C16")
def test_a_failure_address_that_nobody_knows_falls_back_to_the_reply_address(
    mtosi_exchange: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pair = mtosi_exchange([SmallEms()])
    options = CallOptions(header={"failure_replyto_uri": "jms/NobodyOS"})
    with pytest.raises(EntityNotFoundFault):
        pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE7, options=options)
    assert "failureReplytoURI cannot be used" in caplog.text


def test_both_addresses_the_same() -> None:
    with exchange([SmallEms()], failure_reply_to="queue:REQUESTOR.OS") as pair:
        stub = pair.stub(ManagedElementRetrieval)
        with pytest.raises(EntityNotFoundFault):
            stub.get_managed_element(me_ref=NE7)
        assert stub.get_managed_element(me_ref=NE1).me is not None


def test_a_requestor_that_cannot_be_made_leaves_no_session() -> None:
    with connect_privately() as opened:
        connection = InterceptedConnection(opened)
        for arguments, error in (
            ({"sender_uri": " "}, HeaderError),
            ({"sender_uri": "jms/NobodyOS"}, NamingError),
            ({"sender_uri": "jms/RequestorOS", "reply_to": "jms/NobodyOS"}, NamingError),
            ({"sender_uri": "jms/RequestorOS", "failure_reply_to": "jms/NobodyOS"}, NamingError),
            ({"sender_uri": "a", "reply_to": "jms/RequestorOS", "temporary_reply": True}, ConfigError),
        ):
            with pytest.raises(error):
                Requestor(connection, **arguments)  # type: ignore[arg-type]
        assert connection.sessions == []


@pytest.mark.obligation("R2b", "C43")
def test_a_supplier_needs_a_destination_and_services_of_its_own() -> None:
    with connect_privately() as connection:
        with pytest.raises(ConfigError, match="R2a"):
            Supplier(connection, connection.session().temporary_queue(), [SmallEms()])
        with pytest.raises(ConfigError, match="R2a"):
            Supplier(connection, connection.session().temporary_topic(), [NotificationConsumer.Supplier()])
        with pytest.raises(ConfigError, match="two services"):
            Supplier(connection, SUPPLIER, [SmallEms(), SmallEms()])
        with pytest.raises(NamingError):
            Supplier(connection, "jms/NobodyOS", [SmallEms()])
        with pytest.raises(NamingError):  # by the letter of R16 each reply has a JMSReplyTo: it must be resolvable
            Supplier(connection, SUPPLIER, [SmallEms()], sender_uri="jms/X", profile=BindingProfile.preset("literal"))


@pytest.mark.obligation("C13")
def test_literal_rule_16_end_to_end() -> None:
    with exchange([SmallEms()], profile=BindingProfile.preset("literal")) as pair:
        assert pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1).me is not None


# The supplier's side of it


class Asking:
    """A request to be changed, and what a supplier does with it."""

    def __init__(self, message: JmsMessage, supplier: Callable[..., Supplier]) -> None:
        self.message = message
        self.supplier = supplier
        self.reported: list[Exception] = []

    def answered(self, **changes: Any) -> list[JmsMessage]:
        arguments = changes.pop("arguments", {})
        recorder = Recorder()
        supplier = self.supplier(on_error=self.reported.append, **arguments)
        supplier.answer(dataclasses.replace(self.message, **changes), recorder)
        return recorder.sent


@pytest.fixture
def asking(mtosi_exchange: Any) -> Asking:
    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(
        batch_size=2, options=CallOptions(correlation_id="id-1", header={"failure_replyto_uri": "jms/FailureOS"})
    )
    message = pair.scripted.take().message
    return Asking(message, lambda **more: Supplier(pair.connection, SUPPLIER, [SmallEms()], **more))


@pytest.mark.obligation("C16")
def test_a_fault_without_reply_address_goes_to_the_failure_address(asking: Asking) -> None:
    unknown = asking.message.body.replace(b"getAllManagedElementsRequest", b"getNothingRequest")
    (fault,) = asking.answered(reply_to=None, body=unknown)
    assert fault.destination == Queue("FAILURE.OS")


@pytest.mark.obligation("SEC18")
def test_replies_go_only_where_the_policy_allows(asking: Asking) -> None:
    """Unless told otherwise: to destinations that the naming context knows, and to temporary ones."""
    assert len(asking.answered()) == 3
    assert asking.answered(reply_to=Queue("SOMEBODY.ELSES")) == []
    assert [type(error) for error in asking.reported] == [InvalidDestinationError]
    assert len(asking.answered(reply_to=Queue("SOMEBODY.ELSES"), arguments={"reply_policy": lambda _: True})) == 3
    assert asking.answered(arguments={"reply_policy": lambda _: False}) == []


@pytest.mark.obligation("C16", "SEC18")
def test_the_policy_holds_for_the_failure_address_too(asking: Asking) -> None:
    unknown = asking.message.body.replace(b"getAllManagedElementsRequest", b"getNothingRequest")
    policy = {"reply_policy": lambda destination: destination != Queue("FAILURE.OS")}
    assert [one.destination for one in asking.answered(body=unknown)] == [Queue("FAILURE.OS")]
    (fault,) = asking.answered(body=unknown, arguments=policy)
    assert fault.destination == Queue("REQUESTOR.OS")


@pytest.mark.obligation("SEC18")
def test_a_policy_that_fails_allows_nothing(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    def policy(destination: Any) -> bool:
        raise ZeroDivisionError

    assert asking.answered(arguments={"reply_policy": policy}) == []
    assert "the reply policy failed" in caplog.text
    with pytest.raises(ConfigError, match="reply_policy: give a function"):
        asking.answered(arguments={"reply_policy": "any"})


@pytest.mark.obligation("SEC18")
def test_a_request_that_may_not_be_answered_is_not_carried_out(mtosi_exchange: Any) -> None:
    done: list[int] = []
    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_managed_element.batches(batch_size=1)
    asked = pair.scripted.take()
    supplier = Supplier(pair.connection, SUPPLIER, [FaultyEms(lambda: done.append(1))], reply_policy=lambda _: False)
    supplier.answer(asked.message, pair.connection.session())
    assert done == []


@pytest.mark.obligation("SEC18")
def test_without_a_naming_context_any_queue_may_be_answered_and_no_topic(asking: Asking) -> None:
    with connect_privately({}) as connection:
        session = connection.session()
        supplier = Supplier(connection, Queue("S"), [SmallEms()])
        assert supplier.sender_uri == "queue:S"
        for reply_to, count in ((Queue("ANY"), 3), (Topic("ANY"), 0)):
            consumer = session.consumer(reply_to)
            connection.start()
            supplier.answer(dataclasses.replace(asking.message, reply_to=reply_to), connection.session())
            received = [delivery for _ in range(4) if (delivery := consumer.receive(0)) is not None]
            assert len(received) == count


def test_replies_to_a_requestor_that_is_gone_end_the_handler(mtosi_exchange: Any) -> None:
    """A temporary queue goes with its connection: the supplier stops working for nobody, and says so once."""
    reported: list[Exception] = []
    pair = mtosi_exchange([SmallEms(1000)], supplier={"on_error": reported.append})
    gone = MemoryConnection(pair.provider, pair.connection.names)
    requestor = Requestor(gone, sender_uri="jms/RequestorOS", temporary_reply=True)
    ended: list[bool] = []

    class Ems(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Any:
            gone.close()
            try:
                yield from SmallEms(1000).get_all_managed_elements(request, context)
            finally:
                ended.append(True)

    pair.supplier.stop()
    supplier = Supplier(pair.connection, SUPPLIER, [Ems()], on_error=reported.append)
    ManagedElementRetrieval(requestor, SUPPLIER).get_all_managed_elements.batches(batch_size=1)
    consumer = pair.connection.session().consumer(pair.destination)
    delivery = consumer.receive(60)
    assert delivery is not None
    supplier.answer(delivery.message, pair.connection.session())
    assert [type(error) for error in reported] == [InvalidDestinationError]
    assert ended == [True]


def test_a_reply_queue_that_is_full_does_not_end_the_supplier(mtosi_exchange: Any) -> None:
    reported: list[Exception] = []
    pair = mtosi_exchange(provider={"capacity": 2, "send_timeout": 0})
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
    supplier = Supplier(pair.connection, SUPPLIER, [SmallEms(5)], on_error=reported.append)
    supplier.answer(pair.scripted.take().message, pair.connection.session())
    assert [type(error) for error in reported] == [ResourceLimitError]
    assert [len(next(batches).me_list.me) for _ in range(2)] == [1, 1]
    batches.close()


def test_a_request_without_correlation_id_is_answered_with_its_message_id(asking: Asking) -> None:
    """Read leniently: such a peer pairs by JMSCorrelationID, and what we send has an id all the same."""
    for value in (b"", b"  "):
        body = re.sub(rb"correlationId>id-1<", b"correlationId>" + value + b"<", asking.message.body)
        replies = asking.answered(body=body)
        assert len(replies) == 3
        assert {one.correlation_id for one in replies} == {asking.message.message_id}
        assert {parse(one.body).header.correlation_id for one in replies} == {asking.message.message_id}


def test_a_request_without_header_is_answered_once(asking: Asking) -> None:
    body = re.sub(rb"<soap:Header>.*</soap:Header>", b"", asking.message.body)
    (reply,) = asking.answered(body=body)
    envelope = parse(reply.body)
    assert len(envelope.body.me_list.me) == 5
    assert envelope.header.communication_pattern == "SimpleResponse"


@pytest.mark.obligation("C51")
@pytest.mark.parametrize("pattern", [b"MultipleResponse", b"multiplebatchresponse", b""])
def test_communication_patterns_are_read_leniently(pattern: bytes, asking: Asking) -> None:
    """C51, P2: the older guides' spelling means batches; what is none means one answer."""
    body = asking.message.body.replace(b"Pattern>MultipleBatchResponse<", b"Pattern>" + pattern + b"<")
    replies = asking.answered(body=body)
    assert len(replies) == (3 if pattern == b"MultipleResponse" else 1)


NIL = b' xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"><'


@pytest.mark.obligation("C24")
@pytest.mark.parametrize("size", [b">0<", b">-5<", b">many<", b"><", NIL])
def test_a_batch_size_that_says_nothing_means_one_batch(size: bytes, asking: Asking) -> None:
    body = asking.message.body.replace(b"BatchSize>2<", b"BatchSize" + size)
    assert body != asking.message.body
    (reply,) = asking.answered(body=body)
    header = parse(reply.body).header
    assert (header.batch_sequence_number, header.batch_sequence_end_of_reply) == (1, True)


@pytest.mark.obligation("C52")
def test_replies_come_in_the_soap_version_of_the_request(asking: Asking, mtosi_exchange: Any) -> None:
    """C52."""
    soap12 = asking.message.body.replace(
        b"http://schemas.xmlsoap.org/soap/envelope/", b"http://www.w3.org/2003/05/soap-envelope"
    )
    replies = asking.answered(body=soap12)
    assert len(replies) == 3
    assert {parse(one.body).version for one in replies} == {"1.2"}
    (fault,) = asking.answered(body=soap12.replace(b"getAllManagedElementsRequest", b"getNothingRequest"))
    envelope = parse(fault.body)
    assert envelope.version == "1.2"
    assert envelope.fault is not None
    assert (envelope.fault.fault_code, envelope.fault.reason) == ("Sender", "no operation here takes getNothingRequest")


@pytest.mark.obligation("C52")
def test_a_fault_in_soap_12_keeps_its_kind(mtosi_exchange: Any) -> None:
    pair = mtosi_exchange()
    pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE7, batch_size=1)
    asked = pair.scripted.take()
    body = asked.message.body.replace(
        b"http://schemas.xmlsoap.org/soap/envelope/", b"http://www.w3.org/2003/05/soap-envelope"
    )
    changed = dataclasses.replace(asked, message=dataclasses.replace(asked.message, body=body))
    (message,) = changed.replies([SmallEms()])
    fault = parse(message.body).fault
    assert isinstance(fault, EntityNotFoundFault)
    assert (fault.fault_code, fault.header.msg_type) == ("Receiver", "ERROR")


def test_strict_reading_refuses_what_does_not_fit(asking: Asking) -> None:
    strict = {"arguments": {"profile": BindingProfile(validation="strict")}}
    assert len(asking.answered(**strict)) == 3
    body = asking.message.body.replace(b"BatchSize>2<", b"BatchSize>many<")
    (reply,) = asking.answered(body=body, **strict)
    fault = parse(reply.body).fault
    assert fault is not None
    assert "cannot be read" in fault.reason
    assert len(asking.answered(body=body)) == 1


@pytest.mark.obligation("O13e")
def test_the_strategies_of_correlation() -> None:
    """O13e."""
    for correlation in ("both", "xml", "jms"):
        with exchange([SmallEms()], profile=BindingProfile(correlation=correlation)) as pair:
            stub = pair.stub(ManagedElementRetrieval)
            assert stub.get_managed_element(me_ref=NE1).me is not None
            with pytest.raises(EntityNotFoundFault):
                stub.get_managed_element(me_ref=NE7)


@pytest.mark.obligation("O13b", "O13d", "O13e")
def test_a_bare_fault_pairs_by_message_id_alone() -> None:
    def without_header(replies: list[JmsMessage]) -> list[JmsMessage]:
        (fault,) = replies
        return [dataclasses.replace(fault, body=re.sub(rb"<soap:Header>.*</soap:Header>", b"", fault.body))]

    with exchange([SmallEms()], tamper=without_header) as pair:
        inventory = pair.stub(ResourceInventoryRetrieval)
        with pytest.raises(MtosiFault, match="no operation here takes getInventoryRequest"):
            inventory.get_inventory()
    orphans: SimpleQueue[Any] = SimpleQueue()
    alone = {"profile": BindingProfile(correlation="xml"), "timeouts": Timeouts(first_reply=0.01)}
    with exchange(on_orphan=orphans.put, **alone) as pair:
        batches = pair.stub(ResourceInventoryRetrieval).get_inventory.batches(batch_size=1)
        pair.scripted.send(without_header(pair.scripted.take().replies([SmallEms()])))
        with pytest.raises(ReplyTimeoutError):
            next(batches)
        assert orphans.get(timeout=PATIENCE).reason.name == "NO_ID"


def test_the_header_of_every_call_is_its_own() -> None:
    """From the second call on requests and replies are made of forms: what differs between calls must not get lost."""
    names = {"jms/Ems": "queue:EMS", "jms/One": "queue:ONE", "jms/Two": "queue:TWO", "jms/Other": "queue:OTHER"}
    ems = SmallEms()
    seen: list[dict[str, str]] = []
    with (
        connect_privately(names=names) as connection,
        Supplier(connection, "jms/Ems", services=[ems]),
        Requestor(connection, sender_uri="jms/One") as one,
        Requestor(connection, sender_uri="jms/Two", reply_to="jms/Other") as two,
    ):
        stubs = [ManagedElementRetrieval(requestor, "jms/Ems") for requestor in (one, two, one, two, two, one)]
        settings = [{}, {}, {"priority": 7}, {"correlation_id": " a & b "}, {"header": {"originator_uri": "jms/O"}}, {}]
        for stub, setting in zip(stubs * 3, settings * 3, strict=True):
            options = CallOptions(on_reply=lambda envelope: seen.append(fields(envelope.header)), **setting)
            assert stub.get_managed_element(me_ref=NE1, options=options).me.name == NE1
    asked = [fields(context.header) for context in ems.contexts]
    own = [header.pop("correlationId") for header in asked]
    assert len(set(own)) == 16
    assert own[3::6] == [" a & b "] * 3
    assert [header.pop("correlationId") for header in seen] == own
    for header in (*asked, *seen):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", header.pop("timestamp"))
    usual = {"msgName": "getManagedElementRequest", "msgType": "REQUEST", "destinationURI": "jms/Ems"}
    first, second = {**usual, "senderURI": "jms/One"}, {**usual, "senderURI": "jms/Two", "replyToURI": "jms/Other"}
    wanted = [first, second, {**first, "priority": "7"}, second, {**second, "originatorURI": "jms/O"}, first]
    shared = {
        "activityName": "getManagedElement",
        "communicationPattern": "SimpleResponse",
        "communicationStyle": "MSG",
    }
    assert asked == [{**header, **shared} for header in wanted] * 3
    answer = {"msgName": "getManagedElementResponse", "msgType": "RESPONSE", "activityStatus": "SUCCESS", **shared}
    answered = ["jms/One", "jms/Other", "jms/One", "jms/Other", "jms/Other", "jms/One"]
    assert seen == [{**answer, "senderURI": "jms/Ems", "destinationURI": uri} for uri in answered] * 3
