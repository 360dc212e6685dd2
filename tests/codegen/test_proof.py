"""`verify` and `sample`: stubs as generated pass, and every fault that is put into them is found."""

from __future__ import annotations

import ast
import itertools
import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

pytest.importorskip("xmlschema")

import pytest

from mtosi_codegen import generate, write
from mtosi_codegen.cli import main
from mtosi_codegen.mend import mend
from mtosi_codegen.proof.instances import Maker, Stock
from mtosi_codegen.proof.messages import Message, messages_of
from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.sample import Samples
from mtosi_codegen.proof.stubs import Stubs
from mtosi_codegen.proof.verify import compare, send
from mtosi_jms.soap import dialect_of, header_text, parse
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import _registry as registry

from .conftest import ASK, MESSAGES, wsdl, xsd

_numbers = itertools.count()
MANY = 200


class Bench:
    """One set of sources with its model, and copies of its stubs to damage."""

    def __init__(self, sources: list[Path], folder: Path) -> None:
        self.folder = folder
        mended = mend(sources, folder / "mended")
        self.messages = messages_of(mended.services)
        self.stock = Stock(Oracle(mended.schema))
        self.clean = folder / "clean"
        write(self.clean, generate(sources).files)

    def differences(self, package: Path, messages: list[Message] | None = None) -> list[str]:
        """What differs in a package; importing one that is damaged counts."""
        name = f"proven{next(_numbers)}"
        try:
            stubs = Stubs(package, name)
            found = compare(self.stock.oracle, stubs, self.messages).differences
            found += send(self.stock, stubs, messages or []).differences
        except Exception as error:  # noqa: BLE001
            return [f"{type(error).__name__}: {error}"]
        finally:
            registry._packages.pop(name, None)
            for module in [module for module in sys.modules if module.partition(".")[0] == name]:
                del sys.modules[module]
        return [str(one) for one in found]

    def with_fault(self, number: int) -> tuple[str, list[str]]:
        """A fault put into a copy of the stubs, and what was found."""
        copy = self.folder / f"fault{number}"
        shutil.copytree(self.clean, copy, ignore=shutil.ignore_patterns("__pycache__"))
        fault = Seeder(copy, random.Random(number)).plant(("drop", "swap", "type", "occurs")[number % 4])
        found = self.differences(copy)
        shutil.rmtree(copy)
        return fault, found


class Seeder:
    """Puts one fault into a generated package."""

    def __init__(self, package: Path, rng: random.Random) -> None:
        self._rng = rng
        files = sorted(path for path in package.rglob("*.py") if "_x.Module(" in path.read_text())
        self._trees = {path: ast.parse(path.read_text()) for path in files}

    def plant(self, kind: str) -> str:
        """Change one file; what was changed, in words."""
        places = list(getattr(self, f"_{kind}s")())
        path, words, change = self._rng.choice(places)
        change()
        path.write_text(ast.unparse(self._trees[path]))
        return f"{path.name}: {words}"

    def _tables(self) -> Iterator[tuple[Path, ast.ClassDef, ast.Tuple, list[int]]]:
        """Each table of fields, with the places of its elements."""
        for path, tree in self._trees.items():
            for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
                for node in cls.body:
                    fields = getattr(getattr(node, "value", None), "args", [])[1:2]
                    if fields and isinstance(fields[0], ast.Tuple):
                        items = fields[0].elts
                        elements = [n for n, item in enumerate(items) if item.func.attr in ("E", "A")]  # type: ignore[attr-defined]
                        yield path, cls, fields[0], elements

    def _entries(self) -> Iterator[tuple[Path, str, ast.Call, ast.AnnAssign, ast.ClassDef, ast.Tuple]]:
        for path, cls, table, elements in self._tables():
            declared = {node.target.id: node for node in cls.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
            for number in elements:
                entry: Any = table.elts[number]
                yield path, f"{cls.name}.{entry.args[0].value}", entry, declared[entry.args[0].value], cls, table

    def _drops(self) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        for path, name, entry, declared, cls, table in self._entries():
            yield path, f"{name} dropped from the table", lambda t=table, e=entry: t.elts.remove(e)
            yield path, f"{name} dropped from the class", lambda c=cls, d=declared: c.body.remove(d)
            yield (
                path,
                f"{name} dropped",
                lambda t=table, e=entry, c=cls, d=declared: (t.elts.remove(e), c.body.remove(d)),
            )

    def _swaps(self) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        for path, cls, table, elements in self._tables():
            kinds = [item.func.attr for item in table.elts]  # type: ignore[attr-defined]
            for one, other in itertools.pairwise(elements):
                if kinds[one] == kinds[other] == "E":

                    def swap(items: list[Any] = table.elts, one: int = one, other: int = other) -> None:
                        items[one], items[other] = items[other], items[one]

                    yield path, f"{cls.name}: fields {one} and {other} swapped", swap

    def _types(self) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        kinds = ["_x.STRING", "_x.INT", "_x.BOOLEAN", "_x.DATE_TIME", "_x.TOKEN"]
        for path, name, entry, declared, _, _ in self._entries():
            old = ast.unparse(entry.args[2])
            new = self._rng.choice([kind for kind in kinds if kind != old])
            yield (
                path,
                f"{name}: {new} instead of {old}",
                lambda e=entry, n=new: e.args.__setitem__(2, ast.parse(n).body[0].value),
            )
            written = ast.unparse(declared.annotation)
            changed = (
                written.replace("str", "int") if "str" in written.split("[")[-1] else written.replace("bool", "str")
            )
            if changed != written:
                value = ast.parse(changed).body[0].value  # type: ignore[attr-defined]
                yield path, f"{name} annotated {changed}", lambda d=declared, v=value: setattr(d, "annotation", v)

    def _occurss(self) -> Iterator[tuple[Path, str, Callable[[], object]]]:
        for path, name, entry, declared, _, _ in self._entries():
            known = {keyword.arg: keyword for keyword in entry.keywords}
            options = ["required"] if entry.func.attr == "A" else ["min", "max", "nillable"]  # type: ignore[attr-defined]
            for option in options:
                if option in known:
                    yield path, f"{name}: {option} removed", lambda e=entry, k=known[option]: e.keywords.remove(k)
                else:
                    value = {"min": 1, "max": None, "nillable": True, "required": True}[option]
                    keyword = ast.keyword(option, ast.Constant(value))
                    yield path, f"{name}: {option}={value} added", lambda e=entry, k=keyword: e.keywords.append(k)
            written = ast.unparse(declared.annotation)
            if written.endswith(" | None"):
                value = ast.parse(written.removesuffix(" | None")).body[0].value  # type: ignore[attr-defined]
                yield path, f"{name} annotated without None", lambda d=declared, v=value: setattr(d, "annotation", v)


@pytest.fixture(scope="module")
def small(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench([root / "wsdl" / "ManagedElementRetrieval.wsdl"], tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def profile(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench([root / "wsdl", root / "xsd"], tmp_path_factory.mktemp("profile"))


def test_stubs_as_generated_pass(small: Bench) -> None:
    assert small.differences(small.clean, small.messages) == []


def test_every_fault_is_found(small: Bench) -> None:
    """One of each kind."""
    for number in range(4):
        fault, found = small.with_fault(number)
        assert found, fault


@pytest.mark.endurance
def test_every_one_of_200_faults_is_found(profile: Bench) -> None:
    missed = [fault for fault, found in map(profile.with_fault, range(MANY)) if not found]
    assert not missed


@pytest.mark.parametrize(
    ("folder", "package", "size"),
    [(".", "stubs", (20, 56, 200)), ("mtosi-1.1", "stubs11", (15, 43, 100))],
)
def test_a_shipped_profile_is_proven(
    root: Path, folder: str, package: str, size: tuple[int, int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [str(root / folder / "wsdl"), str(root / folder / "xsd")]
    assert main(["verify", *sources, "--package", package, "--out", str(root / "mtosi_jms"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verified"]
    assert report["differences"] == []
    assert (report["operations"], report["messages"]) == size[:2]
    assert report["instances"] > report["messages"] * 3
    assert report["types"] > size[2]


def test_a_difference_is_named_by_its_path(small: Bench, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = small.folder / "named"
    shutil.copytree(small.clean, package)
    module = package / "nrf" / "me.py"
    module.write_text(
        module.read_text().replace('_x.E("location", "location", _x.STRING,', '_x.E("location", "location", _x.INT,')
    )
    wsdl = str(root / "wsdl" / "ManagedElementRetrieval.wsdl")
    wanted = ["--package", "named", "--out", str(small.folder), "--operations", "getManagedElement"]
    assert main(["verify", wsdl, *wanted]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["ManagedElementRetrieval", "1"]
    place = lines.index("ManagedElementRetrieval.getManagedElement response/me/location:")
    assert lines[place + 1].split() == ["schema:", "string"]
    assert lines[place + 2].split()[:2] == ["stub:", "int"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--operations", "getManagedElemen"], 2, "no operation 'getManagedElemen'; did you mean getManagedElement"),
        (["--package", "nothing"], 1, "nothing: no generated package: run mtosi-codegen generate first"),
    ],
)
def test_what_cannot_be_verified(
    root: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ["verify", str(root / "wsdl"), "--package", "stubs", "--out", str(root / "mtosi_jms")]
    assert main([*fixed, *arguments]) == code
    assert message in capsys.readouterr().err


def test_schemas_without_operations_and_stubs_that_do_not_import(
    tree: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    source = tree({"a.xsd": xsd('<x:element name="a" type="x:int"/>')})
    write(tmp_path / "types", generate([source]).files)
    arguments = ["verify", str(source), "--package", "types", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "0 differences; 0 operations, 0 messages, 1 type, 0 documents" in capsys.readouterr().out
    (tmp_path / "types" / "urn_t" / "types.py").write_text("class")
    assert main(arguments) == 1
    assert "SyntaxError" in capsys.readouterr().out


@pytest.mark.endurance
@pytest.mark.parametrize(("release", "operations"), [("1.1", 166), ("2.0", 242), ("4.0", 289)])
def test_a_release_is_proven(
    shared: Path, tmp_path: Path, release: str, operations: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(shared / "mtosi" / release)
    write(tmp_path / "release", generate([source]).files)
    assert main(["verify", source, "--package", "release", "--out", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["differences"] == []
    assert report["operations"] == operations


# Samples


@pytest.mark.parametrize("options", [["--max"], ["--response", "--random", "--seed", "7"], ["--fault"]])
def test_samples_are_valid(root: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    wsdl = str(root / "wsdl" / "ManagedElementRetrieval.wsdl")
    assert main(["sample", "ManagedElementRetrieval.getManagedElement", wsdl, *options]) == 0
    envelope = capsys.readouterr().out.encode()
    assert Validator(SchemaSet.load()).validate_bytes(envelope).issues == ()
    header = etree.fromstring(envelope).find(".//{*}header")
    assert header is not None
    assert header.findtext("{*}activityName") == "getManagedElement"


def test_a_seed_gives_the_same_instance(small: Bench) -> None:
    declaration = small.stock.oracle.element(small.messages[1].element)
    assert declaration is not None

    def made(seed: int) -> bytes:
        return etree.tostring(Maker(small.stock, "random", seed).make(declaration))

    assert made(1) == made(1) != made(2)


def test_an_operation_of_several_services_needs_its_service(
    tree: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one = "".join(ASK.values())
    other = one.replace("Oracle", "Other")
    folder = tree({"one.wsdl": wsdl(one), "two.wsdl": wsdl(other, "urn:v"), "messages.xsd": MESSAGES})
    assert main(["sample", "ask", str(folder)]) == 1
    assert "name one of Oracle.ask, Other.ask" in capsys.readouterr().err
    assert main(["sample", "Other.ask", str(folder)]) == 0
    assert "askRequest" in capsys.readouterr().out


RIGHT = {
    "default on an enumeration": """<x:simpleType name="Way"><x:restriction base="x:string"><x:enumeration value="Bi"/>
 </x:restriction></x:simpleType><x:element name="e"><x:complexType><x:sequence>
 <x:element name="way" type="t:Way" default="Bi"/></x:sequence><x:attribute name="a" type="t:Way" fixed="Bi"/>
 </x:complexType></x:element>""",
    "two texts": """<x:element name="e"><x:simpleType><x:union>
 <x:simpleType><x:restriction base="x:string"><x:pattern value="A_[a-z]*"/></x:restriction></x:simpleType>
 <x:simpleType><x:restriction base="x:string"><x:pattern value="B_[a-z]*"/></x:restriction></x:simpleType>
 </x:union></x:simpleType></x:element>""",
    "memberTypes and members": """<x:element name="e"><x:simpleType><x:union memberTypes="x:int x:date">
 <x:simpleType><x:restriction base="x:string"><x:enumeration value="huge"/></x:restriction></x:simpleType>
 </x:union></x:simpleType></x:element>""",
    "attribute wildcards": """<x:attributeGroup name="G">
 <x:anyAttribute namespace="##other" processContents="skip"/></x:attributeGroup>
 <x:complexType name="Base"><x:sequence><x:element name="a" minOccurs="0" type="x:int"/></x:sequence>
 <x:anyAttribute processContents="skip"/></x:complexType>
 <x:complexType name="None"><x:complexContent><x:restriction base="t:Base"><x:sequence/></x:restriction>
 </x:complexContent></x:complexType>
 <x:complexType name="Own"><x:complexContent><x:restriction base="t:Base"><x:sequence/>
 <x:attributeGroup ref="t:G"/></x:restriction></x:complexContent></x:complexType>
 <x:element name="e" type="t:None"/><x:element name="f" type="t:Own"/>""",
    "lists of some values": """<x:element name="e"><x:simpleType><x:restriction><x:simpleType>
 <x:list itemType="x:NMTOKEN"/></x:simpleType><x:length value="2"/><x:enumeration value="a b"/>
 <x:enumeration value="c d"/></x:restriction></x:simpleType></x:element>""",
    "mixed content restricted": """<x:complexType name="Base" mixed="true"><x:sequence>
 <x:element name="a" minOccurs="0" type="x:int"/></x:sequence></x:complexType>
 <x:element name="e"><x:complexType><x:complexContent><x:restriction base="t:Base"><x:sequence>
 <x:element name="a" type="x:int"/></x:sequence></x:restriction></x:complexContent></x:complexType></x:element>
 <x:element name="f"><x:complexType><x:complexContent><x:extension base="x:anyType"/></x:complexContent></x:complexType>
 </x:element>""",
    "a model that libxml2 refuses": """<x:element name="e"><x:complexType><x:sequence>
 <x:element name="a" type="x:int" minOccurs="2" maxOccurs="2"/><x:element name="a" type="x:int"/></x:sequence>
 </x:complexType></x:element>""",
}


@pytest.mark.obligation("GEN9")
@pytest.mark.parametrize("kind", RIGHT)
def test_right_stubs_have_no_difference(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "a.xsd"
    source.write_text(xsd(RIGHT[kind]))
    bench = Bench([source], tmp_path)
    assert bool(bench.stock.oracle.doubt) == (kind == "a model that libxml2 refuses")
    assert bench.differences(bench.clean) == []
    module = next(path for path in bench.clean.rglob("types.py") if '"e"' in path.read_text())
    module.write_text(module.read_text().replace('"e"', '"other"'))
    assert bench.differences(bench.clean) != []


@pytest.mark.obligation("GEN9")
def test_overloaded_operations_have_no_difference(tmp_path: Path) -> None:
    kinds = ("byId", "byName", "found")
    elements = "".join(f'<x:element name="{kind}" type="x:string"/>' for kind in kinds)
    messages = "".join(f'<w:message name="{kind}"><w:part name="b" element="t:{kind}"/></w:message>' for kind in kinds)
    port = "".join(
        f'<w:operation name="find"><w:input name="{kind}" message="t:{kind}"/>'
        '<w:output message="t:found"/></w:operation>'
        for kind in kinds[:2]
    )
    bound = "".join(f'<w:operation name="find"><w:input name="{kind}"/><w:output/></w:operation>' for kind in kinds[:2])
    source = tmp_path / "a.wsdl"
    source.write_text(
        wsdl(
            f'<w:types><x:schema targetNamespace="urn:w">{elements}</x:schema></w:types>{messages}'
            f'<w:portType name="P">{port}</w:portType><w:binding name="B" type="t:P">'
            f'<s:binding transport="http://schemas.xmlsoap.org/soap/jms"/>{bound}</w:binding>'
        )
    )
    bench = Bench([source], tmp_path)
    assert len(bench.messages) == 4
    assert bench.differences(bench.clean, bench.messages) == []


def test_samples_have_the_header_of_their_release(shared: Path) -> None:
    release = shared / "mtosi" / "1.1"
    if not release.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {release}")
    samples = Samples([release / "wsdl", release / "xsd"])
    schema = etree.XMLSchema(file=str(release / "xsd" / "common" / "Header.xsd"))
    found = {}
    for message in messages_of(samples.services, ["ManagedElementMgr.getAllManagedElements"]):
        data = samples.envelope(message)
        envelope = parse(data)
        header = envelope.header
        assert header is not None
        assert dialect_of(header).release == "1.x"
        assert schema.validate(etree.fromstring(data).find("*/{tmf854.v1}header")), schema.error_log
        found[message.role] = header_text(header, "msgType")
    assert found == {"request": "REQUEST", "response": "RESPONSE", "fault": "ERROR"}
