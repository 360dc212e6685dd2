"""Every state of connections, sessions, consumers and deliveries, and what each call does in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError
from mtosi_jms.jms import Queue
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import AckMode, Capability, Connection, Consumer, Delivery, Session

OK, ILLEGAL, INVALID = None, IllegalStateError, InvalidDestinationError
Outcome = type[Exception] | None

CONNECTION: dict[str, dict[str, Outcome]] = {
    "new": {"start": OK, "stop": OK, "session": OK, "close": OK},
    "started": {"start": OK, "stop": OK, "session": OK, "close": OK},
    "stopped": {"start": OK, "stop": OK, "session": OK, "close": OK},
    "closed": {"start": ILLEGAL, "stop": ILLEGAL, "session": ILLEGAL, "close": OK},
}

USABLE: dict[str, Outcome] = dict.fromkeys(
    ("send", "consumer", "browse", "temporary_queue", "temporary_topic", "producer", "close")
)
REFUSING: dict[str, Outcome] = {
    **dict.fromkeys((*USABLE, "unsubscribe", "recover", "commit", "rollback"), ILLEGAL),
    "producer": OK,  # it sends nothing, and needs no session until it does
    "close": OK,
}
SESSION: dict[str, dict[str, Outcome]] = {
    "acknowledging": {**USABLE, "unsubscribe": INVALID, "recover": OK, "commit": ILLEGAL, "rollback": ILLEGAL},
    "transacted": {**USABLE, "unsubscribe": INVALID, "recover": ILLEGAL, "commit": OK, "rollback": OK},
    "with a listener": REFUSING,
    "closed": REFUSING,
    "connection closed": REFUSING,
}

CONSUMER: dict[str, dict[str, Outcome]] = {
    "receiving": {"receive": OK, "listen": OK, "close": OK},
    "connection stopped": {"receive": OK, "listen": OK, "close": OK},
    "listening": {"receive": ILLEGAL, "listen": ILLEGAL, "close": OK},
    "closed": {"receive": ILLEGAL, "listen": ILLEGAL, "close": OK},
    "session closed": {"receive": ILLEGAL, "listen": ILLEGAL, "close": OK},
    "connection closed": {"receive": ILLEGAL, "listen": ILLEGAL, "close": OK},
}

DELIVERY: dict[str, dict[AckMode | str, Outcome]] = {
    "handed out": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: OK, "transacted": OK},
    "acknowledged": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: OK, "transacted": OK},
    "consumer closed": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: OK, "transacted": OK},
    "recovered": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: ILLEGAL, "transacted": OK},
    "session closed": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: ILLEGAL, "transacted": OK},
    "connection closed": {AckMode.AUTO: OK, AckMode.DUPS_OK: OK, AckMode.CLIENT: ILLEGAL, "transacted": OK},
}


def cells(table: dict[Any, dict[Any, Outcome]]) -> list[Any]:
    """Each state with each call."""
    return [
        pytest.param(state, call, outcome, id=f"{state}, {getattr(call, 'value', call)}")
        for state, row in table.items()
        for call, outcome in row.items()
    ]


def check(action: Callable[[], object], outcome: Outcome, state: str = "", what: str = "") -> None:
    """The call does what the table says, and once more the same; an error says what is closed, or whose it is."""
    if outcome is OK:
        action()
        return
    said = f"{what} is closed" if state == "closed" else "is closed" if "closed" in state else ""
    for _ in range(2):
        with pytest.raises(outcome, match=said or ("P4" if state == "with a listener" else None)):
            action()


@dataclass
class Chain:
    """A connection with all that hangs on it. `delivery`: of a message that was sent for it."""

    connection: Connection
    session: Session
    consumer: Consumer
    queue: Queue
    delivery: Delivery | None = None

    def take(self) -> None:
        """Has a message handed out."""
        sender = self.connection.session()
        sender.send(self.queue, JmsMessage())
        self.delivery = self.consumer.receive(30)
        assert self.delivery is not None


def ignore(delivery: Delivery) -> None:
    """A listener."""


def chain(started: Any, queue: Queue, mode: AckMode = AckMode.CLIENT, *, transacted: bool = False) -> Chain:
    connection = started(client_id="states")
    session = connection.session(mode, transacted=transacted)
    return Chain(connection, session, session.consumer(queue), queue)


def bring(links: Chain, state: str) -> None:
    """Brings a chain into a state, by the one step that leads there."""
    steps: dict[str, Callable[[], object]] = {
        "listening": lambda: links.consumer.listen(ignore),
        "with a listener": lambda: links.consumer.listen(ignore),
        "connection stopped": links.connection.stop,
        "consumer closed": links.consumer.close,
        "session closed": links.session.close,
        "connection closed": links.connection.close,
        "recovered": lambda: links.session.rollback() if links.session.transacted else links.session.recover(),
        "acknowledged": lambda: links.delivery and links.delivery.acknowledge(),
    }
    steps.get(state, lambda: None)()


@pytest.mark.obligation("P17", "F3")
@pytest.mark.parametrize(("state", "call", "outcome"), cells(CONNECTION))
def test_connections(provider: Any, state: str, call: str, outcome: Outcome) -> None:
    made = provider.connect()
    for step in {"new": "", "started": "start", "stopped": "start stop", "closed": "start close"}[state].split():
        getattr(made, step)()
    check(getattr(made, call), outcome, state, "connection")


@pytest.mark.obligation("P17", "P4", "O5", "F3")
@pytest.mark.parametrize(("state", "call", "outcome"), cells(SESSION))
def test_sessions(started: Any, queue: Queue, state: str, call: str, outcome: Outcome) -> None:
    needed = {"browse": Capability.BROWSE, "unsubscribe": Capability.DURABLE_RULES}.get(call)
    transacted = state == "transacted"
    if needed and state in ("acknowledging", "transacted") and needed not in started().capabilities:
        pytest.skip(f"the transport lacks {needed.name}")
    if transacted and Capability.TRANSACTED_RECEIVE not in started().capabilities:
        pytest.skip("a transacted session has no consumers")
    links = chain(started, queue, transacted=transacted)
    bring(links, "session closed" if state == "closed" else state)
    arguments: dict[str, tuple[Any, ...]] = {
        "send": (queue, JmsMessage()),
        "consumer": (queue,),
        "browse": (queue,),
        "producer": (queue,),
        "unsubscribe": ("never subscribed",),
    }
    check(lambda: getattr(links.session, call)(*arguments.get(call, ())), outcome, state, "session")


@pytest.mark.obligation("P17")
@pytest.mark.parametrize(("state", "call", "outcome"), cells(CONSUMER))
def test_consumers(started: Any, queue: Queue, state: str, call: str, outcome: Outcome) -> None:
    links = chain(started, queue)
    bring(links, "consumer closed" if state == "closed" else state)
    arguments: dict[str, tuple[Any, ...]] = {"receive": (0,), "listen": (ignore,)}
    check(lambda: getattr(links.consumer, call)(*arguments.get(call, ())), outcome, state, "consumer")


@pytest.mark.obligation("P19")
@pytest.mark.parametrize(("state", "mode", "outcome"), cells(DELIVERY))
def test_deliveries(started: Any, queue: Queue, state: str, mode: Any, outcome: Outcome) -> None:
    transacted = mode == "transacted"
    if transacted and Capability.TRANSACTED_RECEIVE not in started().capabilities:
        pytest.skip("what a transacted session receives is not part of its transaction")
    links = chain(started, queue, AckMode.CLIENT if transacted else mode, transacted=transacted)
    links.take()
    bring(links, state)
    assert links.delivery is not None
    check(links.delivery.acknowledge, outcome)
