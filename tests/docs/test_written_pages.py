"""The pages of `mtosi-codegen docs` and a report, in a browser: whole on paper, and nobody is kept out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen.cli import main
from mtosi_jms.report import Report, SequenceLine, Table, render

from ..browsers import look

CUT = """() => [...document.querySelectorAll("body *")].filter(one => one.clientWidth && (
    one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !one.closest("svg") ||
    getComputedStyle(one).overflowX != "visible" && one.scrollWidth > one.clientWidth + 1
)).map(one => one.outerHTML.slice(0, 80))"""
"""What the paper's edge or a box of its own cuts off."""
PAPER = {"width": 718, "height": 1000}
"""A4 without its margins, in CSS pixels."""


@pytest.fixture(scope="module")
def written(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Addresses of the pages: index, findings, a service, types, and a report with closed and wide tables."""
    folder = tmp_path_factory.mktemp("pages")
    assert main(["docs", str(root / "wsdl" / "ManagedElementRetrieval.wsdl"), "--out", str(folder)]) == 0
    columns = [f"header_of_some_length_{number}" for number in range(16)]
    wide = Table("ME: the first rows", columns, [["2026-01-02T03:04:05Z"] * 16])
    line = SequenceLine("6dba3c7e-4a0f-4a9e-8c2d-2f1f3a9f0c11", batches=10, expected=10, complete=True)
    report = Report(title="Inventory", subtitle="x" * 300, tables=[wide, wide], sequences=[line])
    (folder / "report.html").write_text(render(report), encoding="utf-8")
    paths = [
        "index.html",
        "findings.html",
        "services/mri.managed_element_retrieval.html",
        "types/nrf.me.html",
        "report.html",
    ]
    return [(folder / path).as_uri() for path in paths]


def test_nothing_is_cut_on_paper(chromium: Any, written: list[str]) -> None:
    """Also where the screen is dark: paper is white. What is a click away on the screen is printed."""
    page = chromium.new_page(viewport=PAPER, color_scheme="dark")
    page.emulate_media(media="print")
    for address in written:
        page.goto(address)
        assert page.evaluate(CUT) == [], address
        closed = "[...document.querySelectorAll('details > :last-child')].filter(one => !one.offsetHeight).length"
        assert page.evaluate(closed) == 0, address
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(22, 25, 29)"
    page.close()


@pytest.mark.endurance
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nobody_is_kept_out(chromium: Any, axe: str, written: list[str], scheme: str, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert [line for address in written for line in look(page, axe, address)] == []
    page.close()
