"""Figures 4, 5 and 6 as three configurations of one test, and what a deployment refuses."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_codegen.cli import main as codegen
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.profile import TopicCategory
from mtosi_jms.cli import main
from mtosi_jms.deployment import Asking, Deployment, deployment_of, read_deployment
from mtosi_jms.errors import ConfigError, MtosiFault, NamingError
from mtosi_jms.jms import DeliveryMode, NamingContext, Queue, TemporaryQueue, TemporaryTopic, Topic
from mtosi_jms.notifications import SystemProfile
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.stubs.fmw.hbt import Heartbeat
from mtosi_jms.stubs.mri import eir, rir
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.testing import connect_privately, exchange
from mtosi_jms.transport import Connection

from .conftest import NE1, SmallEms, numbers

NAMES = {f"jms/{name}": f"queue:{name}" for name in ("OS", "S", "S1", "S2", "R", "R1", "R2", "F")}
NAMES |= {"jms/Fault": "topic:FAULT", "jms/Inventory": "topic:INVENTORY", "jms/Same": "topic:FAULT"}
EQUIPMENT, INVENTORY = "EquipmentInventoryRetrieval", "ResourceInventoryRetrieval"


class Equipment(EquipmentInventoryRetrieval.Supplier):
    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    def get_all_equipment(self, request: Any, context: RequestContext) -> eir.GetAllEquipmentResponse:
        self.contexts.append(context)
        return eir.GetAllEquipmentResponse()

    def get_equipment(self, request: Any, context: RequestContext) -> eir.GetEquipmentResponse:
        raise MtosiFault("none", kind="entityNotFound")


class Inventory(ResourceInventoryRetrieval.Supplier):
    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    def get_inventory(self, request: Any, context: RequestContext) -> rir.GetInventoryResponse:
        self.contexts.append(context)
        return rir.GetInventoryResponse()


def figure(served: Mapping[str, str], replies: Mapping[str, str]) -> tuple[Deployment, Deployment]:
    """The deployments of the supplier OS and of the requestor OS."""
    supplier = {"name": "jms/S", "suppliers": {service: f"jms/{at}" for service, at in served.items()}}
    asked = {
        service: {"destination": f"jms/{served[service]}", "reply_to": f"jms/{at}"} for service, at in replies.items()
    }
    return deployment_of(supplier), deployment_of({"name": "jms/OS", "requestors": asked})


@pytest.fixture
def connection() -> Iterator[Connection]:
    with connect_privately(NAMES) as connection:
        yield connection


@pytest.mark.parametrize(
    ("served", "replies"),
    [
        pytest.param(
            {EQUIPMENT: "S", INVENTORY: "S"},
            {EQUIPMENT: "R", INVENTORY: "R"},
            marks=pytest.mark.obligation("F4", "O9a", "O9b", "P21"),
            id="figure 4",
        ),
        pytest.param(
            {EQUIPMENT: "S2", INVENTORY: "S1"},
            {EQUIPMENT: "R2", INVENTORY: "R1"},
            marks=pytest.mark.obligation("F5", "O9b", "P21"),
            id="figure 5",
        ),
        pytest.param(
            {EQUIPMENT: "S", INVENTORY: "S"},
            {EQUIPMENT: "R2", INVENTORY: "R1"},
            marks=pytest.mark.obligation("F6", "O9a", "O9b", "P21", "P27", "P28"),
            id="figure 6",
        ),
    ],
)
def test_figures_4_5_and_6(connection: Connection, served: dict[str, str], replies: dict[str, str]) -> None:
    supplying, asking = figure(served, replies)
    equipment, inventory = Equipment(), Inventory()
    with ExitStack() as stack:
        suppliers = supplying.open_suppliers(connection, [equipment, inventory])
        for supplier in suppliers:
            stack.enter_context(supplier)
        requestors = stack.enter_context(asking.open_requestors(connection))
        for _ in range(3):
            requestors.stub(EquipmentInventoryRetrieval).get_all_equipment()
            requestors.stub(ResourceInventoryRetrieval).get_inventory()
        assert {supplier.destination.name for supplier in suppliers} == set(served.values())
        assert len(list(requestors)) == len(set(replies.values()))
        assert [requestor.orphans for requestor in requestors] == [0] * len(set(replies.values()))
    for service, contexts in ((EQUIPMENT, equipment.contexts), (INVENTORY, inventory.contexts)):
        assert [context.message.destination for context in contexts] == [Queue(served[service])] * 3
        assert [context.message.reply_to for context in contexts] == [Queue(replies[service])] * 3
        assert {context.header.sender_uri for context in contexts} == {"jms/OS"}


@pytest.mark.obligation("P28", "R2b", "P29")
def test_replies_may_be_temporary_and_failures_apart(connection: Connection) -> None:
    supplying, _ = figure({EQUIPMENT: "S", INVENTORY: "S"}, {})
    asking = Deployment(
        name="jms/OS",
        requestors={
            EQUIPMENT: Asking(destination="jms/S", reply_to="jms/R", failure_reply_to="jms/F"),
            INVENTORY: Asking(destination="jms/S", temporary_reply=True),
        },
    )
    inventory = Inventory()
    (supplier,) = supplying.open_suppliers(connection, [Equipment(), inventory])
    with supplier, asking.open_requestors(connection) as requestors:
        requestors.stub(ResourceInventoryRetrieval).get_inventory()
        stub = requestors.stub(EquipmentInventoryRetrieval)
        stub.get_all_equipment()
        with pytest.raises(MtosiFault):
            stub.get_equipment()
    assert isinstance(inventory.contexts[0].message.reply_to, TemporaryQueue)


@pytest.mark.obligation("R2a", "P27")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Deployment(name="os", suppliers={EQUIPMENT: TemporaryQueue("t")}),
        lambda: Deployment(name="os", topics={TopicCategory.FAULT: TemporaryTopic("t")}),
        lambda: Asking(destination=TemporaryQueue("t")),
    ],
)
def test_the_servers_side_is_administered(make: Any) -> None:
    with pytest.raises(ConfigError, match="R2a"):
        make()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"suppliers": {"EquipmentInventoryRetrieva": "jms/S"}}, "did you mean EquipmentInventoryRetrieval"),
        ({"suppliers": {EQUIPMENT: "jms/T"}}, "EquipmentInventoryRetrieval: 'jms/T': no destination is known"),
        ({"suppliers": {EQUIPMENT: "temporary-queue:x"}}, "R2d"),
        ({"requestors": {EQUIPMENT: "jms/T"}}, "EquipmentInventoryRetrieval: 'jms/T'"),
        ({"name": "jms/X", "requestors": {EQUIPMENT: "jms/S"}}, "replies of EquipmentInventoryRetrieval: 'jms/X'"),
        ({"topics": {"Fault": "jms/T"}}, "Fault: 'jms/T'"),
        (
            {"suppliers": {EQUIPMENT: "jms/OS"}, "requestors": {INVENTORY: "jms/S"}},
            f"replies of {INVENTORY} and requests of {EQUIPMENT} both come in at queue:OS",
        ),
        (
            {
                "requestors": {
                    EQUIPMENT: {"destination": "jms/S", "reply_to": "jms/R1", "failure_reply_to": "jms/F"},
                    INVENTORY: {"destination": "jms/S", "reply_to": "jms/R2", "failure_reply_to": "jms/F"},
                }
            },
            "would take each other's replies from queue:F",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_opened(
    connection: Connection, table: dict[str, Any], words: str
) -> None:
    deployment = deployment_of({"name": "jms/OS", **table})
    (problem,) = [problem for problem in deployment.problems(connection.names) if problem.fatal]
    assert words in problem.message
    for action in (deployment.open_requestors, lambda one: deployment.open_suppliers(one, [])):
        with pytest.raises(ConfigError) as caught:
            action(connection)
        assert words in str(caught.value)


@pytest.mark.obligation("O10b", "O2", "O12a")
@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"topics": {"Fault": "jms/Fault", "Inventory": "jms/Same"}}, "Inventory and Fault share topic:FAULT"),
        ({"topics": {"Fault": "jms/S"}, "suppliers": {EQUIPMENT: "jms/S"}}, f"Fault and {EQUIPMENT} share queue:S"),
        ({"topics": {"Fault": "jms/S"}}, "Fault goes to queue:S; topics are for notifications"),
        ({"suppliers": {EQUIPMENT: "jms/Fault"}}, "served from topic:FAULT; queues are for requests"),
    ],
)
def test_what_is_unusual_is_logged_and_refused_when_strict(
    table: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    names = NamingContext(NAMES)
    with caplog.at_level(logging.WARNING):
        deployment_of({"name": "jms/OS", **table}).verify(names)
    assert words in caplog.text
    with pytest.raises(ConfigError) as caught:
        deployment_of({"name": "jms/OS", **table, "profile": {"validation": "strict"}}).verify(names)
    assert words in str(caught.value)


def test_three_topics_for_three_categories_are_fine() -> None:
    table = {"Fault": "jms/Fault", "Inventory": "jms/Inventory", "Protection": "topic:P"}
    assert deployment_of({"name": "jms/OS", "topics": table}).problems(NamingContext(NAMES)) == ()


def test_instances_and_stubs_fit_the_deployment(connection: Connection) -> None:
    supplying, asking = figure({EQUIPMENT: "S"}, {EQUIPMENT: "R"})
    with pytest.raises(ConfigError, match="serves no ResourceInventoryRetrieval"):
        supplying.open_suppliers(connection, [Equipment(), Inventory()])
    with pytest.raises(ConfigError, match="no instance for EquipmentInventoryRetrieval"):
        supplying.open_suppliers(connection, [])
    with (
        asking.open_requestors(connection) as requestors,
        pytest.raises(ConfigError, match="asks for no ManagedElementRetrieval; it has EquipmentInventoryRetrieval"),
    ):
        requestors.stub(ManagedElementRetrieval)


TOML = f"""
name = "jms/OS"
names = "jndi.properties"

[suppliers]
AlarmRetrieval = "jms/A"

[requestors]
{INVENTORY} = "jms/S"

[requestors.{EQUIPMENT}]
destination = "jms/S"
reply_to = "jms/R"
failure_reply_to = "jms/F"

[topics]
Fault = "jms/Fault"

[profile]
filter_properties = ["EventType", "objectName", "osTime", "perceivedSeverity", "rootCauseAlarmIndication"]
time_form = "millis"
severity_form = "code"
delivery_mode = "PERSISTENT"
ttl = {{ AlarmInformation = 90000, default = 0 }}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [f"queue.jms/{name}={name}" for name in ("OS", "S", "R", "F", "A")] + ["topic.jms/Fault=FAULT"]
    (tmp_path / "jndi.properties").write_text("\n".join(lines))
    file = tmp_path / "os.toml"
    file.write_text(TOML)
    return file


@pytest.mark.obligation("P21")
def test_a_file_is_a_deployment(file: Path) -> None:
    deployment = read_deployment(file)
    assert deployment.suppliers == {"AlarmRetrieval": "jms/A"}
    assert deployment.requestors[INVENTORY] == Asking(destination="jms/S")
    assert deployment.requestors[EQUIPMENT].failure_reply_to == "jms/F"
    assert deployment.topics == {TopicCategory.FAULT: "jms/Fault"}
    assert deployment.profile.delivery_mode is DeliveryMode.PERSISTENT
    assert deployment.names.lookup("jms/A") == Queue("A")
    assert deployment.problems() == ()
    assert deployment == read_deployment(file)
    assert hash(deployment) == hash(read_deployment(file))
    with pytest.raises(AttributeError):
        deployment.name = "other"  # type: ignore[misc]


@pytest.mark.obligation("O12b", "C26", "C31", "C33")
def test_the_sheet_says_what_the_other_party_needs(file: Path) -> None:
    lines = read_deployment(file).describe().splitlines()
    assert lines == [
        "deployment of jms/OS",
        "serves AlarmRetrieval at jms/A (queue A)",
        f"asks {INVENTORY}, {EQUIPMENT} at jms/S (queue S)",
        f"replies {INVENTORY} at jms/OS (queue OS)",
        f"replies {EQUIPMENT} at jms/R (queue R)",
        f"failures {EQUIPMENT} at jms/F (queue F)",
        "publishes Fault at jms/Fault (topic FAULT)",
        "messages are PERSISTENT, priority 4; they live: REQUEST for ever, RESPONSE for ever, ERROR for ever",
        "MTOSI_EventType String: the event's name, as the events below (C27)",
        "MTOSI_objectName String: TYPE=value joined by /, as in MD=EMS1/ME=NE-7; / = % escaped (C31)",
        "MTOSI_osTime Long: milliseconds since 1970, can be compared (C33)",
        "MTOSI_perceivedSeverity String: number of MTOSI 1.x, from '0' INDETERMINATE to '5' CLEARED (C26)",
        "MTOSI_rootCauseAlarmIndication Boolean: TRUE or FALSE (C26)",
        "AlarmInformation on Fault lives 90 s",
        "ThresholdCrossingAlert on Fault lives 30 min",
        "other events live 24 h",
    ]


def test_a_sheet_without_notifications_or_properties() -> None:
    plain = deployment_of(
        {"name": "jms/OS", "requestors": {EQUIPMENT: {"destination": "queue:S", "temporary_reply": True}}}
    )
    assert plain.describe().splitlines()[2] == f"replies {EQUIPMENT} at a temporary queue"
    bare = Deployment(
        name="jms/OS",
        topics={TopicCategory.FAULT: "topic:F"},
        profile=BindingProfile(filter_properties=frozenset(), ttl={"AlarmInformation": 1}),
    )
    text = bare.describe()
    assert "no attribute of an event becomes a property" in text
    assert "AlarmInformation on Fault lives 1 ms" in text


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "logical name"),
        ({"name": " "}, "logical name"),
        ({"name": "os", "supplier": {}}, "did you mean suppliers"),
        ({"name": "os", "else": {}}, "there are name, names"),
        ({"name": "os", "suppliers": "jms/S"}, "suppliers must be a table"),
        ({"name": "os", "suppliers": {EQUIPMENT: 5}}, "must be the name of a destination"),
        ({"name": "os", "requestors": {EQUIPMENT: {}}}, "it needs a destination"),
        ({"name": "os", "requestors": {EQUIPMENT: {"destination": "q", "reply": "r"}}}, "did you mean reply_to"),
        ({"name": "os", "requestors": {EQUIPMENT: {"destination": "q", "reply_to": 5}}}, "reply_to must be the name"),
        ({"name": "os", "requestors": {EQUIPMENT: {"destination": "q", "temporary_reply": 1}}}, "true or false"),
        (
            {"name": "os", "requestors": {EQUIPMENT: {"destination": "q", "reply_to": "r", "temporary_reply": True}}},
            "not both",
        ),
        ({"name": "os", "topics": {"Faults": "t"}}, "there are Inventory, Fault, Protection"),
        ({"name": "os", "profile": "other"}, "default, table3, literal"),
        ({"name": "os", "profile": 5}, "the name of a preset"),
        ({"name": "os", "profile": {"filter_property": []}}, "did you mean filter_properties"),
        ({"name": "os", "profile": {"ttl": 5}}, "ttl: must be a table"),
        ({"name": "os", "profile": {"filter_properties": [5]}}, "filter_properties: must be a list of names"),
        ({"name": "os", "profile": {"delivery_mode": "NEVER"}}, "NON_PERSISTENT or PERSISTENT"),
        ({"name": "os", "names": {"jms/X": "X"}}, "neither queue nor topic"),
        ({"name": "os", "names": 5}, "a table or the path"),
    ],
)
def test_a_table_at_fault_is_a_typed_error(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        deployment_of(table)


def test_a_file_at_fault_is_named(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: the deployment cannot be read"):
        read_deployment(tmp_path / "gone.toml")
    file.write_text('name = "jms/OS"', encoding="utf-8-sig")
    assert read_deployment(file).name == "jms/OS", "a byte order mark is not part of it"
    file.write_text("name =")
    with pytest.raises(ConfigError, match=r"os\.toml: not TOML"):
        read_deployment(file)
    file.write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match=r"os\.toml: not TOML"):
        read_deployment(file)
    file.write_text('name = "os"\ntopics = 1')
    with pytest.raises(ConfigError, match=r"os\.toml: topics must be a table"):
        read_deployment(file)


def test_a_preset_and_ready_made_parts_are_taken() -> None:
    profile, asking = BindingProfile(priority=7), Asking(destination="queue:S")
    made = deployment_of({"name": "os", "profile": profile, "requestors": {EQUIPMENT: asking}})
    assert (made.profile, made.requestors[EQUIPMENT]) == (profile, asking)
    assert deployment_of({"name": "os", "profile": "literal"}).profile.reply_to_on == "all"


@pytest.mark.obligation("O10b", "R9c")
def test_the_publisher_of_a_deployment() -> None:
    """It has the topics, the profile and the name of its OS; problems come before it is opened."""
    profile = BindingProfile(filter_properties=frozenset({"EventType"}))
    topics = {TopicCategory.FAULT: "jms/Fault", TopicCategory.INVENTORY: "jms/Inventory"}
    with connect_privately(NAMES) as connection:
        with Deployment(name="jms/OS", topics=topics, profile=profile).open_publisher(connection) as publisher:
            (sent, _) = publisher.broadcast(Heartbeat())
        assert {key for key in sent.properties if key in ("MTOSI_EventType", "MTOSI_objectType")} == {"MTOSI_EventType"}
        assert sent.properties["MTOSI_senderURI"] == "jms/OS"
        with pytest.raises(ConfigError, match="R9c"):
            Deployment(name="jms/OS", topics=topics, profile=profile).open_publisher(connection, system=SystemProfile())
        with pytest.raises(ConfigError, match="give a topic by category"):
            Deployment(name="jms/OS").open_publisher(connection)
        with pytest.raises(ConfigError, match="Nowhere"):
            Deployment(name="jms/OS", topics={TopicCategory.FAULT: "jms/Nowhere"}).open_publisher(connection)


# Names at the ends of an exchange: connection factories, and what the JMS URI of a stub's destination asks for.

PERSISTENT = "deliveryMode=PERSISTENT&timeToLive=16100&priority=6"


@pytest.mark.obligation("P17", "P9")
@pytest.mark.parametrize(
    "url", ["jndi:jms/QueueConnectionFactory", "jms:jndi:x?jndiConnectionFactoryName=jms/QueueConnectionFactory"]
)
def test_a_connection_is_opened_by_the_name_of_its_factory(url: str, tmp_path: Path) -> None:
    """Factory, then destination, both by name: only the file knows the URL and the physical names."""
    file = tmp_path / "jndi.properties"
    file.write_text(
        "connectionfactory.jms/QueueConnectionFactory = memory:by-factory\n"
        "queue.jms/RtoNMSQA = NMS\nqueue.jms/RtoInventoryOSQA = OS\n"
    )
    with (
        mtosi.connect(url, names=file) as connection,
        mtosi.Supplier(connection, "jms/RtoNMSQA", [SmallEms()]),
        mtosi.Requestor(connection, sender_uri="jms/RtoInventoryOSQA") as requestor,
    ):
        found = ManagedElementRetrieval(requestor, "jms/RtoNMSQA").get_managed_element(me_ref=NE1)
        assert found.me.location == "Hall 1"


@pytest.mark.obligation("P17")
def test_what_is_wrong_with_a_factory_shows_no_credential() -> None:
    names = {"connectionfactory": {"jms/CF": "tcp://oss:hunter2@broker:61616"}}
    with pytest.raises(ConfigError, match="scheme 'tcp' is not supported") as caught:
        mtosi.connect("jndi:jms/CF", names=names)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="IBM MQ is jvm:ibm-mq"):
        mtosi.connect("mq://host:1414")
    with pytest.raises(NamingError, match="did you mean jms/CF") as caught:
        mtosi.connect("jndi:jms/CG", names=names)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="jndiConnectionFactoryName"):
        mtosi.connect("jms:queue:X", names=names)


@pytest.mark.obligation("C42", "P11")
def test_the_address_says_how_a_request_travels() -> None:
    with exchange() as pair:
        stub = ManagedElementRetrieval(pair.requestor, f"jms:jndi:jms/SupplierOS?{PERSISTENT}")
        stub.get_all_managed_elements.batches(batch_size=1).close()
        stub.get_all_managed_elements.batches(
            batch_size=1, options=CallOptions(priority=1, time_to_live=5, persistent=False)
        ).close()
        asked, told = pair.scripted.take(), pair.scripted.take()
    assert asked.message.delivery_mode is DeliveryMode.PERSISTENT
    assert asked.message.time_to_live_ms == 16100
    assert asked.message.priority == 6
    assert asked.message.properties["MTOSI_destinationURI"] == "jms:jndi:jms/SupplierOS", "no parameter leaves"
    assert told.message.delivery_mode is DeliveryMode.NON_PERSISTENT, "the call comes before the address"
    assert (told.message.time_to_live_ms, told.message.priority) == (5000, 1)


@pytest.mark.obligation("C42")
def test_an_address_may_name_where_replies_go() -> None:
    with exchange([SmallEms()], failure_reply_to="jms/FailureOS") as pair:
        own = ManagedElementRetrieval(pair.requestor, "jms:queue:SUPPLIER.OS?replyToName=FAILURE.OS")
        assert numbers(own.get_all_managed_elements()) == [1, 2, 3, 4, 5]
        strange = ManagedElementRetrieval(pair.requestor, "jms:jndi:jms/SupplierOS?replyToName=jms/SupplierOS")
        with pytest.raises(ConfigError, match="jms/SupplierOS, where this requestor does not receive"):
            strange.get_all_managed_elements()
        assert pair.requestor.pending == 0


@pytest.mark.obligation("C42", "P22")
def test_the_address_of_a_wsdl_is_a_name() -> None:
    address = ManagedElementRetrieval.__service__.address
    names = NamingContext({"jms/OS": "queue:OS", address: "queue:EMS"})
    with (
        mtosi.connect("memory:wsdl-address", names=names) as connection,
        mtosi.Supplier(connection, address, [SmallEms()]) as supplier,
        mtosi.Requestor(connection, sender_uri="jms/OS") as requestor,
    ):
        assert supplier.destination == Queue("EMS")
        assert numbers(ManagedElementRetrieval(requestor, address).get_all_managed_elements()) == [1, 2, 3, 4, 5]


# docs/naming.md and docs/deployment.md: their files hold what they say, and their commands work.


@pytest.fixture
def page(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A page's text; its files lie in the current folder."""

    def read(name: str) -> str:
        text = (root / "docs" / name).read_text(encoding="utf-8")
        files = {"properties": "jndi.properties", "toml": "inventory-os.toml"}
        for kind, content in re.findall(r"```(properties|toml)\n(.*?)```", text, re.DOTALL):
            (tmp_path / files[kind]).write_text(content, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return text

    return read


def test_the_files_on_the_naming_page_hold_what_it_says(page: Callable[[str], str], tmp_path: Path) -> None:
    page("naming.md")
    names = NamingContext.of(tmp_path / "inventory-os.toml")
    assert names.lookup("jms/FaultTopic") == Topic("MTOSI.Fault")
    assert names.factory("jms/ConnectionFactory") == "memory:naming-page"
    assert NamingContext.of(tmp_path / "jndi.properties").lookup("jms/Other") == Queue("OTHER")


def test_the_commands_on_the_deployment_page_work(
    page: Callable[[str], str], root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("deployment.md")
    assert "mtosi-jms deployment inventory-os.toml" in text
    assert read_deployment("inventory-os.toml").problems() == ()
    assert main(["deployment", "inventory-os.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "jms/InventoryOS"
    shutil.copytree(root / "wsdl", tmp_path / "wsdl")
    shutil.copytree(root / "xsd", tmp_path / "xsd")
    command = "mtosi-codegen deploy wsdl --deployment inventory-os.toml --out deployed"
    assert command in text
    assert codegen(command.split()[1:]) == 0
    assert b'"jms/InventoryRequests"' in (tmp_path / "deployed/wsdl/ResourceInventoryRetrieval.wsdl").read_bytes()
