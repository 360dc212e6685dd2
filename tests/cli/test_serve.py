"""`mtosi-jms serve` over the embedded provider."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli.running import Stop
from mtosi_jms.errors import TransportError
from mtosi_jms.exchange import Requestor
from mtosi_jms.simulator import Network
from mtosi_jms.simulator._command import SERVICES, serve, services_of
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

Capture = pytest.CaptureFixture[str]
Serving = Callable[..., Callable[[], None]]


def ask(url: str, capsys: Capture, operation: str, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    code = main(["request", operation, "--url", url, "--to", "queue:EMS", "--timeout", "20", "--json", *words])
    out, err = capsys.readouterr()
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def test_all_services_answer(url: str, serving: Serving, capsys: Capture) -> None:
    serving("--elements", "7")
    assert len(ask(url, capsys, "getAllManagedElements", "--batch-size", "3")) == 3
    (whole,) = ask(url, capsys, "getInventory")
    assert {group["type"]: group["count"] for group in whole["objects"]}["ME"] == 7
    (cards,) = ask(url, capsys, "getAllEquipment", "--set", "meOrEhRef=MD=EMS1/ME=NE-2")
    assert {group["type"] for group in cards["objects"]} == {"EQ", "EH"}
    (alarms,) = ask(url, capsys, "getActiveAlarms")
    (count,) = ask(url, capsys, "getActiveAlarmsCount")
    assert count["body"] == {"active_alarm_count": len(alarms["body"]["alarm"])}
    assert len(alarms["body"]["alarm"]) > 0


def test_the_first_line_says_ready_and_what_is_answered(url: str, parsed: Any, capsys: Capture) -> None:
    args = parsed("serve", "--url", url, "--destination", "queue:EMS", "--services", "AlarmRetrieval")
    with mtosi.connect(url) as connection, Stop() as stop:
        stop.set()
        assert serve(connection, args, services_of(args), stop) == 0
    out, err = capsys.readouterr()
    assert out == "ready: queue:EMS (queue:EMS) answers AlarmRetrieval\n"
    assert "replies go to any queue that a request names" in err


def test_a_service_that_was_not_asked_for_is_not_there(url: str, serving: Serving, capsys: Capture) -> None:
    serving("--elements", "2", "--services", "ManagedElementRetrieval,AlarmRetrieval")
    words = ("--url", url, "--to", "queue:EMS", "--timeout", "20")
    assert main(["request", "getInventory", *words]) == 1
    assert "no operation here takes getInventoryRequest" in capsys.readouterr().err


@pytest.mark.obligation("SEC18")
@pytest.mark.parametrize(("policy", "code"), [("default", 0), ("any", 0), ("known", 1), ("temporary", 1)], ids=str)
def test_where_replies_may_go(url: str, serving: Serving, capsys: Capture, policy: str, code: int) -> None:
    serving("--elements", "2", "--reply-policy", policy)
    words = ("--url", url, "--to", "queue:EMS", "--batch-size", "0")
    assert main(["request", "getAllManagedElements", *words, "--timeout", "20"]) == 0  # a temporary queue
    answer = main(["request", "getAllManagedElements", *words, "--reply-to", "queue:OS", "--timeout", "0.3"])
    assert answer == code
    if code:
        assert "replies to queue:OS are not allowed here" in capsys.readouterr().err


def test_with_names_replies_go_to_those(url: str, serving: Serving, capsys: Capture) -> None:
    serving("--elements", "2", names={"jms/OS": "queue:OS"})
    words = ("--url", url, "--to", "queue:EMS", "--batch-size", "0")
    assert main(["request", "getAllManagedElements", *words, "--reply-to", "queue:OS", "--timeout", "20"]) == 0
    assert main(["request", "getAllManagedElements", *words, "--reply-to", "queue:X", "--timeout", "0.3"]) == 1
    assert "replies go to any queue" not in capsys.readouterr().err


def test_a_recorded_landing_answers(url: str, serving: Serving, capsys: Capture, tmp_path: Path) -> None:
    finish = serving("--elements", "5", "--services", ",".join(SERVICES[:2]))
    words = ("--batch-size", "2", "--landing", str(tmp_path / "landing"))
    asked = ask(url, capsys, "getAllManagedElements", *words)
    finish()
    serving("--inventory", str(tmp_path / "landing"))
    assert [reply["body"] for reply in ask(url, capsys, "getAllManagedElements", "--batch-size", "2")] == [
        reply["body"] for reply in asked
    ]
    (one,) = ask(url, capsys, "getManagedElement", "--set", "meRef=MD=EMS1/ME=NE-3")
    assert one["body"]["me"] == asked[1]["body"]["me_list"]["me"][0]


def test_the_request_in_hand_is_answered_to_its_end(url: str, parsed: Any, background: Any, capsys: Capture) -> None:
    """Told to stop between two batches, it sends the others."""

    entered, go = threading.Event(), threading.Event()

    class Slow(ManagedElementRetrieval.Supplier):
        def get_all_managed_elements(self, request: Any, context: Any) -> Any:
            for number, element in enumerate(Network(elements=6).managed_elements()):
                if number == 3:
                    entered.set()
                    assert go.wait(30)
                yield element

    args = parsed("serve", "--url", url, "--destination", "queue:EMS")
    with (
        mtosi.connect(url) as connection,
        Stop() as stop,
        Requestor(mtosi.connect(url), sender_uri="os", temporary_reply=True) as requestor,
    ):
        running = background(lambda: serve(connection, args, [Slow()], stop))
        stub = ManagedElementRetrieval(requestor, "queue:EMS")
        batches = stub.get_all_managed_elements.batches(batch_size=1)
        assert entered.wait(30)
        stop.set()
        go.set()
        assert running.result(30) == 0
        assert len(list(batches)) == 6


def test_a_provider_that_is_gone_ends_it(url: str, parsed: Any, background: Any) -> None:
    args = parsed("serve", "--url", url, "--destination", "queue:EMS", "--elements", "1")
    ready = threading.Event()
    with Stop() as stop, mtosi.connect(url) as connection:
        running = background(lambda: serve(connection, args, services_of(args), stop, lambda line: ready.set()))
        assert ready.wait(30)
        connection.close()
        with pytest.raises(TransportError, match="the supplier at queue:EMS has stopped"):
            running.result(30)


def test_what_cannot_be_served(tmp_path: Path, capsys: Capture) -> None:
    base = ["serve", "--url", "memory:"]
    assert main([*base, "--destination", "queue:X", "--inventory", str(tmp_path / "none")]) == 1
    assert "none: No such file or directory" in capsys.readouterr().err
    assert main([*base, "--destination", "queue:X", "--inventory", str(tmp_path)]) == 1
    assert "holds no envelope" in capsys.readouterr().err
    (tmp_path / "broken.xml").write_text("<a>", encoding="utf-8")
    assert main([*base, "--destination", "queue:X", "--inventory", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 2
    assert main([*base, "--destination", "jms/EmsOS"]) == 1
    told = "no destination is known by this name; without a naming context, write queue:jms/EmsOS or topic:jms/EmsOS"
    assert capsys.readouterr().err == f"error: 'jms/EmsOS': {told}\n"
