"""Planning of landings with many small files by the engine, compared with Spark's own listing (`binaryFile`, counted).

Each line is a process of its own with the same small heap for any number of files. `python landings.py ROOT FILES` runs
one size alone; 10^6 files need 4 GB of disk and some minutes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Comparison, Line

FOLDER = 1000
BATCHES = 10
HEAP = "512m"
NAME = """\
<?xml version="1.0" encoding="UTF-8"?>
<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:hdr="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1" xmlns:mer="http://www.tmforum.org/mtop/mri/xsd/mer/v1"
 xmlns:me="http://www.tmforum.org/mtop/nrf/xsd/me/v1" xmlns:coi="http://www.tmforum.org/mtop/fmw/xsd/coi/v1">
<soap:Header><hdr:header><hdr:activityName>getAllManagedElements</hdr:activityName><hdr:msgType>RESPONSE</hdr:msgType>
<hdr:correlationId>{sequence}</hdr:correlationId><hdr:batchSequenceNumber>{number}</hdr:batchSequenceNumber>
<hdr:batchSequenceEndOfReply>{last}</hdr:batchSequenceEndOfReply></hdr:header></soap:Header>
<soap:Body><mer:getAllManagedElementsResponse><mer:meList><me:me><coi:name>{name}</coi:name>
<me:location>Somewhere</me:location></me:me></mer:meList></mer:getAllManagedElementsResponse></soap:Body></soap:Envelope>
"""
RDN = (
    '<nam:rdn xmlns:nam="http://www.tmforum.org/mtop/fmw/xsd/nam/v1"><nam:type>ME</nam:type>'
    "<nam:value>{}</nam:value></nam:rdn>"
)


def landing_files(*, quick: bool) -> Comparison:
    """Landings of two sizes; one is ten times as large as the other."""
    lines: list[Line] = []
    notes: list[str] = []
    for files in (200, 2_000) if quick else (10_000, 100_000):
        with tempfile.TemporaryDirectory(prefix="bench-landing-") as folder:
            write_landing(Path(folder), files)
            for kind, name, what in (("ours", "planned", "plan"), ("peer", "listed by Spark's binaryFile", "count")):
                told = measured(Path(folder), files, what)
                line = Line(f"{name}, {files:,} files", kind, files)  # type: ignore[arg-type]
                line.seconds = [told["seconds"]]
                line.peak_megabytes = told["python_mb"] + told["old_mb"]
                lines.append(line)
                notes.append(f"{line.name}: {note(told)}")
    for line in lines:
        line.ratio = lines[0].rate / line.rate
    return Comparison("landing-files", "Landings of many small files", "files", lines, 1, notes)


def note(told: dict[str, Any]) -> str:
    """Return the figures of one process as text."""
    memory = "the driver held at most {python_mb:,.0f} MB in Python and {old_mb:,.0f} MB in Java's old generation"
    each = 1e6 * told["seconds"] / told["files"]
    return f"{each:,.0f} us a file; {memory}, and {{kept_mb:,.0f}} MB at the end".format(**told)


def write_landing(root: Path, files: int) -> None:
    """Write complete replies of ten batches each, with a thousand files in a folder."""
    for number in range(files):
        folder = root / f"{number // FOLDER:05d}"
        if number % FOLDER == 0:
            folder.mkdir()
        sequence, batch = divmod(number, BATCHES)
        last = "true" if batch == BATCHES - 1 else "false"
        text = NAME.format(sequence=f"reply-{sequence}", number=batch + 1, last=last, name=RDN.format(f"NE-{number}"))
        (folder / f"{number:07d}.xml").write_text(text)


def measured(root: Path, files: int, what: str) -> dict[str, Any]:
    """Plan or count a landing in a process of its own."""
    command = [sys.executable, __file__, str(root), str(files), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _run(root: Path, files: int, what: str) -> dict[str, Any]:
    """Do the work of one process: one folder to warm up, then all folders, which is measured."""
    from mtosi_jms.spark import SourceOptions, local_session
    from mtosi_jms.spark._engine import plan_by_engine

    settings = {"spark.driver.memory": HEAP, "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
    with tempfile.TemporaryDirectory(prefix="bench-plan-") as scratch, local_session(settings=settings) as spark:

        def work(folder: Path, name: str) -> int:
            if what == "count":
                listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(str(folder))
                return listing.select("path", "modificationTime", "length").count()
            plan = plan_by_engine(spark, SourceOptions.parse({"path": str(folder)}), Path(scratch) / name)
            complete = plan.table.where("sequence.complete").count()
            if complete * BATCHES != plan.counts["response"]:
                raise RuntimeError(f"{complete} sequences of {plan.counts}")
            return plan.counts["response"]

        work(root / "00000", "warm")
        started = time.perf_counter()
        if work(root, "all") != files:
            raise RuntimeError("it did not find all files")
        seconds = time.perf_counter() - started
        jvm: Any = spark.sparkContext._jvm
        pools = {pool.getName(): pool for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()}
        old = pools["Tenured Gen"].getPeakUsage().getUsed()
        jvm.System.gc()
        kept = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "files": files,
        "seconds": seconds,
        "python_mb": python / 1e6,
        "kept_mb": kept / 1e6,
        "old_mb": old / 1e6,
    }


def main() -> None:
    """Run `landings.py ROOT FILES [plan|count]`; without the last argument, write the landing and run both."""
    root, files, what = Path(sys.argv[1]), int(sys.argv[2]), "".join(sys.argv[3:])
    if what:
        print(json.dumps(_run(root, files, what)))
        return
    root.mkdir(parents=True)
    write_landing(root, files)
    for what in ("plan", "count"):
        print(what, note(measured(root, files, what)), flush=True)


if __name__ == "__main__":
    main()
