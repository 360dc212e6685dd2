"""Wrong arguments are refused where they are given, by an error that says what to write; nothing is sent (N)."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest

import mtosi_jms as mtosi
import mtosi_jms.stubs
from mtosi_jms.errors import ConfigError, EncodeError, MtosiError
from mtosi_jms.exchange import Requestor, Supplier
from mtosi_jms.namespaces import clark
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.service.registry import find_operations, services_of
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.testing import SUPPLIER, Pair, exchange

SECRET = "S3cr3t-Mark"
URL = f"stomp://noc:{SECRET}@broker:61613"


class Ems(ManagedElementRetrieval.Supplier):
    pass


def refusal(action: Callable[[], Any], kind: type[MtosiError] = ConfigError) -> str:
    """What is said of a wrong argument."""
    with pytest.raises(kind) as caught:
        action()
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def pair(mtosi_exchange: Any) -> Pair:
    found: Pair = mtosi_exchange()
    return found


ROLES: dict[str, Callable[[Any], Any]] = {
    "Requestor": lambda given: Requestor(given, sender_uri="jms/RequestorOS"),
    "Supplier": lambda given: Supplier(given, SUPPLIER, [Ems()]),
    "Publisher": lambda given: mtosi.Publisher(given, {"Fault": "topic:X"}, sender_uri="jms/OS"),
    "Subscriber": lambda given: mtosi.Subscriber(given, "topic:X"),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("memory:", "'memory:' is a URL; give a connection, mtosi_jms.connect('memory:')"),
        (URL, "'stomp://noc:***@broker:61613' is a URL; give a connection"),
        (None, "give a connection of mtosi_jms.connect(...), not NoneType"),
        (mtosi.connect, "give a connection of mtosi_jms.connect(...), not function"),
    ],
)
def test_something_else_for_a_connection(role: str, given: Any, said: str) -> None:
    assert refusal(lambda: ROLES[role](given)).startswith(f"{role}: {said}")


@pytest.mark.parametrize("sender_uri", ["topic:Alarms", "jms/Alarms"])
def test_a_topic_takes_no_replies(pair: Pair, sender_uri: str) -> None:
    pair.connection.names.bind("jms/Alarms", mtosi.Topic("Alarms"))
    said = refusal(lambda: Requestor(pair.connection, sender_uri=sender_uri))
    assert f"{sender_uri} is a topic" in said
    assert "queue, or reply_to, or temporary_reply=True" in said
    Requestor(pair.connection, sender_uri=sender_uri, temporary_reply=True).close()


def test_the_operations_of_a_class_explain_themselves_and_are_called_on_a_stub(pair: Pair) -> None:
    for operation in (
        ManagedElementRetrieval.get_managed_element,
        pair.stub(ManagedElementRetrieval).get_managed_element,
    ):
        lines = pydoc.plain(pydoc.render_doc(operation)).splitlines()
        assert lines[2].startswith("get_managed_element(request: ")
        assert lines[3] == "    One managed element, by its name."
        assert "Faults: commLoss, entityNotFound, " in lines[5]
    assert "is called on a stub" in refusal(lambda: ManagedElementRetrieval.get_managed_element(me_ref="ME=1"))


def test_the_package_shows_its_public_names_alone() -> None:
    assert {*dir(mtosi)} == {*mtosi.__all__, "__version__"}


def test_what_is_not_set_is_not_shown() -> None:
    element = Me(name=name("ME=1"), location="Bergen")
    assert "None" not in repr(element)
    assert repr(element).endswith(", location='Bergen')")
    assert repr(CallOptions(timeout=3.0)) == "CallOptions(timeout=3.0)"
    assert repr(Envelope(body=element)) == f"Envelope(body={element!r}, version='1.1')"


def test_something_else_for_a_requestor(pair: Pair) -> None:
    wanted = "ManagedElementRetrieval: give a requestor, mtosi_jms.Requestor(connection, sender_uri=...), not "
    stub: Any = ManagedElementRetrieval
    assert refusal(lambda: stub(pair.connection, SUPPLIER)) == f"{wanted}MemoryConnection, a connection"
    assert refusal(lambda: stub(URL, SUPPLIER)) == f"{wanted}'stomp://noc:***@broker:61613'"
    assert refusal(lambda: stub(None, SUPPLIER)) == f"{wanted}None"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([Ems], "Ems is a class; give an instance, Ems()"),
        (Ems, "give a list of them, not type"),
        (Ems(), "give a list of them, not Ems"),
        (
            [ManagedElementRetrieval],
            "ManagedElementRetrieval is not a supplier class; derive it from the stub's Supplier",
        ),
        ([None], "NoneType is not a supplier class; derive it from the stub's Supplier"),
    ],
)
def test_something_else_for_services(pair: Pair, given: Any, said: str) -> None:
    assert refusal(lambda: Supplier(pair.connection, "queue:X", given)) == f"services: {said}"


@pytest.mark.parametrize(
    ("handler", "operation"),
    [
        ("getAllManagedElements", "get_all_managed_elements"),
        ("get_all_managed_element", "get_all_managed_elements"),
        ("get_managed_elements", "get_managed_element"),
    ],
)
def test_a_misspelt_handler_is_refused_when_its_class_is_made(handler: str, operation: str) -> None:
    assert refusal(lambda: type("Mine", (Ems,), {handler: lambda *arguments: None})) == (
        f"Mine.{handler} is not an operation of ManagedElementRetrieval: "
        f"write {operation}, or begin the name of a helper with _"
    )


def test_helpers_of_a_supplier_class_are_not_taken_for_handlers() -> None:
    class Helped(Ems):
        def connect(self) -> None: ...

        def _get_all_managed_element(self) -> None: ...

    class More(Helped):
        def connect(self) -> None: ...

    assert More().connect() is None  # type: ignore[func-returns-value]


SECONDS = [
    ("3", "give seconds as a number, not '3'"),
    (True, "give seconds as a number, not True"),
    (math.nan, "seconds must be more than 0, not nan"),
    (0, "seconds must be more than 0, not 0"),
    (-1.5, "seconds must be more than 0, not -1.5"),
]


@pytest.mark.parametrize(("given", "said"), SECONDS)
def test_seconds_of_a_call(pair: Pair, given: Any, said: str) -> None:
    stub = pair.stub(ManagedElementRetrieval)
    for view in (stub, stub.aio):
        operation: Any = view.get_all_managed_elements
        assert refusal(lambda operation=operation: operation(timeout=given)) == f"timeout: {said}"  # type: ignore[misc]
        for form in (operation.batches, operation.objects):
            assert refusal(lambda form=form: form(batch_size=5, timeout=given)) == f"timeout: {said}"  # type: ignore[misc]
    assert refusal(lambda: CallOptions(gap_timeout=given)) == f"gap_timeout: {said}"
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("3", "give seconds as a number, not '3'"),
        (math.nan, "seconds must be 0 or more, not nan"),
        (-1, "seconds must be 0 or more, not -1"),
        (math.inf, "give 0 for a message that lives for ever, not inf"),
    ],
)
def test_seconds_that_a_message_lives(given: Any, said: str) -> None:
    assert refusal(lambda: CallOptions(time_to_live=given)) == f"time_to_live: {said}"
    assert CallOptions(time_to_live=0).time_to_live == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"priority": "3"}, "priority: give a whole number, not '3'"),
        ({"persistent": "yes"}, "persistent: give True or False, not 'yes'"),
        ({"on_conflict": "ignore"}, 'on_conflict: give "error" or "keep_first", not \'ignore\''),
        ({"on_reply": "print"}, "on_reply: give a function, not 'print'"),
    ],
)
def test_an_option_of_another_type_is_refused(given: dict[str, Any], said: str) -> None:
    assert refusal(lambda: CallOptions(**given)) == said


@pytest.mark.parametrize("given", ["3", 0, -1])
def test_a_limit_is_a_number_of_seconds(given: Any) -> None:
    assert (
        refusal(lambda: Timeouts(first_reply=given))
        == f"limit first_reply must be a number of seconds above 0, not {given!r}"
    )


@pytest.mark.parametrize("given", ["5", 2.5, True, None, math.nan])
def test_the_size_of_a_batch(pair: Pair, given: Any) -> None:
    said = f"batch_size: give a whole number, not {given!r}"
    stub = pair.stub(ManagedElementRetrieval)
    for view in (stub, stub.aio):
        operation: Any = view.get_all_managed_elements
        for form in (operation.batches, operation.objects):
            assert refusal(lambda form=form: form(batch_size=given)) == said  # type: ignore[misc]
        if given is not None:
            file = functools.partial(operation.bulk, file_location_uri="file:///all.xml")
            assert refusal(lambda file=file: file(batch_size=given)) == said  # type: ignore[misc]
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)


@pytest.mark.parametrize("given", [{"timeout": 3}, 3, "timeout=3"])
def test_something_else_for_options(pair: Pair, given: Any) -> None:
    said = f"options: give CallOptions(...), not {type(given).__name__}"
    operation: Any = pair.stub(ManagedElementRetrieval).get_all_managed_elements
    assert refusal(lambda: operation(options=given)) == said
    assert refusal(lambda: operation.objects(options=given, timeout=3)) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sender_uri": None}, "senderURI"),
        ({"linger": "3"}, "linger: give seconds as a number, not '3'"),
        ({"on_conflict": "last"}, "on_conflict must be 'error' or 'keep_first', not 'last'"),
    ],
)
def test_settings_of_a_requestor(pair: Pair, given: dict[str, Any], said: str) -> None:
    assert said in refusal(lambda: Requestor(pair.connection, **{"sender_uri": "queue:X"} | given), MtosiError)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"send_window": "16"}, "send_window: give a whole number, not '16'"),
        ({"send_window": 0}, "send_window must be at least 1, not 0"),
        ({"retry_pause": "1"}, "retry_pause: give seconds as a number, not '1'"),
        ({"retry_pause": -1}, "retry_pause: seconds must be 0 or more, not -1"),
    ],
)
def test_settings_of_a_supplier(pair: Pair, given: dict[str, Any], said: str) -> None:
    assert refusal(lambda: Supplier(pair.connection, "queue:X", [Ems()], **given)) == said


@pytest.mark.parametrize(("given", "said"), [("2", "threads: give a whole number"), (0, "threads must be at least 1")])
def test_the_threads_of_a_supplier(pair: Pair, given: Any, said: str) -> None:
    """None at all would answer nobody, and say nothing."""
    supplier = Supplier(pair.connection, "queue:X", [Ems()])
    assert refusal(lambda: supplier.start(threads=given)).startswith(said)
    assert not supplier.is_running


@pytest.mark.parametrize("given", ["ME=1", 5, {"me_ref": "ME=1"}])
def test_something_else_for_a_request(pair: Pair, given: Any) -> None:
    operation: Any = pair.stub(ManagedElementRetrieval).get_managed_element
    said = f"give a GetManagedElementRequest or its fields by name, not {type(given).__name__}"
    assert refusal(lambda: operation(given)) == f"get_managed_element: {said}"
    whole = mer.GetManagedElementRequest(me_ref=name("ME=1"))
    assert "give a request or its fields, not both" in refusal(lambda: operation(whole, me_ref="ME=1"))
    assert pair.provider.held() == 0


def test_an_asynchronous_call_that_cannot_be_made_raises_before_it_is_awaited(pair: Pair) -> None:
    operation: Any = pair.stub(ManagedElementRetrieval).aio.get_managed_element
    assert "not str" in refusal(lambda: operation("ME=1"))


class Echo(ManagedElementRetrieval.Supplier):
    """Notes the names that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        self.asked.append(request.me_ref)
        return mer.GetManagedElementResponse()

    def get_all_managed_elements(self, request: Any, context: Any) -> list[Any]:
        self.asked.append(request.md_or_mlsn_ref)
        return []


@pytest.mark.parametrize("text", ["MD=EMS1/ME=NE-1", "ME=a%2Fb%3Dc%25", "AID=", "ME= blank "])
def test_names_may_be_given_as_text(text: str) -> None:
    ems = Echo()
    with exchange([ems]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_managed_element(me_ref=text)
        assert list(stub.get_all_managed_elements.batches(batch_size=1, md_or_mlsn_ref=text)) != []
        assert list(stub.get_all_managed_elements.objects(md_or_mlsn_ref=text)) == []
        asyncio.run(stub.aio.get_managed_element(me_ref=text))
    assert ems.asked == [name(text)] * 4
    assert {str(one) for one in ems.asked} == {text}


@pytest.mark.parametrize("text", ["NE-1", "", "MD=EMS1/", "=NE-1", "/ME=1", "ME=100%", "ME=%41"])
def test_a_malformed_name_is_an_error_and_nothing_is_sent(pair: Pair, text: str) -> None:
    stub = pair.stub(ManagedElementRetrieval)
    calls: list[Callable[[], Any]] = [
        lambda: stub.get_managed_element(me_ref=text),
        lambda: stub.get_managed_element.batches(batch_size=1, me_ref=text),
        lambda: stub.get_all_managed_elements.objects(md_or_mlsn_ref=text),
        lambda: stub.aio.get_managed_element(me_ref=text),
        lambda: stub.aio.get_all_managed_elements.objects(md_or_mlsn_ref=text),
    ]
    for call in calls:
        said = refusal(call, EncodeError)
        assert "TYPE=value/TYPE=value" in said or "use %25, %2F and %3D" in said
    assert (pair.provider.held(), pair.requestor.pending) == (0, 0)


def test_no_name_is_not_an_empty_one() -> None:
    ems = Echo()
    with exchange([ems]) as pair:
        list(pair.stub(ManagedElementRetrieval).get_all_managed_elements.objects(md_or_mlsn_ref=None))
    assert ems.asked == [None]


@pytest.mark.parametrize("cls", [Requestor, Supplier])
def test_settings_are_given_by_name(cls: type) -> None:
    """An argument that is added later changes no program."""
    kinds = {name: one.kind for name, one in inspect.signature(cls).parameters.items()}
    positional = [name for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional in (["connection"], ["connection", "destination", "services"])


# Services by the elements that they use.

MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
NOTIFY = clark("http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1", "notify")
STUBS = mtosi_jms.stubs.__name__


def test_the_shipped_package_lists_its_services() -> None:
    names = [service.name for service in services_of(STUBS)]
    assert names == [*mtosi_jms.stubs.__services__.values()]
    assert "ManagedElementRetrieval" in names


@pytest.mark.parametrize("role", ["request", "response", "fault"])
@pytest.mark.parametrize("package", [STUBS])
def test_every_element_of_every_operation_is_found(package: str, role: str) -> None:
    for service in services_of(package):
        for operation in service.operations:
            if not getattr(operation, role):
                continue
            tag = service.load(getattr(operation, role)).__xml__.tag
            assert tag is not None
            usages = find_operations(tag)
            assert (service, operation, role) in [(use.service, use.operation, use.role) for use in usages]


def test_an_element_of_one_operation_has_one_use() -> None:
    (use,) = find_operations(clark(MER, "getManagedElementException"))
    assert (use.service.name, use.operation.name, use.role) == (
        "ManagedElementRetrieval",
        "getManagedElement",
        "fault",
    )


@pytest.mark.obligation("P24")
def test_an_element_that_services_share_has_several() -> None:
    uses = find_operations(NOTIFY)
    assert {use.service.name for use in uses} == {"NotificationBroker", "NotificationConsumer"}
    assert {use.operation.mep for use in uses} == {"one-way"}


@pytest.mark.parametrize("tag", ["{urn:nobody}thing", "thing", clark(MER, "getManagedElementReply")])
def test_what_no_service_uses_has_none(tag: str) -> None:
    assert find_operations(tag) == ()


@pytest.mark.parametrize("package", ["no_such_stubs", "..stubs", ".", ""])
def test_a_package_that_is_not_there_is_named(package: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"stubs package '{package}' cannot be imported")):
        services_of(package)
