"""The Python blocks of the README and the docs, and the examples, as modules that a type checker reads.

Usage: python tests/examples/blocks.py FOLDER        (`make check`, before mypy)

The blocks of a page are one module: each goes on where the one before it stopped. A block that begins with `# name.py`
is a file of its own. A module keeps the line numbers of its page, so a finding names the page's line.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

SPARK = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate(); kafka = spark.table('kafka')"
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


def write(folder: Path) -> None:
    """Writes all modules, and the examples beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        for name, source in modules(page).items():
            (folder / f"{name}.py").write_text(source, encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
