"""The rules of imports: layers, circles, public names, and optional libraries in their own modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from types import ModuleType

import pytest

ONLY = {
    "jms": {"bounds", "masking", "errors", "compression", "namespaces", "xmlbind"},
    "transport": {"bounds", "closing", "compression", "registry", "telemetry", "jms", "binding", "errors", "masking"},
}

# No socket, thread, clock or source of identifiers: time and ids are arguments.
PURE = ("soap", "jms", "binding", "patterns")
WORLD = (
    *("_thread", "asyncio", "concurrent", "http", "multiprocessing", "queue", "random", "sched", "secrets", "select"),
    *("selectors", "signal", "smtplib", "socket", "socketserver", "ssl", "subprocess", "threading", "time", "uuid"),
)
CLOCKS = frozenset({"now", "utcnow", "today"})

# Import name of an optional library -> the modules (with all below them) that may import it.
OPTIONAL = {
    "bcrypt": ("mtosi_jms.gateway._access",),
    "backports": ("mtosi_jms.compression",),
    "fsspec": ("mtosi_jms.tables._file_systems",),
    "elementpath": ("mtosi_codegen",),
    "jinja2": ("mtosi_codegen", "mtosi_jms.report", "mtosi_jms.console", "mtosi_jms.cli._new"),
    "xmlschema": ("mtosi_codegen", "mtosi_jms.validation._explain"),
    "zeep": ("mtosi_jms.integrations", "mtosi_jms.integrations._wsdl_request"),
    "requests": ("mtosi_jms.integrations",),  # zeep's own
    "rich": ("mtosi_jms.cli", "mtosi_codegen.cli"),
    "argcomplete": ("mtosi_jms.cli",),
    "argparse_manpage": ("mtosi_jms.cli",),
    "stomp": ("mtosi_jms.transport.stomp",),
    "starlette": ("mtosi_jms.gateway", "mtosi_jms.console"),
    "uvicorn": ("mtosi_jms.gateway",),
    "httpcore": ("mtosi_jms.gateway",),
    "httpx": ("mtosi_jms.gateway",),
    "h11": ("mtosi_jms.gateway",),  # uvicorn's own
    "opentelemetry": ("mtosi_jms.telemetry.otel",),
    "prometheus_client": ("mtosi_jms.telemetry.prometheus",),
    "py4j": ("mtosi_jms.spark",),
    "pyspark": ("mtosi_jms.spark",),
    "pyarrow": ("mtosi_jms.tables", "mtosi_jms.spark", "mtosi_jms.console._folders"),
    "pandas": ("mtosi_jms.spark", "mtosi_jms.tables._read"),
    "polars": ("mtosi_jms.tables._read",),
    "duckdb": ("mtosi_jms.tables.sql",),
    "pytest": ("mtosi_jms.testing",),
}
REQUIRED = frozenset({"lxml"})

EXCHANGE = """
import sys
import mtosi_jms as mtosi
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
names = {"os": "queue:OS", "ems": "queue:EMS"}
class Ems(ManagedElementRetrieval.Supplier):
    pass
connection = mtosi.connect("memory:", names=names)
with connection, mtosi.Supplier(connection, "ems", [Ems()]):
    requestor = mtosi.Requestor(connection, sender_uri="os")
    try:
        ManagedElementRetrieval(requestor, "ems").get_all_managed_elements(timeout=30)
    except mtosi.MtosiFault:
        pass
print(*sys.modules)
"""


def test_every_module_has_a_layer(structure: ModuleType) -> None:
    unknown = sorted({structure.layer(module) for module in structure.RUNTIME} - set(structure.RANK))
    assert not unknown, f"no layer for {unknown}: add it to [tool.house] in pyproject.toml, where it belongs"


def test_layers_import_only_to_the_left(structure: ModuleType) -> None:
    rank = structure.RANK
    wrong = [found for found, here, there in structure.between_layers() if rank[there] > rank[here]]
    assert not wrong, listed(wrong)


def test_satellites_import_the_core_and_those_that_are_named(structure: ModuleType) -> None:
    """So the core imports no satellite."""
    allowed = structure.SATELLITES
    wrong = [
        one
        for one, here, there in structure.between_layers()
        if there in allowed and there not in allowed.get(here, ())
    ]
    assert not wrong, listed(wrong)


def test_an_exchange_loads_no_satellite_and_no_optional_library(structure: ModuleType) -> None:
    """In a process of its own, which has loaded nothing else."""
    done = subprocess.run([sys.executable, "-c", EXCHANGE], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    everything = done.stdout.split()
    assert {module.partition(".")[0] for module in everything}.isdisjoint({*OPTIONAL, "mtosi_codegen", "numpy"})
    loaded = {module: structure.layer(module) for module in everything if module in structure.RUNTIME}
    satellites = structure.SATELLITES.keys() - {"mtosi_jms"}
    assert "exchange" in loaded.values()
    assert not [module for module, layer in loaded.items() if layer in satellites]


def test_a_connection_loads_no_xml() -> None:
    program = "import sys, mtosi_jms; mtosi_jms.connect('memory:').close(); print('lxml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_files_import_each_other_in_a_circle(structure: ModuleType) -> None:
    assert structure.circle(structure.MODULES) == []


def test_layers_import_each_other_by_public_names(structure: ModuleType) -> None:
    wrong = structure.trespasses()
    assert not wrong, listed(wrong)


def test_every_public_module_says_what_is_public(structure: ModuleType) -> None:
    silent = [module for module in structure.public_modules() if structure.exported(module) is None]
    assert not silent, f"no __all__ in {silent}"


def test_the_root_has_six_modules_at_most(structure: ModuleType) -> None:
    found = sorted(path.name for path in (structure.ROOT / "mtosi_jms").glob("*.py"))
    assert len(found) <= 6, f"{found}: put the next one into a package"


def test_the_map_is_fresh(structure: ModuleType) -> None:
    """After a change: make map."""
    assert [file for file, made in structure.WRITTEN.items() if file.read_text(encoding="utf-8") != made()] == []


@pytest.mark.parametrize("narrow", ONLY)
def test_narrow_layers_know_only_what_they_need(narrow: str, structure: ModuleType) -> None:
    wrong = [one for one, here, there in structure.between_layers() if here == narrow and there not in ONLY[narrow]]
    assert not wrong, listed(wrong)


def test_providers_know_no_mtosi(structure: ModuleType) -> None:
    """What a wire cannot type is retyped by what the connection's options have."""
    mine = [one for one, here, there in structure.between_layers() if (here, there) == ("transport", "binding")]
    assert {one.module for one in mine} == {"mtosi_jms.transport._options"}, listed(mine)


@pytest.mark.parametrize("pure", PURE)
def test_pure_layers_know_no_world(pure: str, structure: ModuleType) -> None:
    mine = [one for one in structure.IMPORTS if one.module in structure.RUNTIME and structure.layer(one.module) == pure]
    wrong = [one for one in mine if one.target.partition(".")[0] in WORLD]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("pure", PURE)
def test_pure_layers_read_no_clock(pure: str, structure: ModuleType) -> None:
    wrong = []
    for module, path in structure.RUNTIME.items():
        if structure.layer(module) != pure:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        wrong += [f"{module}:{f.lineno}" for f in calls if isinstance(f, ast.Attribute) and f.attr in CLOCKS]
    assert not wrong


def test_only_integrations_import_the_generator(structure: ModuleType) -> None:
    runtime = [one for one in structure.IMPORTS if one.module in structure.RUNTIME]
    wrong = [one for one in runtime if one.target in structure.GENERATOR]
    wrong = [one for one in wrong if structure.layer(one.module) != "integrations"]
    assert not wrong, listed(wrong)


def test_third_party_libraries_stay_in_their_own_modules(structure: ModuleType) -> None:
    ours = {"mtosi_jms", "mtosi_codegen"}
    wrong = []
    for found in structure.IMPORTS:
        library = found.target.partition(".")[0]
        if library in ours | REQUIRED | sys.stdlib_module_names:
            continue
        homes = OPTIONAL.get(library, ())
        if not any(found.module == home or found.module.startswith(f"{home}.") for home in homes):
            wrong.append(found)
    assert not wrong, listed(wrong)


def listed(found: list[object]) -> str:
    return "\n".join(map(str, found))
