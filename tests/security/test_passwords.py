"""A password is nowhere: not in output, logs, errors and tracebacks of a command that fails, nor in any repr; and what
is shown in its place."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.broker import Endpoints
from mtosi_jms.errors import AuthenticationError, MtosiError, TransportError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.masking import is_secret, without, without_login
from mtosi_jms.transport import connect
from mtosi_jms.transport.stomp import parse_url

MARK = "S3cr3t-Mark"
COMMANDS = {
    "serve": ("--destination", "queue:Q"),
    "request": ("getAllManagedElements", "--to", "queue:Q"),
    "publish": ("{file}", "--topic", "topic:T"),
    "subscribe": ("--topic", "topic:T"),
    "replay": ("{file}", "--to", "queue:Q"),
    "doctor": (),
    "demo": ("--out", "{folder}/demo"),
}
EVENT = b"""<alm:alarm xmlns:alm="http://www.tmforum.org/mtop/nra/xsd/alm/v1"/>"""


def ways(command: str, address: str, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """The options by which a command can be told a wrong password."""
    bare = f"stomp://{address}"
    yield "--url", f"stomp://noc:{MARK}@{address}"
    yield "--url", f"failover:(stomp://noc:{MARK}@{address},stomp://noc:{MARK}@{address})"
    (folder / "password").write_text(MARK, encoding="utf-8")
    if command not in ("doctor", "demo"):
        yield "--url", bare, "--user", "noc", "--password-file", str(folder / "password")
        (folder / "names").write_text(f"connectionfactory.CF=stomp://noc:{MARK}@{address}\n", encoding="utf-8")
        yield "--url", "jndi:CF", "--names", str(folder / "names")
    patch.setenv("MTOSI_JMS_USER", "noc")
    patch.setenv("MTOSI_JMS_PASSWORD", MARK)
    yield "--url", bare
    patch.delenv("MTOSI_JMS_PASSWORD")
    patch.setenv("MTOSI_JMS_PASSWORD_FILE", str(folder / "password"))
    yield "--url", bare


@pytest.fixture
def words_of(tmp_path: Path) -> Callable[[str], list[str]]:
    (tmp_path / "event.xml").write_bytes(EVENT)

    def words(command: str) -> list[str]:
        return [command, *(one.format(file=tmp_path / "event.xml", folder=tmp_path) for one in COMMANDS[command])]

    return words


@pytest.mark.obligation("C55")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_broker_that_is_not_there(
    command: str, say: Any, words_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ways(command, "127.0.0.1:1", tmp_path, monkeypatch):
        said = said_of(say, words_of(command), options)
        assert said.leaks() == [], options


@pytest.mark.broker
@pytest.mark.obligation("C55")
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_a_broker_that_refuses_the_password(
    kind: str, request: pytest.FixtureRequest, say: Any, words_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"127.0.0.1:{request.getfixturevalue(kind).endpoints.ports['stomp']}"
    for command in COMMANDS:
        with monkeypatch.context() as patch:
            for options in ways(command, address, tmp_path, patch):
                said = said_of(say, words_of(command), options)
                assert said.leaks() == [], options


def said_of(say: Any, words: list[str], options: tuple[str, ...]) -> Any:
    said = say(*words, *options)
    assert said.code != 0
    assert any(said.texts.values())
    return said


@pytest.mark.parametrize(
    "url",
    [
        f"stomp://noc:{MARK}@127.0.0.1:99999",
        f"stomp://noc:{MARK}@[127.0.0.1:1",
        f"stomp://127.0.0.1:{MARK}",
        f"stomp://noc:{MARK}@127.0.0.1:1/path",
        f"stomp://noc:{MARK}@127.0.0.1:1?password={MARK}",
        f"stomp://noc:{MARK}@127.0.0.1:1?key_password={MARK}",
        f"stomp+ssl://noc:{MARK}@127.0.0.1:1?ca_file=/nowhere.pem",
        f"failover:(stomp://noc:{MARK}@127.0.0.1:1,tcp://noc:{MARK}@127.0.0.1:2)",
        f"failover:(stomp://noc:{MARK}@127.0.0.1:1",
        f"http://noc:{MARK}@127.0.0.1",
        f"noc:{MARK}@127.0.0.1",
        f"jndi:stomp://noc:{MARK}@127.0.0.1",
        f"jms:jndi:X?jndiConnectionFactoryName=CF&jndi-java.naming.security.credentials={MARK}",
    ],
)
def test_urls_at_fault(url: str, no_login: None) -> None:
    with pytest.raises(MtosiError) as caught:
        connect(url, connect_timeout=1, reconnect=False)
    assert MARK not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", [f"stomp://noc:{MARK}@h:1", f"//noc:{MARK}@h", f"http://h/?token={MARK}"])
@pytest.mark.parametrize("look_up", ["factory", "lookup"])
def test_a_url_where_a_name_is_wanted(name: str, look_up: str) -> None:
    names = mtosi.jms.NamingContext({"jms/EmsOS": "queue:EMS"})
    with pytest.raises(MtosiError) as caught:
        getattr(names, look_up)(name)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def everything(root: object, most: int = 5000) -> Iterator[object]:
    """The objects of the SDK that can be reached from one."""
    seen: dict[int, object] = {}
    todo = [root]
    while todo and len(seen) < most:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if type(one).__module__.startswith("mtosi_jms"):
            yield one
            names = {name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())}
            names |= set(getattr(one, "__dict__", ()))
            todo += [getattr(one, name) for name in names if isinstance(name, str) and hasattr(one, name)]
        elif isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            todo += list(one)


@pytest.mark.broker
@pytest.mark.obligation("C55")
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_no_repr_shows_it(kind: str, request: pytest.FixtureRequest) -> None:
    """Of a connection that works: its password is the tests' own."""
    endpoints = request.getfixturevalue(kind).endpoints
    assert endpoints.password not in f"{endpoints!r} {endpoints}"
    with mtosi.connect(endpoints.url("stomp")) as connection:
        session = connection.session()
        consumers = [session.consumer(Topic("T")), session.consumer(session.temporary_queue())]
        connection.start()
        sent = session.send(Queue(f"security.repr.{kind}"), JmsMessage(body=b"<a/>", time_to_live_ms=1000))
        found = [*everything(connection), *everything(session), *everything(consumers), sent]
        assert len(found) > 20
        assert any(getattr(one, "password", "") == endpoints.password for one in found)
        assert [type(one) for one in found if endpoints.password in f"{one!r} {one}"] == []


def test_reprs_of_what_holds_a_login(no_login: None) -> None:
    addresses, options = parse_url(f"stomp://noc:{MARK}@h", {"key_password": MARK})
    assert options.password == MARK
    held = [addresses, options, Endpoints({"stomp": 1}, "noc", MARK)]
    names = mtosi.jms.NamingContext.from_properties(f"connectionfactory.CF=stomp://noc:{MARK}@h")
    assert names.factory("CF").count(MARK) == 1
    assert [type(one) for one in [*held, names] if MARK in f"{one!r} {one}"] == []


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", "artemis"])
def test_the_text_of_a_refusal(kind: str, request: pytest.FixtureRequest) -> None:
    """A broker might quote what it was sent: the password is masked in what it says."""
    port = request.getfixturevalue(kind).endpoints.ports["stomp"]
    with pytest.raises(AuthenticationError) as caught:
        mtosi.connect(f"stomp://{MARK}:{MARK}@127.0.0.1:{port}", reconnect=False)
    assert MARK not in "".join(traceback.format_exception(caught.value))


@pytest.mark.obligation("C55")
@pytest.mark.parametrize("url", ["stomp://me:{MARK}@127.0.0.1:1", "failover:(stomp://me:{MARK}@127.0.0.1:1)"])
@pytest.mark.parametrize("in_url", [True, False])
def test_no_frame_of_a_failed_connection_shows_it(url: str, in_url: bool) -> None:
    """Error trackers record the local variables of all frames; the first is the caller's own."""
    options = {} if in_url else {"user": "me", "password": MARK}
    given = url.format(MARK=MARK) if in_url else url.replace("me:{MARK}@", "")
    with pytest.raises(TransportError) as raised:
        mtosi.connect(given, connect_timeout=1, **options)
    frames = traceback.TracebackException.from_exception(raised.value, capture_locals=True).stack[1:]
    shown = "\n".join(str(value) for frame in frames for value in (frame.locals or {}).values())
    assert MARK not in shown
    assert "Hidden(***)" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("stomp://u:s3cret@h:1", "stomp://u:***@h:1"),
        ("stomp://:s3cret@h", "stomp://:***@h"),
        ("stomp://u@h:1", "stomp://u@h:1"),
        ("stomp://h:61613", "stomp://h:61613"),
        (
            "failover:(stomp://u:s3cret@a:1,stomp+ssl://u:s3cret@b)?prefetch=1",
            "failover:(stomp://u:***@a:1,stomp+ssl://u:***@b)?prefetch=1",
        ),
        ("tcp://h:1?jms.userName=u&jms.password=s3cret", "tcp://h:1?jms.userName=u&jms.password=***"),
        ("http://u:s3cret@h/x?token=s3cret;size=3", "http://u:***@h/x?token=***;size=3"),
        ("the price: 3, at 12:30@noon", "the price: 3, at 12:30@noon"),
        ("memory:", "memory:"),
    ],
)
def test_texts_with_urls(text: str, shown: str) -> None:
    assert without_login(text) == shown


@pytest.mark.parametrize(
    "name", ["security", "MTOSI_security", "jms.password", "Passwd", "apiToken", "my_secret", "credentials"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["senderURI", "user", "MTOSI_objectType", "client_id"])
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret(name)


def test_a_secret_of_ours_in_a_text_of_others() -> None:
    assert without("login u/s3cret failed: s3cret", "s3cret") == "login u/*** failed: ***"
    assert without("nothing to hide", "") == "nothing to hide"
