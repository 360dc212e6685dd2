"""zeep over JMS: one call and its answer, as zeep's users make them."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zeep
from lxml import etree
from zeep.helpers import serialize_object
from zeep.plugins import HistoryPlugin
from zeep.wsse.username import UsernameToken

from mtosi_jms.errors import ConfigError, IncompleteBatchError, MtosiFault, ProtocolError, ReplyTimeoutError
from mtosi_jms.integrations.zeep import Client, SoapFault, client
from mtosi_jms.jms import Queue
from mtosi_jms.namespaces import HDR, clark
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import Pair, gap, reorder
from mtosi_jms.xmlbind import RawXml

from .conftest import ne

Calling = Callable[..., Client]
Paired = Callable[..., Pair]


def field(envelope: Any, name: str) -> Any:
    """The text of a field of the MTOSI header."""
    return envelope.findtext(f".//{clark(HDR, 'header')}/{clark(HDR, name)}")


class TestCalls:
    def test_an_operation_is_called_as_zeep_has_it(self, calling: Calling) -> None:
        ems = calling()
        answer = ems.service.getManagedElement(**ne("NE-2"))
        assert isinstance(ems, zeep.Client)
        assert [rdn.value for rdn in answer.body.me.name.rdn] == ["EMS1", "NE-2"]
        assert answer.header.mtopHeader.msgType == "RESPONSE"
        assert serialize_object(answer, dict)["body"]["me"]["name"]["rdn"][1] == {"type": "ME", "value": "NE-2"}

    def test_values_of_zeeps_types_are_taken(self, calling: Calling) -> None:
        ems = calling()
        factory = ems.type_factory("http://www.tmforum.org/mtop/fmw/xsd/nam/v1")
        by_factory = factory.NamingAttributeType(**ne("NE-3")["meRef"])
        by_type = ems.get_type("{http://www.tmforum.org/mtop/fmw/xsd/nam/v1}NamingAttributeType")(**ne("NE-3")["meRef"])
        answers = [ems.service.getManagedElement(meRef=value) for value in (by_factory, by_type)]
        answers.append(ems.service.getManagedElement(by_factory))
        assert [answer.body.me.name.rdn[1].value for answer in answers] == ["NE-3"] * 3

    def test_arguments_that_do_not_fit_are_zeeps_to_refuse(self, calling: Calling) -> None:
        ems = calling()
        with pytest.raises(TypeError, match="unexpected keyword argument 'mref'"):
            ems.service.getManagedElement(mref=1)
        with pytest.raises(zeep.exceptions.ValidationError, match="Missing element value"):
            ems.service.getManagedElement(meRef={"rdn": [{"type": "MD"}]})
        with pytest.raises(AttributeError, match="has no operation"):
            ems.service.getManagedElements()

    def test_an_operation_can_be_asked_about(self, calling: Calling) -> None:
        ems = calling()
        assert "meRef" in ems.operation("getManagedElement").input.signature()
        with pytest.raises(ConfigError, match="no operation 'getManagedElements'; did you mean getManagedElement"):
            ems.operation("getManagedElements")

    def test_a_one_way_operation_returns_nothing(self, wsdls: Path, paired: Paired) -> None:
        pair = paired()
        consumer = client(
            wsdls / "NotificationConsumer.wsdl", pair.requestor, pair.destination, sources=[wsdls.parent / "xsd"]
        )
        message = {"_value_1": [{"heartbeat": {}}]}
        assert consumer.service.notify(topic="fault", message=message) is None
        body = pair.scripted.take().envelope.body
        assert type(body.message.common_event_information[0]).__name__ == "Heartbeat"

    def test_a_destination_may_be_an_object_or_another_one(self, retrieval: Any, paired: Paired, keeping: Any) -> None:
        pair = paired(keeping)
        elsewhere = client(retrieval, pair.requestor, Queue("NOBODY"))
        assert "queue:NOBODY" in repr(elsewhere)
        binding = next(iter(retrieval.bindings))
        here = elsewhere.create_service(binding, str(pair.destination))
        assert here.getManagedElement(**ne("NE-1")).body.me.name.rdn[1].value == "NE-1"

    def test_the_wrong_element_in_an_answer_is_a_protocol_error(
        self, retrieval: Any, paired: Paired, keeping: Any
    ) -> None:
        pair = paired()
        ems = client(retrieval, pair.requestor, pair.destination)

        def script(asked: Any) -> Any:
            (right,) = asked.replies([keeping])
            return [asked.reply(right.body.replace(b"getManagedElementResponse", b"getAllManagedElementsResponse"))]

        pair.scripted.start(script)
        with pytest.raises(ProtocolError, match=r"getManagedElement: expected .*getManagedElementResponse, got"):
            ems.service.getManagedElement(**ne("NE-1"))


class TestHeaders:
    def test_what_is_given_of_the_header_joins_ours(self, calling: Calling, keeping: Any) -> None:
        given = {"originatorURI": "urn:case:7", "priority": "7", "correlationId": "case 4711"}
        calling().service.getManagedElement(**ne("NE-1"), _soapheaders={"mtopHeader": given})
        (context,) = keeping.contexts
        assert context.header.originator_uri == "urn:case:7"
        assert context.correlation_id == "case 4711"
        assert context.header.activity_name == "getManagedElement"
        assert context.message.priority == 7

    def test_who_asks_and_how_is_the_requestors(self, calling: Calling, keeping: Any) -> None:
        given = {"senderURI": "urn:other", "replyToURI": "urn:lost", "msgType": "RESPONSE", "destinationURI": "x"}
        given |= {"communicationPattern": "MultipleBatchResponse", "requestedBatchSize": 3, "communicationStyle": "RPC"}
        calling().service.getManagedElement(**ne("NE-1"), _soapheaders={"mtopHeader": given})
        header = keeping.contexts[0].header
        assert (header.sender_uri, header.reply_to_uri, header.msg_type) == ("jms/RequestorOS", None, "REQUEST")
        assert header.communication_pattern == "SimpleResponse"

    def test_header_blocks_may_be_a_list(self, calling: Calling, keeping: Any) -> None:
        ems = calling()
        header = ems.get_element(clark(HDR, "header"))(originatorURI="urn:case:8")
        other = etree.Element("{urn:other}ticket")
        history = HistoryPlugin()
        ems.plugins.append(history)
        ems.service.getManagedElement(**ne("NE-1"), _soapheaders=[other, header])
        assert keeping.contexts[0].header.originator_uri == "urn:case:8"
        assert history.last_sent["envelope"].find(".//{urn:other}ticket") is not None

    def test_default_headers_hold_for_each_call(self, calling: Calling, keeping: Any) -> None:
        ems = calling()
        ems.set_default_soapheaders({"mtopHeader": {"originatorURI": "urn:all"}})
        ems.service.getManagedElement(**ne("NE-1"))
        list(ems.batches("getAllManagedElements", batch_size=5))
        assert [context.header.originator_uri for context in keeping.contexts] == ["urn:all", "urn:all"]

    @pytest.mark.parametrize("given", [{"mtopHaeder": {}}, "mtopHeader", ["mtopHeader"]])
    def test_what_is_no_header_is_refused(self, calling: Calling, given: Any) -> None:
        with pytest.raises(ConfigError, match="_soapheaders: "):
            calling().service.getManagedElement(**ne("NE-1"), _soapheaders=given)

    def test_options_of_a_call(self, calling: Calling, keeping: Any) -> None:
        ems = calling(options=CallOptions(priority=2, header={"originator_uri": "urn:a"}))
        ems.service.getManagedElement(**ne("NE-1"))
        ems.service.getManagedElement(**ne("NE-1"), _options=CallOptions(priority=8))
        assert [context.message.priority for context in keeping.contexts] == [2, 8]
        assert [context.header.originator_uri for context in keeping.contexts] == ["urn:a", None]
        with pytest.raises(ConfigError, match=r"_options: give CallOptions\(...\), not dict"):
            ems.service.getManagedElement(**ne("NE-1"), _options={"priority": 8})


class Marking(zeep.Plugin):  # type: ignore[misc]
    """Marks what goes out and what comes in."""

    def egress(self, envelope: Any, http_headers: Any, operation: Any, binding_options: Any) -> Any:
        envelope.find(f".//{clark(HDR, 'originatorURI')}").text = f"{operation.name} to {binding_options['address']}"
        return envelope, http_headers

    def ingress(self, envelope: Any, http_headers: Any, operation: Any) -> Any:
        envelope.find(f".//{clark(HDR, 'senderURI')}").text = "marked"
        return envelope, http_headers


class Unheaded(zeep.Plugin):  # type: ignore[misc]
    def egress(self, envelope: Any, http_headers: Any, operation: Any, binding_options: Any) -> Any:
        header = envelope.find(f".//{clark(HDR, 'header')}")
        header.getparent().remove(header)


class TestPlugins:
    def test_history_has_the_envelopes_on_the_wire(self, calling: Calling, keeping: Any) -> None:
        history = HistoryPlugin()
        heard: list[Envelope] = []
        ems = calling(plugins=[history], options=CallOptions(on_reply=heard.append))
        ems.service.getManagedElement(**ne("NE-1"))
        sent, received = history.last_sent["envelope"], history.last_received["envelope"]
        assert field(sent, "correlationId") == field(received, "correlationId") == keeping.contexts[0].correlation_id
        wire = etree.fromstring(keeping.contexts[0].message.body)
        assert etree.tostring(sent, method="c14n") == etree.tostring(wire, method="c14n")
        reply = etree.fromstring(heard[0].to_bytes())
        assert etree.tostring(received, method="c14n") == etree.tostring(reply, method="c14n")

    def test_what_plugins_change_is_sent_and_read(self, calling: Calling, keeping: Any) -> None:
        ems = calling(plugins=[Marking()])
        answer = ems.service.getManagedElement(**ne("NE-1"), _soapheaders={"mtopHeader": {"originatorURI": "x"}})
        assert keeping.contexts[0].header.originator_uri == "getManagedElement to queue:SUPPLIER.OS"
        assert answer.header.mtopHeader.senderURI == "marked"

    def test_a_plugin_must_leave_the_header(self, calling: Calling, keeping: Any) -> None:
        with pytest.raises(ConfigError, match="on_request: return the envelope to send, not an envelope without"):
            calling(plugins=[Unheaded()]).service.getManagedElement(**ne("NE-1"))
        assert keeping.contexts == []

    def test_security_is_applied(self, calling: Calling) -> None:
        history = HistoryPlugin()
        ems = calling(plugins=[history], wsse=UsernameToken("ann", "geheim"))
        ems.service.getManagedElement(**ne("NE-1"))
        assert "geheim" in etree.tostring(history.last_sent["envelope"], encoding="unicode")

    def test_a_message_can_be_made_and_not_sent(self, calling: Calling, keeping: Any) -> None:
        ems = calling()
        envelope = ems.create_message(ems.service, "getManagedElement", **ne("NE-1"))
        assert field(envelope, "msgName") == "getManagedElementRequest"
        assert field(envelope, "senderURI") == "jms/RequestorOS"
        assert keeping.contexts == []

    def test_a_hook_of_the_caller_has_the_last_word(self, calling: Calling, keeping: Any) -> None:
        def sign(envelope: Envelope) -> Envelope:
            assert envelope.header is not None
            assert envelope.header.originator_uri == "x"
            envelope.blocks.append(RawXml(b"<signature/>"))
            return envelope

        options = CallOptions(on_request=sign)
        calling().service.getManagedElement(
            **ne("NE-1"), _options=options, _soapheaders={"mtopHeader": {"originatorURI": "x"}}
        )
        assert b"<signature" in keeping.contexts[0].message.body


class TestFaults:
    def test_a_fault_is_zeeps_and_ours(self, calling: Calling) -> None:
        history = HistoryPlugin()
        ems = calling(plugins=[history])
        with pytest.raises(zeep.exceptions.Fault) as caught:
            ems.service.getManagedElement(**ne("NE-99"))
        fault = caught.value
        assert isinstance(fault, EntityNotFoundFault)
        assert isinstance(fault, MtosiFault)
        assert isinstance(fault, SoapFault)
        assert (fault.kind, fault.reason) == ("entityNotFound", "there is no MD=EMS1/ME=NE-99")
        assert (fault.code, fault.actor, fault.subcodes, fault.message) == (
            "soap:Server",
            None,
            None,
            fault.fault_string,
        )
        assert fault.detail.findtext(".//{*}reason") == fault.reason
        assert fault.fault.detail.reason == fault.reason
        assert fault.__cause__ is fault.fault
        assert history.last_received["envelope"].find(".//{*}Fault") is not None

    def test_it_travels(self, calling: Calling) -> None:
        with pytest.raises(SoapFault) as caught:
            calling().service.getManagedElement(**ne("NE-99"))
        for other in (copy.deepcopy(caught.value), pickle.loads(pickle.dumps(caught.value))):
            assert other == caught.value
            assert type(other) is type(caught.value)
            assert other.detail.findtext(".//{*}reason") == caught.value.reason

    def test_what_the_message_says_stays(self, calling: Calling) -> None:
        with pytest.raises(SoapFault) as caught:
            calling().service.getManagedElement(**ne("NE-99"))
        with pytest.raises(AttributeError, match=r"fault\.detail"):
            caught.value.detail = None

    def test_a_fault_of_soap_12_has_subcodes(self, retrieval: Any, paired: Paired) -> None:
        soap = "http://www.w3.org/2003/05/soap-envelope"
        fault = (
            f'<e:Envelope xmlns:e="{soap}" xmlns:q="urn:q"><e:Body><e:Fault><e:Code><e:Value>e:Sender</e:Value>'
            "<e:Subcode><e:Value>q:outer</e:Value><e:Subcode><e:Value>q:inner</e:Value></e:Subcode></e:Subcode></e:Code>"
            "<e:Reason><e:Text>no</e:Text></e:Reason></e:Fault></e:Body></e:Envelope>"
        )
        pair = paired()
        pair.scripted.start(lambda asked: [asked.reply(fault.encode())])
        with pytest.raises(zeep.exceptions.Fault) as caught:
            client(retrieval, pair.requestor, pair.destination).service.getManagedElement(**ne("NE-1"))
        assert (caught.value.message, caught.value.code, caught.value.detail) == ("no", "e:Sender", None)
        assert caught.value.subcodes == ["{urn:q}outer", "{urn:q}inner"]


class TestTime:
    @pytest.fixture
    def silent(self, retrieval: Any, paired: Paired) -> Client:
        pair = paired()
        return client(retrieval, pair.requestor, pair.destination)

    def test_a_call_has_its_time(self, silent: Client) -> None:
        with pytest.raises(ReplyTimeoutError, match="getManagedElement"):
            silent.service.getManagedElement(**ne("NE-1"), _options=CallOptions(timeout=0.02))

    def test_the_time_of_zeeps_transport_holds(self, silent: Client) -> None:
        with silent.transport.settings(timeout=0.02), pytest.raises(ReplyTimeoutError):
            silent.service.getManagedElement(**ne("NE-1"))

    def test_so_does_that_of_a_given_transport(self, retrieval: Any, paired: Paired) -> None:
        pair = paired()
        ems = client(retrieval, pair.requestor, pair.destination, transport=zeep.Transport(operation_timeout=0.02))
        with pytest.raises(ReplyTimeoutError):
            ems.service.getManagedElement(**ne("NE-1"))


class TestThreads:
    def test_threads_may_share_a_client(self, calling: Calling) -> None:
        ems = calling()

        def asked(number: int) -> str:
            name = f"NE-{number % 5 + 1}"
            answer = ems.service.getManagedElement(**ne(name))
            return f"{answer.body.me.name.rdn[1].value} {name}"

        with ThreadPoolExecutor(8) as pool:
            found = [one.split() for one in pool.map(asked, range(40))]
        assert all(got == wanted for got, wanted in found)


class TestRaw:
    def test_raw_responses_are_the_bytes_that_came(self, calling: Calling) -> None:
        ems = calling(settings=zeep.Settings(raw_response=True))
        answer = ems.service.getManagedElement(**ne("NE-1"))
        assert answer.status_code == 200
        assert b"getManagedElementResponse" in answer.content
        assert answer.text == answer.content.decode()
        assert ems.service.getManagedElement(**ne("NE-99")).status_code == 500
        replies = list(ems.batches("getAllManagedElements", batch_size=3))
        assert [b"NE-4" in reply.content for reply in replies] == [False, True]

    def test_settings_hold_for_a_while(self, calling: Calling) -> None:
        ems = calling()
        with ems.settings(raw_response=True):
            assert ems.service.getManagedElement(**ne("NE-1")).content
        assert ems.service.getManagedElement(**ne("NE-1")).body.me


class TestArguments:
    def test_there_is_one_way_to_the_supplier(self, retrieval: Any, paired: Paired) -> None:
        pair = paired()
        with pytest.raises(ConfigError, match="not both"):
            client(retrieval, pair.requestor, "queue:X", url="http://localhost/")
        with pytest.raises(ConfigError, match="give a requestor and a destination, or a url"):
            client(retrieval)
        with pytest.raises(ConfigError, match="give a requestor and a destination, or a url"):
            client(retrieval, pair.requestor)
        with pytest.raises(ConfigError, match=r"give mtosi_jms\.Requestor\(...\), not MemoryConnection"):
            client(retrieval, pair.connection, "queue:X")  # type: ignore[arg-type]

    def test_services_and_ports_by_name(self, retrieval: Any, paired: Paired, keeping: Any) -> None:
        pair = paired(keeping)
        ems = client(
            retrieval,
            pair.requestor,
            pair.destination,
            service_name="ManagedElementRetrievalJms",
            port_name="ManagedElementRetrievalSoapJms",
        )
        assert ems.service.getManagedElement(**ne("NE-1")).body.me
        with pytest.raises(ConfigError, match="no service 'ManagedElementRetrieval'; did you mean ManagedElementRetr"):
            client(retrieval, pair.requestor, pair.destination, service_name="ManagedElementRetrieval")
        with pytest.raises(ConfigError, match="no port 'X'; there are ManagedElementRetrievalSoapJms"):
            ems.bind(port_name="X")

    def test_only_our_documents_are_shared(self, wsdls: Path, paired: Paired) -> None:
        pair = paired()
        document = zeep.wsdl.Document(str(wsdls / "ManagedElementRetrieval.wsdl"), zeep.Transport())
        with pytest.raises(ConfigError, match="what read_wsdl made"):
            client(document, pair.requestor, pair.destination)


def test_the_function_documents_every_option() -> None:
    parameters = set(inspect.signature(Client).parameters) - {"self"}
    assert [name for name in parameters if name not in (client.__doc__ or "")] == []


# zeep over JMS: several replies to one request, in order, complete or an error.


def names(answers: Any) -> list[list[str]]:
    return [[me.name.rdn[1].value for me in answer.body.meList.me] for answer in answers]


ALL = [["NE-1", "NE-2"], ["NE-3", "NE-4"], ["NE-5"]]


def test_responses_come_in_order_and_complete(calling: Calling) -> None:
    with calling().batches("getAllManagedElements", batch_size=2) as batches:
        assert names(batches) == ALL
        assert len(batches.correlation_id) == 36


def test_arguments_are_those_of_the_operation(calling: Calling, keeping: Any) -> None:
    scope = {"rdn": [{"type": "MD", "value": "EMS1"}]}
    answers = calling().batches(
        "getAllManagedElements",
        batch_size=0,
        mdOrMlsnRef=scope,
        _soapheaders={"mtopHeader": {"originatorURI": "urn:a"}},
        _options=CallOptions(priority=9),
    )
    assert names(answers) == [["NE-1", "NE-2", "NE-3", "NE-4", "NE-5"]]
    (context,) = keeping.contexts
    assert (context.header.originator_uri, context.message.priority) == ("urn:a", 9)


def test_what_comes_out_of_order_is_put_in_order(retrieval: Any, paired: Paired, keeping: Any) -> None:
    pair = paired(keeping, tamper=lambda messages: reorder(messages, 4))
    ems = client(retrieval, pair.requestor, pair.destination)
    assert names(ems.batches("getAllManagedElements", batch_size=2)) == ALL


def test_what_is_missing_is_an_error_that_holds_the_rest(retrieval: Any, paired: Paired, keeping: Any) -> None:
    pair = paired(keeping, tamper=lambda messages: gap(messages, 1), timeouts=Timeouts(gap=0.2, grace=0.05))
    ems = client(retrieval, pair.requestor, pair.destination)
    batches = ems.batches("getAllManagedElements", batch_size=2)
    assert names([next(batches)]) == [["NE-1", "NE-2"]]
    with pytest.raises(IncompleteBatchError) as caught:
        next(batches)
    assert caught.value.missing == (2,)
    (held,) = caught.value.batches.values()
    assert names([held]) == [["NE-5"]]
    assert list(batches.held) == [3]


class Failing(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        yield from ()
        raise MtosiFault("it broke", kind="unableToComply")


def test_a_fault_ends_them(retrieval: Any, paired: Paired) -> None:
    pair = paired(Failing())
    ems = client(retrieval, pair.requestor, pair.destination)
    with pytest.raises(zeep.exceptions.Fault, match="it broke") as caught:
        list(ems.batches("getAllManagedElements", batch_size=2))
    assert isinstance(caught.value, SoapFault)


def test_plugins_see_each_reply(calling: Calling) -> None:
    history = HistoryPlugin(maxlen=5)
    seen = []
    for _ in calling(plugins=[history]).batches("getAllManagedElements", batch_size=2):
        seen.append(history.last_received["envelope"].findtext(".//{*}batchSequenceNumber"))
    assert seen == ["1", "2", "3"]


def test_what_is_given_up_leaves_nothing_pending(calling: Calling) -> None:
    ems = calling()
    with ems.batches("getAllManagedElements", batch_size=1) as batches:
        next(batches)
    assert ems.requestor is not None
    assert ems.requestor.pending == 0


def test_a_call_has_its_time(retrieval: Any, paired: Paired) -> None:
    pair = paired()
    ems = client(retrieval, pair.requestor, pair.destination)
    with pytest.raises(ReplyTimeoutError):
        next(ems.batches("getAllManagedElements", batch_size=2, _options=CallOptions(timeout=0.02)))


def test_wrong_use_is_told(calling: Calling, wsdls: Any, paired: Paired) -> None:
    ems = calling()
    with pytest.raises(ConfigError, match="did you mean getAllManagedElements"):
        ems.batches("getAllManagedElement", batch_size=2)
    with pytest.raises(ConfigError, match="batch_size: give a whole number"):
        ems.batches("getAllManagedElements", batch_size="2")  # type: ignore[arg-type]
    pair = paired()
    consumer = client(wsdls / "NotificationConsumer.wsdl", pair.requestor, pair.destination)
    with pytest.raises(ConfigError, match="notify is one-way: it has no batches"):
        consumer.batches("notify", batch_size=2, topic="x", message={"commonEventInformation": [{}]})
