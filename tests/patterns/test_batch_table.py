"""MultipleBatchResponse: every state with every event, reached through real replies."""

from __future__ import annotations

import pytest

from mtosi_jms.patterns import (
    BatchAssembler,
    BatchEvent,
    BatchRules,
    BatchState,
    Complete,
    Conflict,
    Duplicate,
    Fail,
    Fault,
    Flag,
    Orphan,
    Place,
    Release,
    Reply,
    ReplyType,
    Standing,
    Stray,
    read_place,
    standing_of,
)
from mtosi_jms.patterns._batches import FINAL, TABLE

E, S = BatchEvent, BatchState
LIVE = [state for state in S if state not in FINAL]
NEVER_BEFORE = {(state, event) for state in (S.WAITING, S.ACKNOWLEDGED) for event in (E.DUPLICATE, E.CONFLICT)}
NEVER_AMID = {(state, E.LONE) for state in (S.RECEIVING, S.CLOSING)} | {(S.CLOSING, E.LAST)}
NEVER_WHOLE = {(state, E.WHOLE) for state in LIVE if state is not S.CLOSING}
IMPOSSIBLE = NEVER_BEFORE | NEVER_AMID | NEVER_WHOLE | {(S.ACKNOWLEDGED, E.STRAY)}


def batch(number: int, end: bool = False, digest: str = "") -> Reply[str]:
    return Reply(payload=f"b{number}", batch_number=number, end_of_reply=end, body_digest=digest or f"d{number}")


ACK = Reply(payload="ack", has_body=False)
ERROR = Reply(payload="fault", message_type=ReplyType.ERROR)
LONE = Reply(payload="lone")

WAY: dict[BatchState, list[Reply[str] | str]] = {
    S.WAITING: [],
    S.ACKNOWLEDGED: [ACK],
    S.RECEIVING: [batch(1)],
    S.CLOSING: [batch(1), batch(4, end=True)],
    S.COMPLETE: [batch(1, end=True)],
    S.FAULTED: [batch(1), ERROR],
    S.UNANSWERED: ["tick"],
    S.INCOMPLETE: [batch(1), "tick"],
    S.BROKEN: [batch(1), batch(3, end=True), batch(5)],
    S.ABANDONED: [batch(1), "abandon"],
}

REPLIES: dict[BatchEvent, list[Reply[str]]] = {
    E.ACK: [ACK],
    E.LONE: [LONE],
    E.BATCH: [batch(2)],
    E.LAST: [batch(3, end=True)],
    E.WHOLE: [batch(2), batch(3)],
    E.DUPLICATE: [batch(1)],
    E.CONFLICT: [batch(1, digest="other")],
    E.STRAY: [Reply(payload="empty", end_of_reply=False, has_body=False)],
    E.UNPLACED: [Reply(payload="somewhere", end_of_reply=False)],
    E.BREACH: [batch(100_000)],
    E.ERROR: [ERROR],
}

SAID: dict[BatchEvent, list[type]] = {
    E.ACK: [],
    E.LONE: [Flag, Release, Complete],
    E.LAST: [],
    E.WHOLE: [Release, Release, Release, Complete],
    E.DUPLICATE: [Duplicate],
    E.CONFLICT: [Conflict],
    E.STRAY: [Stray],
    E.UNPLACED: [Stray, Fail],
    E.BREACH: [Stray, Fail],
    E.ERROR: [Fault],
    E.TIMEOUT: [Fail],
    E.EXHAUSTED: [Fail],
    E.ABANDON: [],
}


def assembler_in(state: BatchState, event: BatchEvent) -> BatchAssembler[str]:
    rules = BatchRules(expect_ack=event is not E.STRAY, on_conflict="keep_first")
    assembler: BatchAssembler[str] = BatchAssembler("c-1", started=0.0, rules=rules)
    for step in WAY[state]:
        perform(assembler, step)
    assert assembler.state is state
    return assembler


def perform(assembler: BatchAssembler[str], step: Reply[str] | str) -> tuple[object, ...]:
    if isinstance(step, Reply):
        return assembler.receive(step, 1.0)
    if step == "abandon":
        assembler.abandon()
        return ()
    return assembler.tick(1e6) if step == "tick" else assembler.exhaust()


def trigger(assembler: BatchAssembler[str], event: BatchEvent) -> list[object]:
    steps: dict[BatchEvent, str] = {E.TIMEOUT: "tick", E.EXHAUSTED: "exhaust", E.ABANDON: "abandon"}
    if event in steps:
        return list(perform(assembler, steps[event]))
    return [action for reply in REPLIES[event] for action in perform(assembler, reply)]


@pytest.mark.parametrize(("state", "event"), [(s, e) for s in LIVE for e in E if (s, e) not in IMPOSSIBLE])
def test_every_live_state_with_every_event(state: BatchState, event: BatchEvent) -> None:
    assembler = assembler_in(state, event)
    kinds = [type(action) for action in trigger(assembler, event)]
    assert assembler.state is TABLE[state][event]
    expected = SAID[event] if event is not E.BATCH else [Release] if state in (S.RECEIVING, S.CLOSING) else []
    assert kinds == (expected if event is not E.WHOLE else [Release, Release, Release, Complete])


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize("event", E)
def test_final_states_are_never_left_and_replies_there_are_orphans(state: BatchState, event: BatchEvent) -> None:
    assembler = assembler_in(state, event)
    actions = trigger(assembler, event)
    assert assembler.state is state is TABLE[state][event]
    assert actions == [Orphan(reply) for reply in REPLIES.get(event, [])]
    assert assembler.deadline is None
    assert assembler.held == 0
    assert assembler.missing == ()


def test_only_impossible_pairs_are_absent_from_the_table() -> None:
    assert set(TABLE) == set(S)
    assert {(s, e) for s in S for e in E if e not in TABLE[s]} == IMPOSSIBLE


def test_every_state_can_be_reached_and_every_live_one_left() -> None:
    reached, new = {S.WAITING}, {S.WAITING}
    while new:
        new = {following for state in new for following in TABLE[state].values()} - reached
        reached |= new
    assert reached == set(S)
    assert all(set(TABLE[state].values()) & FINAL for state in LIVE)


# What a reply says of its place, by header and properties, in all spellings (R5a, C58).

NUMBER, END, PATTERN = Place.FIELDS
SEVERAL = {PATTERN: "MultipleBatchResponse"}


@pytest.mark.obligation("BAT3")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((text, 1) for text in ("1", "+1", " 1\n", "1.0", "1.", "001", "+1.000", 1, 1.0)),
        *((text, 0) for text in ("0", "-0", "+0", "0.0", 0)),
        ("4294967295", 4294967295),
        ("0" * 60 + "7", 7),
        *((text, None) for text in ("1.5", "-1", "one", "1e0", "0x1", "4294967296", "9" * 30, "1 2", "٣", True, "+")),
    ],
)
def test_numbers_in_all_spellings(text: object, number: int | None) -> None:
    for sources in ({NUMBER: text, END: "true"},), ({END: "true"}, {NUMBER: text}), ({}, {NUMBER: text, END: True}):
        place = read_place(*sources)
        assert place.number == number
        assert place.end is (number is not None)
        assert standing_of(place.number, place.end) is (Standing.UNPLACED if number is None else Standing.LAST)


@pytest.mark.obligation("BAT3")
@pytest.mark.parametrize(
    ("text", "end"),
    [
        *((text, True) for text in ("true", "1", " TRUE ", "True", True, 1)),
        *((text, False) for text in ("false", "0", "False", False, 0)),
        *((text, None) for text in ("yes", "maybe", "-1")),
    ],
)
def test_end_marks_in_all_spellings(text: object, end: bool | None) -> None:
    assert read_place({NUMBER: "3", END: text}).end is end
    assert read_place({END: text}).end is (False if end is None else end)


@pytest.mark.obligation("BAT1")
@pytest.mark.parametrize(
    ("sources", "standing"),
    [
        (({},), Standing.WHOLE),
        (({NUMBER: " ", END: "", PATTERN: "SimpleResponse"}, {}), Standing.WHOLE),
        ((SEVERAL,), Standing.UNPLACED),
        (({}, SEVERAL), Standing.UNPLACED),
        (({PATTERN: "MultipleResponse"},), Standing.UNPLACED),
        (({**SEVERAL, END: "true"},), Standing.WHOLE),
        (({**SEVERAL, END: "false"},), Standing.UNPLACED),
        ((SEVERAL, {END: False}), Standing.UNPLACED),
        ((SEVERAL, {NUMBER: 1}), Standing.BATCH),
        (({NUMBER: "1"}, {END: True}), Standing.LAST),
    ],
)
def test_what_says_that_it_is_one_of_several_is_never_the_whole_answer(
    sources: tuple[dict[str, object], ...], standing: Standing
) -> None:
    place = read_place(*sources)
    assert standing_of(place.number, place.end) is standing


@pytest.mark.obligation("BAT2")
def test_header_and_properties_must_agree() -> None:
    assert read_place({NUMBER: "1.0", END: "1"}, {NUMBER: 1, END: "TRUE"}) == Place(1, True)
    for other in ({NUMBER: 2}, {END: False}, {NUMBER: "one"}):
        place = read_place({NUMBER: "1", END: "true"}, other)
        assert (place.number, place.end) == (None, False)
        assert "disagree" in place.contradiction
        assert standing_of(place.number, place.end) is Standing.UNPLACED
