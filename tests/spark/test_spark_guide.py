"""docs/spark.md: its code runs in the order of the page, its commands are understood, and it names all there is.

The job for a cluster, a file of its own on the page, runs on one in test_cluster.py; the sections on streams run in
test_streams.py and test_stream_state.py, that on remote sessions in test_connect.py.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import mtosi_jms as mtosi
from mtosi_jms.cli import parser_for
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables import write

from .conftest import GUIDE, Envelopes, examples, writer

pytestmark = pytest.mark.spark

Put = Callable[..., Path]


@pytest.fixture(scope="module")
def page() -> str:
    return GUIDE.read_text(encoding="utf-8")


ELSEWHERE = (
    "Streams",
    "Completeness over time",
    "What changed between two snapshots",
    "The network as nodes and edges",
    "Alarms",
    "SQL cookbook",
    "Spark Connect",
)


def blocks(page: str) -> list[str]:
    """The code of the page, without files of their own: those begin with their name."""
    sections = re.split(r"^## ", page, flags=re.MULTILINE)
    assert all(any(section.startswith(f"{title}\n") for section in sections) for title in ELSEWHERE)
    kept = "".join(section for section in sections if section.partition("\n")[0] not in ELSEWHERE)
    found = re.findall(r"^```python\n(.*?)^```", kept, re.DOTALL | re.MULTILINE)
    return [block for block in found if not re.match(r"# \w+\.py\n", block)]


def commands(page: str) -> list[str]:
    """The command lines of the page, indented ones and those in shell blocks, joined where they go on."""
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
    indented = re.findall(r"^    (mtosi-jms .*(?:\n     +.*)*)", page, re.MULTILINE)
    return [*indented, *re.findall(r"^mtosi-jms .*", shell, re.MULTILINE)]


def words(command: str) -> list[str]:
    """A command as it could be typed: of a synopsis all options, the first one of alternatives, 1 for a number."""
    plain = [word.strip("[]").split("|")[0] for word in shlex.split(command)[1:]]
    return ["1" if word == "N" else word for word in plain]


def put_landing(put: Put, envelopes: Any) -> list[str]:
    """Ten elements in three batches, one of these twice; a reply that lacks its end; a file that is none of ours."""
    batches = []
    for number, count in ((1, 4), (2, 4), (3, 2)):
        elements = "".join(
            envelopes.me(f"{number}-{index}", f"<me:manufacturer>{('Acme', 'Kilo')[index % 2]}</me:manufacturer>")
            for index in range(count)
        )
        batches.append(envelopes.batch("reply", number, number == 3, elements))
        put(f"{number}.xml", batches[-1])
    put("again/2.xml.gz", batches[1])
    batches.append(envelopes.batch("cut", 1, False, envelopes.me("lonely")))
    put("4.xml", batches[-1])
    put("5.xml", "<order/>")
    return batches


def test_the_code_on_the_page_runs(
    page: str,
    spark: Any,
    put: Put,
    envelopes: Any,
    landing: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    batches = put_landing(put, envelopes)
    facts = [("inventory", 0, offset, text) for offset, text in enumerate([*batches, "<order/>"])]
    kafka = spark.createDataFrame(facts, "topic string, partition int, offset long, value string")
    space: dict[str, Any] = {"spark": spark, "kafka": kafka}
    found = blocks(page)
    assert len(found) >= 3
    for number, block in enumerate(found, 1):
        # Planning takes place where Spark was started, not where this test is.
        block = re.sub("""["']landing/["']""", repr(str(landing)), block)
        exec(compile(block, f"spark.md block {number}", "exec"), space)
    printed = capsys.readouterr().out
    assert re.search(r"\|\s*Acme\|\s*5\|", printed), "complete managed elements by manufacturer"
    assert re.search(r"\|\s*Kilo\|\s*5\|", printed)
    assert re.search(r"\|\s*cut\|", printed), "sequences that are not complete"
    assert not re.search(r"\|\s*reply\|.*\|\s*false\|", printed)
    rows = space["rows"].select("topic", "offset", "name_text", "complete").collect()
    assert len(rows) == 11
    assert {(row.topic, row.complete) for row in rows} == {("inventory", None)}
    assert {row.name_text for row in rows if row.offset == 3} == {"MD=M/ME=lonely"}


def test_the_readme_shows_the_same(page: str, root: Path) -> None:
    """So it runs, too; `make endurance` runs it as printed."""
    (block,) = re.findall(
        r"^    elements = .*\n    elements\..*\n", (root / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert textwrap.dedent(block).replace("out/demo/landing", "landing/") in page


def test_the_commands_on_the_page_are_understood(page: str) -> None:
    found = commands(page)
    assert found
    for command in found:
        typed = words(command)
        assert parser_for(typed[0]).parse_args(typed).command == typed[0], command


def test_the_page_names_every_option_of_the_source(page: str) -> None:
    for name in SourceOptions.names() - {"path", "paths"}:
        assert f"`{name}`" in page, name


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
def test_snapshots_networks_and_alarms(
    title: str, spark: Any, folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folders)
    code = "\n".join(examples(title)).replace("landing/", f"{folders}/landing/")  # Spark was started elsewhere
    assert code
    exec(compile(code, str(GUIDE), "exec"), {"mtosi": mtosi, "spark": spark})
    shown = capsys.readouterr().out.replace(" ", "")
    for part in EXPECTED[title]:
        assert part in shown
