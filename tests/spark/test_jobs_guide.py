"""The examples of the Spark guide about snapshots, networks and alarms run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.spark.jobs import IngestOptions, run_ingest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

GUIDE = Path(__file__).parents[2] / "docs/spark.md"
ALARM = (
    '<a:alarm xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1" xmlns:e="http://www.tmforum.org/mtop/fmw/xsd/ei/v1">'
    "<e:objectName><nam:rdn><nam:type>ME</nam:type><nam:value>a</nam:value></nam:rdn></e:objectName>"
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
        "|free_port|\n+---------------+\n|MD=M/ME=a/PTP=2|\n+",
        "|MD=M/ME=a|changed|location|Oslo|Bergen|",
        "|MD=M/ME=b|deleted|NULL|",
    ),
}


def examples(title: str) -> str:
    """The Python of one section of the guide."""
    sections = re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(f"{title}\n"))
    return "\n".join(re.findall(r"```python\n(.+?)```", section, re.DOTALL))


@pytest.fixture
def folders(spark: Any, put: Any, landing: Path, envelopes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples read: `monday/`, `tuesday/` and `landing/`."""
    monkeypatch.chdir(landing.parent)
    first = envelopes.me("a", "<me:location>Oslo</me:location>") + envelopes.me("b")
    put("1.xml", envelopes.batch("c", 1, True, first))
    run_ingest(IngestOptions(landing="landing", out="monday"), spark=spark)
    put("1.xml", envelopes.batch("c", 1, True, envelopes.me("a", "<me:location>Bergen</me:location>")))
    names = [envelopes.name("MD=M", "ME=a", f"PTP={port}") for port in "12"]
    ports = "".join(f"<ptp:ptp>{name}</ptp:ptp>" for name in names)
    end = names[0].removeprefix("<coi:name>").removesuffix("</coi:name>")
    put("3.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), LINK.format(end, ports)))
    run_ingest(IngestOptions(landing="landing", out="tuesday", object_type="ALL"), spark=spark)
    put("2.xml", envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), f"<v:notify>{ALARM}</v:notify>"))


@pytest.mark.parametrize("title", EXPECTED)
def test_the_guide(title: str, spark: Any, folders: None, capsys: pytest.CaptureFixture[str]) -> None:
    code = examples(title).replace("landing/", f"{Path.cwd()}/landing/")  # Spark was started elsewhere
    assert code
    exec(compile(code, str(GUIDE), "exec"), {"mtosi": mtosi, "spark": spark})
    shown = capsys.readouterr().out.replace(" ", "")
    for part in EXPECTED[title]:
        assert part in shown
