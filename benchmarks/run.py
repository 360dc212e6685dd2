"""Run the benchmarks, compared with other libraries where there are any; print tables and write JSON.

`make bench` runs all, `make bench ARGS="--only decode,encode --quick"` a part. `docs/benchmarks.md` explains each line.
No figure makes a run fail.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from facts import machine, versions
from measure import Comparison, SkippedError

from mtosi_jms.cli import terminal

ROOT = Path(__file__).resolve().parent.parent

# Module and function by name. A module is imported when it is needed, so a missing library only stops its own part.
BENCHMARKS = {
    "decode": ("codec", "decoding"),
    "encode": ("codec", "encoding"),
    "iter_decode": ("streaming", "streaming"),
    "request": ("messaging", "request_reply"),
    "request-100": ("messaging", "request_reply_100"),
    "batches": ("messaging", "batches"),
    "telemetry": ("observing", "telemetry"),
    "console": ("browsing", "pages"),
    "validate-request": ("messaging", "validated_request"),
    "validate-batches": ("messaging", "validated_batches"),
    "send": ("sending", "asynchronous_send"),
    "stored": ("storing", "stored_and_confirmed"),
    "landed": ("storing", "landed_and_done"),
    "asyncio-1": ("concurrency", "in_flight_1"),
    "asyncio-100": ("concurrency", "in_flight_100"),
    "asyncio-10000": ("concurrency", "in_flight_10000"),
    "selectors": ("selection", "selectors"),
    "notifications": ("notifying", "notifications"),
    "mtnm": ("mapping", "mtnm"),
    "bridge-memory": ("bridging", "to_memory"),
    "parquet": ("parquet", "xml_to_parquet"),
    "nested": ("nested", "nested_inventory"),
    "loads-delta": ("loads", "delta"),
    "loads-iceberg": ("loads", "iceberg"),
    "ingest": ("growing", "ingest"),
    "landing-files": ("landings", "landing_files"),
    "generate": ("generation", "generation"),
    "activemq-request-100": ("brokered", "activemq_request"),
    "activemq-batches": ("brokered", "activemq_batches"),
    "activemq-stream": ("brokered", "activemq_stream"),
    "artemis-request-100": ("brokered", "artemis_request"),
    "artemis-batches": ("brokered", "artemis_batches"),
    "artemis-stream": ("brokered", "artemis_stream"),
    "bridge-artemis": ("bridging", "to_artemis"),
    "gateway-memory": ("gatewaying", "memory"),
    "gateway-activemq": ("gatewaying", "activemq"),
    "gateway-artemis": ("gatewaying", "artemis"),
    "gateway-slow": ("gatewaying", "slow_calls"),
    "gateway-gigabyte": ("gatewaying", "gigabyte"),
}


def main() -> int:
    """Run the chosen benchmarks; return 1 if one could not run."""
    args = _arguments()
    started = time.time()
    about = machine()  # before the benchmarks themselves keep the machine busy
    found: list[Comparison] = []
    failed: list[str] = []
    skipped: dict[str, str] = {}
    for name in args.only:
        module, function = BENCHMARKS[name]
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            comparison: Comparison = getattr(importlib.import_module(module), function)(quick=args.quick)
        except SkippedError as why:
            print(f"skipped: {name}: {why}", file=sys.stderr)
            skipped[name] = str(why)
            continue
        except Exception as error:  # noqa: BLE001 - if a part fails with any error, the others still run
            print(f"error: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        show(comparison)
        found.append(comparison)
    facts = {"machine": about, "versions": versions(), "quick": args.quick, "seconds": round(time.time() - started, 1)}
    write(args.out, {**facts, "skipped": skipped}, found, failed)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=_names, default=list(BENCHMARKS), metavar="NAME,...", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer data and rounds: to see that it runs")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench.json", metavar="FILE", help="the JSON")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or set(names) - set(BENCHMARKS):
        raise argparse.ArgumentTypeError(f"{text!r}: there are {', '.join(BENCHMARKS)}")
    return names


def show(comparison: Comparison) -> None:
    """Print one comparison."""
    with_bytes = any(line.megabytes for line in comparison.lines)
    with_peak = any(line.peak_megabytes for line in comparison.lines)
    figures = [f"{comparison.unit}/s", *(["MB/s"] if with_bytes else []), *(["peak MB"] if with_peak else [])]
    columns = ["", "", *figures, "ours is"]
    rows = []
    for line in comparison.lines:
        row = [line.kind, line.name, f"{line.rate:,.0f}"]
        if with_bytes:
            row.append(f"{line.megabytes / line.median:,.1f}" if line.megabytes else "")
        if with_peak:
            row.append(f"{line.peak_megabytes:,.0f}" if line.peak_megabytes else "")
        row.append("" if line is comparison.ours else f"{_short(line.ratio)} times as fast")
        rows.append(row)
    terminal.table(f"{comparison.title} (median of {comparison.rounds})", columns, rows)
    for note in comparison.notes:
        print(f"  {note}")
    print(flush=True)


def _short(ratio: float) -> str:
    return f"{ratio:,.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def write(path: Path, facts: dict[str, Any], found: list[Comparison], failed: list[str]) -> None:
    """Write the JSON: the machine, the versions, all figures, and the ratios again by name."""
    document = {
        **facts,
        "benchmarks": [comparison.to_json() for comparison in found],
        "ratios": {
            f"{comparison.name}: {line.name}": round(line.ratio, 3)
            for comparison in found
            for line in comparison.lines
            if line is not comparison.ours
        },
        "failed": failed,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    sys.exit(main())
