"""Small WSDLs like those of strangers, each for one thing that WSDL allows or that people write all the same."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mtosi_jms
from mtosi_codegen import Result, generate, report, write
from mtosi_jms.errors import MtosiError

from .conftest import rules, xsd

FOLDER = Path(__file__).parent / "strangers"
PART = "message-part"
EXPECTED: dict[str, tuple[dict[str, list[str]], list[str]]] = {
    "rpc": ({"Library": ["lend"]}, []),
    "encoded": ({"Sorter": ["sort"]}, ["binding-style"]),
    "typed-parts": ({"Counter": ["count", "guess"]}, [PART] * 5),
    "abstract": ({"Oracle": ["ask", "tell"]}, [PART]),
    "http-verbs": ({"Oracle": ["ask"]}, ["binding-unserved"]),
    "corba": ({"Oracle": ["ask"]}, ["binding-unserved", PART, PART]),
    "directions": ({"Ways": ["ask", "tell"]}, ["operation-reversed"] * 2 + ["operation-shared"]),
    "attachments": ({"Gallery": ["ask"]}, [PART]),
    "empty-bodies": ({"Echo": ["ping"]}, [PART, PART]),
    "several-parts": ({"Pairs": ["send"]}, [PART]),
    "other-words": (
        {"Modes": ["getSubnetworkModeOfOperationConnection"]},
        ["element-unresolved", "operation-drift"],
    ),
    "python-names": ({"def": ["class", "__init__"]}, []),
    "circle": ({"Oracle": ["ask"]}, []),
    "twice": ({"Oracle": ["ask"]}, ["definition-conflict"]),
    "remote": ({"Oracle": ["ask"]}, ["location-remote", "type-unresolved"]),
    "no-namespace": ({"Oracle": ["ask"]}, []),
}
ENTRIES = sorted(EXPECTED)


@pytest.mark.parametrize("name", ENTRIES)
def test_what_becomes_of_it(name: str, package: Callable[[Result], str]) -> None:
    result = generate([FOLDER / f"{name}.wsdl"])
    services = {service.name: [operation.name for operation in service.operations] for service in result.model.services}
    assert (services, sorted(rules(result))) == (EXPECTED[name][0], sorted(EXPECTED[name][1]))
    assert result.failed is (name == "other-words")
    root = package(result)
    for path in result.files:
        importlib.import_module(f"{root}.{path.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__"))


def test_a_port_type_without_a_binding_can_be_called(package: Callable[[Result], str]) -> None:
    result = generate([FOLDER / "abstract.wsdl"])
    root = package(result)
    (service,) = result.services
    module = importlib.import_module(f"{root}.{service.module}")
    types = importlib.import_module(f"{root}.{result.model.modules[0].path}")

    class Sibyl(module.Oracle.Supplier):  # type: ignore[misc]
        def ask(self, request: Any, context: Any) -> Any:
            return types.Answer(value=len(request.value))

    with (
        mtosi_jms.connect("memory:abstract") as connection,
        mtosi_jms.Supplier(connection, "queue:SIBYL", [Sibyl()]).start(),
        mtosi_jms.Requestor(connection, sender_uri="queue:ME") as requestor,
    ):
        assert module.Oracle(requestor, "queue:SIBYL").ask(value="what", timeout=20).value == 4


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.wsdl")} == {*ENTRIES, "circle-port"}


def test_all_of_them_at_once() -> None:
    result = generate([FOLDER])
    assert sum(len(service.operations) for service in result.services) == sum(
        len(operations) for services, _ in EXPECTED.values() for operations in services.values()
    )
    assert len({service.module for service in result.services}) == len(result.services)


def test_a_service_that_lost_an_operation_is_partial() -> None:
    found = report.as_json(generate([FOLDER / "other-words.wsdl"]), 0)
    (service,) = found["services"]
    assert (service["status"], [one["name"] for one in service["operations"]]) == (
        "partial",
        ["getSubnetworkModeOfOperationConnection"],
    )
    assert report.summary(generate([FOLDER / "other-words.wsdl"]), 0).endswith("; 1 service in part")


def test_the_only_operations_left_are_one_only_if_their_words_agree(tree: Any) -> None:
    text = (FOLDER / "other-words.wsdl").read_text()
    other = text.replace("getSubnetworkConnectionModeOfOperation", "deleteSubnetworkConnectionModeOfOperation")
    result = generate([tree({"a.wsdl": other})])
    assert "operation-undefined" in rules(result)
    assert "operation-drift" not in rules(result)


def test_the_messages_say_which_operation_is_meant(tree: Any) -> None:
    text = (FOLDER / "other-words.wsdl").read_text()
    other = text.replace("getSubnetworkConnectionModeOfOperation", "somethingElse").replace(
        '<input><soap:body use="literal"/>',
        '<input><soap:header message="tns:ask" part="nothing" use="literal"/><soap:body use="literal"/>',
        1,
    )
    assert "operation-drift" in rules(generate([tree({"a.wsdl": other})]))


def test_a_port_type_that_others_bind_is_no_service_of_its_own(tree: Any) -> None:
    text = (FOLDER / "circle.wsdl").read_text().replace("soap/jms", "soap/http")
    folder = tree({"circle.wsdl": text, "circle-port.wsdl": (FOLDER / "circle-port.wsdl").read_text()})
    assert generate([folder]).services == ()
    assert [service.name for service in generate([folder], bindings="all").services] == ["Oracle"]


def test_a_file_that_is_not_fetched_is_read_from_the_place_that_the_finding_names(tree: Any) -> None:
    text = (FOLDER / "remote.wsdl").read_text()
    folder = tree({"sub/remote.wsdl": text})
    finding = next(one for one in generate([folder]).findings if one.rule == "location-remote")
    assert finding.repair.endswith("put it at sub/Elsewhere.xsd")
    (folder / "sub" / "Elsewhere.xsd").write_text(
        xsd('<x:simpleType name="Word"><x:restriction base="x:string"/></x:simpleType>', "urn:example:elsewhere")
    )
    (finding,) = generate([folder]).findings
    assert finding.repair == "read sub/Elsewhere.xsd, which defines what is needed"


def test_a_location_counted_from_the_folder_of_a_build(tree: Any) -> None:
    circle, port = ((FOLDER / name).read_text() for name in ("circle.wsdl", "circle-port.wsdl"))
    circle = circle.replace('"circle-port.wsdl"', '"src/wsdl/port.wsdl"')
    port = port.replace('"circle.wsdl"', '"src/wsdl/deep/circle.wsdl"')
    folder = tree({"src/wsdl/deep/circle.wsdl": circle, "src/wsdl/port.wsdl": port})
    result = generate([folder / "src" / "wsdl" / "deep" / "circle.wsdl"])
    assert [service.name for service in result.model.services] == ["Oracle"]
    assert [finding.repair for finding in result.findings] == [
        "read circle.wsdl, to which it leads from above",
        "read ../port.wsdl, to which it leads from above",
    ]


@pytest.mark.obligation("001-E12")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<d:description xmlns:d="http://www.w3.org/ns/wsdl"/>', "WSDL 2.0"),
        ('<d:schema xmlns:d="http://www.w3.org/2000/10/XMLSchema"/>', "draft"),
    ],
)
def test_another_language_by_mistake(tree: Any, text: str, words: str) -> None:
    folder = tree({"a.wsdl": text})
    for source in (folder, folder / "a.wsdl"):
        (finding,) = generate([source]).findings
        assert (finding.rule, finding.failed, words in finding.message) == ("not-xml", True, True)


def test_a_draft_of_xml_schema_inside_a_wsdl(tree: Any) -> None:
    text = (FOLDER / "abstract.wsdl").read_text().replace("2001/XMLSchema", "2000/10/XMLSchema")
    assert "xsd-unsupported" in rules(generate([tree({"a.wsdl": text})]))


@pytest.mark.endurance
def test_the_stubs_of_all_are_strictly_typed(tmp_path: Path) -> None:
    for name in ENTRIES:
        write(tmp_path / name.replace("-", "_"), generate([FOLDER / f"{name}.wsdl"]).files)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / '.cache'}", "."]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    shutil.rmtree(tmp_path / ".cache")


# Any bytes as a source: a result or an `MtosiError`, and what is generated compiles.

HERE = Path(__file__).parent
FILES = {path.name: path.read_bytes() for path in sorted((HERE / "sources").iterdir())}
WORDS = [
    *sorted({word for data in FILES.values() for word in data.split()}),
    b'name=""',
    b'type="x:y:z"',
    b"<xsd:any/>",
]


@st.composite
def broken_sources(draw: st.DrawFn) -> dict[str, bytes]:
    """The sources with a few words of one file replaced, dropped or doubled."""
    name = draw(st.sampled_from(sorted(FILES)))
    words = FILES[name].split(b" ")
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(words) - 1))
        words[position] = draw(st.sampled_from([b"", words[position] * 2, *WORDS[:: max(1, len(WORDS) // 60)]]))
    return {**FILES, name: b" ".join(words)}


def _survives(files: dict[str, bytes]) -> bool:
    """Whether the generator came to a result that compiles, or to an error of its own; anything else is raised."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        try:
            result = generate([folder])
        except MtosiError:
            return True
        for path, text in result.files.items():
            compile(text, path, "exec")
    return True


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(broken_sources())
def test_broken_sources(files: dict[str, bytes]) -> None:
    assert _survives(files)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    assert _survives({"a.wsdl": data, "b.xsd": b"<schema xmlns='http://www.w3.org/2001/XMLSchema'>" + data})


def test_deep_nesting_is_an_error_or_a_finding() -> None:
    deep = b"<x:sequence>" * 5000
    text = b"<x:schema xmlns:x='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:t'><x:complexType name='T'>"
    for depth in (100, 240, 5000):
        body = deep[: len(b"<x:sequence>") * depth] + b"</x:sequence>" * depth
        assert _survives({"a.xsd": text + body + b"</x:complexType></x:schema>"})
