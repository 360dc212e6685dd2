"""Every Python block of the README and the docs, and every example, passes mypy and pyright in strict mode.

The blocks of a page are one module: each goes on where the one before it stopped. A block that begins with `# name.py`
is a file of its own. A module keeps the line numbers of its page, so a finding names the page's line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

SPARK = "from pyspark.sql import DataFrame, SparkSession; spark: SparkSession; kafka: DataFrame"
GIVEN = {"spark.md": SPARK, "selectors.md": SPARK}
"""What a page takes for granted, as its prose says."""

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
OWN_FILE = re.compile(r"# (\w+)\.py\n")
AWAITS = re.compile(r"^(?:\w.*\bawait\b|async (?:for|with)\b)", re.MULTILINE)


def modules(page: Path) -> dict[str, str]:
    """The modules that a page's blocks make, by name."""
    text = page.read_text(encoding="utf-8")
    stem = "page_" + page.stem.replace("-", "_").lower()
    made: dict[str, str] = {}
    lines = [""] * (text.count("\n") + 1)
    for found in BLOCK.finditer(text):
        first = text.count("\n", 0, found.start(1))
        own = OWN_FILE.match(found[1])
        if own is not None:
            made[f"{stem}_{own[1]}"] = "\n" * first + found[1]
        else:
            block = found[1].splitlines()
            lines[first : first + len(block)] = block
    source = "\n".join(lines)
    if source.strip():
        if AWAITS.search(source):
            source = f"async def page() -> None:{textwrap.indent(source, '    ')}\n"
        made[stem] = GIVEN.get(page.name, "") + source
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all modules and examples."""
    made = tmp_path_factory.mktemp("blocks")
    for page in PAGES:
        for name, source in modules(page).items():
            (made / f"{name}.py").write_text(source, encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, made)
    return made


def test_mypy_finds_nothing(folder: Path) -> None:
    files = [path.name for path in folder.glob("*.py")]
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", "--strict", *config, *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_finds_nothing(folder: Path) -> None:
    pyright = os.environ.get("MTOSI_PYRIGHT") or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed: pip install pyright, or name its command in MTOSI_PYRIGHT")
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "include": ["*.py"], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [pyright, "--pythonpath", sys.executable, "--outputjson", "--project", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    told = [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found]
    assert told == []


def test_a_page_is_one_module_that_keeps_its_lines(tmp_path: Path) -> None:
    page = tmp_path / "some-page.md"
    page.write_text("# Title\n\n```python\na = 1\n```\n\n```python\n# job.py\nb = 2\n```\n\n```python\nprint(a)\n```\n")
    made = modules(page)
    assert made["page_some_page"].splitlines()[12] == "print(a)"
    assert made["page_some_page_job"].splitlines()[8] == "b = 2"
