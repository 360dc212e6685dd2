"""What a supplier decides for its replies: batches, ids, destinations (R3c, R4b, R5a, P31, P33, C16, C23, C24)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, InvalidDestinationError, NamingError, TransportError
from mtosi_jms.patterns import (
    BatchAssembler,
    BatchState,
    CommunicationPattern,
    Release,
    Reply,
    RouteSource,
    cut_batches,
    jms_correlation_id,
    parse_pattern,
    reply_route,
)


def shape(objects: list[int], size: int | None, **options: bool) -> list[tuple[int, int, bool]]:
    """(number, objects, end) of each batch."""
    batches = cut_batches(objects, size, **options)  # type: ignore[arg-type]
    return [(b.position.number, len(b.objects), b.position.end_of_reply) for b in batches]


@pytest.mark.obligation("R4b", "C24")
@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [
        (5, 2, [(1, 2, False), (2, 2, False), (3, 1, True)]),
        (4, 2, [(1, 2, False), (2, 2, True)]),
        (2, 2, [(1, 2, True)]),
        (1, 2, [(1, 1, True)]),
        (0, 2, [(1, 0, True)]),
        (5, 0, [(1, 5, True)]),
        (5, None, [(1, 5, True)]),
        (0, None, [(1, 0, True)]),
        (3, 1, [(1, 1, False), (2, 1, False), (3, 1, True)]),
        (3, 4_294_967_295, [(1, 3, True)]),
    ],
)
def test_cutting(count: int, size: int | None, expected: list[tuple[int, int, bool]]) -> None:
    assert shape(list(range(count)), size) == expected


@pytest.mark.obligation("C23")
def test_numbering_may_start_at_zero() -> None:
    assert [batch.position.number for batch in cut_batches("abc", 2, first=0)] == [0, 1]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (5, [(1, 2, False), (2, 2, False), (3, 1, True)]),
        (4, [(1, 2, False), (2, 2, False), (3, 0, True)]),
        (0, [(1, 0, True)]),
    ],
)
def test_eager_cutting_closes_with_an_empty_batch_where_it_must(
    count: int, expected: list[tuple[int, int, bool]]
) -> None:
    assert shape(list(range(count)), 2, eager=True) == expected
    assert shape(list(range(count)), 0, eager=True) == [(1, count, True)]


def test_a_negative_size_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="-1"):
        cut_batches([], -1)


@pytest.mark.obligation("P31")
@pytest.mark.parametrize(("eager", "read"), [(False, [3, 5, 6]), (True, [2, 4, 6])])
def test_no_object_is_read_before_it_is_needed(eager: bool, read: list[int]) -> None:
    taken = 0

    def objects() -> Iterator[int]:
        nonlocal taken
        for number in range(6):
            taken += 1
            yield number

    seen = []
    for _ in cut_batches(objects(), 2, eager=eager):
        seen.append(taken)
    assert seen[:3] == read


class Thing:
    """Something that can be watched while it lives."""


@pytest.mark.parametrize("eager", [False, True])
def test_never_more_than_one_batch_is_held(eager: bool) -> None:
    alive: weakref.WeakSet[Thing] = weakref.WeakSet()
    most = 0

    def things() -> Iterator[Thing]:
        nonlocal most
        for _ in range(1000):
            thing = Thing()
            alive.add(thing)
            most = max(most, len(alive))
            yield thing
            del thing

    batches = cut_batches(things(), 10, eager=eager)
    count = sum(len(next(batches).objects) for _ in range(100))
    assert count == 1000
    assert most <= 10 + 1
    del batches
    gc.collect()
    assert len(alive) == 0


def test_ready_made_replies_are_batches_of_their_own() -> None:
    items = ["a", "b", "c", "WHOLE", "d", "ALSO", "LAST"]
    expected = [["a", "b"], ["c"], ["WHOLE"], ["d"], ["ALSO"], ["LAST"]]
    batches = list(cut_batches(items, 2, whole=str.isupper))
    assert [batch.objects for batch in batches] == expected
    assert [batch.position.end_of_reply for batch in batches] == [False] * 5 + [True]
    eager = list(cut_batches(items, 2, whole=str.isupper, eager=True))
    assert [batch.objects for batch in eager] == [*expected, []]


def test_a_single_reply_cannot_be_made_of_several_ready_made_ones() -> None:
    assert [batch.objects for batch in cut_batches(["WHOLE"], 0, whole=str.isupper)] == [["WHOLE"]]
    for items in (["WHOLE", "ALSO"], ["a", "WHOLE"], ["WHOLE", "a"]):
        with pytest.raises(ConfigError, match="ready-made"):
            list(cut_batches(items, 0, whole=str.isupper))


@given(st.integers(0, 60), st.integers(0, 20), st.booleans(), st.integers(0, 1))
def test_nothing_is_lost_and_the_last_alone_has_the_end_mark(count: int, size: int, eager: bool, first: int) -> None:
    batches = list(cut_batches(range(count), size, eager=eager, first=first))
    assert [item for batch in batches for item in batch.objects] == list(range(count))
    assert [batch.position.number for batch in batches] == list(range(first, first + len(batches)))
    assert [batch.position.end_of_reply for batch in batches] == [False] * (len(batches) - 1) + [True]
    assert all(len(batch.objects) <= size for batch in batches) or size == 0
    assert all(batch.objects for batch in batches[:-1])


@pytest.mark.obligation("R4b", "P32")
@given(st.integers(0, 60), st.integers(0, 7), st.booleans(), st.randoms(use_true_random=False))
def test_what_the_supplier_cuts_the_requestor_joins(count: int, size: int, eager: bool, dice: object) -> None:
    replies: list[Reply[list[int]]] = [
        Reply(payload=b.objects, batch_number=b.position.number, end_of_reply=b.position.end_of_reply)
        for b in cut_batches(range(count), size, eager=eager)
    ]
    dice.shuffle(replies)  # type: ignore[attr-defined]
    machine: BatchAssembler[list[int]] = BatchAssembler("c", started=0.0)
    actions = [action for reply in replies for action in machine.receive(reply, 0.0)]
    assert [n for action in actions if isinstance(action, Release) for n in action.payload] == list(range(count))
    assert machine.state is BatchState.COMPLETE


@pytest.mark.obligation("R6a", "O13c")
@pytest.mark.parametrize(
    ("message_id", "jms_id", "correlation_id_first", "expected"),
    [
        ("ID:1", None, False, "ID:1"),
        ("ID:1", "own", False, "ID:1"),
        ("ID:1", "own", True, "own"),
        ("ID:1", None, True, "ID:1"),
        (None, "own", False, "own"),
        (None, None, False, None),
        ("", "", True, None),
    ],
)
def test_the_jms_correlation_id(
    message_id: str | None, jms_id: str | None, correlation_id_first: bool, expected: str | None
) -> None:
    assert jms_correlation_id(message_id, jms_id, correlation_id_first=correlation_id_first) == expected


def resolve(name: str) -> str:
    if name == "jms/forbidden":
        raise InvalidDestinationError("jms/forbidden: not allowed by the reply policy")
    if name != "jms/failures":
        raise NamingError(name)
    return "queue:FAILURES"


F, R, N = RouteSource.FAILURE_REPLY_TO, RouteSource.REPLY_TO, RouteSource.NOWHERE


@pytest.mark.obligation("R16d", "P29", "P30", "P38", "C16")
@pytest.mark.parametrize(
    ("is_error", "reply_to", "failure", "destination", "source", "warned"),
    [
        (False, "queue:R", None, "queue:R", R, ""),
        (False, "queue:R", "jms/failures", "queue:R", R, ""),
        (True, "queue:R", "jms/failures", "queue:FAILURES", F, ""),
        (True, "queue:R", " jms/failures ", "queue:FAILURES", F, ""),
        (True, None, "jms/failures", "queue:FAILURES", F, ""),
        (True, "queue:R", None, "queue:R", R, ""),
        (True, "queue:R", "  ", "queue:R", R, ""),
        (True, "queue:R", "jms/unknown", "queue:R", R, "jms/unknown"),
        (True, "queue:R", "jms/forbidden", "queue:R", R, "policy"),
        (True, None, "jms/unknown", None, N, "jms/unknown"),
        (True, None, None, None, N, "no JMSReplyTo"),
        (False, None, "jms/failures", None, N, "no JMSReplyTo"),
    ],
)
def test_where_a_reply_goes(
    is_error: bool, reply_to: str | None, failure: str | None, destination: str | None, source: RouteSource, warned: str
) -> None:
    route = reply_route(is_error=is_error, reply_to=reply_to, failure_reply_to_uri=failure, resolve=resolve)
    assert (route.destination, route.source) == (destination, source)
    assert bool(route.warning) == bool(warned)
    assert warned in (route.warning or "")


def test_other_errors_of_the_look_up_are_not_hidden() -> None:
    def broken(name: str) -> str:
        raise TransportError(name)

    with pytest.raises(TransportError):
        reply_route(is_error=True, reply_to="queue:R", failure_reply_to_uri="x", resolve=broken)


@pytest.mark.obligation("C51")
@pytest.mark.parametrize(
    ("text", "pattern", "rule"),
    [
        ("SimpleResponse", CommunicationPattern.SIMPLE_RESPONSE, None),
        (" MultipleBatchResponse\n", CommunicationPattern.MULTIPLE_BATCH_RESPONSE, None),
        ("BulkResponse", CommunicationPattern.BULK_RESPONSE, None),
        ("Notification", CommunicationPattern.NOTIFICATION, None),
        ("MultipleResponse", CommunicationPattern.MULTIPLE_BATCH_RESPONSE, "C51"),
        ("simpleresponse", CommunicationPattern.SIMPLE_RESPONSE, "P2"),
        ("", CommunicationPattern.SIMPLE_RESPONSE, "P2"),
        (None, CommunicationPattern.SIMPLE_RESPONSE, "P2"),
    ],
)
def test_reading_the_communication_pattern(text: str | None, pattern: CommunicationPattern, rule: str | None) -> None:
    found, flag = parse_pattern(text)
    assert found is pattern
    assert (flag.rule if flag else None) == rule
