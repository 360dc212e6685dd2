"""What one hostile input costs: the figures of docs/security.md, each measured in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
MEASURE = """
import resource, time
from mtosi_jms.errors import MtosiError
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def spent(read):
    before, start = peak(), time.process_time()
    try:
        read()
    except MtosiError:
        pass
    print(time.process_time() - start, peak() - before)
"""
XML = "from mtosi_jms.xmlbind import parse_xml\n"
SELECTOR = "from mtosi_jms.jms.selector import parse\n"
INPUTS = {
    "62 MB of empty elements": XML + "data = b'<a>' + b'<b/>' * 15_500_000 + b'</a>'\nspent(lambda: parse_xml(data))",
    "a document of 257 MiB": XML + "data = b'<a>' + b' ' * (257 << 20) + b'</a>'\nspent(lambda: parse_xml(data))",
    "100,000 levels of elements": XML + "data = b'<a>' * 100_000\nspent(lambda: parse_xml(data))",
    "a million question marks, masked": "from mtosi_jms.masking import without_login\n"
    "spent(lambda: without_login('?' * 1_000_000))",
    "a selector of 2 million characters": SELECTOR + "spent(lambda: parse('a=1 AND ' * 250_000 + 'b=2'))",
    "a selector of 50,000 parentheses": SELECTOR + "spent(lambda: parse('(' * 50_000))",
}
ROW = re.compile(r"^\| ([^|]+) \| ([\d.]+) s \| ([\d,]+) MB \|$", re.MULTILINE)


def figures() -> dict[str, tuple[float, float]]:
    """Seconds and megabytes by input, as the page has them."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {name: (float(seconds), float(size.replace(",", ""))) for name, seconds, size in rows}


def test_the_page_has_a_figure_for_each_input() -> None:
    assert figures().keys() == INPUTS.keys()


@pytest.mark.endurance
@pytest.mark.parametrize("name", INPUTS)
def test_an_input_costs_no_more_than_the_page_says(name: str) -> None:
    seconds, megabytes = figures()[name]
    answer = subprocess.run([sys.executable, "-c", MEASURE + INPUTS[name]], capture_output=True, text=True, check=True)
    took, grew = map(float, answer.stdout.split())
    assert took < 4 * seconds + 1  # other machines are slower
    assert grew < 1.3 * megabytes + 50
