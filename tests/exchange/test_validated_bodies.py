"""The switch `validate` of the roles: bodies that come in against the schemas (001-S12, with the actions of 001-S7)."""

from __future__ import annotations

import dataclasses
import importlib
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from mtosi_jms import stubs
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import ConfigError, DecodeError, MtosiFault
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage
from mtosi_jms.patterns import Timeouts
from mtosi_jms.runtime import events
from mtosi_jms.service import CallOptions, RequestContext, ServiceInfo, SupplierBase
from mtosi_jms.soap import fault_class, fault_kinds
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.eq_inv import EquipmentOrEquipmentHolderType
from mtosi_jms.testing import Asked, Recorder, exchange, notifications
from mtosi_jms.validation import BodyValidation, SchemaSet, Validator

from .conftest import NE1, NE7, SmallEms

Action = Literal["ignore", "warn", "fail"]
KEY = re.compile(rb"<nam:rdn>(<nam:type>.*?</nam:type>)(<nam:value>.*?</nam:value>)")
XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="urn:shop" elementFormDefault="qualified">
  <xs:element name="order"><xs:complexType><xs:sequence>
    <xs:element name="item" type="xs:int" maxOccurs="unbounded"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
ORDER = "<s:Envelope xmlns:s='%s'><s:Body><order xmlns='urn:shop'><item>%s</item></order></s:Body></s:Envelope>"
EVENT = ResourceObjectCreation(object_name=name("MD=EMS1/ME=NE-1"))


def spoilt(message: JmsMessage) -> JmsMessage:
    """The message with value before type in a name, which reading puts up with; in line 7 of its document."""
    body, count = KEY.subn(b"\\n\\n\\n\\n\\n<nam:rdn>\\2\\1", message.body, count=1)
    assert count == 1
    return dataclasses.replace(message, body=body)


COUNTS = ["with 1 warnings", "with 2 warnings"]
"""Reading sees the breach too; held against the schema it is told of twice."""
LOGGED = {"ignore": [True, False], "warn": [False, True], "fail": [False, False]}


@pytest.fixture
def answer() -> Callable[[Any], list[Any]]:
    """What the hook sees of a reply with a breach."""

    def ask(validate: Any) -> list[Any]:
        seen: list[Any] = []
        with exchange([SmallEms()], tamper=lambda replies: [*map(spoilt, replies)], validate=validate) as pair:
            stub = pair.stub(ManagedElementRetrieval)
            assert stub.get_managed_element(me_ref=NE1, options=CallOptions(on_reply=seen.append)).me is not None
        return seen

    return ask


@pytest.mark.obligation("001-S12", "001-S7")
def test_a_requestor_ignores_warns_of_or_refuses_a_reply(answer: Callable[[Any], list[Any]]) -> None:
    def found(action: Action) -> list[Any]:
        return [warning for warning in answer(action)[0].warnings if warning.rule == "S12"]

    assert found("ignore") == []
    (warning,) = found("warn")
    assert warning.line == 7
    assert warning.path.startswith("/Envelope/Body/getManagedElementResponse/me/name/rdn")
    assert "value" in warning.message
    with pytest.raises(DecodeError, match="value") as caught:
        answer("fail")
    assert (caught.value.line, caught.value.path) == (7, warning.path)


def test_who_asked_hears_of_a_refused_reply_whose_header_alone_names_the_request() -> None:
    def tamper(replies: list[JmsMessage]) -> list[JmsMessage]:
        return [dataclasses.replace(spoilt(reply), correlation_id=None) for reply in replies]

    with exchange([SmallEms()], tamper=tamper, validate="fail", timeouts=Timeouts(first_reply=30)) as pair:
        with pytest.raises(DecodeError):
            pair.stub(ManagedElementRetrieval).get_managed_element(me_ref=NE1)
        assert (pair.requestor.pending, pair.requestor.orphans) == (0, 0)


def test_a_reply_as_it_should_be_passes_every_action() -> None:
    for action in ("ignore", "warn", "fail"):
        with exchange([SmallEms()], validate=action, supplier={"validate": action}) as pair:
            stub = pair.stub(ManagedElementRetrieval)
            assert stub.get_managed_element(me_ref=NE1).me is not None
            assert len(list(stub.get_all_managed_elements.batches(batch_size=2))) == 3


@pytest.mark.parametrize("action", ["ignore", "warn", "fail"])
def test_a_supplier_warns_of_or_refuses_a_request(action: Action, caplog: pytest.LogCaptureFixture) -> None:
    ems = SmallEms()

    def answer(asked: Asked) -> list[JmsMessage]:
        recorder = Recorder()
        Supplier(asked.connection, asked.destination, [ems], validate=action).answer(spoilt(asked.message), recorder)
        return recorder.sent

    with exchange() as pair:
        pair.scripted.start(answer)
        stub = pair.stub(ManagedElementRetrieval)
        if action == "fail":
            with pytest.raises(MtosiFault, match=r"the request does not fit the schema: line 7 .*value"):
                stub.get_managed_element(me_ref=NE1)
        else:
            assert stub.get_managed_element(me_ref=NE1).me is not None
    assert len(ems.contexts) == (0 if action == "fail" else 1)
    assert [count in caplog.text for count in COUNTS] == LOGGED[action]


@pytest.mark.obligation("001-S12")
@pytest.mark.parametrize("action", ["ignore", "warn", "fail"])
def test_a_subscriber_warns_of_or_refuses_a_notification(action: Action, caplog: pytest.LogCaptureFixture) -> None:
    failed: list[Exception] = []
    with notifications(validate=action, on_error=failed.append) as pair:
        pair.publish([EVENT, EVENT], tamper=lambda messages: [spoilt(messages[0]), *messages[1:]])
        came = pair.received("Inventory")
    assert len(came) + len(failed) == 2
    assert [type(error) for error in failed] == ([DecodeError] if action == "fail" else [])
    assert [count in caplog.text for count in COUNTS] == LOGGED[action]


@pytest.mark.parametrize("action", ["ignore", "warn", "fail"])
def test_a_handler_of_the_runtime_warns_of_or_refuses_a_notification(
    action: Action, caplog: pytest.LogCaptureFixture
) -> None:
    with notifications() as pair:
        (message,) = map(spoilt, pair.messages([EVENT]))
    seen: list[Any] = []
    handle = events(lambda event, envelope: seen.append(event), validate=action)
    context: Any = SimpleNamespace(cancelled=threading.Event())
    if action == "fail":
        with pytest.raises(DecodeError, match="value"):
            handle(message, context)
    else:
        handle(message, context)
    assert len(seen) == (0 if action == "fail" else 1)
    assert [count in caplog.text for count in COUNTS] == LOGGED[action]


def test_vendors_schemas(tmp_path: Path) -> None:
    (tmp_path / "shop.xsd").write_text(XSD)
    check = BodyValidation("warn", SchemaSet.load(tmp_path))
    assert repr(check) == f"<BodyValidation warn by {tmp_path.name}>"
    for soap in (SOAP, SOAP12):
        assert check.check(ORDER % (soap, "7")) == []
        (warning,) = check.check((ORDER % (soap, "seven")).encode())
        assert warning.path == "/Envelope/Body/order/item"


def test_the_faults_of_a_body_are_judged() -> None:
    fault = "<f:Fault xmlns:f='%s'><faultcode>f:Server</faultcode><faultstring>x</faultstring><%s><odd/></%s></f:Fault>"
    for soap, detail in ((SOAP, "detail"), (SOAP12, "f:Detail")):
        document = f"<s:Envelope xmlns:s='{soap}'><s:Body>{fault % (soap, detail, detail)}</s:Body></s:Envelope>"
        (warning,) = BodyValidation("warn").check(document)
        assert warning.path.endswith("etail/odd")


def test_many_breaches_are_told_up_to_a_number(tmp_path: Path) -> None:
    (tmp_path / "shop.xsd").write_text(XSD)
    schemas = SchemaSet.load(tmp_path)
    document = ORDER % (SOAP, "</item><item>".join(["many"] * 30_000))
    found = BodyValidation("warn", schemas).check(document)
    assert len(found) == 21
    assert "there are more" in found[-1].message
    with pytest.raises(DecodeError, match="and 20 more"):
        BodyValidation("fail", schemas).check(document)


def test_threads_share_a_validation(tmp_path: Path) -> None:
    """Each learns of its own document, whatever the others find at the same time."""
    (tmp_path / "shop.xsd").write_text(XSD)
    check = BodyValidation("warn", SchemaSet.load(tmp_path))

    def judge(number: int) -> list[str]:
        wrong = [f"w{number}x{position}" for position in range(number % 4)]
        items = "</item><item>".join(["1", *wrong])
        return [warning.message for warning in check.check(ORDER % (SOAP, items))]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(judge, range(400)))
    for number, messages in enumerate(found):
        assert len(messages) == number % 4
        assert all(f"w{number}x" in message for message in messages)


def test_what_validate_cannot_be() -> None:
    with pytest.raises(ConfigError, match="warn and fail"):
        BodyValidation("ignore")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ignore, warn, fail"):
        events(print, validate="strict")  # type: ignore[arg-type]


@pytest.mark.obligation("001-S11")
def test_an_element_without_a_namespace_is_told_of() -> None:
    document = f"<s:Envelope xmlns:s='{SOAP}'><s:Body><getInventory/></s:Body></s:Envelope>"
    (warning,) = BodyValidation("warn").check(document)
    assert warning.message == "no schema declares getInventory: it is in no namespace"


# What goes over the wire is valid, whatever is asked and answered; libxml2 judges by the project's own schemas.


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(SchemaSet.load())


def problems(validator: Validator, message: JmsMessage) -> list[str]:
    return [issue.message for issue in validator.validate_bytes(message.body).issues]


class Equipment(EquipmentInventoryRetrieval.Supplier):
    def get_all_equipment(self, request: Any, context: RequestContext) -> Iterator[EquipmentOrEquipmentHolderType]:
        for number in range(5):
            if number % 2:
                yield EquipmentOrEquipmentHolderType(eq=EquipmentType(user_label=f"card {number}"))
            else:
                yield EquipmentOrEquipmentHolderType(eh=EquipmentHolderType(user_label=f"slot {number}"))


def test_choices_are_cut_into_batches(validator: Validator) -> None:
    with exchange() as pair:
        batches = pair.stub(EquipmentInventoryRetrieval).get_all_equipment.batches(batch_size=2)
        asked = pair.scripted.take()
        replies = asked.replies([Equipment()])
        assert [problems(validator, one) for one in (asked.message, *replies)] == [[]] * 4
        pair.scripted.send(replies)
        found = [[(one.eq or one.eh).user_label for one in batch.eoh] for batch in batches]
        assert found == [["slot 0", "card 1"], ["slot 2", "card 3"], ["slot 4"]]


def operations() -> list[Any]:
    """Those with a response whose empty request is valid."""
    found = []
    for path in stubs.__services__:
        module, cls = path.split(":")
        service = getattr(importlib.import_module(f"mtosi_jms.stubs.{module}"), cls)
        info = service.__service__
        for operation in info.operations:
            fields = dataclasses.fields(info.load(operation.request))
            required = [one for one in fields if one.default is one.default_factory is dataclasses.MISSING]
            if operation.response and not required:
                found.append(pytest.param(service, operation, id=f"{cls}.{operation.name}"))
    assert len(found) >= 14
    return found


@pytest.mark.parametrize(("service", "operation"), operations())
def test_every_operation_of_every_service(service: Any, operation: Any, validator: Validator) -> None:
    """W, O8: asked with and without a batch size, and answered with each kind of fault that it declares."""
    info: ServiceInfo = service.__service__
    exception = info.load(operation.fault)
    kinds = [fault_class(kind, exception) for kind in fault_kinds(exception)]
    assert kinds

    class Failing(service.Supplier):  # type: ignore[misc,name-defined]
        def __init__(self, kind: type[MtosiFault]) -> None:
            self.kind = kind

        def handler(self, operation: Any) -> Any:
            def fail(request: Any, context: Any) -> Any:
                raise self.kind("because")

            return fail

    with exchange() as pair:
        bound = getattr(pair.stub(service), operation.python_name)
        for size in (0, 2):
            batches = bound.batches(batch_size=size, options=CallOptions(priority=5))
            asked = pair.scripted.take()
            assert problems(validator, asked.message) == []
            replies = [reply for kind in kinds for reply in asked.replies([Failing(kind)])]
            assert [problems(validator, reply) for reply in replies] == [[]] * len(kinds)
            pair.scripted.send(replies[:1])
            with pytest.raises(kinds[0]):
                next(batches)


def test_bare_faults_and_headers_twice_are_valid(validator: Validator) -> None:
    with exchange() as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE7, batch_size=1)
        asked = pair.scripted.take()
        unknown: SupplierBase = Equipment()
        (bare,) = asked.replies([unknown])
        torn = dataclasses.replace(asked, message=dataclasses.replace(asked.message, body=asked.message.body[:99]))
        (unread,) = torn.replies([SmallEms()])
        (twice,) = asked.replies([SmallEms()], profile=BindingProfile(fault_in_header=True))
    assert [problems(validator, one) for one in (bare, unread, twice)] == [[]] * 3
