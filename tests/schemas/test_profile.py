"""Our schemas load everywhere, are documented, and agree with the release: what they accept, MTOSI 2.0 accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

import pytest
from lxml import etree

from .profile_structure import (
    WSDL,
    Binding,
    Child,
    Complex,
    Root,
    Simple,
    Structure,
    read_bindings,
    read_structure,
    without,
)

pytest.importorskip("xmlschema", reason="the extra codegen brings the xmlschema library")

from xmlschema.extras import wsdl as wsdl11
from xmlschema.validators import XsdElement

from mtosi_codegen.proof import instances
from mtosi_codegen.proof.instances import Kind, Maker, Stock
from mtosi_codegen.proof.oracle import Oracle

REPOSITORY: Final = Path(__file__).parents[2]
FILES: Final = sorted((REPOSITORY / "xsd").glob("*/*.xsd"))
WSDLS: Final = sorted((REPOSITORY / "wsdl").glob("*.wsdl"))
XSD: Final = "{http://www.w3.org/2001/XMLSchema}"
MTOP: Final = "http://www.tmforum.org/mtop/"
INVDATA: Final = f"{{{MTOP}nrf/xsd/invdata/v1}}"

Drive: TypeAlias = Callable[[Path, list[Path]], Path]

SEED: Final = 20
DOCUMENTS: Final[dict[Kind, int]] = {"least": 1, "greatest": 3, "random": 24}  # of each global element

# What the profile leaves out of types that it has: optional elements for objects that it does not know.
LEFT_OUT: Final[dict[str, set[str]]] = {
    f"{INVDATA}ManagementDomainInventoryType": {"fdList"},
    f"{INVDATA}MultiLayerSubnetworkInventoryType": {"tpPoolList"},
    f"{{{MTOP}nrf/xsd/snc/v1}}SubnetworkConnectionType": {"protectionEffort"},
    f"{INVDATA}ManagedElementInventoryType": {"ccList", "pgpList", "epgList", "gtpList", "mfdList"},
}
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
    return sorted(read_structure(FILES).elements)


def label(name: str) -> str:
    return name.removeprefix("{" + MTOP).replace("/xsd/", "/").replace("/v1}", " ")


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
def release_structure(release_files: list[Path]) -> Structure:
    return read_structure(release_files)


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
        assert [local_name(name) for name in loaded.services] == [f"{file.stem}Jms"]

    def test_the_services_are_those_of_the_profile(self) -> None:
        assert {file.stem: len(only_binding(file).operations) for file in WSDLS} == OPERATIONS

    @pytest.mark.parametrize("file", WSDLS, ids=lambda file: file.stem)
    def test_each_message_element_is_declared(self, file: Path) -> None:
        declared = read_structure(FILES).elements
        for operation in only_binding(file).operations.values():
            parts = [
                *operation.request,
                *operation.response,
                *(part for _, fault in operation.faults for part in fault),
            ]
            assert {element for _, element in parts} <= set(declared)


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

    @pytest.mark.parametrize("file", FILES, ids=short)
    def test_types_and_elements_say_the_same(self, file: Path, release_structure: Structure) -> None:
        ours = read_structure([file])
        for name, kind in ours.types.items():
            theirs: Complex | Simple | None = release_structure.types.get(name)
            left_out = LEFT_OUT.get(name, set())
            if left_out and isinstance(theirs, Complex):
                theirs = without(theirs, left_out)
            assert kind == theirs, name
        for name, root in ours.elements.items():
            if name not in NARROWED:
                assert root == release_structure.elements.get(name), name

    @pytest.mark.parametrize("name", sorted(LEFT_OUT), ids=label)
    def test_what_is_left_out_is_optional(self, name: str, release_structure: Structure) -> None:
        kind = release_structure.types[name]
        assert isinstance(kind, Complex)
        assert kind.content is not None
        children = {local_name(m.name): m for m in kind.content.members if isinstance(m, Child)}
        assert {children[child].least for child in LEFT_OUT[name]} == {0}

    @pytest.mark.parametrize("name", sorted(NARROWED), ids=label)
    def test_what_is_narrowed_was_open(self, name: str, release_structure: Structure) -> None:
        assert release_structure.elements[name] == Root(f"{XSD}anyType", False, False, None)

    def test_enumerations_have_the_same_values(self, release_structure: Structure) -> None:
        ours = {n: k.values for n, k in read_structure(FILES).types.items() if isinstance(k, Simple) and k.values}
        theirs = {n: k.values for n, k in release_structure.types.items() if isinstance(k, Simple) and n in ours}
        assert len(ours) > 25
        assert ours == theirs

    @pytest.mark.parametrize("file", WSDLS, ids=lambda file: file.stem)
    def test_operations_say_the_same(self, file: Path, shared: Path) -> None:
        """Names, message exchange patterns, messages and the way that SOAP carries them."""
        ours = read_bindings([file])
        theirs = read_bindings(sorted((shared / "mtosi" / "2.0").glob(f"*/IIS/wsdl/{file.stem}/*.wsdl")))
        assert list(ours) == list(theirs)
        for name, binding in ours.items():
            assert binding.interface == theirs[name].interface
            assert binding.transport == theirs[name].transport
            assert binding.operations == theirs[name].operations

    @pytest.mark.parametrize("file", WSDLS, ids=lambda file: file.stem)
    def test_the_address_names_the_service(self, file: Path) -> None:
        assert only_binding(file).address == f"jms://aserver/mtosi/{file.stem}"


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


def local_name(name: str) -> str:
    return name.rpartition("}")[2]


def only_binding(file: Path) -> Binding:
    (binding,) = read_bindings([file]).values()
    return binding


def documented(root: etree._Element) -> Iterator[etree._Element]:
    yield root
    for node in root.iter(f"{XSD}element", f"{XSD}complexType", f"{XSD}simpleType"):
        if node.get("name") is not None:
            yield node


def documentation(node: etree._Element) -> str:
    return " ".join((node.findtext(f"{XSD}annotation/{XSD}documentation") or "").split())


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
