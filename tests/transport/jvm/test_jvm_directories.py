"""JMS names from real directories: a folder of bindings and LDAP (O3); and what a directory must not talk Java into."""

from __future__ import annotations

import base64
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import LoginRefusedError, NamingError, TransportError
from mtosi_jms.jms import JmsMessage, NamingContext, Queue, Topic
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.transport import AckMode, Connection

from .clients import BROKER, address_of, jars_of
from .directories import BASE, FACTORIES, HERE, PASSWORD, QUEUES, Directory, Server, folder

pytest.importorskip("jpype", reason="JPype is not installed")
pytestmark = pytest.mark.broker

Open = Callable[..., Connection]


@pytest.fixture
def start_server(tmp_path: Path, java: Any) -> Iterator[Callable[..., Directory]]:
    """Starts an LDAP server of a kind, with entries."""
    made: list[Server] = []

    def start(kind: str, entries: str = "") -> Directory:
        made.append(Server(kind, tmp_path, java, entries))
        return made[-1].directory

    yield start
    for server in made:
        server.close()


@pytest.fixture
def directory(where: str, start_server: Any, tmp_path: Path, java: Any) -> Directory:
    return folder(tmp_path, java) if where == "folder" else start_server(where)


@pytest.fixture
def open_by(request: pytest.FixtureRequest) -> Iterator[Callable[..., Connection]]:
    """Opens connections by what a directory says alone."""
    made: list[Connection] = []

    def open_one(kind: str, directory: Directory, *names: str, factory: str = "CF", **options: Any) -> Connection:
        broker = request.getfixturevalue(BROKER[kind])
        given: dict[str, Any] = {
            "names": NamingContext.from_properties(directory.properties),
            "classpath": [*jars_of(kind), *directory.jars],
            "user": broker.endpoints.user,
            "password": broker.endpoints.password,
            "jndi_names": names,
            "connect_timeout": 60,
        }
        made.append(mtosi.connect(f"jvm:{directory.name(factory)}", **(given | options)))
        return made[-1]

    yield open_one
    for connection in made:
        connection.close()


@pytest.mark.obligation("O3", "001-I8")
@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("activemq", "folder"),
        pytest.param("artemis", "unboundid", marks=pytest.mark.endurance),  # TestHostile asks one by LDAP too
        ("activemq", "openldap"),
        pytest.param("qpid", "folder", marks=pytest.mark.endurance),
        pytest.param("qpid", "unboundid", marks=pytest.mark.endurance),
        pytest.param("artemis", "openldap", marks=pytest.mark.endurance),
    ],
)
def test_requestor_and_supplier_meet_by_names_alone(
    kind: str, where: str, directory: Directory, open_by: Open, request: pytest.FixtureRequest
) -> None:
    """Neither knows a physical name, nor where the broker is."""
    address = address_of(kind, request.getfixturevalue(BROKER[kind]))
    ems, inventory = directory.name("EmsOS"), directory.name("InventoryOS")
    directory.bind(
        jars_of(kind),
        (FACTORIES[kind], directory.name("CF"), address),
        (QUEUES[kind], ems, f"PHYSICAL.EMS.{where}"),
        (QUEUES[kind], inventory, f"PHYSICAL.INVENTORY.{where}"),
    )
    theirs = open_by(kind, directory, ems, inventory)
    ours = open_by(kind, directory, ems, inventory)
    assert ours.names.lookup(ems) == Queue(f"PHYSICAL.EMS.{where}")
    with (
        mtosi.Supplier(theirs, ems, services=[ManagedElementEms(Network(elements=7))]),
        mtosi.Requestor(ours, sender_uri=inventory) as requestor,
    ):
        found = ManagedElementRetrieval(requestor, ems).get_all_managed_elements()
        assert len(found.me_list.me) == 7


def test_a_class_that_is_queue_and_topic_is_asked(
    tmp_path: Path, java: Any, open_by: Open, request: pytest.FixtureRequest
) -> None:
    directory, jars = folder(tmp_path, java), jars_of("artemis")
    command = java.compiled(HERE / "Everything.java", [Path(jar) for jar in jars])
    directory.jars.append(command[-2].rpartition(":")[2])
    address = address_of("artemis", request.getfixturevalue("artemis"))
    directory.bind(jars, (FACTORIES["artemis"], "CF", address), ("Everything", "News", "NEWS.OF.ALL"))
    connection = open_by("artemis", directory, "News")
    assert connection.names.lookup("News") == Topic("NEWS.OF.ALL")
    connection.start()
    session = connection.session(AckMode.AUTO)
    consumer = session.consumer("News")
    session.send("News", JmsMessage(body=b"<news/>"))
    assert consumer.receive(30).message.body == b"<news/>"


class Codebase(http.server.BaseHTTPRequestHandler):
    """Offers classes, and remembers who asked."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def codebase() -> Iterator[tuple[str, list[str]]]:
    """Where classes would be loaded from, and what was asked for there."""
    asked: list[str] = []
    handler = type("Handler", (Codebase,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
        server.shutdown()


REMOTE = """\
dn: cn=Remote,{base}
objectClass: javaContainer
objectClass: javaNamingReference
cn: Remote
javaClassName: Exploit
javaFactory: Exploit
javaCodebase: {codebase}

"""
SERIALISED = """\
dn: cn=Serialised,{base}
objectClass: javaContainer
objectClass: javaSerializedObject
cn: Serialised
javaClassName: java.lang.Integer
javaSerializedData:: {data}

"""


INTEGER = bytes.fromhex(
    "aced0005737200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565"
) + bytes.fromhex("787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b020000787000000007")
"""What Java writes for an Integer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, java: Any, codebase: Any) -> Iterator[Server]:
    data = base64.b64encode(INTEGER).decode()
    entries = REMOTE.format(base=BASE, codebase=codebase[0]) + SERIALISED.format(base=BASE, data=data)
    made = Server("unboundid", tmp_path_factory.mktemp("hostile"), java, entries)
    yield made
    made.close()


class TestHostile:
    """A directory that offers code and objects, as an attacker who can write to it does."""

    @pytest.fixture
    def hostile(self, server: Server, java: Any) -> Directory:
        return Directory(server.directory.environment, java)

    def test_no_class_is_loaded_from_where_it_says(self, hostile: Directory, open_by: Open, codebase: Any) -> None:
        with pytest.raises(NamingError, match="no class Exploit"):
            open_by("artemis", hostile, factory="Remote")
        assert codebase[1] == []

    def test_no_object_is_made_of_what_it_serialised(self, hostile: Directory, open_by: Open) -> None:
        with pytest.raises(NamingError, match="deserialization is not allowed"):
            open_by("artemis", hostile, factory="Serialised")

    @pytest.mark.parametrize("name", ["rmi://127.0.0.1:1/x", "iiop://127.0.0.1:1/x", "dns://127.0.0.1:1/x"])
    def test_a_url_of_another_scheme_is_not_followed(self, hostile: Directory, open_by: Open, name: str) -> None:
        with pytest.raises(NamingError, match="of another scheme"):
            open_by("artemis", hostile, name)

    def test_names_of_messages_are_not_asked_for(self, hostile: Directory, open_by: Open, request: Any) -> None:
        """What connect did not name is unknown, though the directory has it."""
        address = address_of("artemis", request.getfixturevalue("artemis"))
        bound = [(QUEUES["artemis"], "cn=Named", "Q"), (QUEUES["artemis"], "cn=Unnamed", "R")]
        hostile.bind(jars_of("artemis"), (FACTORIES["artemis"], "cn=CF", address), *bound)
        connection = open_by("artemis", hostile, "cn=Named")
        assert connection.names.names() == {"cn=Named": Queue("Q")}
        with pytest.raises(NamingError, match="no destination is known"):
            connection.names.lookup("cn=Unnamed")

    def test_a_url_names_them_too(self, hostile: Directory, open_by: Open, request: Any) -> None:
        address = address_of("artemis", request.getfixturevalue("artemis"))
        bound = [(QUEUES["artemis"], "cn=One", "Q"), (QUEUES["artemis"], "cn=Two", "R")]
        hostile.bind(jars_of("artemis"), (FACTORIES["artemis"], "cn=CF", address), *bound)
        connection = open_by("artemis", hostile, factory="CF?jndi_names=cn=One;cn=Two", jndi_names=None)
        assert connection.names.names() == {"cn=One": Queue("Q"), "cn=Two": Queue("R")}

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"java.naming.security.credentials": "wrong-s3cret"}, LoginRefusedError),
            ({"java.naming.provider.url": "ldap://127.0.0.1:1/"}, TransportError),
        ],
        ids=["login", "host"],
    )
    def test_a_directory_that_lets_nobody_in(
        self, hostile: Directory, open_by: Open, change: dict[str, str], error: type[Exception]
    ) -> None:
        hostile.environment |= change
        with pytest.raises(error) as caught:
            open_by("artemis", hostile)
        assert "s3cret" not in str(caught.value)
        assert PASSWORD not in str(caught.value)

    def test_what_is_no_destination_is_told(self, hostile: Directory, open_by: Open, request: Any) -> None:
        address = address_of("artemis", request.getfixturevalue("artemis"))
        hostile.bind(jars_of("artemis"), (FACTORIES["artemis"], "cn=CF", address))
        with pytest.raises(NamingError, match="no queue and no topic"):
            open_by("artemis", hostile, "cn=CF")
        with pytest.raises(NamingError, match="cn=Nobody"):
            open_by("artemis", hostile, "cn=Nobody")
