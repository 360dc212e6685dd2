"""Every command against every hostile input of the kind that it takes: an exit code and lines, never a traceback.

`make test` tries each command with a part of the inputs, in this process. The endurance form tries all of them, and the
large ones again in a process of its own, whose memory and time are measured.
"""

from __future__ import annotations

import gzip
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import mtosi_codegen.cli
import mtosi_jms as mtosi
from mtosi_jms import cli
from mtosi_jms.errors import ConfigError
from mtosi_jms.jars import fetch_client
from mtosi_jms.jms import JmsMessage, MessageType, Queue

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

HOME = Path(__file__).parents[2]
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
ENVELOPE = (
    f'<s:Envelope xmlns:s="{SOAP}" xmlns:h="{HDR}"><s:Header><h:header><h:msgType>NOTIFICATION</h:msgType></h:header>'
    "</s:Header><s:Body>BODY</s:Body></s:Envelope>"
)
WSDL = '<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:x" name="x">BODY</w:definitions>'
SCHEMA = '<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema" xmlns="urn:x" targetNamespace="urn:x">BODY</x:schema>'
ENTITIES = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
SIZE = 1_000_000
"""Of what is large: bytes of a text; a hundredth of it are elements, levels and members."""
LARGEST = 30 * SIZE
MEGABYTES = 800
"""What the largest inputs may cost a command, its libraries included."""
SECONDS = 60.0
LONGEST_LINE = 5_000

Make = Callable[[Path], object]


def holding(content: str | bytes) -> Make:
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def inside(frame: str, content: str) -> Make:
    return holding(frame.replace("BODY", content))


def imports(*locations: str) -> Make:
    return inside(WSDL, "".join(f'<w:import namespace="urn:{at}" location="{at}"/>' for at in locations))


def no_end(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe_beside(path: Path) -> None:
    os.mkfifo(path.with_name("pipe.wsdl"))
    imports("pipe.wsdl")(path)


def tree_in_a_circle(path: Path) -> None:
    path.mkdir()
    (path / "up").symlink_to("..")


def bomb(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        file.write(b"<a>" + b" " * 30 * SIZE)


def terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def large(size: int) -> dict[str, Make]:
    """Inputs that are as large as one says."""
    many = size // 100
    groups = "".join(
        f'<x:group name="g{n}"><x:sequence><x:group ref="g{n - 1}"/><x:group ref="g{n - 1}"/></x:sequence></x:group>'
        for n in range(1, 40)
    )
    doubling = (
        f'{groups}<x:group name="g0"><x:sequence><x:element name="e"/></x:sequence></x:group>'
        '<x:complexType name="t"><x:group ref="g39"/></x:complexType>'
    )
    derived = '<x:complexType name="t{}"><x:complexContent><x:extension base="t{}"/></x:complexContent></x:complexType>'
    chain = "".join(derived.format(n, n + 1) for n in range(size // 10_000))
    return {
        "deep, no end": holding("<a>" * many),
        "deep": holding("<a>" * many + "</a>" * many),
        "deep body": inside(ENVELOPE, "<x>" * many + "</x>" * many),
        "wide": holding("<a>" + "<b/>" * many + "</a>"),
        "wide body": inside(ENVELOPE, "<b/>" * (many // 10)),
        "attributes": holding("<a " + " ".join(f"a{n}=''" for n in range(many)) + "/>"),
        "namespaces": holding("<a " + " ".join(f"xmlns:a{n}='urn:{n}'" for n in range(many)) + "/>"),
        "text": holding(f"<a>{'x' * size}</a>"),
        "text in a body": inside(ENVELOPE, f"<b>{'?' * size}</b>"),
        "name": holding(f"<{'a' * size}/>"),
        "value": holding(f"<a b='{'a' * size}'/>"),
        "one line": holding("a" * size),
        "octets of nothing": holding(bytes(size)),
        "JSON that is deep": holding("[" * many),
        "JSON with a number": holding(f'{{"pid": {"1" * many}, "port": Infinity}}'),
        "TOML that is deep": holding(f"a = {'[' * many}"),
        "WSDL of messages": inside(WSDL, "".join(f'<w:message name="m{n}"/>' for n in range(many // 10))),
        "WSDL with deep types": inside(WSDL, f"<w:types>{'<a>' * many}{'</a>' * many}</w:types>"),
        "WSDL with a long location": imports("a" * size),
        "schema of groups that double": inside(SCHEMA, doubling),
        "schema with a chain of base types": inside(SCHEMA, chain),
    }


INPUTS: dict[str, Make] = {
    **large(SIZE),
    "empty": holding(""),
    "blank": holding(" \n"),
    "a mark alone": holding(b"\xef\xbb\xbf"),
    "no XML": holding("MTOSI_msgType=REQUEST"),
    "random": holding(random.Random(1).randbytes(20_000)),
    "truncated": holding(ENVELOPE[:-9]),
    "Latin-1 that is none": holding(b"<a>\xe9</a>"),
    "UTF-16 that is none": holding('<?xml version="1.0" encoding="utf-16"?><a/>'),
    "an encoding that nobody knows": holding('<?xml version="1.0" encoding="martian"?><a/>'),
    "UTF-16": holding(ENVELOPE.encode("utf-16")),
    "UTF-32": holding(ENVELOPE.encode("utf-32")),
    "EBCDIC": holding(f'<?xml version="1.0" encoding="cp500"?>{ENVELOPE}'.encode("cp500")),
    "entities": holding(f'<!DOCTYPE x [<!ENTITY l0 "lol">{ENTITIES}]><x>&l9;</x>'),
    "an entity of a file": holding('<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'),
    "XInclude": holding('<x xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="/etc/passwd"/></x>'),
    "controls": holding("<a>\x1b]0;x\x07\u202e</a>"),
    "another root": holding("<a/>"),
    "an empty body": inside(ENVELOPE, ""),
    "half a gzip": holding(gzip.compress(b"<a/>" * 100)[:-9]),
    "a gzip that unpacks to much": bomb,
    "half a Zstandard": holding(b"\x28\xb5\x2f\xfd\xff\xff\xff"),
    "half a zip": holding(b"PK\3\4" + bytes(100)),
    "WSDL of nothing": inside(WSDL, ""),
    "WSDL that imports": imports("x.wsdl", "http://127.0.0.1:1/y.wsdl", "../" * 9 + "etc/passwd", "a%00b", "//[", "."),
    "WSDL that imports a pipe": pipe_beside,
    "schema in a circle": inside(
        SCHEMA,
        '<x:group name="g"><x:sequence><x:group ref="g"/></x:sequence></x:group>'
        '<x:complexType name="t"><x:complexContent><x:extension base="t"/></x:complexContent></x:complexType>',
    ),
    "schema with odd facets": inside(
        SCHEMA,
        '<x:complexType name="t"><x:sequence><x:element name="e" maxOccurs="99999999999999999999"/></x:sequence>'
        '</x:complexType><x:simpleType name="s"><x:restriction base="x:string"><x:pattern value="(a+)+(("/>'
        "</x:restriction></x:simpleType>",
    ),
    "a pipe": os.mkfifo,
    "a device": no_end,
    "a folder": Path.mkdir,
    "a folder in a circle": tree_in_a_circle,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a terabyte": terabyte,
}
"""What stands in place of the file that a command wants."""

RUNS = {
    ".xml": """
        map {file}
        map {folder}
        validate {file} --explain
        validate {folder}
        inspect {file}
        inspect {folder} --json
        serve --url {url} --destination queue:Q --inventory {folder} --http 127.0.0.1:{busy}
        request getAllManagedElements --url {url} --to queue:Q --timeout 0.05 --body {file}
        publish {file} --url {url} --topic topic:T
        publish {folder} --url {url} --topic topic:T
        replay {file} --url {url} --to queue:Q
        replay {folder} --url {url} --to queue:Q
        mq write {folder} --out {out}
        ingest {folder} --engine local --object ALL --out {out}
        query {folder} FROM"ME"
        query {folder} FROM"REJECTS" --json
        """,
    ".tree.xml": "mq write {file} --out {out}",
    ".mq": """
        mq read {file} --out {out}
        mq read {folder} --out {out}
        """,
    f"mtosi_jms-{mtosi.__version__}-py3-none-any.whl": "spark-archive --wheel {file} --out {out}",
    ".xml.json": "replay {folder} --url {url} --to queue:Q",
    ".xsd": """
        validate {good} --schemas {folder}
        codegen generate {file} --package p --out {out}
        codegen verify {file} --package p --out {out}
        """,
    ".wsdl": """
        serve --url {url} --destination queue:Q --http 127.0.0.1:{busy} --wsdl {file}
        gateway --url {url} --to queue:Q --listen 127.0.0.1:{busy} --without-login --wsdl {file}
        request getIt --url {url} --to queue:Q --timeout 0.05 --wsdl {file}
        codegen generate {file} --package p --out {out}
        codegen generate {folder} --package p --out {out}
        codegen check {file} --package p --out {out}
        codegen inspect {file}
        codegen docs {file} --out {out}
        codegen deploy {file} --address A=queue:Q --out {out}
        codegen verify {file} --package p --out {out}
        codegen sample getIt {file}
        """,
    ".toml": """
        deployment {file}
        deployment {good} --names {file}
        queue count queue:Q --url {url} --names {file}
        codegen deploy {wsdl} --deployment {file} --out {out}
        """,
    ".jinja": """
        codegen generate {wsdl} --templates {folder} --package p --out {out}
        codegen templates {file}
        """,
    ".db": """
        spool list {folder}
        spool verify {folder}
        spool show {folder} --state dead
        spool redrive {folder} --state dead
        """,
    ".jsonl": """
        channel publish {file} --at {good}
        channel publish {events} --at {file}
        new requestor {file}
        """,
    "service.json": """
        broker status --dir {folder}
        broker down --dir {folder}
        channel status --dir {folder}
        channel down --dir {folder}
        """,
}
"""The commands that read files, by the end of the file's name, or by a whole name."""
COMMANDS = [(suffix, words.strip()) for suffix, block in RUNS.items() for words in block.strip().splitlines()]
WITH_SPARK = ["ingest {folder} --out {out}", "diff {folder} {folder} --out {out}", "topology {folder} --out {out}"]
WITH_SPARK += ["alarms {folder} --out {out}"]
ELSEWHERE = {"demo", "doctor", "help", "operations", "jvm", "completion", "subscribe", "console", "bridge"}
"""Commands that read no file of others, or are tried below."""


def test_the_tables_have_every_command() -> None:
    named = {words.split()[0] for _, words in COMMANDS} | {words.split()[0] for words in WITH_SPARK} - {"codegen"}
    assert named - {"codegen"} | ELSEWHERE == set(cli.COMMANDS)
    assert {words.split()[1] for _, words in COMMANDS if words.startswith("codegen")} == {
        "generate", "check", "inspect", "docs", "deploy", "templates", "verify", "sample",
    }  # fmt: skip


def prepared(folder: Path, suffix: str, words: str, make: Make, busy: int) -> list[str]:
    """The words of a command, whose input is made."""
    (folder / "in").mkdir(parents=True)
    file = folder / "in" / (f"x{suffix}" if suffix.startswith(".") else suffix)
    if suffix == ".xml.json":
        file.with_name("x.xml").write_text(ENVELOPE)
    make(file)
    good, events = folder / "good", folder / "events"
    good.write_text("" if suffix == ".toml" else ENVELOPE)
    events.write_text("{}")
    places = {"file": file, "folder": file.parent, "good": good, "events": events, "out": folder / "out"}
    url = f"memory:{folder.parent.name}-{folder.name}"
    return [word.format(**places, url=url, wsdl=HOME / "wsdl", busy=busy) for word in words.split()]


@pytest.fixture(scope="module")
def busy() -> Iterator[int]:
    """A port that no command can listen at, so that those end which would run until they are told."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def fault_of(words: list[str], code: int | None, out: str, err: str) -> str:
    """What is wrong with an answer of a command; empty if nothing is."""
    said = out + err
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if "Traceback" in said or "internal error" in said:
        return "a traceback"
    if code and not said.strip():
        return "nothing said"
    shown = err if "--json" in words else said
    longest = max(map(len, shown.splitlines()), default=0)
    return f"a line of {longest} characters" if longest > LONGEST_LINE else ""


def tried(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is wrong with a command in this process; empty if nothing is."""
    run = mtosi_codegen.cli.main if words[0] == "codegen" else cli.main
    code = run(words[words[0] == "codegen" :])
    out, err = capsys.readouterr()
    wrong = fault_of(words, code, out, err)
    return f"{words}: {wrong}: {err[:500]} {out[:200]}" if wrong else ""


SLOW = ("--explain", "codegen sample", "codegen verify", "--templates", "channel publish", "bridge")
"""What takes a large part of a second whatever the input, or starts Java."""


def parts(commands: list[tuple[str, str]], part: int) -> Iterator[Any]:
    """Each command with one of so many of its inputs, and for the endurance form with all."""
    for number, (suffix, words) in enumerate(commands):
        if not any(one in words for one in SLOW):
            yield suffix, words, slice(number % part, None, part)
        yield pytest.param(suffix, words, slice(None), marks=pytest.mark.endurance)


@pytest.mark.obligation("OPS6")
@pytest.mark.parametrize(("suffix", "words", "part"), [*parts(COMMANDS, 10)])
def test_a_command_and_its_inputs(
    suffix: str, words: str, part: slice, busy: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for number, make in enumerate(list(INPUTS.values())[part]):
        wrong.append(tried(prepared(tmp_path / str(number), suffix, words, make, busy), capsys))
    assert not [one for one in wrong if one]


LARGE_ONES = {**large(LARGEST), "a gzip that unpacks to much": bomb, "a terabyte": terabyte}


@pytest.mark.endurance
@pytest.mark.parametrize(("suffix", "words"), COMMANDS)
def test_what_large_inputs_cost(suffix: str, words: str, busy: int, tmp_path: Path) -> None:
    begin = COMMANDS.index((suffix, words)) % 3
    for number, name in enumerate(list(LARGE_ONES)[begin::3]):
        given = prepared(tmp_path / str(number), suffix, words, LARGE_ONES[name], busy)
        is_codegen = given[0] == "codegen"
        command = [sys.executable, "-m", "mtosi_codegen" if is_codegen else "mtosi_jms", *given[is_codegen:]]
        with (tmp_path / "said").open("w+b") as said:
            begun = time.monotonic()
            process = subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd=tmp_path)
            _, status, spent = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - begun
            said.seek(0)
            text = said.read().decode(errors="replace")
        assert not fault_of(given, process.returncode, "", text), (name, text[:500])
        assert spent.ru_maxrss / 1024 < MEGABYTES, name
        assert seconds < SECONDS, name


@pytest.mark.endurance
@pytest.mark.spark
@pytest.mark.parametrize("words", WITH_SPARK)
def test_a_command_with_spark(
    words: str, busy: int, tmp_path: Path, in_session: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for number, make in enumerate(INPUTS.values()):
        suffix = (".xml", ".zip", ".xml.json")[number % 3]
        wrong.append(tried(prepared(tmp_path / str(number), suffix, words, make, busy), capsys))
    assert not [one for one in wrong if one]


def hostile_messages(folder: Path) -> Iterator[JmsMessage]:
    """Messages whose bodies are the inputs above, and others."""
    for number, make in enumerate(INPUTS.values()):
        make(file := folder / str(number))
        if file.is_file() and file.stat().st_size < 2 * SIZE:
            kind = MessageType.TEXT if number % 2 else MessageType.BYTES
            yield JmsMessage(body=file.read_bytes(), message_type=kind, reply_to=Queue("R"))
    yield JmsMessage(message_type=MessageType.MAP, content={"a\x1b]0;x\x07": "\u202e" * 1000})
    yield JmsMessage(message_type=MessageType.STREAM, content=(b"\xff", "\0", 1))
    yield JmsMessage(message_type=MessageType.OBJECT, reply_to=Queue("A,B"))
    odd = {"MTOSI_msgType": "?" * SIZE, "MTOSI_batchSequenceNumber": "\x9b" * 100, "p": "\u202e\0"}
    yield JmsMessage(body=ENVELOPE.encode(), properties=odd, correlation_id="?" * SIZE, reply_to=Queue("R"))


QUEUE_COMMANDS = """
    queue count queue:Q --url {url} --selector MTOSI_msgType='X'
    queue browse queue:Q --url {url}
    queue browse queue:Q --url {url} --json
    queue copy queue:Q --to queue:T --url {url}
    subscribe --topic queue:Q --url {url} --timeout 0 --validate warn --json
    queue move queue:T --to queue:U --record {out} --url {url}
    replay {out} --to queue:V --url {url}
    mq write {out} --out {out}-mq
    queue purge queue:U --url {url}
"""


@pytest.mark.obligation("OPS6")
def test_commands_and_a_hostile_queue(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "in").mkdir()
    with mtosi.connect(url) as connection, connection.session() as session:
        for message in hostile_messages(tmp_path / "in"):
            session.send(Queue("Q"), message)
        for line in QUEUE_COMMANDS.strip().splitlines():
            wrong = tried(line.format(url=url, out=tmp_path / "out").split(), capsys)
            assert not wrong


def endless(data: bytes) -> Callable[[socket.socket], None]:
    """A peer that sends this without an end."""

    def send(client: socket.socket) -> None:
        while True:
            client.sendall(data)

    return send


def once(data: bytes) -> Callable[[socket.socket], None]:
    """A peer that sends this, and then nothing."""
    return lambda client: client.sendall(data)


HELLO = b"CONNECTED\nversion:1.2\nserver:ActiveMQ/6.1.0\nheart-beat:0,0\nsession:s\n\n\0"
PEERS = {
    "nothing": once(b""),
    "random": once(random.Random(1).randbytes(50_000)),
    "an endless line": endless(b"a" * 65_536),
    "endless blank lines": endless(b"\n" * 65_536),
    "endless headers": endless(b"CONNECTED\n" + b"a:b\n" * 10_000),
    "half a frame": once(HELLO[:40]),
    "a large length": once(b"CONNECTED\nversion:1.2\ncontent-length:99999999999999\n\n"),
    "a negative length": once(b"CONNECTED\nversion:1.2\ncontent-length:-1\n\n\0"),
    "an error": once(b"ERROR\nmessage:\x1b]0;x\x07\xff" + b"?" * 100_000 + b"\n\n\x9b\0"),
    "another version": once(b"CONNECTED\nversion:9\nserver:ActiveMQ/6\n\n\0"),
    "no version": once(b"CONNECTED\n\n\0"),
    "another server": once(HELLO.replace(b"ActiveMQ", b"\xff\x9b" * 10_000)),
    "a long version": once(HELLO.replace(b"6.1.0", b"6" * 10_000)),
    "an odd heart-beat": once(HELLO.replace(b"0,0", b"99999999999999999999,-5")),
    "messages before it is asked": once(b"MESSAGE\n\n\0" * 1_000),
    "HTTP": once(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
    "then random": once(HELLO + random.Random(2).randbytes(1_000)),
    "then an endless line": lambda client: (once(HELLO)(client), endless(b"a" * 65_536)(client)),
    "then half a frame": once(HELLO + b"MESSAGE\nsub"),
    "then an error": once(HELLO + b"ERROR\nmessage:no\n\n\0"),
    "then messages for nobody": once(HELLO + b"MESSAGE\nsubscription:9\nmessage-id:1\n\n<a/>\0" * 1_000),
    "then receipts for nobody": once(HELLO + b"RECEIPT\nreceipt-id:x\n\n\0RECEIPT\n\n\0"),
}
"""What listens in place of a broker of STOMP."""
AT_A_BROKER = """\
    doctor --url {url}
    serve --url {url} --destination queue:Q
    request getAllManagedElements --url {url} --to queue:Q --timeout 0.2
    publish {good} --url {url} --topic topic:T
    subscribe --url {url} --topic topic:T --timeout 0.2
    replay {good} --url {url} --to queue:Q
    queue count queue:Q --url {url} --wait 0.2
    console --url {url} --watch queue:Q --listen 127.0.0.1:{busy}
    gateway --url {url} --to queue:Q --listen 127.0.0.1:{busy} --without-login
    bridge --from topic:T --to corbaloc::127.0.0.1:1/x --url {url}
""".splitlines()
OPTIONS = "connect_timeout=0.2&send_timeout=0.2&close_timeout=0.2&reconnect_timeout=0.2"


@contextmanager
def peer(behave: Callable[[socket.socket], Any]) -> Iterator[int]:
    """The port of a peer that behaves so to each client, once it has asked."""
    clients: list[socket.socket] = []

    def work(client: socket.socket) -> None:
        with suppress(OSError):
            client.recv(65_536)
            behave(client)

    def listen() -> None:
        with suppress(OSError):
            while True:
                clients.append(server.accept()[0])
                threads.append(threading.Thread(target=work, args=(clients[-1],)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threads = [threading.Thread(target=listen)]
        threads[0].start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            threads[0].join()
            for client in clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()
            for client in clients:
                client.close()


@pytest.mark.obligation("OPS7")
@pytest.mark.parametrize(("suffix", "words", "part"), [*parts([(".xml", line.strip()) for line in AT_A_BROKER], 7)])
def test_what_is_no_broker(suffix: str, words: str, part: slice, busy: int, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / f"good{suffix}").write_text(ENVELOPE)
    for name in list(PEERS)[part]:
        with peer(PEERS[name]) as port:
            url = f"stomp://127.0.0.1:{port}?{OPTIONS}"
            given = words.format(url=url, good=tmp_path / f"good{suffix}", busy=busy).split()
            spent, begun = time.process_time(), time.monotonic()
            wrong = tried(given, capsys)
            assert not wrong, name
            assert time.process_time() - spent < 10, name
            assert time.monotonic() - begun < SECONDS, name


JNDI = {
    "activemq": "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
    "artemis": "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
    "qpid": "org.apache.qpid.jms.jndi.JmsInitialContextFactory",
}


@pytest.mark.endurance
@pytest.mark.parametrize("name", ["nothing", "random", "an endless line", "HTTP"])
@pytest.mark.parametrize("kind", ["activemq", "artemis", "qpid"])
def test_a_java_client_and_what_is_no_broker(kind: str, name: str) -> None:
    """In a process of its own, since the client may go on for ever in its threads."""
    try:
        fetch_client(kind)
    except ConfigError as error:
        pytest.skip(str(error))
    with peer(PEERS[name]) as port:
        address = f"{'amqp' if kind == 'qpid' else 'tcp'}://127.0.0.1:{port}"
        query = {"classpath": kind, "jndiInitialContextFactory": JNDI[kind], "jndiURL": address}
        url = f"jvm:ConnectionFactory?{urlencode(query)}"
        command = [sys.executable, "-m", "mtosi_jms", "queue", "count", "queue:Q", "--url"]
        done = subprocess.run(
            [*command, f"{url}&connect_timeout=3&close_timeout=1"], capture_output=True, text=True, timeout=SECONDS
        )
    assert done.returncode == 1, done
    assert not fault_of(command, done.returncode, done.stdout, done.stderr), done


OK = b"HTTP/1.1 200 OK\r\n"
HTTP_PEERS = {
    "random": once(random.Random(1).randbytes(50_000)),
    "a status alone": once(OK),
    "an odd status": once(b"HTTP/1.1 999 \xff\0\r\n\r\n"),
    "an endless line": endless(b"a" * 65_536),
    "endless headers": endless(OK + b"a: b\r\n" * 10_000),
    "an odd length": once(OK + b"Content-Length: -5\r\n\r\nabc"),
    "odd chunks": once(OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
    "another file": once(OK + b"Content-Length: 3\r\n\r\nabc"),
    "a redirection to itself": once(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
    "a redirection to a file": once(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"),
}


@pytest.mark.obligation("OPS7")
@pytest.mark.parametrize("name", HTTP_PEERS)
def test_downloads_from_what_is_no_repository(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with peer(lambda client: (HTTP_PEERS[name](client), client.shutdown(socket.SHUT_RDWR))) as port:
        monkeypatch.setenv("MAVEN_REPO_URL", f"http://127.0.0.1:{port}/")
        assert not tried(["jvm", "fetch", "activemq"], capsys)
    assert not list(tmp_path.rglob("*.jar"))
