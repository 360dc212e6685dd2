"""Our profile of MTOSI 1.1 says what the release says, but for what it leaves out and takes more widely."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from lxml import etree

pytest.importorskip("xmlschema", reason="the extra codegen brings the xmlschema library")

from mtosi_codegen.mend import Mended, mend
from mtosi_codegen.proof.oracle import Oracle
from mtosi_codegen.proof.stubs import Stubs
from mtosi_codegen.proof.verify import compare
from mtosi_jms import stubs11
from mtosi_jms.namespaces import XSD

PROFILE: Final = Path(__file__).parents[2] / "mtosi-1.1"
FILES: Final = sorted((PROFILE / "xsd").glob("*.xsd"))
LEFT_OUT: Final = {"voList", "mlsnList", "ccList", "pgpList", "epgpList"}
ANY: Final = {"layer", "layerRate", "rate", "type"}
"""The profile takes layers and causes by any name, where the release has lists."""
EXTENSIONS: Final = {"vendorExtensions", "@tmf854Version", "@extVersion", "@version"}
"""The release has a type of them for each type of object, with other attributes; the profile has one."""


@pytest.fixture(scope="module")
def release(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Mended:
    folder = shared / "mtosi" / "1.1"
    if not folder.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {folder}")
    return mend([folder / "wsdl", folder / "xsd"], tmp_path_factory.mktemp("release"))


def test_types_and_elements_say_the_same(release: Mended) -> None:
    """The stubs, which are those of the profile by another test, beside the release as xmlschema reads it."""
    theirs, stubs = Oracle(release.schema), Stubs(Path(str(stubs11.__file__)).parent, "stubs11_beside_the_release")
    found = [one for one in compare(theirs, stubs, []).differences if "class" not in one.stub]
    differing = {(one.path.rpartition("/")[2], one.schema.partition(" |")[0], one.stub) for one in found}
    assert {one for one in differing if one[0] not in EXTENSIONS} == {
        *((name, "0..1", "no such field") for name in LEFT_OUT), *((name, "string", "string") for name in ANY)
    }  # fmt: skip
    assert {one[0] for one in differing} >= EXTENSIONS
    known = {*theirs.maps.elements, *theirs.maps.types}
    listed = {name for kind in ("__elements__", "__types__") for name, _ in stubs.listed(kind)}
    assert listed - known == {"{tmf854.v1}VendorExtensions_T"}


def test_operations_have_the_names_and_messages_of_the_release(release: Mended, tmp_path: Path) -> None:
    ours, theirs = (
        {
            (service.port_type, one.name): (one.mep, one.request, one.response, one.fault_elements)
            for service in services
            for one in service.operations
        }
        for services in (mend([PROFILE], tmp_path).services, release.services)
    )
    assert len(ours) == 15
    assert ours.items() <= theirs.items()


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
