"""Small sources written for each test, and the package that they become."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mtosi_codegen import Result, generate, write
from mtosi_codegen.cli import main
from mtosi_jms.xmlbind import _registry as registry

Files = Mapping[str, str | bytes]
_numbers = itertools.count()

XSD = "http://www.w3.org/2001/XMLSchema"


def xsd(body: str, namespace: str = "urn:t", more: str = "", form: str = "qualified") -> str:
    """A schema around some definitions: prefix `x` for XML Schema, `t` for its own namespace."""
    target = f'targetNamespace="{namespace}" xmlns:t="{namespace}"' if namespace else ""
    return (
        f'<?xml version="1.0"?>\n<x:schema xmlns:x="{XSD}" {target} elementFormDefault="{form}" {more}>\n'
        f"{body}\n</x:schema>\n"
    )


def wsdl(body: str, namespace: str = "urn:w", more: str = "") -> str:
    """A WSDL around some definitions: `w`, `s` (SOAP), `x`, `t` (its own namespace), `m` (urn:m, the messages')."""
    return (
        '<?xml version="1.0"?>\n<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/"'
        f' xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:x="{XSD}" xmlns:m="urn:m"'
        f' xmlns:t="{namespace}" targetNamespace="{namespace}" {more}>\n{body}\n</w:definitions>\n'
    )


def sources(files: Files | str) -> Files:
    """Files by their names; a text is a schema `a.xsd`, or what `xsd` makes one of."""
    if not isinstance(files, str):
        return files
    return {"a.xsd": files if files.startswith(("<?xml", "<x:schema")) else xsd(files)}


MESSAGES = xsd(
    '<x:element name="askRequest"><x:complexType><x:sequence>'
    '<x:element name="what" type="x:string" minOccurs="0"/></x:sequence></x:complexType></x:element>'
    '<x:element name="askResponse" type="t:AnswerType"/>'
    '<x:complexType name="AnswerType"><x:sequence><x:element name="answer" type="x:string"/>'
    "</x:sequence></x:complexType>"
    '<x:element name="askException"><x:complexType><x:choice><x:element ref="t:refused"/>'
    '<x:element ref="t:lost"/></x:choice></x:complexType></x:element>'
    '<x:element name="refused" type="t:TroubleType"/><x:element name="lost" type="t:TroubleType"/>'
    '<x:complexType name="TroubleType"><x:sequence><x:element name="reason" type="x:string" minOccurs="0"/>'
    "</x:sequence></x:complexType>",
    "urn:m",
)
"""The schema `urn:m` with the elements of the operation `ask`."""
ASK = {
    "types": '<w:types><x:schema><x:import namespace="urn:m" schemaLocation="messages.xsd"/></x:schema></w:types>',
    "messages": "".join(
        f'<w:message name="ask{kind}"><w:part name="body" element="m:ask{kind}"/></w:message>\n'
        for kind in ("Request", "Response", "Exception")
    ),
    "port": '<w:portType name="Oracle_MSG"><w:operation name="ask"><w:input message="t:askRequest"/>'
    '<w:output message="t:askResponse"/><w:fault name="f" message="t:askException"/></w:operation></w:portType>\n',
    "binding": '<w:binding name="OracleSoapJmsBinding" type="t:Oracle_MSG">'
    '<s:binding style="document" transport="http://schemas.xmlsoap.org/soap/jms"/>'
    '<w:operation name="ask"><s:operation/><w:input><s:body use="literal"/></w:input>'
    '<w:output><s:body use="literal"/></w:output></w:operation></w:binding>\n',
    "service": '<w:service name="OracleJms"><w:port name="p" binding="t:OracleSoapJmsBinding">'
    '<s:address location="jms://somewhere/Oracle"/></w:port></w:service>',
}
"""The pieces of a WSDL with the one operation `ask`."""


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; exit code, standard output, standard error."""

    def call(*argv: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in argv])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[Files], Path]:
    """Writes source files below a fresh folder and returns it."""

    def make(files: Files) -> Path:
        folder = tmp_path / f"src{next(_numbers)}"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return make


@pytest.fixture
def build(tree: Callable[[Files], Path]) -> Callable[..., Result]:
    """Runs the generator over source files, or over the definitions of one schema."""

    def make(files: Files | str, **options: Any) -> Result:
        return generate([tree(sources(files))], **options)

    return make


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Result], str]]:
    """Writes a generated package where it can be imported and returns its name; forgotten after the test."""
    made: list[str] = []
    monkeypatch.syspath_prepend(tmp_path)

    def make(result: Result) -> str:
        name = f"generated{next(_numbers)}"
        write(tmp_path / name, result.files)
        importlib.invalidate_caches()
        made.append(name)
        return name

    yield make
    for name in made:
        registry._packages.pop(name, None)
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]


@pytest.fixture
def module(build: Callable[..., Result], package: Callable[[Result], str]) -> Callable[..., ModuleType]:
    """Generates, writes and imports the module of one namespace."""

    def make(files: Files | str, path: str = "urn_t.types") -> ModuleType:
        name = package(build(files))
        importlib.import_module(name)
        return importlib.import_module(f"{name}.{path}")

    return make


def rules(result: Result) -> list[str]:
    """The rules of a result's findings, sorted."""
    return [finding.rule for finding in result.findings]
