"""TM Forum's releases, whole: what must come out of them. Skipped where they are not at hand."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from lxml import etree

from mtosi_codegen import Result, generate, write
from mtosi_codegen.mend import mend
from mtosi_codegen.proof.instances import Maker, Stock
from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.verify import round_trip
from mtosi_jms import xmlbind
from mtosi_jms.namespaces import XML

REPAIRS: dict[str, dict[str, int]] = {
    "1.1": {"operation-shared": 16},
    "2.0": {"name-blanks": 4, "rival-left-out": 2, "value-blanks": 1, "location-backslash": 1},
    "4.0": {
        "rival-left-out": 20, "location-case": 5, "name-blanks": 4, "import-namespace": 3, "location-missing": 2,
        "value-blanks": 2, "element-unresolved": 1, "location-backslash": 1, "service-name": 1,
    },
}  # fmt: skip
RELEASES = [("1.1", 11, 166), ("2.0", 41, 242), ("4.0", 48, 289)]


@cache
def _release(folder: Path) -> Result:
    return generate([folder])


@pytest.mark.obligation("P20", "C38")
@pytest.mark.parametrize(("release", "services", "operations"), RELEASES)
def test_all_services_with_all_operations(shared: Path, release: str, services: int, operations: int) -> None:
    start = time.process_time()
    result = _release(shared / "mtosi" / release)
    assert time.process_time() - start < 15
    assert not result.failed
    found = {service.module: len(service.operations) for service in result.services}  # small, where it is shown
    assert (len(found), sum(found.values()), len(result.services)) == (services, operations, services)
    assert not any(service.failed for service in result.services)


@pytest.mark.parametrize("release", REPAIRS)
def test_every_repair_is_reported_and_no_other(shared: Path, release: str) -> None:
    result = _release(shared / "mtosi" / release)
    assert dict(Counter(finding.rule for finding in result.findings)) == REPAIRS[release]
    assert all(finding.repair for finding in result.findings)
    assert all(finding.line for finding in result.findings if finding.rule != "rival-left-out")


def test_services_that_share_a_name_live_side_by_side(shared: Path) -> None:
    services = {service.name: service for service in _release(shared / "mtosi" / "4.0").services}
    call, connection = services["CallControl"], services["ConnectionControl"]
    assert call.namespace == connection.namespace
    assert {operation.name for operation in call.operations} >= {"establishCall", "releaseCall"}
    assert "establishCall" not in {operation.name for operation in connection.operations}


@pytest.mark.parametrize("release", ["2.0", "4.0"])
def test_notify_takes_every_event_of_the_release(shared: Path, release: str) -> None:
    model = _release(shared / "mtosi" / release).model
    notify = next(cls for cls in model.classes if cls.path == ("notify", "message"))
    (field,) = notify.fields
    names = {member.xml.local for member in field.members}
    assert field.head
    assert {"alarm", "thresholdCrossingAlert", "resourceObjectCreation", "vendorNotification", "heartbeat"} <= names


@pytest.mark.endurance
def test_one_wsdl_alone_gives_the_same_service(shared: Path) -> None:
    whole = {service.wsdl: service for service in _release(shared / "mtosi" / "4.0").services}
    folder = shared / "mtosi" / "4.0"
    for name, service in whole.items():
        (alone,) = generate([folder / name]).services
        assert (alone.name, alone.module, alone.class_name) == (service.name, service.module, service.class_name)
        assert [operation.name for operation in alone.operations] == [op.name for op in service.operations]


def test_http_bindings_when_asked_for(shared: Path) -> None:
    result = generate([shared / "mtosi" / "2.0"], bindings="all")
    assert not result.failed
    assert len(result.services) == 82
    assert len({service.module for service in result.services}) == 82


@pytest.mark.parametrize("release", [pytest.param("2.0", marks=pytest.mark.endurance), "4.0"])
def test_all_modules_import_with_warnings_as_errors(shared: Path, release: str, root: Path, tmp_path: Path) -> None:
    result = _release(shared / "mtosi" / release)
    write(tmp_path / "whole", result.files)
    names = [f"whole/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in result.files]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "from mtosi_jms.xmlbind.columns import plan_of\n"
        "infos = [module._INFO for module in list(sys.modules.values()) if hasattr(module, '_INFO')]\n"
        "paths = [(i, p) for i in infos for o in i.operations for p in (o.request, o.response, o.fault) if p]\n"
        "for info, path in paths: plan_of(info.load(path).__xml__)\n"
        "print(len(paths))\n"
    )
    for order in (sorted(names), sorted(names, reverse=True)):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *order],
            capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{root}"}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 600


def test_one_service_of_the_largest_release_imports_fast(shared: Path, root: Path, tmp_path: Path) -> None:
    write(tmp_path / "whole", _release(shared / "mtosi" / "4.0").files)
    program = (
        "import sys, time\nimport mtosi_jms.service\nstart = time.process_time()\n"
        "import whole.mri.managed_element_retrieval\n"
        "print(time.process_time() - start, sum(name.startswith('whole') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{root}"}, check=True,
    )  # fmt: skip
    seconds, modules = done.stdout.split()
    assert float(seconds) < 0.5
    assert int(modules) == 3


@pytest.mark.endurance
def test_two_folders_of_a_release_are_typed(shared: Path, root: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    folder = shared / "mtosi" / "2.0"
    result = generate([folder / "ManageResourceInventory", folder / "Framework"])
    assert len(result.services) == 17
    write(tmp_path / "mri", result.files)
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "--config-file", "mypy.ini",
         "--follow-imports=silent", "--ignore-missing-imports", "-p", "mri"],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": f"{tmp_path}:{root}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.endurance
@pytest.mark.parametrize(("release", "elements"), [("2.0", 800), ("4.0", 950)])
def test_every_global_element_is_read_and_written_by_both_cores(
    shared: Path, release: str, elements: int, tmp_path: Path, package: Callable[[Result], str], cores: ModuleType
) -> None:
    """The least and the most of each; that classes say no more than their types, `verify` proves (test_proof.py)."""
    native = importlib.util.find_spec("mtosi_jms.xmlbind._core") is not None
    name = importlib.import_module(package(_release(shared / "mtosi" / release))).__name__
    oracle = Oracle(mend([shared / "mtosi" / release], tmp_path).schema)
    makers = [Maker(Stock(oracle), kind, 1) for kind in ("least", "greatest")]
    problems: list[str] = []
    count = 0
    for tag, declaration in sorted(oracle.maps.elements.items()):
        cls = xmlbind.find_element(tag, name)
        if cls is None or cls.__xml__.abstract or declaration.schema.target_namespace == XML:
            continue
        count += 1
        for maker in makers:
            document = maker.make(declaration)
            problem = round_trip(document, cls, oracle, tag)
            differing = cores.difference(etree.tostring(document), cls) if native else ""
            problems += [str(found) for found in (problem, differing) if found]
    assert problems == []
    assert count > elements
