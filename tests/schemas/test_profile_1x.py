"""Our profile of MTOSI 1.1 says what the release says: documents of either are valid by the schemas of both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from lxml import etree

pytest.importorskip("xmlschema", reason="the extra codegen brings the xmlschema library")

from mtosi_codegen.proof.instances import Kind, Maker, Stock
from mtosi_codegen.proof.oracle import Oracle
from mtosi_jms import stubs11, xmlbind
from mtosi_jms.namespaces import WSDL, XSD

PROFILE: Final = Path(__file__).parents[2] / "mtosi-1.1"
FILES: Final = sorted((PROFILE / "xsd").glob("*.xsd"))
SPACE: Final = "{tmf854.v1}"
NAMES: Final = {
    f"{SPACE}{node.get('name')}"
    for file in FILES
    for node in etree.parse(file).getroot().iterchildren(f"{{{XSD}}}element")
}
"""The global elements of the profile."""
DOCUMENTS: Final[dict[Kind, int]] = {"least": 1, "greatest": 1, "random": 3}  # of each global element
LEFT_OUT: Final = ("voList", "mlsnList", "ccList", "pgpList", "epgpList")
ANY: Final = {"layer": "LR_POTS", "layerRate": "LR_POTS", "rate": "LR_POTS", "type": "LOS"}
"""The profile takes layers and causes by any name, where the release has lists: one that is in both."""


class Side:
    """The schemas of the profile or the release: they make documents, and judge those of the other."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        driver = folder / "driver.xsd"
        includes = "".join(f'<include schemaLocation="{file.as_uri()}"/>' for file in files)
        driver.write_text(f'<schema xmlns="{XSD}" targetNamespace="tmf854.v1">{includes}</schema>', encoding="utf-8")
        self.oracle = Oracle(driver)
        self.judge = etree.XMLSchema(file=str(driver))

    def documents(self) -> Iterator[etree._Element]:
        """Documents of each global element of the profile, as both sides can have them."""
        stock = Stock(self.oracle)
        for name in sorted(self.oracle.maps.elements.keys() & NAMES):
            for kind, count in DOCUMENTS.items():
                maker = Maker(stock, kind, seed=11)
                for _ in range(count):
                    made = maker.make(self.oracle.maps.elements[name])
                    for node in list(made.iter(*(f"{SPACE}{one}" for one in LEFT_OUT))):
                        parent = node.getparent()
                        assert parent is not None
                        parent.remove(node)
                    for node in made.iter(*(f"{SPACE}{one}" for one in ANY)):
                        node.text = node.text and ANY[etree.QName(node).localname]
                    for node in made.iter(f"{SPACE}vendorExtensions"):  # whose attributes differ from type to type
                        node.attrib.clear()
                    yield made


@pytest.fixture(scope="module")
def sides(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    release = shared / "mtosi" / "1.1" / "xsd" / "interfaces"
    if not release.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {release}")
    folders = [tmp_path_factory.mktemp(name) for name in ("profile", "release")]
    return Side(folders[0], [PROFILE / "xsd" / "messages.xsd"]), Side(folders[1], sorted(release.glob("*.xsd")))


@pytest.mark.parametrize("order", [1, -1], ids=["of the profile", "of the release"])
def test_documents_are_valid_by_both_and_come_back_from_the_stubs(sides: tuple[Side, Side], order: int) -> None:
    maker, judge = sides[::order]
    seen = set()
    for document in maker.documents():
        assert maker.judge.validate(document), maker.judge.error_log[0].message
        assert judge.judge.validate(document), (judge.judge.error_log[0].message, etree.tostring(document))
        cls = xmlbind.find_element(str(document.tag), stubs11.__name__)
        assert cls is not None
        read = xmlbind.decode(etree.tostring(document), cls, strict=True)
        assert xmlbind.decode(xmlbind.encode(read), cls, strict=True) == read
        seen |= {node.tag for node in document.iter(f"{SPACE}*")}
    assert len(seen) > 200


def operations(files: list[Path]) -> dict[str, tuple[str | None, ...]]:
    """The elements of each operation's request, response and fault, by interface and name."""
    roots = [etree.parse(file).getroot() for file in files]
    bodies = {}
    for message in (one for root in roots for one in root.findall(f"{{{WSDL}}}message")):
        parts = [str(part.get("element")).rpartition(":")[2] for part in message.findall(f"{{{WSDL}}}part")]
        assert parts[:-1] in (["header"], [])
        bodies[message.get("name")] = parts[-1]
    return {
        f"{kind.get('name')}.{operation.get('name')}": tuple(
            bodies[str(found.get("message")).rpartition(":")[2]]
            for name in ("input", "output", "fault")
            for found in operation.findall(f"{{{WSDL}}}{name}")
        )
        for kind in (one for root in roots for one in root.findall(f"{{{WSDL}}}portType"))
        for operation in kind.findall(f"{{{WSDL}}}operation")
    }


def test_operations_have_the_names_and_messages_of_the_release(shared: Path) -> None:
    release = shared / "mtosi" / "1.1" / "wsdl" / "common"
    if not release.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {release}")
    ours, theirs = operations(sorted((PROFILE / "wsdl").glob("*.wsdl"))), operations(sorted(release.glob("*.wsdl")))
    assert len(ours) == 15
    assert ours == {name: found for name, found in theirs.items() if name in ours}


def test_the_words_are_our_own(shared: Path) -> None:
    """No text of five words or more is the release's, and each type has one."""
    release = (etree.parse(file).getroot() for file in (shared / "mtosi" / "1.1").rglob("*.*s*d*"))
    theirs = words(" ".join(text for root in release for text in root.itertext()))
    ours = [
        " ".join(text.split())
        for file in (*FILES, *(PROFILE / "wsdl").glob("*.wsdl"))
        for text in etree.parse(file).getroot().itertext()
        if len(text.split()) >= 5
    ]
    assert len(ours) > 90
    assert [text for text in ours if words(text) in theirs] == []
    for file in FILES:
        for node in etree.parse(file).getroot().iterchildren(f"{{{XSD}}}complexType", f"{{{XSD}}}simpleType"):
            assert node.findtext(f"{{{XSD}}}annotation/{{{XSD}}}documentation"), node.get("name")


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
