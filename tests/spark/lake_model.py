"""What a landing makes of a table, in plain Python: messages in, rows out, all from the beginning each time.

The rules are those of docs/design/lake.md, written down a second time without Spark. Times are whole minutes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

Values = dict[str, str | None]
ATTRIBUTES = ("user_label", "owner")
GONE, FULL, TOLD = 0, 1, 2


@dataclass(frozen=True)
class Batch:
    """A batch of an answer: its objects have all attributes."""

    answer: str
    number: int
    end: bool
    time: int
    objects: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class Event:
    """An event: a creation has all attributes, a change some, a deletion none."""

    kind: int
    name: str
    time: int
    values: tuple[tuple[str, str | None], ...] = ()


@dataclass
class Model:
    """All messages so far, in the order in which runs read them."""

    snapshot: bool
    batches: set[Batch] = field(default_factory=set)
    events: set[Event] = field(default_factory=set)

    def read(self, messages: Iterable[Batch | Event]) -> None:
        for message in messages:
            if isinstance(message, Batch):
                self.batches.add(message)
            else:
                self.events.add(message)

    def _answers(self) -> list[list[Batch]]:
        found: dict[str, list[Batch]] = {}
        for batch in self.batches:
            found.setdefault(batch.answer, []).append(batch)
        return [parts for parts in found.values() if _complete(parts)]

    def facts(self) -> dict[str, set[tuple[int, int, tuple[tuple[str, str | None], ...]]]]:
        """The facts of each name: time, rank, values."""
        facts: dict[str, set[tuple[int, int, tuple[tuple[str, str | None], ...]]]] = {}
        answers = self._answers()
        for part in (part for parts in answers for part in parts):
            for name, values in part.objects:
                facts.setdefault(name, set()).add((part.time, FULL, tuple(zip(ATTRIBUTES, values, strict=True))))
        for event in self.events:
            if event.kind != GONE:
                facts.setdefault(event.name, set()).add((event.time, event.kind, event.values))
        for event in self.events:
            for name, mine in facts.items():
                if event.kind == GONE and (name == event.name or name.startswith(f"{event.name}/")):
                    mine.add((event.time, GONE, ()))
        for parts in answers if self.snapshot else ():
            held = {name for part in parts for name, _ in part.objects}
            for name, mine in facts.items():
                if held and name not in held:
                    mine.add((min(part.time for part in parts), GONE, ()))
        return facts

    def history(self) -> dict[str, list[tuple[int, bool, Values]]]:
        """The states of each name: from when, whether it is there, its attributes."""
        histories = {}
        for name, facts in self.facts().items():
            states: list[tuple[int, bool, Values]] = []
            there, values = False, dict.fromkeys(ATTRIBUTES)
            for time in sorted({fact[0] for fact in facts}):
                for _, rank, told in sorted((fact for fact in facts if fact[0] == time), key=lambda fact: fact[1]):
                    if rank != TOLD:
                        there, values = rank == FULL, dict.fromkeys(ATTRIBUTES)
                    values = {**values, **dict(told)}
                if not states or states[-1][1:] != (there, values):
                    states.append((time, there, values))
            histories[name] = states
        return histories


def _complete(parts: list[Batch]) -> bool:
    ends = [part.number for part in parts if part.end]
    return bool(ends) and {part.number for part in parts} == set(range(1, ends[0] + 1))


def random_runs(seed: int, runs: int) -> list[list[Batch | Event]]:
    """What each of some runs finds: answers whole and in parts, events, late ones, and the same again.

    No two messages have the same time, but for those that are the same.
    """
    rng = random.Random(seed)
    times = list(range(1, 1000))
    rng.shuffle(times)
    names = [f"MD=M/ME={letter}" for letter in "abcd"]
    waiting: list[Batch | Event] = []
    sent: list[Batch | Event] = []
    found: list[list[Batch | Event]] = []
    for run in range(runs):
        made: list[Batch | Event] = []
        for number in range(rng.randint(1, 2)):
            held = rng.sample(names, rng.randint(1, len(names)))
            middle = rng.randint(0, len(held))
            for part, some in enumerate((held[:middle], held[middle:]), start=1):
                objects = tuple((name, _values(rng)) for name in some)
                made.append(Batch(f"{run}.{number}", part, part == 2, times.pop(), objects))
        for _ in range(rng.randint(1, 4)):
            kind = rng.choice((GONE, FULL, TOLD, TOLD))
            told = rng.sample(ATTRIBUTES, rng.randint(1, 2)) if kind == TOLD else list(ATTRIBUTES if kind else ())
            values = dict(zip(ATTRIBUTES, _values(rng), strict=True))
            name = "MD=M" if kind == GONE and rng.random() < 0.2 else rng.choice(names)
            made.append(Event(kind, name, times.pop(), tuple((each, values[each]) for each in sorted(told))))
        late = [message for message in made if rng.random() < 0.3]
        again = rng.sample(sent, min(len(sent), 2))
        found.append([*(message for message in made if message not in late), *waiting, *again])
        sent += found[-1]
        waiting = late
    return found


def _values(rng: random.Random) -> tuple[str | None, ...]:
    return tuple(rng.choice((None, "x", "y")) for _ in ATTRIBUTES)
