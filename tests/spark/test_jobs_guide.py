"""The examples of the Spark guide about snapshots, networks and alarms run as they stand there."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.tables import write

from .conftest import Envelopes, writer

pytestmark = pytest.mark.spark

GUIDE = Path(__file__).parents[2] / "docs/spark.md"
ALARM = (
    '<a:alarm xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1" xmlns:e="http://www.tmforum.org/mtop/fmw/xsd/ei/v1">'
    "<e:objectName><nam:rdn><nam:type>ME</nam:type><nam:value>a</nam:value></nam:rdn></e:objectName>"
    f"<c:sourceTime xmlns:c='http://www.tmforum.org/mtop/fmw/xsd/cei/v1'>{datetime.now(UTC):%FT%TZ}</c:sourceTime>"
    "<a:nativeProbableCause>x</a:nativeProbableCause><a:perceivedSeverity>MAJOR</a:perceivedSeverity></a:alarm>"
)
LINK = (
    '<v:linksResponse><l:tl xmlns:l="http://www.tmforum.org/mtop/nrf/xsd/tl/v1"><coi:name><nam:rdn><nam:type>TL</nam:type>'
    "<nam:value>1</nam:value></nam:rdn></coi:name><l:aEndTpRefList><nam:name>{}</nam:name></l:aEndTpRefList></l:tl>"
    "{}</v:linksResponse>"
)
EXPECTED = {
    "What changed between two snapshots": ("MD=M/ME=a|changed|location|Oslo|Bergen|", "MD=M/ME=b|deleted|NULL|"),
    "The network as nodes and edges": ("src|dst|relationship", "|MD|contains|1|"),
    "Alarms": ("|MAJOR|1|",),
    "SQL cookbook": (
        "|ME=a|1|0|",
        "|MAJOR|x|ME=a|true|",
        "|free_port|\n+---------------+\n|MD=M/ME=a/PTP=2|\n+",
        "|MD=M/ME=a|changed|location|Oslo|Bergen|",
        "|MD=M/ME=b|deleted|NULL|",
    ),
}

MARKS = {"Alarms": pytest.mark.endurance}
"""The cookbook asks the same of the same alarms."""


def examples(title: str) -> str:
    """The Python of one section of the guide."""
    sections = re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(f"{title}\n"))
    return "\n".join(re.findall(r"```python\n(.+?)```", section, re.DOTALL))


def tables(landing: Path, out: Path) -> None:
    """The tables of a landing, with the columns that have values: planning all of them takes longer than an example."""
    write(landing, out, object_type="ALL")
    for file in out.glob("objectType=*/*.parquet"):
        table = pq.read_table(file, partitioning=None)
        pq.write_table(table.select([name for name in table.schema.names if table[name].null_count < len(table)]), file)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples read: `monday/`, `tuesday/` and `landing/`."""
    folder = tmp_path_factory.mktemp("guide")
    put, envelopes = writer(folder / "landing"), Envelopes()
    first = envelopes.me("a", "<me:location>Oslo</me:location>") + envelopes.me("b")
    put("1.xml", envelopes.batch("c", 1, True, first))
    tables(folder / "landing", folder / "monday")
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a", "<me:location>Bergen</me:location>")))
    names = [envelopes.name("MD=M", "ME=a", f"PTP={port}") for port in "12"]
    ports = "".join(f"<ptp:ptp>{name}</ptp:ptp>" for name in names)
    end = names[0].removeprefix("<coi:name>").removesuffix("</coi:name>")
    put("3.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), LINK.format(end, ports)))
    tables(folder / "landing", folder / "tuesday")
    put("2.xml", envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), f"<v:notify>{ALARM}</v:notify>"))
    return folder


@pytest.mark.parametrize("title", [pytest.param(title, marks=MARKS.get(title, ())) for title in EXPECTED])
def test_the_guide(
    title: str, spark: Any, folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folders)
    code = examples(title).replace("landing/", f"{folders}/landing/")  # Spark was started elsewhere
    assert code
    exec(compile(code, str(GUIDE), "exec"), {"mtosi": mtosi, "spark": spark})
    shown = capsys.readouterr().out.replace(" ", "")
    for part in EXPECTED[title]:
        assert part in shown
