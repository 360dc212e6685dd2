"""The landing of a requestor: written before acknowledged, logged after, and whole whatever happens in between."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from mtosi_jms import DurableLanding
from mtosi_jms.errors import IllegalStateError, MalformedXmlError, SpoolError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.soap import parse
from mtosi_jms.spool import entries, open_entry, read_acknowledgements
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import ManualClock, Step, exchange

from ..waiting import PATIENCE, background
from .conftest import NE1, SmallEms, numbers

REPLIES = Queue("REQUESTOR.OS")


class Steps:
    """A landing that notes what happens, looks at the provider meanwhile, and fails when told.

    Attributes:
        steps: what was called, in order, with how many messages the provider held then.
        failures: how many of the next writes fail.
    """

    def __init__(self, held: Callable[[], int] = lambda: -1, failures: int = 0, log_failures: int = 0) -> None:
        self.steps: list[tuple[str, int]] = []
        self.seen: list[JmsMessage] = []
        self.held = held
        self.failures = failures
        self.log_failures = log_failures

    def land(self, message: JmsMessage) -> int:
        self.steps.append(("land", self.held()))
        self.seen.append(message)
        if self.failures:
            self.failures -= 1
            raise SpoolError("landing", "the disk is full")
        return len(self.steps)

    def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
        self.steps.append((f"acknowledged {batch_number}", self.held()))
        if self.log_failures:
            self.log_failures -= 1
            raise SpoolError("log", "the disk is full")


def test_a_message_is_written_before_it_is_acknowledged() -> None:
    landing = Steps()
    with exchange(landing=landing) as pair:
        landing.held = pair.provider.held
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
        assert len(list(batches)) == 2
    assert landing.steps == [("land", 2), ("acknowledged 1", 1), ("land", 1), ("acknowledged 2", 0)]


def test_a_message_that_cannot_be_written_is_delivered_again() -> None:
    landing = Steps(failures=1)
    with exchange(landing=landing) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        first = stub.get_all_managed_elements.batches(batch_size=9)
        pair.scripted.take()
        second = stub.get_all_managed_elements.batches(batch_size=1)
        pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
        with pytest.raises(SpoolError, match="disk is full"):
            next(first)  # who waits is told, whosever message it was
        assert pair.provider.depth(REPLIES) == 2
        assert [numbers(batch) for batch in second] == [[1], [2]]
        assert [(one.redelivered, one.delivery_count) for one in landing.seen] == [(False, 1), (True, 2), (False, 1)]
        assert pair.provider.held() == 0


def test_a_landing_that_never_works_acknowledges_nothing() -> None:
    landing = Steps(failures=1000)
    with exchange(landing=landing) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        for _ in range(3):
            batches = stub.get_all_managed_elements.batches(batch_size=1)
            pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
            with pytest.raises(SpoolError):
                next(batches)
        assert pair.provider.depth(REPLIES) == 6
    assert {step for step, _ in landing.steps} == {"land"}


def test_a_log_that_cannot_be_written_is_told_and_the_reply_is_not_lost() -> None:
    landing = Steps(log_failures=1)
    with exchange(landing=landing) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        waiting = stub.get_all_managed_elements.batches(batch_size=9)
        pair.scripted.take()
        batches = stub.get_all_managed_elements.batches(batch_size=9)
        pair.scripted.send(pair.scripted.take().replies([SmallEms(2)]))
        with pytest.raises(SpoolError, match="log"):
            next(waiting)
        assert [numbers(batch) for batch in batches] == [[1, 2]]


def test_a_caller_has_its_reply_though_receiving_for_others_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The other one gets its reply after that.

    How long a caller goes on for others depends on the machine: several pairs of calls are made.
    """
    both_sent = threading.Event()

    def hold(step: Step) -> Any:
        if step.action == "receive" and step.timeout:
            assert both_sent.wait(PATIENCE)
        return step.proceed()

    class SecondFails(Steps):
        def land(self, message: JmsMessage) -> int:
            self.failures = int(len(self.steps) == 2)  # the first was landed and acknowledged
            return super().land(message)

    for _ in range(20):
        both_sent.clear()
        with exchange(landing=SecondFails(), intercept=hold) as pair:
            stub = pair.stub(ManagedElementRetrieval)
            calls = [stub.get_all_managed_elements.batches(batch_size=9) for _ in range(2)]
            asked = [pair.scripted.take() for _ in calls]
            answers = []
            for number, call in enumerate(calls):
                answers.append(background(lambda call=call: next(call)))  # type: ignore[misc]
                while pair.requestor.waiting <= number:
                    assert not answers[number].done()
            pair.scripted.send([reply for one in asked for reply in one.replies([SmallEms(2)])])
            both_sent.set()
            assert numbers(answers[0].result(PATIENCE)) == [1, 2]
            error = answers[1].exception(PATIENCE)
            assert error is None or isinstance(error, SpoolError)
        if "receiving for others failed" in caplog.text:
            assert error is None
            return
    pytest.fail("no caller received for another one")


def test_a_signal_does_not_cost_another_caller_its_reply() -> None:
    """It comes while a reply is read that was acknowledged already."""
    interrupted: list[str] = []

    class Interrupt(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not interrupted:
                interrupted.append(record.getMessage())
                signal.raise_signal(signal.SIGINT)

    handler = Interrupt()
    with exchange() as pair:
        stub = pair.stub(ManagedElementRetrieval)
        first = stub.get_all_managed_elements.batches(batch_size=9)
        pair.scripted.take()
        second = stub.get_all_managed_elements.batches(batch_size=9)
        pair.scripted.send([pair.scripted.take().reply(b"<torn")])
        logging.getLogger("mtosi_jms.exchange").addHandler(handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                next(first)
        finally:
            logging.getLogger("mtosi_jms.exchange").removeHandler(handler)
        assert "a reply that cannot be read" in interrupted[0]
        with pytest.raises(MalformedXmlError):
            next(second)


def test_every_reply_is_landed_whatever_it_is(tmp_path: Path) -> None:
    """Broken ones, orphans and faults too, byte for byte as they came."""
    orphans: SimpleQueue[Any] = SimpleQueue()

    def script(asked: Any) -> list[JmsMessage]:
        return [asked.reply(b"<torn"), *asked.replies([SmallEms()])]

    with (
        DurableLanding(tmp_path / "landing", ack_log=tmp_path / "ack.jsonl") as landing,
        exchange(landing=landing, on_orphan=orphans.put) as pair,
    ):
        pair.scripted.start(script)
        stub = pair.stub(ManagedElementRetrieval)
        for _ in range(2):
            with pytest.raises(MalformedXmlError):
                stub.get_managed_element(me_ref=NE1)
    landed = list(entries(tmp_path / "landing", strict=True))
    bodies = [entry.read_body() for entry in landed]
    assert [body == b"<torn" for body in bodies] == [True, False, True]
    assert parse(bodies[1]).body is not None
    log = read_acknowledgements(tmp_path / "ack.jsonl")
    assert [line.entry for line in log] == [entry.name for entry in landed]
    assert [line.correlation_id is None for line in log] == [True, False, True]
    orphans.get(timeout=PATIENCE)
    assert orphans.empty()


def test_the_log_names_batches(tmp_path: Path) -> None:
    with (
        DurableLanding(tmp_path, ack_log=tmp_path / "log" / "ack.jsonl", clock=lambda: 1_700_000_000.5) as landing,
        exchange([SmallEms(5)], landing=landing) as pair,
    ):
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        assert len(list(batches)) == 3
    log = read_acknowledgements(tmp_path / "log" / "ack.jsonl")
    assert [(line.correlation_id, line.batch_number) for line in log] == [
        (batches.correlation_id, number) for number in (1, 2, 3)
    ]
    assert [line.entry[:14] for line in log] == ["1700000000500-"] * 3


def test_requestors_may_share_a_landing(tmp_path: Path) -> None:
    with DurableLanding(tmp_path) as landing:
        for _ in range(2):
            with exchange([SmallEms(2)], landing=landing) as pair:
                assert len(list(pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1))) == 2
    assert len(list(entries(tmp_path))) == 4


def test_a_reply_that_was_landed_and_not_acknowledged_stays_in_its_queue(tmp_path: Path) -> None:
    """A requestor that is closed between write and acknowledgement leaves the message for the next one."""
    with DurableLanding(tmp_path) as landing:

        class Closing(Steps):
            def land(self, message: JmsMessage) -> Any:
                landed = landing.land(message)
                pair.requestor.close()
                return landed

            def acknowledged(self, landed: Any, *, correlation_id: str | None, batch_number: int | None) -> None:
                pytest.fail("it was not acknowledged")

        with exchange([SmallEms(1)], landing=Closing()) as pair:
            batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
            with pytest.raises(IllegalStateError):
                next(batches)
            pair.supplier.stop()
            assert pair.provider.depth(REPLIES) == 1
        assert len(list(entries(tmp_path))) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SpoolError) as caught:
        DurableLanding(tmp_path / "file" / "landing")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.endurance)])
def test_kill_9_in_the_middle_of_receiving(rounds: int, root: Path, tmp_path: Path) -> None:
    """Every batch in the acknowledgement log is in the landing, whole; each run adds to what the last one left."""
    folder, log = tmp_path / "landing", tmp_path / "ack.jsonl"
    dice = random.Random(20_060_417)
    command = [sys.executable, str(Path(__file__).with_name("receiving_process.py")), str(folder), str(log)]
    for _ in range(rounds):
        environment = {**os.environ, "PYTHONPATH": str(root)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(dice.randrange(1, 30)):
                assert process.stdout.readline()
            process.kill()
            assert process.wait() == -signal.SIGKILL
    acknowledged = read_acknowledgements(log)
    assert len(acknowledged) >= rounds
    for line in acknowledged:
        entry = open_entry(folder / f"{line.entry}.xml", strict=True)
        assert (entry.damage(), entry.sha256) == ("", line.sha256)
        header = parse(entry.read_body()).header
        assert header is not None
        assert (header.correlation_id, header.batch_sequence_number) == (line.correlation_id, line.batch_number)
    by_sequence: dict[str | None, list[int | None]] = {}
    for line in acknowledged:
        by_sequence.setdefault(line.correlation_id, []).append(line.batch_number)
    for found in by_sequence.values():
        assert found == list(range(1, len(found) + 1)), "no gap among what was acknowledged"


def test_limits_do_not_run_while_a_message_is_written() -> None:
    """A slow disk is not the peer's silence: what is in the queue is used before a clock is looked at."""

    class Slow(Steps):
        def land(self, message: JmsMessage) -> Any:
            clock.advance(60)
            return super().land(message)

    clock = ManualClock()
    timeouts = Timeouts(first_reply=1, gap=1)
    with exchange(landing=Slow(), clock=clock, timeouts=timeouts) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1)
        pair.scripted.send(pair.scripted.take().replies([SmallEms(4)]))
        assert [numbers(batch) for batch in batches] == [[1], [2], [3], [4]]
