"""The benchmarks run and say what they promise. No figure is judged."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BRIDGED = ["the bridge, from JacORB's channel", "the bridge, from a channel in the process", "publishing alone"]


@pytest.fixture(scope="module")
def measure(root: Path) -> ModuleType:
    """The module `measure`: benchmarks are scripts, no package."""
    spec = importlib.util.spec_from_file_location("bench_measure", root / "benchmarks" / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "benchmarks" / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("names", "needs", "lines"),
    [
        pytest.param(
            "decode",
            ("zeep", "xsdata"),
            ["zeep", "xsdata, lxml", "xsdata, native", "lxml parse alone"],
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "encode", ("zeep", "xsdata"), ["zeep", "xsdata, lxml", "xsdata, native"], marks=pytest.mark.endurance
        ),
        pytest.param(
            "iter_decode", (), ["iter_decode", "iter_placed", "lxml iterparse alone"], marks=pytest.mark.endurance
        ),
        pytest.param("request,batches", (), ["the same XML, no messaging"], marks=pytest.mark.endurance),
        pytest.param(
            "notifications",
            (),
            ["1 subscriber", "10 subscribers", "100 subscribers", "10 subscribers, all get all"],
            marks=pytest.mark.endurance,
        ),
        pytest.param(
            "mtnm", (), ["mapping and publishing", "mapping alone", "publishing alone"], marks=pytest.mark.endurance
        ),
        pytest.param("bridge-memory", ("jpype",), BRIDGED, marks=pytest.mark.endurance),
        pytest.param("bridge-artemis", ("jpype",), BRIDGED, marks=[pytest.mark.endurance, pytest.mark.broker]),
        pytest.param("gateway-memory", ("httpx",), ["through the gateway", "over JMS"], marks=pytest.mark.endurance),
        pytest.param(
            "gateway-activemq,gateway-artemis",
            ("httpx",),
            ["through the gateway", "over JMS, as the gateway does", "over JMS, replies on a queue of a name"],
            marks=[pytest.mark.endurance, pytest.mark.broker],
        ),
        pytest.param(
            "gateway-slow,gateway-gigabyte", ("httpx",), [], marks=[pytest.mark.endurance, pytest.mark.broker]
        ),
        pytest.param(
            "send",
            (),
            ["send_async, a window of 16", "send with a listener", "send, each waited for"],
            marks=pytest.mark.endurance,
        ),
        pytest.param("stored,landed", (), [], marks=pytest.mark.endurance),
        pytest.param("asyncio-1,asyncio-100,asyncio-10000", (), ["asyncio", "threads"], marks=pytest.mark.endurance),
        ("selectors", (), ["one comparison", "ten terms", "parse, ten terms", "one comparison in Python"]),
        pytest.param(
            "nested",
            ("pyspark",),
            ["2,000 objects", "10,000 objects", "lxml's parse alone"],
            marks=pytest.mark.endurance,
        ),
        pytest.param("generate", ("xsdata",), ["mtosi-codegen", "xsdata, clusters"], marks=pytest.mark.endurance),
    ],
)
def test_a_quick_run_writes_a_table_and_json(
    root: Path, tmp_path: Path, names: str, needs: tuple[str, ...], lines: list[str]
) -> None:
    for module in needs:
        pytest.importorskip(module)
    out = tmp_path / "bench.json"
    done = run(root, "--quick", "--only", names, "--out", str(out))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    assert set(found) == {"machine", "versions", "quick", "seconds", "benchmarks", "ratios", "failed", "skipped"}
    assert found["failed"] == []
    if found["skipped"]:
        pytest.skip(done.stderr)
    assert {"python", "lxml", "libxml2"} <= set(found["versions"])
    assert [benchmark["name"] for benchmark in found["benchmarks"]] == names.split(",")
    for benchmark in found["benchmarks"]:
        shown = [line["name"] for line in benchmark["lines"]]
        assert set(lines) <= set(shown)
        assert all(line["per_second"] > 0 for line in benchmark["lines"])
        assert all(name in done.stdout for name in shown)
        assert {f"{benchmark['name']}: {name}" for name in shown[1:]} <= set(found["ratios"])


def test_a_round_trip_is_told_in_its_parts(root: Path, tmp_path: Path) -> None:
    """SimpleResponse a second with 1 and with 100 in flight, and the binding's share; the parts make up the whole."""
    out = tmp_path / "bench.json"
    done = run(root, "--quick", "--only", "request,request-100", "--out", str(out))
    assert done.returncode == 0, done.stderr
    for benchmark, flight in zip(json.loads(out.read_text(encoding="utf-8"))["benchmarks"], (1, 100), strict=True):
        assert benchmark["unit"] == "round trips"
        assert f", {flight} in flight" in benchmark["title"]
        (note,) = benchmark["notes"]
        assert note in done.stdout
        binding, rest = (int(part) for part in re.findall(r"(-?\d+)%", note))
        assert abs(binding + rest - 100) <= 1
        ratios = {line["name"]: line["ours_over_this"] for line in benchmark["lines"]}
        assert abs(ratios["the same XML, no messaging"] * 100 - binding) <= 1


def test_the_curve_is_drawn_from_the_json(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    out, curve = tmp_path / "bench.json", tmp_path / "nested.svg"
    lines = [
        {"kind": "ours", "per_second": 20_000.0, "median_seconds": objects / 20_000} for objects in (10_000, 100_000)
    ]
    limit = {"kind": "limit", "per_second": 9.0, "median_seconds": 1.0}
    out.write_text(json.dumps({"benchmarks": [{"name": "decode"}, {"name": "nested", "lines": [*lines, limit]}]}))
    subprocess.run([sys.executable, str(root / "benchmarks" / "nested.py"), str(out), str(curve)], check=True)
    drawn = curve.read_text(encoding="utf-8")
    assert ">0.50 s, 20,000/s<" in drawn
    assert ">5.00 s, 20,000/s<" in drawn
    assert drawn.count("<circle") == 2


def test_the_curve_in_the_documentation_has_the_figures_beside_it(root: Path) -> None:
    curve = (root / "docs" / "nested.svg").read_text(encoding="utf-8")
    page = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rates = re.findall(r" s, ([\d,]+)/s<", curve)
    assert len(rates) == 3
    assert all(f" objects | {rate} |" in page for rate in rates)


@pytest.mark.parametrize("arguments", [("--only", "decode,everything"), ("--only", ""), ("--slow",)])
def test_wrong_usage_ends_with_two(root: Path, arguments: tuple[str, ...]) -> None:
    assert run(root, *arguments).returncode == 2


def test_sides_take_turns_and_every_run_counts_the_same(measure: ModuleType) -> None:
    order: list[str] = []

    def side(name: str, kind: str) -> Any:
        return measure.Side(name, kind, lambda: order.append(name) or 5)

    sides = [side("a", "ours"), side("b", "peer"), side("c", "limit")]
    found = measure.compare("x", "title", "things", sides, rounds=3, megabytes=1.0)
    assert [order[start : start + 3] for start in range(0, len(order), 3)] == [
        ["a", "b", "c"],
        ["a", "b", "c"],
        ["a", "c", "b"],
        ["c", "a", "b"],
    ]
    assert [len(line.seconds) for line in found.lines] == [3, 3, 3]
    assert (found.ours.name, found.ours.ratio, found.ours.amount) == ("a", 1.0, 5)


def test_what_is_prepared_is_not_measured(measure: ModuleType) -> None:
    order: list[str] = []
    side = measure.Side("a", "ours", lambda: order.append("run") or 5, lambda: order.append("prepare"))
    measure.compare("x", "title", "things", [side], rounds=2)
    assert order == ["prepare", "run"] * 3


def test_a_side_that_does_less_is_refused(measure: ModuleType) -> None:
    sides = [measure.Side("a", "ours", lambda: 5), measure.Side("b", "peer", lambda: 4)]
    with pytest.raises(RuntimeError, match="b did 4 things, a 5"):
        measure.compare("x", "title", "things", sides, rounds=2)


def test_a_side_that_changes_is_refused(measure: ModuleType) -> None:
    counts = iter([5, 5, 6])
    with pytest.raises(RuntimeError, match="a did 6 things after 5"):
        measure.compare("x", "title", "things", [measure.Side("a", "ours", lambda: next(counts))], rounds=2)
