"""Our schemas load everywhere, are documented, and agree with the release: what they accept, MTOSI 2.0 accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

import pytest
from lxml import etree

pytest.importorskip("xmlschema", reason="the extra codegen brings the xmlschema library")

from xmlschema.extras import wsdl as wsdl11
from xmlschema.validators import XsdElement

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_codegen.mend import mend
from mtosi_codegen.proof import instances
from mtosi_codegen.proof.instances import Kind, Maker, Stock
from mtosi_codegen.proof.messages import messages_of
from mtosi_codegen.proof.oracle import ANY_TYPE, Oracle
from mtosi_codegen.proof.stubs import Stubs
from mtosi_codegen.proof.verify import compare
from mtosi_codegen.wsdl.model import Definitions
from mtosi_codegen.wsdl.read import read_definitions
from mtosi_jms.namespaces import WSDL

REPOSITORY: Final = Path(__file__).parents[2]
FILES: Final = sorted((REPOSITORY / "xsd").glob("*/*.xsd"))
WSDLS: Final = sorted((REPOSITORY / "wsdl").glob("*.wsdl"))
XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
MTOP: Final = "http://www.tmforum.org/mtop/"

Drive: TypeAlias = Callable[[Path, list[Path]], Path]

SEED: Final = 20
DOCUMENTS: Final[dict[Kind, int]] = {"least": 1, "greatest": 3, "random": 24}  # of each global element

LEFT_OUT: Final = {"fdList", "tpPoolList", "protectionEffort", "ccList", "pgpList", "epgList", "gtpList", "mfdList"}
"""What the profile leaves out of types that it has: optional elements for objects that it does not know."""
# Where the release allows anything at all and the profile only what is meant: an empty request.
NARROWED: Final = {f"{{{MTOP}mri/xsd/eir/v1}}getEquipmentIteratorRequest"}

OPERATIONS: Final = {
    "AlarmRetrieval": 2,
    "EquipmentInventoryRetrieval": 7,
    "ManagedElementRetrieval": 4,
    "NotificationBroker": 3,
    "NotificationConsumer": 1,
    "NotificationProducer": 2,
    "ResourceInventoryRetrieval": 1,
}


def short(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def roots() -> list[str]:
    """The global elements of the profile, by Clark name."""
    schemas = [etree.parse(file).getroot() for file in FILES]
    return sorted(
        f"{{{one.get('targetNamespace')}}}{node.get('name')}"
        for one in schemas
        for node in one.iterchildren(f"{XSD}element")
    )


def definitions(sources: list[Path]) -> dict[str, Definitions]:
    """What WSDLs define, by the name of their service."""
    loaded = load(sources, Findings())
    found = [read_definitions(loaded.scope(root), Findings()) for root in loaded.roots]
    return {one.ports[0].service.removesuffix("Jms"): one for one in found}


def said(found: Definitions) -> object:
    """Names, message exchange patterns, messages, and the way that SOAP carries them."""
    (binding,) = found.bindings
    parts = {name: [(part.name, part.element) for part in one.parts] for name, one in found.messages.items()}
    bound = {
        one.name: [(way.body_parts, sorted(header.part for header in way.headers)) for way in (one.input, one.output)]
        for one in binding.operations
    }
    operations = {
        one.name: (
            one.input and parts[one.input],
            one.output and parts[one.output],
            sorted((name, parts[message]) for name, message in one.faults),
        )
        for one in found.port_types[binding.type].operations
    }
    return binding.type, binding.transport, binding.style, bound, operations


@pytest.fixture(scope="session")
def profile_driver(drive: Drive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drive(tmp_path_factory.mktemp("profile"), FILES)


@pytest.fixture(scope="session")
def profile(profile_driver: Path) -> etree.XMLSchema:
    return etree.XMLSchema(file=str(profile_driver))


@pytest.fixture(scope="session")
def oracle(profile_driver: Path) -> Oracle:
    return Oracle(profile_driver)


@pytest.fixture(scope="session")
def documents(oracle: Oracle) -> dict[str, list[bytes]]:
    """The instance documents by their root, each as bytes: what a peer would read; the greatest show all there is."""
    stock = Stock(oracle)
    makers = [(Maker(stock, kind, SEED), count) for kind, count in DOCUMENTS.items()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(instances._SPEND, "greatest", 4_000)
        return {
            root: [
                etree.tostring(maker.make(oracle.maps.elements[root])) for maker, count in makers for _ in range(count)
            ]
            for root in roots()
        }


@pytest.fixture(scope="session")
def release_files(shared: Path) -> list[Path]:
    return sorted((shared / "mtosi" / "2.0").glob("*/IIS/xsd/*.xsd"))


@pytest.fixture(scope="session")
def release_wsdls(shared: Path) -> list[Path]:
    return [folder for name in OPERATIONS for folder in (shared / "mtosi" / "2.0").glob(f"*/IIS/wsdl/{name}")]


def complaints(schema: etree.XMLSchema, documents: list[bytes]) -> Iterator[str]:
    for number, data in enumerate(documents):
        if not schema.validate(etree.fromstring(data)):
            yield f"document {number}: {schema.error_log[0].message}\n{data.decode()}"


class TestLoading:
    @pytest.mark.parametrize("file", FILES, ids=short)
    def test_each_schema_loads_alone_with_what_it_uses_and_nothing_else(self, file: Path) -> None:
        """Whoever imports one file has all that it needs; it lies where its namespace says."""
        assert etree.XMLSchema(file=str(file)) is not None
        root = etree.parse(file).getroot()
        assert root.get("targetNamespace") == f"{MTOP}{file.parent.name}/xsd/{file.stem}/v1"
        names = [
            value for node in root.iter(f"{XSD}*") for key, value in node.items() if key in {"type", "ref", "base"}
        ]
        names += [node.get("substitutionGroup", "") for node in root.iter(f"{XSD}element")]
        used = {root.nsmap[name.partition(":")[0]] for name in names if name} - {XSD[1:-1], root.get("targetNamespace")}
        assert {node.get("namespace") for node in root.iter(f"{XSD}import")} == used

    def test_the_xmlschema_library_loads_all_of_them(self, oracle: Oracle) -> None:
        assert {name for name in oracle.maps.elements if name.startswith(f"{{{MTOP}")} == set(roots())

    @pytest.mark.parametrize("file", WSDLS, ids=lambda file: file.stem)
    def test_each_wsdl_loads(self, file: Path) -> None:
        loaded = wsdl11.Wsdl11Document(str(file))  # type: ignore[no-untyped-call]
        assert [name.rpartition("}")[2] for name in loaded.services] == [f"{file.stem}Jms"]

    def test_the_services_are_those_of_the_profile(self) -> None:
        found = definitions(WSDLS)
        assert {name: len(one.bindings[0].operations) for name, one in found.items()} == OPERATIONS
        assert {name: [port.address for port in one.ports] for name, one in found.items()} == {
            name: [f"jms://aserver/mtosi/{name}"] for name in OPERATIONS
        }
        parts = [part for one in found.values() for message in one.messages.values() for part in message.parts]
        assert {str(part.element) for part in parts} <= set(roots())


class TestInstances:
    def test_profile_and_release_accept_what_is_made_of_the_profile(
        self, profile: etree.XMLSchema, release: etree.XMLSchema, documents: dict[str, list[bytes]]
    ) -> None:
        for made in documents.values():
            for schema in (profile, release):
                assert list(complaints(schema, made)) == []

    @pytest.mark.endurance
    def test_both_cores_read_them_alike(self, documents: dict[str, list[bytes]], cores: ModuleType) -> None:
        pytest.importorskip("mtosi_jms.xmlbind._core", reason="the native core is not built")
        found = [cores.difference(document) for made in documents.values() for document in made]
        assert next(filter(None, found), "") == ""

    def test_the_documents_show_all_that_the_schemas_allow(
        self, oracle: Oracle, documents: dict[str, list[bytes]]
    ) -> None:
        """Each element, at least once; values of enumerations are compared below."""
        everything = [etree.fromstring(data) for made in documents.values() for data in made]
        assert len(everything) == len(roots()) * sum(DOCUMENTS.values())
        shown = {node.tag for one in everything for node in one.iter("*")}
        declared = {
            one.name for one in oracle.maps.iter_components(XsdElement) if str(one.name).startswith(f"{{{MTOP}")
        }
        assert declared - shown == set()

    def test_the_documents_use_what_is_easily_forgotten(self, documents: dict[str, list[bytes]]) -> None:
        everything = b"".join(data for made in documents.values() for data in made)
        assert len(set(re.findall(rb'xsi:type="([^"]+)"', everything))) > 20
        assert everything.count(b'xsi:nil="true"') > 100
        assert b"urn:mtosi-codegen:sample" in everything, "what others may add"

    def test_both_reject_a_child_that_nobody_declared(
        self, profile: etree.XMLSchema, release: etree.XMLSchema, documents: dict[str, list[bytes]]
    ) -> None:
        """The agreement is worth something only if the two can say no."""
        spoiled = 0
        for root, made in documents.items():
            node = etree.fromstring(made[1])
            if not len(node):
                continue
            node[0].tag = f"{node[0].tag}Unknown"
            assert not profile.validate(node), root
            assert not release.validate(node), root
            spoiled += 1
        assert spoiled > 90


class TestStructure:
    """Instances show that ours is no wider than the release; this shows that it is no narrower either."""

    def test_types_and_elements_say_the_same(
        self, oracle: Oracle, release_files: list[Path], release_wsdls: list[Path], tmp_path: Path
    ) -> None:
        """The stubs, which are those of the profile by another test, beside the release as xmlschema reads it."""
        mended = mend([*release_wsdls, *release_files], tmp_path)
        theirs, stubs = Oracle(mended.schema), Stubs(REPOSITORY / "mtosi_jms" / "stubs", "stubs_beside_the_release")
        found = compare(theirs, stubs, messages_of(mended.services)).differences
        differing = {(one.path.rpartition("/")[2], one.schema, one.stub) for one in found if "class" not in one.stub}
        events = [one for one in differing if one[0] == "commonEventInformation"]
        assert len(events) == 1, "the release has more events"
        assert differing - {*events} == {(name, "0..1", "no such field") for name in LEFT_OUT}
        for kind, known in (("__elements__", theirs.maps.elements), ("__types__", theirs.maps.types)):
            assert {name for name, _ in stubs.listed(kind)} <= set(known)
        opened = [
            {name for name in roots() if one.maps.elements[name].type.name == ANY_TYPE} for one in (oracle, theirs)
        ]
        assert opened[1] - opened[0] == NARROWED
        for name, ours in oracle.maps.types.items():
            assert getattr(ours, "final", None) == getattr(theirs.maps.types[name], "final", None), name
        given, taken = defaults(oracle), defaults(theirs)
        assert given == {name: taken.get(name) for name in given}

    def test_operations_say_the_same(self, release_wsdls: list[Path]) -> None:
        ours, theirs = definitions(WSDLS), definitions(release_wsdls)
        assert {name: said(one) for name, one in ours.items()} == {name: said(one) for name, one in theirs.items()}


def defaults(oracle: Oracle) -> dict[str, str]:
    """The values that elements have by default, by name."""
    found = oracle.maps.iter_components(XsdElement)
    return {
        str(one.name): one.default for one in found if one.default is not None and str(one.name).startswith(f"{{{MTOP}")
    }


class TestDocumentation:
    @pytest.mark.parametrize("file", FILES, ids=short)
    def test_each_declaration_is_documented(self, file: Path) -> None:
        """Files, global elements and types, and each element that a type declares: they become docstrings."""
        root = etree.parse(file).getroot()
        silent = [node.get("name") for node in documented(root) if not documentation(node)]
        assert silent == []
        assert all(documentation(node).endswith((".", ".)")) for node in documented(root))

    @pytest.mark.parametrize("file", WSDLS, ids=lambda file: file.stem)
    def test_each_service_and_operation_is_documented(self, file: Path) -> None:
        root = etree.parse(file).getroot()
        described = [root, *root.findall(f"{{{WSDL}}}portType/{{{WSDL}}}operation")]
        assert all((node.findtext(f"{{{WSDL}}}documentation") or "").strip().endswith(".") for node in described)
        assert len(described) == 1 + OPERATIONS[file.stem]

    def test_the_words_are_our_own(self, shared: Path, release_files: list[Path]) -> None:
        """No text of five words or more is the release's."""
        sources = [*release_files, *(shared / "mtosi" / "2.0").glob("*/IIS/wsdl/*/*.wsdl")]
        theirs = " ".join(words(" ".join(etree.parse(file).getroot().itertext())) for file in sources)
        ours = {documentation(node) for file in FILES for node in documented(etree.parse(file).getroot())}
        ours |= {" ".join(text.split()) for file in WSDLS for text in etree.parse(file).getroot().itertext()}
        long = [text for text in ours if len(text.split()) >= 5]
        assert len(long) > 300
        assert [text for text in long if words(text) in theirs] == []


def documented(root: etree._Element) -> Iterator[etree._Element]:
    yield root
    for node in root.iter(f"{XSD}element", f"{XSD}complexType", f"{XSD}simpleType"):
        if node.get("name") is not None:
            yield node


def documentation(node: etree._Element) -> str:
    return " ".join((node.findtext(f"{XSD}annotation/{XSD}documentation") or "").split())


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
