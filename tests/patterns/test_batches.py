"""The batch assembler case by case: order, duplicates, ends, bases, faults, clocks (P32, R5a, C23, C24, C58-C61)."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IncompleteBatchError, ProtocolError, ReplyTimeoutError
from mtosi_jms.patterns import (
    Action,
    BatchAssembler,
    BatchRules,
    BatchState,
    Clock,
    Complete,
    Conflict,
    Duplicate,
    Fail,
    Flag,
    Orphan,
    Release,
    Reply,
    ReplyType,
    Stray,
    Timeouts,
)


def batch(number: int | None, end: bool | None = False, digest: bytes | str = "", **more: Any) -> Reply[str]:
    return Reply(payload=f"b{number}", batch_number=number, end_of_reply=end, body_digest=digest, **more)


ERROR = Reply(payload="fault", message_type=ReplyType.ERROR)


def assembler(**rules: Any) -> BatchAssembler[str]:
    return BatchAssembler("c-1", started=0.0, rules=BatchRules(**rules))


def feed(machine: BatchAssembler[str], *replies: Reply[str]) -> list[Action[str]]:
    return [action for reply in replies for action in machine.receive(reply, 1.0)]


def released(actions: list[Action[str]]) -> list[int | None]:
    return [action.number for action in actions if isinstance(action, Release)]


def failure(actions: Any) -> Fail[str]:
    (fail,) = [action for action in actions if isinstance(action, Fail)]
    return fail


@pytest.mark.obligation("P32")
def test_three_one_two_comes_out_as_one_two_three() -> None:
    machine = assembler()
    assert feed(machine, batch(3, end=True)) == []
    assert (machine.held, machine.end, machine.missing) == (1, 3, (1, 2))
    assert feed(machine, batch(1)) == [Release("b1", 1)]
    assert feed(machine, batch(2)) == [Release("b2", 2), Release("b3", 3), Complete()]
    assert machine.finished


@pytest.mark.obligation("P32")
class TestDuplicates:
    def test_same_body_is_dropped_and_counted_whether_released_or_held(self) -> None:
        machine = assembler()
        feed(machine, batch(1, digest="a"), batch(3, digest="c"))
        again = [batch(1, digest="a"), batch(3, digest="c")]
        assert feed(machine, *again) == [Duplicate(reply) for reply in again]
        assert machine.counts.duplicates == 2
        assert released(feed(machine, batch(2, digest="b"))) == [2, 3]

    @pytest.mark.parametrize("number", [1, 3])
    def test_another_body_is_a_conflict_and_the_first_one_stands_where_that_is_wanted(self, number: int) -> None:
        machine = assembler(on_conflict="keep_first")
        feed(machine, batch(1, digest=b"a"), batch(3, digest=b"a"))
        other = Reply(payload="other", batch_number=number, end_of_reply=False, body_digest=b"b")
        assert feed(machine, other) == [Conflict(other)]
        assert machine.counts.conflicts == 1
        assert feed(machine, batch(2), batch(4, end=True))[1] == Release("b3", 3)
        assert machine.state is BatchState.COMPLETE

    def test_another_end_mark_is_a_conflict(self) -> None:
        machine = assembler(on_conflict="keep_first")
        feed(machine, batch(1, digest="a"))
        assert feed(machine, batch(1, end=True, digest="a")) == [Conflict(batch(1, end=True, digest="a"))]
        assert machine.end is None

    def test_an_absent_end_mark_or_an_unknown_digest_makes_no_conflict(self) -> None:
        machine = assembler()
        feed(machine, batch(1, digest="a"))
        for again in (batch(1, end=None, digest="a"), batch(1)):
            assert feed(machine, again) == [Duplicate(again)]

    def test_text_and_bytes_digests_are_told_by_content(self) -> None:
        machine = assembler(on_conflict="keep_first")
        feed(machine, batch(1, digest="\udc80é"))
        assert feed(machine, batch(1, digest="\udc80é")) == [Duplicate(batch(1, digest="\udc80é"))]
        assert isinstance(feed(machine, batch(1, digest="e"))[0], Conflict)

    def test_an_old_conflict_counts_as_a_duplicate_once_its_digest_is_forgotten(self) -> None:
        machine = assembler(remember=2, on_conflict="keep_first")
        feed(machine, *(batch(n, digest=f"d{n}") for n in (1, 2, 3)))
        assert isinstance(feed(machine, batch(1, digest="x"))[0], Duplicate)
        assert isinstance(feed(machine, batch(2, digest="x"))[0], Conflict)
        machine = assembler(remember=0)
        feed(machine, batch(1, digest="a"))
        assert isinstance(feed(machine, batch(1, digest="x"))[0], Duplicate)


@pytest.mark.obligation("P32")
@pytest.mark.parametrize("rules", [{}, {"strict": True, "on_conflict": "keep_first"}])
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.obligation("BAT7")
def test_a_batch_that_comes_again_with_another_content_ends_the_sequence(number: int, rules: dict[str, Any]) -> None:
    machine = assembler(**rules)
    feed(machine, batch(1, digest="a"), batch(3, digest="a"))
    other = batch(number, digest="b")
    conflict, fail = feed(machine, other)
    assert conflict == Conflict(other)
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, ProtocolError)
    assert f"batch {number} came twice" in str(fail.error)
    assert (machine.state, machine.counts.conflicts, fail.held) == (BatchState.BROKEN, 1, {3: "b3"})


@pytest.mark.obligation("C23")
class TestBase:
    def test_auto_is_complete_at_one_to_n_and_a_zero_after_that_is_an_orphan(self) -> None:
        machine = assembler()
        assert released(feed(machine, batch(1), batch(2, end=True))) == [1, 2]
        assert machine.state is BatchState.COMPLETE
        assert feed(machine, batch(0)) == [Orphan(batch(0))]

    def test_auto_with_a_zero_after_the_one_was_released_says_what_to_set(self) -> None:
        machine = assembler()
        feed(machine, batch(1))
        fail = failure(feed(machine, batch(0)))
        assert isinstance(fail.error, ProtocolError)
        assert "set first_batch to 0" in str(fail.error)

    def test_a_zero_that_stays_away_is_missed_after_a_short_grace(self) -> None:
        timeouts = Timeouts(gap=60, grace=5)
        machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, timeouts=timeouts, rules=BatchRules(first=0))
        machine.receive(batch(2, end=True), 10.0)
        assert machine.deadline == (70.0, Clock.GAP)
        machine.receive(batch(1), 20.0)
        assert machine.deadline == (25.0, Clock.GRACE)
        error = failure(machine.tick(25.0)).error
        assert isinstance(error, IncompleteBatchError)
        assert (error.missing, error.clock, list(error.batches)) == ((0,), "grace", [1, 2])

    @pytest.mark.parametrize("number", [0, -1])
    def test_a_number_below_the_first_ends_the_exchange(self, number: int) -> None:
        machine = assembler(first=1)
        stray, fail = feed(machine, batch(number))
        assert isinstance(stray, Stray)
        assert stray.rule == "C23"
        assert isinstance(fail, Fail)
        assert isinstance(fail.error, ProtocolError)
        assert "first_batch" in str(fail.error)

    @pytest.mark.obligation("BAT4")
    @pytest.mark.parametrize("order", [(1, 2), (2, 1), (2, "tick"), (1, 2, 0)])
    def test_a_supplier_of_which_a_zero_was_seen_counts_from_zero(self, order: tuple[Any, ...]) -> None:
        seen: set[str] = set()
        before = BatchAssembler[str]("a", started=0.0, supplier="EMS", from_zero=seen)
        feed(before, batch(0, end=True))
        assert seen == {"EMS"}
        machine = BatchAssembler[str]("b", started=0.0, supplier="EMS", from_zero=seen)
        feed(machine, *(batch(number, end=number == 2) for number in order if number != "tick"))
        if 0 in order:
            assert machine.state is BatchState.COMPLETE
            return
        error = failure(machine.tick(1e6)).error
        assert isinstance(error, IncompleteBatchError)
        assert error.missing[0] == 0
        assert "counts from 0" in str(error)
        other = BatchAssembler[str]("c", started=0.0, supplier="other", from_zero=seen)
        assert released(feed(other, batch(1, end=True))) == [1]
        told = BatchAssembler[str]("d", started=0.0, rules=BatchRules(first=1), supplier="EMS", from_zero=seen)
        assert released(feed(told, batch(1, end=True))) == [1]

    @pytest.mark.obligation("BAT4")
    def test_a_zero_that_is_seen_meanwhile_counts_too(self) -> None:
        seen: set[str] = set()
        both = [BatchAssembler[str](name, started=0.0, supplier="EMS", from_zero=seen) for name in "ab"]
        assert released(feed(both[0], batch(1))) == [1]
        feed(both[1], batch(0))
        error = failure(feed(both[0], batch(2, end=True))).error
        assert isinstance(error, IncompleteBatchError)
        assert (error.missing, both[0].state) == ((0,), BatchState.INCOMPLETE)

    @pytest.mark.obligation("BAT4")
    def test_a_zero_that_comes_too_late_is_remembered(self) -> None:
        seen: set[str] = set()
        machine = BatchAssembler[str]("a", started=0.0, supplier="EMS", from_zero=seen)
        assert feed(machine, batch(1, end=True), batch(0))[-1] == Orphan(batch(0))
        assert seen == {"EMS"}

    def test_the_base_must_be_known(self) -> None:
        for wrong in ({"first": 2}, {"window": 0}, {"remember": -1}):
            with pytest.raises(ConfigError):
                BatchRules(**wrong)  # type: ignore[arg-type]


class TestBatchFields:
    @pytest.mark.obligation("C58")
    @pytest.mark.parametrize("end", [None, True])
    def test_a_lone_reply_without_number_is_complete(self, end: bool | None) -> None:
        machine = assembler()
        flag, *rest = feed(machine, batch(None, end=end))
        assert isinstance(flag, Flag)
        assert flag.rule == "C58"
        assert rest == [Release("bNone", None), Complete()]
        assert feed(machine, batch(None, end=None)) == [Orphan(batch(None, end=None))]

    @pytest.mark.obligation("R5a", "BAT1")
    @pytest.mark.parametrize("before", [[], [batch(1)], [batch(2, end=True)]], ids=["first", "amid", "at the end"])
    @pytest.mark.parametrize("end", [None, True, False])
    def test_content_without_a_place_makes_a_reply_incomplete(self, before: list[Reply[str]], end: bool | None) -> None:
        machine = assembler()
        feed(machine, *before)
        unplaced = batch(None, end=end)
        actions = feed(machine, unplaced)
        if not before and end is not False:
            assert machine.state is BatchState.COMPLETE
            return
        stray, fail = actions
        assert isinstance(stray, Stray)
        assert (stray.rule, stray.reply, machine.counts.strays) == ("R5a", unplaced, 1)
        assert isinstance(fail, Fail)
        assert isinstance(fail.error, IncompleteBatchError)
        assert machine.state is BatchState.INCOMPLETE

    def test_a_reply_without_content_and_place_is_a_stray(self) -> None:
        machine = assembler()
        empty = batch(None, end=False, has_body=False)
        (stray,) = feed(machine, empty)
        assert isinstance(stray, Stray)
        assert "content and place: 1" in str(failure(machine.tick(1e6)).error)
        machine = assembler()
        assert isinstance(feed(machine, batch(1), batch(None, end=None, has_body=False))[-1], Stray)
        assert released(feed(machine, batch(2, end=True))) == [2]

    @pytest.mark.obligation("BAT2")
    def test_a_place_that_is_said_in_two_ways_ends_the_exchange(self) -> None:
        machine = assembler()
        error = failure(feed(machine, batch(None, end=False, contradiction="the number is 1 and 2"))).error
        assert isinstance(error, ProtocolError)
        assert "1 and 2" in str(error)

    @pytest.mark.obligation("R5a")
    @pytest.mark.obligation("BAT14")
    def test_a_batch_without_end_mark_is_flagged_and_not_the_last(self) -> None:
        machine = assembler()
        flag, release = feed(machine, batch(1, end=None))
        assert isinstance(flag, Flag)
        assert (flag.rule, release) == ("R5a", Release("b1", 1))
        assert machine.state is BatchState.RECEIVING
        error = failure(machine.tick(1e6)).error
        assert isinstance(error, IncompleteBatchError)
        assert (error.missing, error.end_seen) == ((), False)
        assert "the end of the reply never came" in str(error)

    @pytest.mark.parametrize(
        "replies",
        [
            [batch(None, end=None)],
            [batch(1, end=None)],
            [batch(1), batch(None, end=None)],
            [batch(-1)],
        ],
    )
    def test_strict_makes_every_irregularity_an_error(self, replies: list[Reply[str]]) -> None:
        machine = assembler(strict=True)
        actions = feed(machine, *replies)
        assert machine.state is BatchState.BROKEN
        assert isinstance(failure(actions).error, ProtocolError)
        assert actions[-2] == Stray(replies[-1], *_rule_and_reason(actions[-2]))

    def test_strict_takes_a_plain_duplicate(self) -> None:
        machine = assembler(strict=True)
        assert isinstance(feed(machine, batch(1, digest="a"), batch(1, digest="a"))[-1], Duplicate)

    @pytest.mark.obligation("C24")
    def test_oversize_is_legal_unless_forbidden(self) -> None:
        assert released(feed(assembler(), batch(1, end=True, object_count=501))) == [1]
        assert released(feed(assembler(strict_size=500), batch(1, end=True, object_count=500))) == [1]
        for number in (1, None):
            machine = assembler(strict_size=500)
            error = failure(feed(machine, batch(number, end=True, object_count=501))).error
            assert isinstance(error, ProtocolError)
            assert "C24" in str(error)


def _rule_and_reason(action: Action[str]) -> tuple[str, str]:
    assert isinstance(action, Stray)
    return action.rule, action.reason


class TestContradictions:
    @pytest.mark.parametrize(
        ("replies", "words"),
        [
            ([batch(3, end=True), batch(5)], "beyond the end"),
            ([batch(5), batch(3, end=True)], "beyond the end"),
            ([batch(3, end=True), batch(5, end=True)], "two ends"),
            ([batch(5, end=True), batch(3, end=True)], "two ends"),
            ([batch(10_001)], "ahead"),
        ],
    )
    def test_break_the_exchange_even_leniently(self, replies: list[Reply[str]], words: str) -> None:
        machine = assembler()
        fail = failure(feed(machine, *replies))
        assert isinstance(fail.error, ProtocolError)
        assert words in str(fail.error)
        assert fail.error.correlation_id == "c-1"
        assert list(fail.held) == [reply.batch_number for reply in replies[:-1]]
        assert feed(machine, batch(1)) == [Orphan(batch(1))]

    def test_the_window_moves_with_what_was_released(self) -> None:
        machine = assembler(window=3)
        assert released(feed(machine, batch(3), batch(1), batch(2), batch(6))) == [1, 2, 3]
        assert machine.state is BatchState.RECEIVING
        assert isinstance(failure(feed(machine, batch(7))).error, ProtocolError)


class TestClocks:
    timeouts = Timeouts(first_reply=10, gap=20, total=50)

    def machine(self, **rules: Any) -> BatchAssembler[str]:
        return BatchAssembler("c-7", started=100.0, timeouts=self.timeouts, rules=BatchRules(**rules))

    def test_first_reply(self) -> None:
        machine = self.machine()
        assert machine.deadline == (110.0, Clock.FIRST_REPLY)
        assert machine.tick(109.9) == ()
        error = failure(machine.tick(110.0)).error
        assert isinstance(error, ReplyTimeoutError)
        assert (error.clock, error.correlation_id) == ("first reply", "c-7")
        assert "within 10 s, first reply clock" in str(error)

    @pytest.mark.obligation("P32")
    def test_gap_with_the_missing_numbers_and_what_did_arrive(self) -> None:
        machine = self.machine()
        for at, reply in ((105.0, batch(1)), (110.0, batch(6, end=True)), (111.0, batch(3))):
            machine.receive(reply, at)
        assert machine.deadline == (131.0, Clock.GAP)
        fail = failure(machine.tick(131.0))
        error = fail.error
        assert isinstance(error, IncompleteBatchError)
        assert (error.missing, error.end_seen, error.clock) == ((2, 4, 5), True, "gap")
        assert error.batches == fail.held == {3: "b3", 6: "b6"}
        assert "2, 4-5" in str(error)

    def test_total_fires_though_replies_keep_coming_but_the_last_of_them_is_used(self) -> None:
        machine = self.machine()
        for at in range(101, 150):
            assert released(list(machine.receive(batch(at - 100), float(at)))) == [at - 100]
        assert machine.deadline == (150.0, Clock.TOTAL)
        release, fail = machine.receive(batch(50), 151.0)
        assert release == Release("b50", 50)
        assert isinstance(fail, Fail)
        assert isinstance(fail.error, IncompleteBatchError)
        assert fail.error.clock == "total"

    def test_a_reply_that_completes_beats_the_clock(self) -> None:
        machine = self.machine()
        assert machine.receive(batch(1, end=True), 1000.0) == (Release("b1", 1), Complete())

    def test_only_what_brings_something_new_restarts_the_gap(self) -> None:
        machine = self.machine(on_conflict="keep_first")
        machine.receive(batch(1, digest="a"), 105.0)
        for reply in (batch(1, digest="a"), batch(1, digest="b"), batch(None, end=None, has_body=False)):
            machine.receive(reply, 120.0)
        assert machine.deadline == (125.0, Clock.GAP)

    @pytest.mark.obligation("C61")
    def test_an_acknowledgement_stops_the_first_reply_clock_only(self) -> None:
        machine = self.machine(expect_ack=True)
        assert machine.receive(Reply(payload="ack", has_body=False), 109.0) == ()
        assert machine.deadline == (129.0, Clock.GAP)
        error = failure(machine.tick(129.0)).error
        assert isinstance(error, ReplyTimeoutError)
        assert error.clock == "gap"

    def test_no_limits_no_deadline(self) -> None:
        timeouts = Timeouts(first_reply=None, gap=None, total=None)
        machine: BatchAssembler[str] = BatchAssembler("c", started=0.0, timeouts=timeouts)
        machine.receive(batch(1), 1.0)
        assert machine.deadline is None
        assert machine.tick(1e12) == ()


def test_the_counts_add_up() -> None:
    machine = assembler(on_conflict="keep_first")
    feed(machine, batch(1, digest="a"), batch(1, digest="a"), batch(1, digest="b"))
    feed(machine, batch(None, has_body=False), batch(2, end=True))
    counts = machine.counts
    assert (counts.replies, counts.released, counts.duplicates, counts.conflicts, counts.strays) == (5, 2, 1, 1, 1)


class Payload:
    """Something that can be watched while it lives."""


def test_what_was_released_is_forgotten() -> None:
    machine: BatchAssembler[Payload] = BatchAssembler("c", started=0.0, rules=BatchRules(remember=64))
    alive: weakref.WeakSet[Payload] = weakref.WeakSet()
    most = 0
    for pair in range(0, 2000, 2):
        for number in (pair + 2, pair + 1):
            payload = Payload()
            alive.add(payload)
            machine.receive(Reply(payload=payload, batch_number=number, end_of_reply=False, body_digest="x"), 0.0)
            del payload
            most = max(most, len(alive))
    assert machine.counts.released == 2000
    assert most <= 2
    gc.collect()
    assert len(alive) == 0


def test_memory_does_not_grow_with_the_number_of_batches() -> None:
    machine: BatchAssembler[bytes] = BatchAssembler("c", started=0.0, rules=BatchRules(remember=512))

    def run(first: int, last: int) -> int:
        for number in range(first, last):
            machine.receive(Reply(payload=b"", batch_number=number, end_of_reply=False, body_digest=b"d"), 0.0)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early, late = run(1, 2000), run(2000, 12_000)
    finally:
        tracemalloc.stop()
    assert late - early < 4096


def test_the_end_of_an_exchange_lets_go_of_what_was_held() -> None:
    machine: BatchAssembler[Payload] = BatchAssembler("c", started=0.0)
    payload = Payload()
    watch = weakref.ref(payload)
    machine.receive(Reply(payload=payload, batch_number=2, end_of_reply=False), 0.0)
    del payload
    assert machine.held == 1
    machine.abandon()
    gc.collect()
    assert machine.held == 0
    assert watch() is None
