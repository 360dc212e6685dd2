"""docs/notifications.md: its code runs and prints what the page says, and it names all there is."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from mtosi_jms.binding.profile import FILTER_ATTRIBUTES
from mtosi_jms.notifications import LossCause

PRINTS = """\
topic:MTOSI.Fault MD=EMS1/ME=NE-7 1800000
MD=EMS1/ME=NE-7
['CRITICAL']
1
['Heartbeat', 'Heartbeat']
heartbeat overdue jms/EmsOS begins
told by the sender jms/EmsOS begins
told by the sender jms/EmsOS over
2 1
119 []
True
1
[0, 1]
1
"""


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "notifications.md").read_text(encoding="utf-8")


def test_the_code_on_the_page_runs(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    space: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page, re.DOTALL), 1):
        exec(compile(block, f"notifications.md block {number}", "exec"), space)
    assert capsys.readouterr().out == PRINTS
    for line in PRINTS.splitlines():
        assert f"# {line}" in page or line.startswith("told by the sender"), "the page says what is printed"


def test_the_page_names_what_there_is(page: str) -> None:
    for cause in LossCause:
        assert f"| {cause.name} |" in page
    table = page[page.index("| property |") : page.index("| the others |")]
    formed = {"EventType", "objectName", "aliasNameList", "perceivedSeverity", "osTime", "sourceTime"}
    formed |= {"isEdgePointRelated", "rootCauseAlarmIndication"}
    assert formed <= FILTER_ATTRIBUTES
    assert all(f"MTOSI_{attribute}" in table for attribute in formed)
