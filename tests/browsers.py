"""Chromium and axe-core for tests that look at pages; both skip where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

AXE = "axe-core@4.14.1"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
    )
    if not found:
        pytest.skip("there is no Chromium: on Debian or Ubuntu, apt-get install chromium")
    with playwright.sync_playwright() as engine:
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = engine.chromium.launch(executable_path=found, args=root)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, from the npm registry."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which brings axe-core")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", AXE]
    if subprocess.run(command, cwd=folder, capture_output=True, timeout=120).returncode:
        pytest.skip(f"{AXE} cannot be had")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def look(page: Any, axe: str, url: str) -> list[str]:
    """What keeps people out of a page, in axe's words; the page is no wider than the window."""
    page.goto(url)
    page.evaluate(axe)
    found = page.evaluate("axe.run({preload: false})")["violations"]
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width == 0, f"{url} is wider than the window"
    return [f"{url} {one['id']}: {[node['html'] for node in one['nodes']]}" for one in found]
