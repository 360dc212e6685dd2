"""The pages of docs/: code that needs no broker prints what they say, commands are taken, all that must be is named."""

from __future__ import annotations

import inspect
import re
import shlex
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mtosi_jms import errors
from mtosi_jms.cli import COMMANDS, parser_for
from mtosi_jms.cli.arguments import commands_of
from mtosi_jms.simulator._command import SERVICES

ROOT = Path(__file__).resolve().parents[2]
FILES = {"properties": "jndi.properties", "toml": "inventory-os.toml"}
"""The files that a page shows, by kind."""


class Run(NamedTuple):
    """How many blocks a page has, and what they print where the page has no line of its own for each print."""

    blocks: int
    prints: str = ""
    not_shown: str = "(none)"
    """Beginning of lines that a loop prints: the page shows the first, or tells of them."""


RUNS = {
    "asynchronous-send": Run(4),
    "asyncio": Run(
        7,
        "MD=EMS1/ME=NE-2\nMD=EMS1/ME=NE-1\nMD=EMS1/ME=NE-2\nMD=EMS1/ME=NE-3\nMD=EMS1/ME=NE-4\nMD=EMS1/ME=NE-5\n"
        "5 responses\n1\ntotal\n0\nMD=EMS2/ME=0 7\nAlarm\n",
        not_shown="MD=EMS1/ME=NE-",
    ),
    "bridge": Run(3),
    "console": Run(1),
    "consumers": Run(5),
    "delivery": Run(3),
    "deployment": Run(
        3,
        "3\ndeployment of jms/InventoryOS\n"
        "serves ResourceInventoryRetrieval at jms/InventoryRequests (queue INVENTORY.REQUESTS)\n"
        "asks ManagedElementRetrieval, EquipmentInventoryRetrieval at jms/EmsOS (queue EMS.OS)\n"
        "jms://aserver/mtosi/ManagedElementRetrieval\nqueue:EMS.OS\n",
    ),
    "exchanges": Run(
        10,
        "MD=EMS1/ME=NE-2\nMD=EMS1/ME=NE-1\nMD=EMS1/ME=NE-2\nMD=EMS1/ME=NE-3\nMD=EMS1/ME=NE-4\nMD=EMS1/ME=NE-5\n"
        "[2, 2, 1]\nMD=EMS1/ME=NE-1\ncase 4711 []\nfirst reply\n"
        "nobody consumes queue:NOBODY: is the supplier running, and is this its destination?\n"
        "entityNotFound - there is no MD=EMS1/ME=NE-99\n[3, 3, 1]\n1 3\n2 3\n3 1\n"
        "GZIP TAR elements.tar.gz\n5 objects\n3 documents\n3 3\n",
        not_shown="MD=EMS1/ME=NE-",
    ),
    "gateway": Run(1, "MD=EMS1/ME=NE-3\nTrue\n"),
    "ibm": Run(1),
    "naming": Run(
        5,
        "queue:EMS.OS\n'jms/InventoryO': no destination is known by this name; did you mean jms/InventoryOS?\n"
        "queue:EMS.OS {'consumer.prefetchSize': '10'}\njndi jms/EmsOS 60000 6\n"
        "<JmsUri jms:jndi:jms/EmsOS with timeToLive, priority, deliveryMode, jndiURL>\nqueue:PLANNING\n",
    ),
    "notifications": Run(
        9,
        "topic:MTOSI.Fault MD=EMS1/ME=NE-7 1800000\nMD=EMS1/ME=NE-7\n['CRITICAL']\n1\n['Heartbeat', 'Heartbeat']\n"
        "heartbeat overdue jms/EmsOS begins\ntold by the sender jms/EmsOS begins\ntold by the sender jms/EmsOS over\n"
        "2 1\n119 []\nTrue\n1\n[0, 1]\n1\n",
        not_shown="told by the sender",
    ),
    "objects": Run(3),
    "providers": Run(
        4,
        "b'<urgent/>' 9\nb'<request/>' 4\n1\n2\n3\nb'<poison/>' queue:EMS.OS\n"
        "delivered 3 times without being acknowledged\nb'CRITICAL'\nnot the first time - 1\nheard b'<event/>'\n",
    ),
    "soap-jms": Run(2),
    "testing": Run(9),
    "zeep": Run(5),
}

NAMED = [
    ("asynchronous-send", "| `{}` |", "mtosi_jms.transport", "ConnectOptions"),
    ("consumers", "`{}`", "mtosi_jms.runtime", "Health"),
    ("consumers", "`{}`", "mtosi_jms.runtime", "RuntimeRules"),
    ("consumers", "`{}`", "mtosi_jms.runtime._consumer", ""),
    ("corba-channels", "`{}`", "mtosi_jms.bridge.corba", "OrbOptions"),
    ("exchanges", "{}", "mtosi_jms", "CallOptions"),
    ("exchanges", "{}", "mtosi_jms.exchange", "Requestor"),
    ("exchanges", "{}", "mtosi_jms.exchange", "Supplier"),
    ("gateway", "`{}`", "mtosi_jms.gateway", "HttpOptions"),
    ("jvm", "`{}`", "mtosi_jms.transport.jvm", "JvmOptions"),
    ("notifications", "| {} |", "mtosi_jms.notifications", "LossCause"),
    ("providers", "{}", "mtosi_jms.transport", "AckMode"),
    ("transports", "{}", "mtosi_jms.transport", "Capability"),
    ("providers", "| `{}` |", "mtosi_jms.transport.memory", "MemoryOptions"),
    ("providers", "{}", "mtosi_jms.transport.memory", ""),
    ("stomp", "`{}`", "mtosi_jms.transport.stomp", "StompOptions"),
    ("zeep", "{}", "mtosi_jms.integrations.zeep", "Client"),
]
"""Pages, how they write a name, and where the names are: fields, members, parameters, or the constants of a module."""
ELSEWHERE = {
    "ConnectOptions": {"client_id", "jms_version"},
    "Requestor": {"connection", "destination", "profile", "new_id", "clock"},
    "Supplier": {"connection", "destination", "profile", "new_id", "clock"},
}
"""Names that other pages explain, and those of arguments that need no word."""


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def blocks_of(text: str) -> Iterator[tuple[str, str]]:
    """The code of a page, each block with what it prints: as comments beside the prints, and as lines below it."""
    for block, below in re.findall(r"^```python\n(.*?)^```\n\n?((?:    [^\n]*\n)*)", text, re.DOTALL | re.MULTILINE):
        beside = re.findall(r"^ *print\(.*\) {2,}# (.+)$", block, re.MULTILINE)
        yield block, "".join(f"{line}\n" for line in beside) + textwrap.dedent(below)


@pytest.mark.parametrize("page", RUNS)
def test_the_code_prints_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, run = text_of(page), RUNS[page]
    files = re.findall(r"```(properties|toml)\n(.*?)```", text, re.DOTALL)
    for kind, content in files:
        (tmp_path / FILES[kind]).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path if files else ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blocks = list(blocks_of(text))
    assert len(blocks) == run.blocks
    code = "\n".join(block for block, _ in blocks)
    space: dict[str, Any] = {}
    if re.search(r"^\w.*\bawait\b", code, re.MULTILINE):
        exec(compile(f"async def page():\n{textwrap.indent(code, '    ')}", page, "exec"), space)
        import_module("asyncio").run(space["page"]())
    for number, (block, promised) in enumerate(blocks, 1) if "page" not in space else ():
        exec(compile(block, f"{page}.md block {number}", "exec"), space)
        if not run.prints:
            assert capsys.readouterr().out == promised
    if run.prints:
        assert capsys.readouterr().out == run.prints
        for line in run.prints.splitlines():
            assert line in text or line.startswith(run.not_shown), "the page says what is printed"


@pytest.mark.parametrize(("page", "form", "module", "name"), NAMED, ids=str)
def test_the_page_names_all_there_is(page: str, form: str, module: str, name: str) -> None:
    place = import_module(module)
    if not name:
        names = {
            value
            for constant, value in vars(place).items()
            if constant.isupper() and isinstance(value, str) and " " not in value
        }
    elif is_dataclass(found := getattr(place, name)):
        names = {field.name for field in fields(found)}
    elif issubclass(found, Enum):
        names = set(found.__members__)
    else:
        names = set(inspect.signature(found).parameters) - {"self"}
    text = text_of(page)
    assert names
    forms = (form, ".{}`") if page == "consumers" else (form,)
    missing = {one for one in names if not any(written.format(one) in text for written in forms)}
    assert missing - ELSEWHERE.get(name, set()) == set()


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda one: one.stem)
def test_the_commands_are_taken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that a reader may copy, up to what a shell makes of it."""
    monkeypatch.setenv("MTOSI_JMS_URL", "stomp://127.0.0.1:61613")  # as the pages export it
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^(?:\$ )?mtosi-jms (.+)$", text, re.MULTILINE)
    if path.stem == "operations":  # who reads it in haste copies what stands in a sentence, too
        lines += re.findall(r"`mtosi-jms ([^`]+)`", text)
    if path.stem == "commands":
        lines += re.findall(r"`mtosi-jms ([^`]*)` \|", text)
    for line in lines:
        words = shlex.split(re.split(r" [|>&]", line)[0], comments=True)
        assert parser_for(words[0]).parse_args(words).command == words[0], line


def options_of(command: str) -> set[str]:
    return {text for action in commands_of(parser_for(command))[command]._actions for text in action.option_strings}


def test_the_page_of_commands_has_all_of_them_and_no_other_options() -> None:
    page = text_of("commands")
    assert [name for name in COMMANDS if f"| `{name}` |" not in page] == []
    assert ", ".join(SERVICES) in page
    for command in ("serve", "request", "publish", "subscribe", "replay", "queue", "spool"):
        section = re.search(rf"^## {command}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert section is not None
        assert set(re.findall(r"`(--[a-z-]+)", section[1])) - options_of(command) == set()


def test_the_page_of_the_console_names_its_own_options() -> None:
    assert [one for one in options_of("console") - options_of("queue") if one not in text_of("console")] == []


# The index of errors names every class, each once, and says what to do.

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in re.findall(r"^\| `[A-Z]\w+`.*$", PAGE, re.MULTILINE)]


def test_every_class_has_a_row() -> None:
    names = [name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(names) == sorted({*errors.__all__} - {"MtosiError"})


def test_every_row_has_causes_and_says_what_to_do() -> None:
    assert [row for row in ROWS if len(row) != 3 or not all(cell.strip() for cell in row)] == []


# The table of features by release in docs/mtosi-1x.md: each `yes` leads to the test that shows it.

RELEASES: Final = ("1.1", "2.0", "2.1", "4.0")
HEADERS: Final = "soap/test_header_dialects.py::test_any_header_in_any_dialect_is_mapped_by_the_rules"
STUBS: Final = "codegen/test_codegen_releases.py::test_all_services_with_all_operations"
VERIFIED: Final = "codegen/test_proof.py::test_a_release_is_proven"
TWO: Final = "spark/test_two_releases.py::test_two_releases_give_the_same_rows"
ALARMS: Final = "inventory/test_events_release1.py::test_one_alarm_has_one_row_in_both_releases"
ZEEP: Final = "integrations/test_zeep_releases.py::test_all_operations_of_a_release"
DEMO: Final = "cli/test_demo.py::test_the_demo_brings_what_was_asked_for"
NEW: Final = "cli/test_new.py::test_a_project_runs_and_its_tests_pass"
FEATURES: Final[dict[str, dict[str, str]]] = {
    "header, JMS properties, `map`": dict.fromkeys(RELEASES, HEADERS),
    "stubs of all services": {"1.1": STUBS, "2.0": STUBS, "4.0": STUBS},
    "`mtosi-codegen verify` finds no difference": {"1.1": VERIFIED, "2.0": VERIFIED, "4.0": VERIFIED},
    "calls by zeep": {"2.0": ZEEP, "4.0": ZEEP},
    "stubs and schemas in the package": {
        "1.1": "schemas/test_profile_1x.py::test_operations_have_the_names_and_messages_of_the_release",
        "2.0": "schemas/test_profile.py::test_operations_say_the_same",
    },
    "each operation called and answered": {
        "1.1": "exchange/test_mtosi_1x.py::test_every_operation_is_answered_by_its_own_handler",
        "2.0": "exchange/test_validated_bodies.py::test_every_operation_of_every_service",
    },
    "batches by iterator over JMS": {"1.1": "exchange/test_mtosi_1x.py::test_batches_by_iterator"},
    "`Snapshot` kept by notifications": {
        "1.1": "exchange/test_notifications_1x.py::test_a_snapshot_is_kept_by_events",
        "2.0": "exchange/notifications/test_snapshots.py::test_what_the_snapshot_was_taken_with",
    },
    "inventory in tables": {"1.1": TWO, "2.0": TWO},
    "alarms in tables": {"1.1": ALARMS, "2.0": ALARMS},
    "`serve`, `request`": {
        "1.1": "cli/test_release_1x.py::test_each_operation_answers_what_its_schema_allows",
        "2.0": "cli/test_serve.py::test_all_services_answer",
    },
    "`gateway --forward`": {
        "1.1": "gateway/test_forwarding.py::test_elements_names_and_faults",
        "2.0": "gateway/test_forwarding.py::test_iterators_are_followed",
    },
    "`serve --http`": {
        "1.1": "gateway/test_gateway_command.py::test_services_of_mtosi_1_1_over_http",
        "2.0": "gateway/test_gateway_command.py::test_services_over_http_through_a_broker_and_back",
    },
    "`demo`": {"1.1": DEMO, "2.0": DEMO},
    "`new`": {"1.1": NEW, "2.0": NEW},
    "notifications of an MTNM bridge": {
        "2.0": "bridge/test_mtnm_random.py::test_every_notification_is_valid",
        "4.0": "bridge/test_mtnm_random.py::test_every_notification_is_valid_by_the_later_release",
    },
}


def table() -> str:
    rows = [("feature", *RELEASES), ("---",) * (1 + len(RELEASES))]
    for feature, shown in FEATURES.items():
        cells = [f"[yes](../tests/{shown[one].partition('::')[0]})" if one in shown else "–" for one in RELEASES]
        rows.append((feature, *cells))
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def test_the_page_has_the_table(root: Path) -> None:
    assert table() in (root / "docs" / "mtosi-1x.md").read_text(encoding="utf-8"), table()


@pytest.mark.parametrize("place", sorted({place for shown in FEATURES.values() for place in shown.values()}))
def test_each_yes_is_shown_by_a_test(root: Path, place: str) -> None:
    file, _, name = place.partition("::")
    assert re.search(rf"def {name}\(", (root / "tests" / file).read_text(encoding="utf-8"))
