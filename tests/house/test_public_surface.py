"""The public surface: what `mtosi_jms` promises by name."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

import mtosi_jms

ROLES = """
BindingProfile Call CallOptions Caller Dispatcher Publisher RequestContext Requestor Service Subscriber Supplier
SupplierBase Timeouts
"""


def test_every_promised_name_is_there_and_documented() -> None:
    undocumented = [name for name in mtosi_jms.__all__ if not (getattr(mtosi_jms, name).__doc__ or "").strip()]
    assert undocumented == []


def test_no_signature_of_a_role_or_of_options_says_any(structure: ModuleType) -> None:
    signatures = [
        f"{name}.{member}{signature}"
        for name, own, members in structure.surface()
        if name.count(".") == 2 and name.rpartition(".")[2] in ROLES.split()
        for member, signature in {"": own, **members}.items()
    ]
    assert len(signatures) > 50
    assert [line for line in signatures if re.search(r"\bAny\b", line)] == []


def test_names_that_a_package_imports_late_are_those_that_type_checkers_see(root: Path) -> None:
    seen = 0
    for file in sorted((root / "mtosi_jms").glob("*/__init__.py")):
        text = file.read_text(encoding="utf-8")
        if "names_from(__name__" not in text:
            continue
        package = importlib.import_module(f"mtosi_jms.{file.parent.name}")
        lazy = [one for node in ast.parse(text).body if isinstance(node, ast.If) for one in node.body]
        for one in (statement for statement in lazy if isinstance(statement, ast.ImportFrom)):
            module = importlib.import_module(str(one.module))
            wrong = [name.name for name in one.names if getattr(package, name.name) is not getattr(module, name.name)]
            assert wrong == []
            seen += len(one.names)
    assert seen > 50
