"""Every Python block of the README and the docs, and every example, passes pyright in strict mode.

`make check` has mypy read them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import ROOT, modules, write


def test_pyright_finds_nothing(tmp_path: Path) -> None:
    pyright = os.environ.get("MTOSI_PYRIGHT") or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed: pip install pyright, or name its command in MTOSI_PYRIGHT")
    write(tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "include": ["*.py"], "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [pyright, "--pythonpath", sys.executable, "--outputjson", "--project", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    told = [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found]
    assert told == []


def test_a_page_is_one_module_that_keeps_its_lines(tmp_path: Path) -> None:
    page = tmp_path / "some-page.md"
    page.write_text("# Title\n\n```python\na = 1\n```\n\n```python\n# job.py\nb = 2\n```\n\n```python\nprint(a)\n```\n")
    made = modules(page)
    assert made["page_some_page"].splitlines()[12] == "print(a)"
    assert made["page_some_page_job"].splitlines()[8] == "b = 2"
