"""cycles: modules that need each other's base classes share a private home, order: bases first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import Result, write
from mtosi_codegen.passes.cycles import components


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": set(), "b": {"a"}}, [["a"], ["b"]]),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"], ["c"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"d"}}, [["a", "b", "c"], ["d"]]),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, [["a"], ["b"], ["c"], ["d"]]),
        ({"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}}, [["a", "b"], ["c", "d"]]),
    ],
)
def test_strongly_connected_components(graph: dict[str, set[str]], expected: list[list[str]]) -> None:
    assert components(graph) == expected


def _derived(name: str, base: str) -> str:
    return (
        f'<x:complexType name="{name}"><x:complexContent><x:extension base="{base}"><x:sequence>'
        f'<x:element name="of{name}" type="t:Colour"/></x:sequence></x:extension></x:complexContent></x:complexType>'
    )


def test_modules_in_a_circle_import_in_any_order(
    build: Callable[..., Result], xsd: Any, tmp_path: Path, root: Path
) -> None:
    def schema(own: str, other: str, base: str) -> str:
        return xsd(
            f'<x:import namespace="urn:{other}" schemaLocation="{other}.xsd"/><x:complexType name="Root"/>'
            '<x:simpleType name="Colour"><x:restriction base="x:string"><x:enumeration value="red"/></x:restriction>'
            f"</x:simpleType>{_derived('Leaf', base)}"
            f'<x:element name="leaf" type="t:Leaf"/>',
            f"urn:{own}",
            f'xmlns:o="urn:{other}"',
        )

    result = build({"a.xsd": schema("a", "b", "o:Root"), "b.xsd": schema("b", "a", "o:Leaf")})
    assert result.findings == ()
    assert sorted(result.files) == [
        "__init__.py", "_shared/__init__.py", "_shared/urn_a_types_urn_b_types.py", "urn_a/__init__.py",
        "urn_a/types.py", "urn_b/__init__.py", "urn_b/types.py",
    ]  # fmt: skip
    write(tmp_path / "ring", result.files)
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "from mtosi_jms import xmlbind\n"
        "import ring.urn_a.types as a, ring.urn_b.types as b\n"
        "assert issubclass(a.Leaf, b.Root) and issubclass(b.Leaf, a.Leaf) and a.Root is not b.Root\n"
        "leaf = b.LeafElement(of_leaf=a.Colour.red, **{n.name: b.Colour.red for n in b.Leaf.__xml__.own})\n"
        "data = xmlbind.encode(leaf)\n"
        "assert xmlbind.decode(data) == leaf, data\n"
    )
    for order in (["ring.urn_a.types", "ring.urn_b.types"], ["ring.urn_b.types", "ring.urn_a.types"]):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *order],
            capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{root}"}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_bases_stand_before_what_derives_from_them(build: Callable[..., Result], xsd: Any) -> None:
    result = build({"a.xsd": xsd(_derived("C", "t:B") + _derived("B", "t:A") + '<x:complexType name="A"/>')})
    assert [cls.name for cls in result.model.modules[0].classes] == ["A", "B", "C"]
