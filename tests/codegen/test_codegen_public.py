"""Public WSDLs: all that zeep loads is generated, imports and is strictly typed. `WSDLS=DIR` says where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .public import Row, run, table, unimportable, untyped

pytestmark = pytest.mark.endurance


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the packages go."""
    return tmp_path_factory.mktemp("public")


@pytest.fixture(scope="module")
def rows(out: Path) -> list[Row]:
    """What came of each WSDL; skipped where there are none at hand."""
    pytest.importorskip("zeep")
    folder = os.environ.get("WSDLS")
    if not folder:
        pytest.skip("WSDLS=DIR names no folder of public WSDLs (tests/codegen/public.py says which)")
    found = run(Path(folder).resolve(), out)
    print(table(found))
    return found


def test_no_wsdl_makes_the_generator_fail(rows: list[Row]) -> None:
    assert [(row.path, row.ours) for row in rows if row.ours not in {"whole", "partial", "nothing"}] == []


def test_what_zeep_can_call_the_stubs_can_call(rows: list[Row]) -> None:
    missing = {row.path: row.missing for row in rows if not row.zeep and row.missing}
    assert missing == {}


def test_what_is_lost_is_undefined_in_the_wsdl(rows: list[Row]) -> None:
    words = ("is not defined", "is not in port type", "no WSDL and no XML Schema", "not-xml", "dtd:", "xsd-unsupported")
    lost = [text for row in rows for text in row.lost if not any(word in text for word in words)]
    assert lost == []


def test_all_packages_import(rows: list[Row], out: Path) -> None:
    assert unimportable(out, [row.package for row in rows if row.operations]) == []


def test_all_packages_are_strictly_typed(rows: list[Row], out: Path) -> None:
    assert untyped(out, [row.package for row in rows if row.operations]) == []
