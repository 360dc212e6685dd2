"""What the log says: one line an exchange, facts as fields, the wire; and the table of loggers."""

from __future__ import annotations

import argparse
import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import COMMANDS, main, parser_for, terminal
from mtosi_jms.cli.log import all_in_json
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.telemetry import JsonFormatter, LineFormatter, masked_envelope


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[Any]:
        yield from (ManagedElementType() for _ in range(3))


def test_one_line_for_an_exchange_at_each_end_with_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mtosi_jms")
    with (
        mtosi.connect("memory:logging-1") as connection,
        mtosi.Supplier(connection, "queue:EMS", [Ems()]),
        mtosi.Requestor(connection, sender_uri="queue:OS") as requestor,
    ):
        batches = ManagedElementRetrieval(requestor, "queue:EMS").get_all_managed_elements.batches(batch_size=1)
        identifier = batches.correlation_id
        assert len(list(batches)) == 3
    records = [record for record in caplog.records if record.levelno == logging.INFO]
    facts = {vars(record)["role"]: vars(record) for record in records}
    assert len(records) == 2
    for role, word in (("requestor", "to"), ("supplier", "at")):
        found = facts[role]
        assert found["name"] == "mtosi_jms.exchange"
        told = (
            f"getAllManagedElements {word} {found['destination']}: answered, correlation id {identifier}, 3 batches, "
        )
        assert found["message"].startswith(told)
        assert (found["operation"], found["outcome"], found["batches"]) == ("getAllManagedElements", "answered", 3)
        assert found["correlation_id"] == identifier
        assert found["seconds"] > 0


def test_an_exchange_that_fails_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mtosi_jms")
    timeouts = mtosi.Timeouts(total=0.05, first_reply=0.05)
    with (
        mtosi.connect("memory:logging-2") as connection,
        mtosi.Requestor(connection, sender_uri="queue:OS", timeouts=timeouts) as requestor,
        pytest.raises(mtosi.ReplyTimeoutError),
    ):
        list(ManagedElementRetrieval(requestor, "queue:EMS").get_all_managed_elements.batches(batch_size=1))
    [record] = [record for record in caplog.records if record.levelno == logging.INFO]
    assert vars(record)["outcome"] == "ReplyTimeoutError"
    assert "nothing came" in record.getMessage()


def test_a_request_that_cannot_be_read_is_named_with_its_message(caplog: pytest.LogCaptureFixture) -> None:
    with (
        mtosi.connect("memory:logging-3") as connection,
        mtosi.Supplier(connection, "queue:EMS", [Ems()]),
        connection.session() as session,
    ):
        replies = session.temporary_queue()
        consumer = session.consumer(replies)
        connection.start()
        sent = session.send(Queue("EMS"), JmsMessage(body=b"no XML", reply_to=replies))
        assert consumer.receive(60) is not None
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith(
        f"a request that cannot be read, message {sent.message_id}: MalformedXmlError: "
    )
    assert vars(record)["message_id"] == sent.message_id


def test_messages_and_wire(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mtosi_jms")
    body = b"<e:Envelope xmlns:e='x'><e:Header><h:security>hush</h:security></e:Header></e:Envelope>"
    with mtosi.connect("memory:logging-4") as connection, connection.session() as session:
        consumer = session.consumer(Queue("Q"))
        connection.start()
        session.send(Queue("Q"), JmsMessage(body=body, properties={"MTOSI_security": "hush", "n": 7}))
        assert consumer.receive(60) is not None
    told = {(record.name, record.getMessage().split(" queue:")[0]): record.getMessage() for record in caplog.records}
    for way in ("sent to", "received from"):
        assert "MTOSI_security=***, n=7" in told["mtosi_jms.messages", way]
        assert "<h:security>***</h:security>" in told["mtosi_jms.wire", way]
    assert "hush" not in "".join(told.values())


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ('<a><x:Password Type="p">hush</x:Password>left</a>', '<a><x:Password Type="p">***</x:Password>left</a>'),
        ("<wsse:Security><u>hush</u></wsse:Security>left", "<wsse:Security>***</wsse:Security>left"),
        ("<securityToken>hush\nhush", "<securityToken>***"),
        ("<security/><b>left</b>", "<security/><b>left</b>"),
        ("<a authToken='hush' b='left'/>", "<a authToken=\"***\" b='left'/>"),
        (
            "<a>stomp://os:hush@host/?password=hush&amp;b=left</a>",
            "<a>stomp://os:***@host/?password=***&amp;b=left</a>",
        ),
        ("<secret><secret>hush</secret></secret>", None),
    ],
)
def test_masked_envelopes(body: str, shown: str | None) -> None:
    masked = masked_envelope(body.encode())
    assert "hush" not in masked
    assert shown is None or masked == shown
    assert "hush" not in masked_envelope(body.encode("utf-16"))


def record_of(text: str, *args: object, error: BaseException | None = None, **facts: object) -> logging.LogRecord:
    shown = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("mtosi_jms.exchange", logging.WARNING, __file__, 1, text, args, shown)
    vars(record).update(facts)
    return record


def test_json_lines() -> None:
    error = ValueError("to stomp://os:hush@host")
    line = JsonFormatter().format(
        record_of("to %s\nnext", "stomp://os:hush@host", error=error, seconds=0.5, api_token="hush", error_count=None)
    )
    facts = json.loads(line)
    assert "\n" not in line
    assert "hush" not in line
    assert facts.pop("time").endswith("+00:00")
    assert "ValueError: to stomp://os:***@host" in facts.pop("traceback")
    assert facts == {
        "level": "WARNING",
        "logger": "mtosi_jms.exchange",
        "message": "to stomp://os:***@host\nnext",
        "seconds": 0.5,
        "api_token": "***",
        "error": "ValueError: to stomp://os:***@host",
    }


@pytest.mark.obligation("SEC23")
def test_every_line_of_a_command_is_json(capfd: pytest.CaptureFixture[str]) -> None:
    class Damaged:
        def __del__(self) -> None:
            raise ValueError("at the end")

    def fail() -> None:
        raise KeyError("in a thread")

    with all_in_json(argparse.Namespace(log_json=True)):
        terminal.note("a note")
        terminal.problem("a problem\nof two lines")
        logging.getLogger("another.library").warning("a warning of %s", "a library")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("a warning of Python", UserWarning, stacklevel=1)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        Damaged()
    terminal.to_records(None)
    assert main(["publish", "no-such-file.xml", "--url", "nonsense:", "--topic", "topic:T", "--log-json"]) != 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    shown = [(line["level"], line["message"].splitlines()[0]) for line in lines]
    assert shown[:3] == [
        ("INFO", "a note"),
        ("ERROR", "a problem\\nof two lines"),
        ("WARNING", "a warning of a library"),
    ]
    assert "a warning of Python" in shown[3][1]
    assert [line["error"] for line in lines[4:6]] == ["KeyError: 'in a thread'", "ValueError: at the end"]
    assert "Traceback" in lines[4]["traceback"]
    assert shown[6][0] == "ERROR"


def test_plain_lines_are_single_and_masked() -> None:
    formatter = LineFormatter("%(levelname)s %(message)s", tracebacks=False)
    assert formatter.format(record_of("a\nERROR forged %s", "x://u:hush@h")) == "WARNING a\\nERROR forged x://u:***@h"
    assert formatter.format(record_of("it failed", error=ValueError("why"))) == "WARNING it failed: ValueError: why"
    assert "Traceback" not in formatter.format(record_of("it failed", error=ValueError("why")))


def test_the_page_has_all_loggers(root: Path) -> None:
    page = (root / "docs" / "telemetry.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(mtosi_jms[\w.]*)` \|", page, re.MULTILINE))
    used = set()
    for file in (root / "mtosi_jms").rglob("*.py"):
        for argument in re.findall(r"getLogger\(([^)]*)\)", file.read_text(encoding="utf-8")):
            if argument == "__package__":
                used.add(".".join(file.relative_to(root).parent.parts))
            elif argument.startswith('"'):
                used.add(argument.strip('"'))
    used -= {"mtosi_jms", "py4j"}
    assert documented == used


# docs/telemetry.md: its code runs, its command lines are taken; other tests here hold its tables.

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LONG = {"serve", "subscribe", "gateway", "bridge", "replay", "console"}
PROVIDER = LONG | {"request", "publish", "queue"}


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "telemetry.md").read_text(encoding="utf-8")


def test_its_code_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("opentelemetry", reason="the extra otel is not installed")
    log = logging.getLogger("mtosi_jms")
    before = list(log.handlers), log.level
    try:
        for number, block in enumerate(BLOCK.findall(page), 1):
            exec(compile(block, f"telemetry.md block {number}", "exec"), {})
    finally:
        log.handlers[:], level = before
        log.setLevel(level)
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")


def test_commands_have_the_options_that_the_page_says(page: str) -> None:
    for command in COMMANDS:
        text = _help(command)
        assert ("--monitor HOST:PORT" in text) is (command in LONG), command
        for option in ("--log-level", "--log-json", "--wire"):
            assert (option in text) is (command in PROVIDER), f"{command} {option}"
    [line] = [line for line in page.splitlines() if line.startswith("| `--monitor HOST:PORT` |")]
    assert set(re.findall(r"`(\w+)`", line.split("|")[2])) == LONG


def _help(command: str) -> str:
    subparsers = next(action for action in parser_for(command)._actions if action.dest == "command")
    choices = subparsers.choices
    assert isinstance(choices, dict)
    text: str = choices[command].format_help()
    return text
