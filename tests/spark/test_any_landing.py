"""Any landing of replies, shuffled and troubled: exact rows, exact ledger, rejects with reasons, nothing else."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables.columns import row_schema
from mtosi_jms.tables.landing import partition, plan_landing, readable
from mtosi_jms.tables.reader import ObjectReader

TROUBLES = ("copy", "copy in other prefixes", "packed copy", "gap", "truncated", "missing end", "fault", "conflict")


@dataclass
class Expected:
    """What a landing must give.

    Attributes:
        files: contents, in no order.
        names: full names of the rows, with how often each comes.
        complete: whether each sequence is complete, by correlationId.
        missing: missing numbers of each sequence whose end is there.
        duplicates: copies too many of each sequence.
        conflicts: numbers with different bodies.
        rejects: how many files are rejected.
    """

    files: list[bytes] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    complete: dict[str, bool] = field(default_factory=dict)
    missing: dict[str, tuple[int, ...]] = field(default_factory=dict)
    duplicates: dict[str, int] = field(default_factory=dict)
    conflicts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    rejects: int = 0


def add_sequence(expected: Expected, cid: str, size: int, troubles: dict[int, str], makers: tuple[Any, Any]) -> None:
    """A reply of so many batches, of which some have a trouble, by number."""
    envelopes, other = makers
    gone: set[int] = set()
    expected.duplicates[cid] = 0
    expected.conflicts[cid] = ()
    faulty = False
    for number in range(1, size + 1):
        trouble = troubles.get(number)
        names = [f"{cid}-{number}-{index}" for index in range(number % 3 + 1)]

        def batch(maker: Any, names: list[str] = names, number: int = number) -> bytes:
            elements = "".join(maker.me(name, "<me:location>a &amp; b</me:location>") for name in names)
            text: str = maker.batch(cid, number, number == size, elements)
            return text.encode()

        plain = batch(envelopes)
        if trouble == "gap" or (trouble == "missing end" and number == size):
            gone.add(number)
            continue
        if trouble == "truncated":
            gone.add(number)
            expected.files.append(plain[: len(plain) * 2 // 3])
            expected.rejects += 1
            continue
        expected.files.append(plain)
        expected.names.update(f"MD=M/ME={name}" for name in names)
        if trouble and "copy" in trouble:
            expected.files.append(
                batch(other) if "other" in trouble else gzip.compress(plain) if "packed" in trouble else plain
            )
            expected.duplicates[cid] += 1
        elif trouble == "fault":
            faulty = True
            expected.files.append(envelopes.fault(cid).encode())
        elif trouble == "conflict":
            expected.files.append(plain.replace(b"a &amp; b", b"another", 1))
            expected.names.update(f"MD=M/ME={name}" for name in names)
            expected.conflicts[cid] += (number,)
    if len(gone) == size and not faulty:
        del expected.duplicates[cid], expected.conflicts[cid]
        return
    expected.complete[cid] = not gone and not faulty and not expected.conflicts[cid]
    if size not in gone:
        expected.missing[cid] = tuple(sorted(gone))


@st.composite
def troubled(draw: st.DrawFn) -> tuple[list[tuple[int, dict[int, str]]], list[str], Any]:
    sequences = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 6))
        sequences.append((size, draw(st.dictionaries(st.integers(1, size), st.sampled_from(TROUBLES), max_size=3))))
    strangers = draw(st.lists(st.sampled_from(["request", "text", "html"]), max_size=3))
    return sequences, strangers, draw(st.randoms(use_true_random=False))


@pytest.mark.parametrize("core", ["native", "python"])
@given(troubled())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_landing(
    envelopes: Any,
    other_prefixes: Any,
    core: str,
    given_: tuple[list[tuple[int, dict[int, str]]], list[str], Any],
) -> None:
    sequences, strangers, chance = given_
    expected = Expected()
    for number, (size, troubles) in enumerate(sequences):
        add_sequence(expected, f"c{number}", size, troubles, (envelopes, other_prefixes))
    for stranger in strangers:
        expected.files.append(envelopes.request("r").encode() if stranger == "request" else f"<{stranger}/>".encode())
        expected.rejects += stranger != "request"
    chance.shuffle(expected.files)
    folder = Path(tempfile.mkdtemp())
    try:
        check(folder, expected, chance.randint(1, 5), core=core)
    finally:
        shutil.rmtree(folder)


def check(folder: Path, expected: Expected, partitions: int, *, core: str) -> None:
    for number, data in enumerate(expected.files):
        (folder / f"{number:03d}.xml").write_bytes(data)
    options = SourceOptions.parse({"path": str(folder), "verify": "full"})
    schema = row_schema(options.object_types)
    plan = plan_landing(options)
    reader = ObjectReader(options, schema, core=core)
    rows = [
        row
        for files in partition(readable(plan, options), partitions)
        for row in pa.Table.from_batches(reader.read(files), schema=schema).to_pylist()
    ]
    assert Counter(row["name_text"] for row in rows) == expected.names
    assert {row["complete"] for row in rows if expected.complete[row["correlation_id"]]} <= {True}
    assert {row["complete"] for row in rows if not expected.complete[row["correlation_id"]]} <= {False}
    ledger = {sequence.correlation_id: sequence for sequence in plan.sequences}
    assert {cid: sequence.complete for cid, sequence in ledger.items() if sequence.batches} == {
        cid: whole for cid, whole in expected.complete.items() if ledger[cid].batches
    }
    for cid, sequence in ledger.items():
        assert sequence.duplicates == expected.duplicates[str(cid)]
        assert sequence.conflicts == expected.conflicts[str(cid)]
        assert cid not in expected.missing or sequence.missing == expected.missing[str(cid)]
    assert len(plan.rejects) == expected.rejects
    assert all(reject.file and str(reject).partition(":")[2].strip() for reject in plan.rejects)
