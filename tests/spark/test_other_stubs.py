"""A user's own generated package comes before the shipped stubs; in a process of its own, since that is for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SCRIPT = """
import json, sys
from mtosi_jms.tables.landing import plan_landing
from mtosi_jms.inventory import class_for, load_stubs
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables.reader import ObjectReader
from mtosi_jms.tables.columns import row_schema

options = SourceOptions.parse({"path": sys.argv[1], "objectType": "ME", "stubs": "acme_mtosi"})
load_stubs(options.stubs)
batches = ObjectReader(options, row_schema(options.object_types)).read(plan_landing(options).files)
rows = [row for batch in batches for row in batch.to_pylist()]
names = [row["name_text"] for row in rows]
print(json.dumps([class_for("ME").module.name, class_for("nrf.me:Me").module.name, names, rows[0]["warnings"]]))
"""


def test_classes_come_from_the_package_that_is_asked_first(
    put: Callable[..., Path], landing: Path, envelopes: Any, tmp_path: Path
) -> None:
    put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", "<me:location>L</me:location>")))
    paths = os.pathsep.join([str(tmp_path / "src"), str(ROOT), str(ROOT / "codegen")])
    environment = {**os.environ, "PYTHONPATH": paths}
    generate = [sys.executable, "-m", "mtosi_codegen", "generate", str(ROOT / "wsdl"), str(ROOT / "xsd")]
    subprocess.run(
        [*generate, "--package", "acme_mtosi", "--out", str(tmp_path / "src")],
        env=environment,
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(landing)], env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == ["acme_mtosi.nrf.me", "acme_mtosi.nrf.me", ["MD=M/ME=a"], []]
