"""A whole generated package against the one in `golden/`, and what must hold for any generated package.

The golden files are compared, never overwritten by a test run; `REWRITE_GOLDEN=1 pytest tests/codegen` rewrites them.
`make check` has mypy read them, strictly.
"""

from __future__ import annotations

import importlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mtosi_codegen import compare, generate, write
from mtosi_codegen.render import MARK

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "shop"
IMPORTS = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"


def test_the_golden_package() -> None:
    result = generate([HERE / "sources"])
    assert [(finding.rule, finding.file) for finding in result.findings] == [("name-blanks", "messages.xsd")]
    if os.environ.get("REWRITE_GOLDEN"):
        write(GOLDEN, result.files)
    assert compare(GOLDEN, result.files) == []


def test_every_file_says_what_it_is_and_what_it_is_made_of() -> None:
    banners = {path.read_text(encoding="utf-8").partition("\n")[0] for path in GOLDEN.rglob("*.py")}
    (banner,) = banners
    assert banner.startswith(f"{MARK} Sources: sha256:")
    assert len(banner.rpartition(":")[2]) == 64


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_modules_import_in_any_order_with_warnings_as_errors(seed: int, root: Path) -> None:
    modules = [".".join(path.relative_to(GOLDEN.parent).with_suffix("").parts) for path in GOLDEN.rglob("*.py")]
    names = sorted(name.removesuffix(".__init__") for name in modules)
    random.Random(seed).shuffle(names)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORTS, *names],
        capture_output=True, text=True, cwd=GOLDEN.parent, env={"PYTHONPATH": f"{GOLDEN.parent}:{root}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_one_service_does_not_import_the_types(root: Path) -> None:
    program = (
        "import sys, shop.com_example.shop\nprint(*sorted(name for name in sys.modules if name.startswith('shop')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, cwd=GOLDEN.parent, env={"PYTHONPATH": f"{GOLDEN.parent}:{root}"}, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["shop", "shop.com_example", "shop.com_example.shop"]


def test_the_text_is_as_the_formatter_leaves_it(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "--line-length=120", "--check",
         str(GOLDEN)],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_services_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(GOLDEN.parent)
    package = importlib.import_module("shop")
    assert package.__services__ == {"com_example.shop:Shop": "Shop"}
    info = importlib.import_module("shop.com_example.shop").Shop.__service__
    assert [(operation.name, operation.mep, operation.batch_path) for operation in info.operations] == [
        ("listOrders", "request-response", ("order_list", "order")),
        ("notify", "one-way", ()),
    ]
    assert info.load(info.operations[0].request).__name__ == "ListOrdersRequest"
