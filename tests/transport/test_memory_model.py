"""The embedded provider beside a model of it: lists that are sorted at each look. Whatever is done in whatever order,
nothing is lost, nothing comes twice but where JMS has it so, and the next message is the one that the model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mtosi_jms.errors import IllegalStateError, InvalidDestinationError
from mtosi_jms.jms import Queue, Topic
from mtosi_jms.jms.message import JmsMessage
from mtosi_jms.transport import AckMode, Consumer, Delivery, Session
from mtosi_jms.transport.memory import MemoryConnection, MemoryProvider

pytestmark = pytest.mark.obligation("P7", "P8", "P12", "P18", "P19", "T1.6", "T1.10")

QUEUE, TOPIC, DEAD = Queue("queue"), Topic("topic"), Queue("DLQ")
MOST = 4
KINDS = ("auto", "client", "dups", "transacted")
PLACES = ("all", "selected", "durable", "dead")
SELECTORS = (None, "k = 1")

kinds = st.sampled_from(KINDS)
keeping = st.sampled_from(["client", "transacted"])


@dataclass(eq=False)
class Letter:
    """A message of the model."""

    number: int
    k: int
    priority: int
    expires: int
    place: int = 0
    count: int = 1


@dataclass(eq=False)
class Box:
    """A queue or subscription of the model."""

    selector: str | None = None
    letters: list[Letter] = field(default_factory=list)
    gone: bool = False

    def live(self, now: int, selector: str | None = None) -> list[Letter]:
        """What is there, in the order of delivery."""
        fresh = [one for one in self.letters if not 0 < one.expires <= now and (selector is None or one.k == 1)]
        return sorted(fresh, key=lambda one: (-one.priority, one.place))


@dataclass(eq=False)
class Held:
    """A letter that was handed out and not acknowledged."""

    box: Box
    letter: Letter
    delivery: Delivery


class ProviderAndModel(RuleBasedStateMachine):
    """The same steps in both."""

    @initialize()
    def begin(self) -> None:
        self.now = 1_000_000
        self.provider = MemoryProvider(clock=lambda: self.now / 1000, max_deliveries=MOST)
        self.connection = MemoryConnection(self.provider, client_id="model")
        self.connection.start()
        self.admin = self.connection.session()
        self.boxes = {"queue": Box(), "dead": Box()}
        self.durable: Box | None = None
        self.reader: str | None = None
        self.numbers = self.places = 0
        self.sessions: dict[str, Session] = {}
        self.consumers: dict[tuple[str, str], Consumer] = {}
        self.held: dict[str, list[Held]] = {kind: [] for kind in KINDS}
        self.unsent: list[tuple[Letter, bool]] = []
        for kind in KINDS:
            self.open(kind)

    def open(self, kind: str) -> None:
        modes = {"auto": AckMode.AUTO, "dups": AckMode.DUPS_OK}
        session = self.connection.session(modes.get(kind, AckMode.CLIENT), transacted=kind == "transacted")
        self.sessions[kind] = session
        self.consumers[kind, "all"] = session.consumer(QUEUE)
        self.consumers[kind, "selected"] = session.consumer(QUEUE, "k = 1")
        self.consumers[kind, "dead"] = session.consumer(DEAD)

    # Sending.

    def letter(self, priority: int, life: int, k: int) -> tuple[Letter, JmsMessage]:
        self.numbers += 1
        made = Letter(self.numbers, k, priority, self.now + life if life else 0)
        properties = {"number": made.number, "k": k}
        return made, JmsMessage(properties=properties, priority=priority, time_to_live_ms=life)

    def put(self, letter: Letter, *, to_topic: bool) -> None:
        self.places += 1
        letter.place = self.places
        if not to_topic:
            self.boxes["queue"].letters.append(letter)
        elif self.durable is not None and (self.durable.selector is None or letter.k == 1):
            self.durable.letters.append(letter)

    @rule(
        letters=st.lists(
            st.tuples(
                st.booleans(), st.sampled_from([4, 4, 4, 0, 9]), st.sampled_from([0, 0, 0, 5, 20]), st.integers(0, 2)
            ),
            min_size=1,
            max_size=6,
        ),
        transacted=st.booleans(),
    )
    def send(self, letters: list[tuple[bool, int, int, int]], transacted: bool) -> None:
        session = self.sessions["transacted"] if transacted else self.admin
        for to_topic, priority, life, k in letters:
            letter, message = self.letter(priority, life, k)
            session.send(TOPIC if to_topic else QUEUE, message)
            if transacted:
                self.unsent.append((letter, to_topic))
            else:
                self.put(letter, to_topic=to_topic)

    # Receiving.

    @rule(kind=keeping, place=st.sampled_from(PLACES), times=st.integers(1, 4), rounds=st.integers(1, MOST))
    def fail(self, kind: str, place: str, times: int, rounds: int) -> None:
        """Receives, and has it all delivered again; perhaps so often that it is parked."""
        for _ in range(rounds):
            self.receive(kind, place, times)
            if kind == "client":
                self.recover()
            else:
                self.rollback()

    @rule(kind=kinds, place=st.sampled_from(PLACES), times=st.integers(1, 4))
    def receive(self, kind: str, place: str, times: int) -> None:
        box = self.durable if place == "durable" else self.boxes["dead" if place == "dead" else "queue"]
        if box is None or (place == "durable" and self.reader != kind):
            return
        for _ in range(times):
            expected = next(iter(box.live(self.now, "k = 1" if place == "selected" else None)), None)
            delivery = self.consumers[kind, place].receive(0)
            if expected is None:
                assert delivery is None
                return
            assert delivery is not None
            message = delivery.message
            assert message.properties["number"] == expected.number
            assert (message.delivery_count, message.redelivered) == (expected.count, expected.count > 1)
            box.letters.remove(expected)
            if kind in ("client", "transacted"):
                self.held[kind].append(Held(box, expected, delivery))

    @rule(kind=kinds, selector=st.sampled_from(SELECTORS), times=st.integers(1, 4), leave=st.booleans())
    def subscribe_and_receive(self, kind: str, selector: str | None, times: int, leave: bool) -> None:
        if self.reader is None:
            self.come_back(kind, selector)
        self.receive(self.reader or "", "durable", times)
        if leave:
            self.go_away()

    @precondition(lambda self: self.held["client"])
    @rule(data=st.data())
    def acknowledge(self, data: Any) -> None:
        one = data.draw(st.sampled_from(self.held["client"]))
        for _ in range(2):
            one.delivery.acknowledge()
        self.held["client"].remove(one)

    def give_back(self, kind: str) -> list[Held]:
        """What a session holds comes again, or is parked: a subscription or queue at a time."""
        returned, self.held[kind] = self.held[kind], []
        for box in dict.fromkeys(one.box for one in returned):
            for one in [one for one in returned if one.box is box and not box.gone]:
                spent = one.letter.count >= MOST and box is not self.boxes["dead"]
                if not spent:
                    one.letter.count += 1
                    box.letters.append(one.letter)
                elif not 0 < one.letter.expires <= self.now:
                    self.places += 1
                    parked = Letter(one.letter.number, one.letter.k, one.letter.priority, 0, self.places)
                    self.boxes["dead"].letters.append(parked)
        return returned

    @rule()
    def recover(self) -> None:
        self.sessions["client"].recover()
        for one in self.give_back("client"):
            with pytest.raises(IllegalStateError):
                one.delivery.acknowledge()

    @rule()
    def commit(self) -> None:
        self.sessions["transacted"].commit()
        self.held["transacted"].clear()
        for letter, to_topic in self.unsent:
            self.put(letter, to_topic=to_topic)
        self.unsent.clear()

    @rule()
    def rollback(self) -> None:
        self.sessions["transacted"].rollback()
        self.give_back("transacted")
        self.unsent.clear()

    @rule(kind=kinds)
    def close_session(self, kind: str) -> None:
        self.sessions[kind].close()
        self.give_back(kind)
        if kind == "transacted":
            self.unsent.clear()
        if self.reader == kind:
            self.reader = None
        self.open(kind)

    @rule(milliseconds=st.integers(1, 10))
    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds

    # The durable subscription.

    @rule(kind=kinds, selector=st.sampled_from(SELECTORS))
    def come_back(self, kind: str, selector: str | None) -> None:
        def subscribe() -> Consumer:
            return self.sessions[kind].consumer(TOPIC, selector, durable="model")

        if self.reader is not None:
            with pytest.raises(IllegalStateError, match="consumer has it"):
                subscribe()
            return
        self.consumers[kind, "durable"] = subscribe()
        self.reader = kind
        if self.durable is None or self.durable.selector != selector:
            if self.durable is not None:
                self.durable.gone = True
            self.durable = Box(selector)

    @precondition(lambda self: self.reader is not None)
    @rule()
    def go_away(self) -> None:
        self.consumers[self.reader or "", "durable"].close()
        self.reader = None

    @rule()
    def unsubscribe(self) -> None:
        out = any(one.box is self.durable for held in self.held.values() for one in held)
        wrong: type[Exception] | None = None
        if self.durable is None:
            wrong = InvalidDestinationError
        elif self.reader is not None or out:
            wrong = IllegalStateError
        if wrong is not None:
            with pytest.raises(wrong):
                self.admin.unsubscribe("model")
            return
        self.admin.unsubscribe("model")
        if self.durable is not None:
            self.durable.gone = True
        self.durable = None

    # What always holds.

    @invariant()
    def what_waits_is_what_the_model_has(self) -> None:
        for place, queue in (("queue", QUEUE), ("dead", DEAD)):
            for selector in SELECTORS:
                browsed = [message.properties["number"] for message in self.admin.browse(queue, selector)]
                assert browsed == [one.number for one in self.boxes[place].live(self.now, selector)]

    @invariant()
    def nothing_else_is_held(self) -> None:
        waiting = sum(len(box.live(self.now)) for box in self.boxes.values())
        waiting += len(self.durable.live(self.now)) if self.durable else 0
        out = sum(len(held) for held in self.held.values())
        gone = sum(one.box.gone for held in self.held.values() for one in held)
        lazy = self.provider.held() - waiting - (out - gone)
        assert 0 <= lazy <= 16

    def teardown(self) -> None:
        """Everything that was not acknowledged is there for who comes next, and nothing else."""
        for kind in KINDS:
            self.sessions[kind].close()
            self.give_back(kind)
        expected = [one.number for one in self.boxes["queue"].live(self.now)]
        with MemoryConnection(self.provider) as connection:
            connection.start()
            consumer = connection.session(AckMode.AUTO).consumer(QUEUE)
            drained = list(iter(lambda: _number(consumer), None))
        assert drained == expected
        self.connection.close()


def _number(consumer: Consumer) -> int | None:
    delivery = consumer.receive(0)
    return None if delivery is None else int(delivery.message.properties["number"])


TestProviderAndModel = ProviderAndModel.TestCase
