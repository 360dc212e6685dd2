"""Pairing replies with requests: header id first, then message id; orphans; nothing left behind (R3, O13, C12, C17)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError
from mtosi_jms.patterns import (
    HeldReply,
    Matched,
    OrphanReason,
    OrphanReply,
    PendingExchanges,
    Reply,
    ReplyType,
    Strategy,
)


def reply(xml: str | None = None, jms: str | None = None, kind: ReplyType = ReplyType.RESPONSE) -> Reply[str]:
    return Reply(payload="x", correlation_id=xml, jms_correlation_id=jms, message_type=kind)


def pending(strategy: Any = Strategy.BOTH, **options: Any) -> tuple[PendingExchanges[str, str], list[OrphanReply[str]]]:
    """Two exchanges under way, A (message ID:a) and B (message ID:b)."""
    orphans: list[OrphanReply[str]] = []
    table: PendingExchanges[str, str] = PendingExchanges(strategy, on_orphan=orphans.append, **options)
    for name in "ab":
        table.open(name, name.upper())
        table.sent(name, f"ID:{name}")
    return table, orphans


A, B, UNKNOWN, NO_ID = "A", "B", OrphanReason.UNKNOWN, OrphanReason.NO_ID

CASES = [
    # header id, JMSCorrelationID, by both, by XML alone, by message id alone
    ("a", None, A, A, NO_ID),
    ("a", "ID:a", A, A, A),
    ("a", "ID:b", A, A, B),
    ("a", "ID:x", A, A, UNKNOWN),
    ("x", "ID:b", B, UNKNOWN, B),
    ("x", "ID:x", UNKNOWN, UNKNOWN, UNKNOWN),
    ("x", None, UNKNOWN, UNKNOWN, NO_ID),
    (None, "ID:b", B, NO_ID, B),
    ("", "ID:b", B, NO_ID, B),
    (None, "ID:x", UNKNOWN, NO_ID, UNKNOWN),
    (None, None, NO_ID, NO_ID, NO_ID),
    (None, "a", A, NO_ID, UNKNOWN),
    ("x", "b", B, UNKNOWN, UNKNOWN),
    (" a", None, UNKNOWN, UNKNOWN, NO_ID),
    ("A", None, UNKNOWN, UNKNOWN, NO_ID),
]


@pytest.mark.obligation("R3e", "O13d", "O13e")
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize(("xml", "jms", "both", "xml_only", "id_only"), CASES)
def test_every_strategy_with_every_reply(
    strategy: Strategy, xml: str | None, jms: str | None, both: Any, xml_only: Any, id_only: Any
) -> None:
    table, orphans = pending(strategy)
    expected = {Strategy.BOTH: both, Strategy.XML: xml_only, Strategy.MESSAGE_ID: id_only}[strategy]
    found = table.match(reply(xml, jms))
    if isinstance(expected, OrphanReason):
        assert found == OrphanReply(reply(xml, jms), expected)
        assert orphans == [found]
        assert table.orphans[expected] == 1
    else:
        assert isinstance(found, Matched)
        assert found.exchange == expected
        assert orphans == []


@pytest.mark.parametrize(
    ("xml", "kind", "irregular"),
    [
        ("b", ReplyType.RESPONSE, False),
        ("x", ReplyType.RESPONSE, True),
        (None, ReplyType.RESPONSE, True),
        ("x", ReplyType.ERROR, True),
        (None, ReplyType.ERROR, False),
    ],
)
def test_a_peer_that_does_not_copy_the_id_is_noticed(xml: str | None, kind: ReplyType, irregular: bool) -> None:
    table, _ = pending()
    found = table.match(reply(xml, "ID:b", kind))
    assert isinstance(found, Matched)
    assert (found.exchange, found.irregular) == ("B", irregular)


def test_by_message_id_alone_the_header_is_of_no_concern() -> None:
    table, _ = pending("message-id")
    found = table.match(reply("x", "ID:b"))
    assert isinstance(found, Matched)
    assert not found.irregular


def test_a_wrong_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match="both, xml, message-id"):
        PendingExchanges("guess")


class TestLifeOfAnExchange:
    def test_an_ended_exchange_leaves_nothing_but_its_ids(self) -> None:
        table, orphans = pending()
        assert ("a" in table, len(table), list(table)) == (True, 2, ["A", "B"])
        table.close("a")
        assert ("a" in table, len(table), list(table)) == (False, 1, ["B"])
        for late in (reply("a"), reply(None, "ID:a"), reply("a", "ID:a"), reply("a", "ID:b")):
            assert table.match(late) == OrphanReply(late, OrphanReason.LATE)
        assert len(orphans) == table.orphans[OrphanReason.LATE] == 4
        assert table.close("a") == []

    def test_the_memory_of_ended_ones_is_bounded(self) -> None:
        table, _ = pending(remember=3)
        for number in range(10):
            table.open(f"c{number}", "C")
            table.sent(f"c{number}", None)
            table.close(f"c{number}")
        assert isinstance(table.match(reply("c9")), OrphanReply)
        assert (table.orphans[OrphanReason.LATE], table.orphans[OrphanReason.UNKNOWN]) == (1, 0)
        table.match(reply("c6"))
        assert table.orphans[OrphanReason.UNKNOWN] == 1
        table, _ = pending(remember=0)
        table.close("a")
        table.match(reply("a"))
        assert table.orphans[OrphanReason.UNKNOWN] == 1

    def test_the_id_that_ended_last_is_forgotten_last(self) -> None:
        table, orphans = pending(Strategy.XML, remember=2)
        table.close("a")
        table.close("b")
        table.open("a", "A")
        table.close("a")
        table.open("c", "C")
        table.close("c")
        for one in "abc":
            table.match(reply(one))
        assert [orphan.reason for orphan in orphans] == [OrphanReason.LATE, OrphanReason.UNKNOWN, OrphanReason.LATE]

    def test_an_id_may_be_used_again_after_its_end(self) -> None:
        table, _ = pending()
        table.close("a")
        table.open("a", "A2")
        found = table.match(reply("a"))
        assert isinstance(found, Matched)
        assert found.exchange == "A2"

    @pytest.mark.parametrize(("correlation_id", "jms_ids"), [("", ()), ("a", ()), ("c", ("ID:b",))])
    def test_ids_that_could_not_be_told_apart_are_refused(self, correlation_id: str, jms_ids: tuple[str, ...]) -> None:
        table, _ = pending()
        with pytest.raises(ConfigError):
            table.open(correlation_id, "C", jms_ids=jms_ids)
        assert len(table) == 2

    def test_a_correlation_id_of_the_clients_own_making(self) -> None:
        table, _ = pending()
        table.open("c", "C", jms_ids=["own-1"])
        table.sent("c", None)
        found = table.match(reply(None, "own-1", ReplyType.ERROR))
        assert isinstance(found, Matched)
        assert found.exchange == "C"
        table.close("c")
        assert table.match(reply(None, "own-1")) == OrphanReply(reply(None, "own-1"), OrphanReason.LATE)

    def test_an_exchange_can_hand_its_own_orphans_in(self) -> None:
        table, orphans = pending()
        table.orphan(reply("a"))
        assert orphans == [OrphanReply(reply("a"), OrphanReason.LATE)]


class TestRepliesThatAreFasterThanTheMessageId:
    @pytest.mark.obligation("O13b")
    def test_are_delivered_when_the_id_is_known(self) -> None:
        table, orphans = pending()
        table.open("c", "C")
        early = reply(None, "ID:c", ReplyType.ERROR)
        assert table.match(early) == HeldReply(early)
        assert table.held == 1
        assert table.sent("c", "ID:c") == [Matched("C", early)]
        assert (table.held, orphans) == (0, [])

    def test_are_orphans_once_no_request_under_way_can_be_theirs(self) -> None:
        table, orphans = pending()
        table.open("c", "C")
        table.open("d", "D")
        foreign = reply(None, "ID:foreign")
        table.match(foreign)
        table.open("e", "E")
        assert (table.sent("c", "ID:c"), table.held) == ([], 1)
        assert (table.sent("d", "ID:d"), table.held) == ([], 0)
        assert orphans == [OrphanReply(foreign, OrphanReason.UNKNOWN)]

    def test_are_settled_by_the_end_of_the_exchange_too(self) -> None:
        table, orphans = pending()
        table.open("c", "C")
        table.match(reply(None, "ID:foreign"))
        assert table.close("c") == []
        assert len(orphans) == 1
        assert table.sent("c", "ID:c") == []
        assert table.match(reply(None, "ID:c")) == OrphanReply(reply(None, "ID:c"), OrphanReason.LATE)

    def test_wait_for_no_id_that_will_never_be_told(self) -> None:
        table, orphans = pending()
        table.open("c", "C", jms_ids=["own-1"], awaits_id=False)
        foreign = reply(None, "ID:foreign")
        assert table.match(foreign) == OrphanReply(foreign, OrphanReason.UNKNOWN)
        assert (table.held, orphans) == (0, [OrphanReply(foreign, OrphanReason.UNKNOWN)])
        assert isinstance(table.match(reply(None, "own-1")), Matched)

    def test_never_pile_up(self) -> None:
        table, orphans = pending(hold=2)
        table.open("c", "C")
        for number in range(5):
            table.match(reply(None, f"ID:{number}"))
        assert (table.held, len(orphans)) == (2, 3)
        assert [orphan.reply.jms_correlation_id for orphan in orphans] == ["ID:0", "ID:1", "ID:2"]

    def test_are_not_held_where_message_ids_do_not_count(self) -> None:
        table, orphans = pending(Strategy.XML)
        table.open("c", "C")
        table.match(reply("x", "ID:c"))
        assert (table.held, len(orphans)) == (0, 1)


@pytest.mark.obligation("R3e")
@given(st.integers(0, 2**32), st.sampled_from(["xml", "jms", "mixed"]))
def test_shuffled_replies_never_cross_and_nothing_stays(seed: int, how: str) -> None:
    dice = random.Random(seed)
    orphans: list[OrphanReply[str]] = []
    table: PendingExchanges[int, str] = PendingExchanges(on_orphan=orphans.append)
    count = dice.randint(1, 30)
    replies = []
    for number in range(count):
        table.open(f"c{number}", number)
        if dice.random() < 0.8:
            table.sent(f"c{number}", f"ID:{number}")
        by = dice.choice(["xml", "jms"]) if how == "mixed" else how
        pair = (f"c{number}", None) if by == "xml" else (None, f"ID:{number}")
        replies += [(number, reply(*pair))] * dice.choice([1, 1, 2])
    foreign = [(-1, reply(f"x{number}", f"ID:x{number}")) for number in range(dice.randint(0, 5))]
    replies += foreign
    dice.shuffle(replies)
    got: dict[int, int] = dict.fromkeys(range(count), 0)

    def deliver(found: Any) -> None:
        got[found.exchange] += 1
        for more in table.close(f"c{found.exchange}"):
            deliver(more)

    for number, one in replies:
        found = table.match(one)
        if isinstance(found, Matched):
            assert found.exchange == number
            deliver(found)
    for number in range(count):
        for found in table.sent(f"c{number}", f"ID:{number}"):
            if f"c{found.exchange}" in table:
                deliver(found)
    assert set(got.values()) == {1}
    assert (len(table), table.held) == (0, 0)
    assert sum(table.orphans.values()) == len(orphans)
    assert table.orphans[OrphanReason.UNKNOWN] == len(foreign)
