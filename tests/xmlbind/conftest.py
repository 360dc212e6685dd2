"""What the tests of the binding share: a package generated from `schemas/`, and the canonical form of a document."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from lxml import etree

from mtosi_codegen import generate, write
from mtosi_jms import xmlbind
from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import XSI

SCHEMAS = Path(__file__).with_name("schemas")
PREFIXES = {
    "c": "urn:test:constructs",
    "o": "urn:test:other",
    "xsi": XSI,
    "xsd": "http://www.w3.org/2001/XMLSchema",
    "hdr": "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1",
    "nam": "http://www.tmforum.org/mtop/fmw/xsd/nam/v1",
    "coi": "http://www.tmforum.org/mtop/fmw/xsd/coi/v1",
    "gen": "http://www.tmforum.org/mtop/fmw/xsd/gen/v1",
    "cri": "http://www.tmforum.org/mtop/nrb/xsd/cri/v1",
    "lay": "http://www.tmforum.org/mtop/nrb/xsd/lay/v1",
    "me": "http://www.tmforum.org/mtop/nrf/xsd/me/v1",
    "mer": "http://www.tmforum.org/mtop/mri/xsd/mer/v1",
    "msg": "http://www.tmforum.org/mtop/fmw/xsd/msg/v1",
    "notmsg": "http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1",
    "cei": "http://www.tmforum.org/mtop/fmw/xsd/cei/v1",
    "ei": "http://www.tmforum.org/mtop/fmw/xsd/ei/v1",
    "hbt": "http://www.tmforum.org/mtop/fmw/xsd/hbt/v1",
    "alm": "http://www.tmforum.org/mtop/nra/xsd/alm/v1",
    "rir": "http://www.tmforum.org/mtop/mri/xsd/rir/v1",
    "inv": "http://www.tmforum.org/mtop/nrf/xsd/invdata/v1",
    "ptp": "http://www.tmforum.org/mtop/nrf/xsd/ptp/v1",
    "prc": "http://www.tmforum.org/mtop/nra/xsd/prc/v1",
    "v": "urn:vendor",
}
_PREFIX = re.compile(r"\b([a-z]+):")


def doc(xml: str) -> bytes:
    """A document of text whose prefixes are those of `PREFIXES`, with the declarations that it needs on its root."""
    needed = sorted({prefix for prefix in _PREFIX.findall(xml) if prefix in PREFIXES})
    names = "".join(f' xmlns:{prefix}="{PREFIXES[prefix]}"' for prefix in needed)
    return re.sub(r"<[^\s/>]+", lambda tag: tag.group() + names, xml, count=1).encode()


def canonical(data: bytes) -> str:
    """The canonical form of a document: prefixes, blanks between elements and how it was written do not count."""
    root = xmlbind.parse_xml(data)
    for element in root.iter():
        kind = element.get(f"{{{XSI}}}type")
        if kind is not None:
            element.set(f"{{{XSI}}}type", _resolved(kind, element))
        if element.tag == f"{{{PREFIXES['c']}}}qname" and element.text and not len(element):
            element.text = _resolved(element.text, element)
    return ET.canonicalize(etree.tostring(root, encoding="unicode"), strip_text=True, rewrite_prefixes=True)


def _resolved(text: str, element: etree._Element) -> str:
    """A qualified name with its namespace in place of its prefix; as it is where the prefix is not declared."""
    prefix, _, local = text.strip().rpartition(":")
    namespace = element.nsmap.get(prefix or None, "" if not prefix else None)
    return text if namespace is None else f"{{{namespace}}}{local}"


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Name of the package generated from `schemas/`."""
    folder = tmp_path_factory.mktemp("bindcases")
    result = generate([SCHEMAS])
    assert [str(finding) for finding in result.findings] == []
    write(folder / "bindcases", result.files)
    sys.path.insert(0, str(folder))
    importlib.import_module("bindcases")
    yield "bindcases"
    sys.path.remove(str(folder))


@pytest.fixture(autouse=True, scope="module")
def packages_are_forgotten(package: str, packages_are_forgotten: None) -> None:
    """That of the session is made first: it is not forgotten with the first module that uses it."""


@pytest.fixture(scope="session")
def c(package: str) -> ModuleType:
    """The classes of `constructs.xsd`."""
    return importlib.import_module(f"{package}.urn_test.constructs")


@pytest.fixture(scope="session")
def o(package: str) -> ModuleType:
    """The classes of `other.xsd`."""
    return importlib.import_module(f"{package}.urn_test.other")


@pytest.fixture(scope="session")
def constructs_schema() -> etree.XMLSchema:
    """`constructs.xsd` as libxml2 reads it."""
    return etree.XMLSchema(etree.parse(SCHEMAS / "constructs.xsd"))


@pytest.fixture
def read(package: str) -> Callable[..., Any]:
    """Reads text as `doc` takes it: an object with `value` and `warnings`."""

    def make(xml: str, cls: Any = None) -> SimpleNamespace:
        warnings: list[xmlbind.XmlWarning] = []
        value = xmlbind.decode(doc(xml), cls, warnings=warnings)
        return SimpleNamespace(value=value, warnings=warnings, rules=[warning.rule for warning in warnings])

    return make


def _written(obj: Any) -> tuple[str, Any]:
    try:
        return "bytes", xmlbind.encode(obj)
    except EncodeError as error:
        return "error", str(error)


@pytest.fixture
def both(cores: ModuleType) -> Callable[[Any], tuple[Any, Any]]:
    """What the native core writes of an object, where it is installed, and what the Python core writes: bytes, or the
    error's text."""

    def write(obj: Any) -> tuple[Any, Any]:
        with cores.core("python"):
            in_python = _written(obj)
        with cores.core(""):
            return _written(obj), in_python

    return write
