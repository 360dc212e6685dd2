"""A landing with everything that a plan must see: the same for every file system."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..packed import tarred, zipped

Put = Callable[[str, str | bytes], Path]
OTHER = {"seconds", "stages", "out", "submit"}
"""What the engines may say differently in a summary."""


def troubled_landing(put: Put, envelopes: Any, other_prefixes: Any) -> None:
    """Fill a landing: packed files, rejects, duplicates, conflicts, gaps, faults, notifications, a large file.

    Args:
        put: writes a file by name.
        envelopes: makes envelopes; `other_prefixes` makes the same ones, written otherwise.
    """
    batch, me = envelopes.batch, envelopes.me
    put("whole/1.xml", batch("whole", 1, False, me("w1", "<me:manufacturer>Acme</me:manufacturer>")))
    put("whole/2.xml.gz", batch("whole", 2, False, me("w2")))
    put("whole/3 ä%20#.xml", batch("whole", 3, True, me("w3")))
    put("whole/copy/3.xml", batch("whole", 3, True, me("w3")))
    put("whole/copy/3.xml.zst", other_prefixes.batch("whole", 3, True, other_prefixes.me("w3")))
    put("gap/1.xml", batch("gap", 1, False, me("g1")))
    put("gap/3.xml", batch("gap", 3, True, me("g3")))
    put("conflict/1.xml", batch("conflict", 1, True, me("one")))
    put("conflict/other.xml", batch("conflict", 1, True, me("another")))
    put("open.xml", batch("open", 1, False, me("o1")))
    put("fault.xml", envelopes.fault("open"))
    put("nobody/a.xml", batch(None, None, None, me("n1")))
    put("nobody/b.xml", batch(None, None, None, me("n1")))
    put("request.xml", envelopes.request())
    put("notification.xml", envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), "<v:notify/>"))
    named = {"communicationPattern": "BulkResponse", "fileLocationURI": "file:///elsewhere.xml"}
    put("bulk.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE", correlationId="b", **named), ""))
    put("large.xml", batch("large", 1, True, "".join(me(f"l{number}") for number in range(1200))))
    put("bad/soap.xml", "<x/>")
    put("bad/empty.xml", "")
    put("bad/early.xml", batch("early", 1, True, me("e"))[:-40])
    put("bad/packed.xml.gz", b"")
    for name in ("bad/damaged.xml.gz", "bad/damaged.xml.zst"):
        path = put(name, envelopes.request())
        path.write_bytes(path.read_bytes()[:-20])
    put("bad/damaged.zip", b"PK\3\4 and no more")
    put("notes.txt", "no input")
    put(".hidden.xml", "no input")
    packed = {"deep/1.xml": batch("packed", 1, False, me("p1")), "2.xml": batch("packed", 2, True, me("p2"))}
    put("archives/some.zip", zipped(*packed.items(), ("bad.xml", "<x/>")))
    again = batch("whole", 2, False, me("w2")).encode()
    put("archives/more.tgz", tarred(("again.xml", again), mode="w:gz"))


def repeating(put: Put, envelopes: Any) -> None:
    """Add an inventory of three batches, each of which has domains and elements of the others."""
    for number, domains in enumerate((["M a b"], ["M b c", "N"], ["M d", "N e"]), start=1):
        put(f"repeating/{number}.xml", _inventory(envelopes, number, *domains))


def _inventory(envelopes: Any, number: int, *domains: str) -> str:
    """A batch of an inventory; a domain is its name and the names of the elements in it, with a space between."""
    made = ""
    for domain in domains:
        name, *elements = domain.split()
        given = f"<inv:mdAttrs>{envelopes.name(f'MD={name}')}</inv:mdAttrs>" if number == 2 else ""
        inside = "".join(f"<inv:meInv><inv:meNm>{element}</inv:meNm></inv:meInv>" for element in elements)
        made += f"<inv:md><inv:mdNm>{name}</inv:mdNm>{given}<inv:meList>{inside}</inv:meList></inv:md>"
    text: str = envelopes.inventory(f"<inv:mdList>{made}</inv:mdList>")
    end = "true" if number == 3 else "false"
    text = text.replace("<hdr:batchSequenceNumber>1<", f"<hdr:batchSequenceNumber>{number}<")
    return text.replace("<hdr:batchSequenceEndOfReply>true<", f"<hdr:batchSequenceEndOfReply>{end}<")


def written(out: Path, tables: str = "objectType=*") -> dict[str, Any]:
    """The tables and the report of a job, but for what engines may say differently, times and the order of rows."""
    found: dict[str, Any] = {}
    for file in (out / "_report").glob("*.json*"):
        if file.suffix == ".jsonl":
            found[file.name] = [json.loads(line) for line in file.read_text().splitlines()]
        else:
            found |= {name: value for name, value in json.loads(file.read_text()).items() if name not in OTHER}
    for folder in out.glob(tables):
        table = pq.read_table(folder, partitioning=None)
        kinds = {field.name: str(field.type).replace("element:", "item:") for field in table.schema}
        found[folder.name] = kinds, sorted(map(repr, table.to_pylist()))
    return found


def content(out: Path, landing: str) -> dict[str, Any]:
    """What an ingest wrote, as if the landing was at `/`."""
    report = {name: (out / "_report" / name).read_text() for name in ("ledger.jsonl", "rejects.jsonl", "summary.json")}
    summary = json.loads(report.pop("summary.json"))
    for name in ("seconds", "stages", "out"):
        del summary[name]
    rows = {
        folder.name: sorted(repr(row) for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist())
        for folder in out.glob("objectType=*")
    }
    found = {"summary": summary, **report, **rows}
    return {name: json.loads(json.dumps(value).replace(landing, "")) for name, value in found.items()}
