"""W3C's test suite of XML Schema: stubs from its schemas read its instances, write them again, and tell invalid ones.

The suite is github.com/w3c/xsdtests; XSDTESTS names a folder with it. `python -m pytest -m endurance -s` with this file
prints how much of it is in reach.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from lxml import etree

from mtosi_codegen import generate, write
from mtosi_jms import xmlbind
from mtosi_jms.errors import MtosiError
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import _registry as registry

_TS: Final = "{http://www.w3.org/XML/2004/xml-schema-test-suite/}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_STEP: Final = 9
"""Every so manieth group of each test set is taken."""


_ONLY_BLANKS: Final = re.compile(r"text of .*: \['(?:\\n|\\t| )+'\] became \[''\]")
BLANKS: Final = "blanks inside an element that holds elements only and is empty"
LIMITS: Final = "more attributes than the reader's limits allow"
IDENTITY: Final = "an identity constraint: `validate` tells it"
XML_1_1: Final = "XML 1.1"
NO_URI: Final = "a namespace that is not a URI"
UNDECLARED: Final = "the root is declared nowhere, and names its type"


@dataclass(slots=True)
class Group:
    """A test group: a schema that is valid in XML Schema 1.0, with instances."""

    name: str
    schemas: list[Path]
    valid: list[Path] = field(default_factory=list)
    invalid: list[Path] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """What became of a group: problems by instance."""

    generated: bool = False
    imported: bool = False
    findings: list[str] = field(default_factory=list)
    error: str = ""
    round_trip: dict[Path, str] = field(default_factory=dict)
    false_warnings: dict[Path, str] = field(default_factory=dict)
    told: dict[Path, str] = field(default_factory=dict)
    silent: dict[Path, str] = field(default_factory=dict)


def groups(suite: Path) -> Iterator[Group]:
    """The groups in reach: their schema is valid in XML Schema 1.0 and they have instances."""
    for reference in etree.parse(suite / "suite.xml").getroot().iter(f"{_TS}testSetRef"):
        file = suite / reference.get(_HREF, "")
        if file.is_file():
            found = [group for group in _described(file) if group.valid or group.invalid]
            yield from found
    yield from _named(suite / "nistData")


def _described(file: Path) -> Iterator[Group]:
    tests = etree.parse(file).getroot()
    if "1.1" in (tests.get("version") or "").split():
        return
    for element in tests.iter(f"{_TS}testGroup"):
        schema = element.find(f"{_TS}schemaTest")
        if schema is None or _validity(schema) != "valid" or element.get("version") == "1.1":
            continue
        documents = [_target(file, one) for one in schema.iterfind(f"{_TS}schemaDocument")]
        group = Group(f"{file.parent.name}/{element.get('name')}", documents)
        for instance in element.iterfind(f"{_TS}instanceTest"):
            document = instance.find(f"{_TS}instanceDocument")
            kind = _validity(instance)
            if document is not None and kind in ("valid", "invalid"):
                (group.valid if kind == "valid" else group.invalid).append(_target(file, document))
        if all(path.is_file() for path in (*documents, *group.valid, *group.invalid)):
            yield group


def _target(file: Path, element: etree._Element) -> Path:
    return Path(os.path.normpath(file.parent / element.get(_HREF, "")))


def _validity(test: etree._Element) -> str:
    """What is expected in XML Schema 1.0; empty for a test of 1.1."""
    if test.get("version") == "1.1":
        return ""
    for expected in test.iterfind(f"{_TS}expected"):
        if expected.get("version") in (None, "1.0"):
            return expected.get("validity", "")
    return ""


def _named(data: Path) -> Iterator[Group]:
    """The groups of NIST, whose description is too large for some copies of the suite: their names say all."""
    for schema in sorted(data.rglob("NISTSchema-*.xsd")):
        stem = schema.stem.removeprefix("NISTSchema-")
        instances = sorted(schema.parent.glob(f"NISTXML-{stem}-*.xml"))
        if stem.startswith("SV-IV"):
            yield Group(f"nist/{stem}", [schema], valid=instances)
        elif stem.startswith("SV-II"):
            yield Group(f"nist/{stem}", [schema], invalid=instances)


def trial(group: Group, folder: Path, name: str) -> Outcome:
    """Generate stubs for a group and read its instances with them."""
    outcome = Outcome()
    try:
        result = generate(_sources(group))
    except MtosiError as error:
        outcome.error = f"{type(error).__name__}: {error}"
        return outcome
    outcome.findings = [str(finding) for finding in result.findings]
    outcome.generated = not result.failed
    write(folder / name, result.files)
    importlib.invalidate_caches()
    try:
        importlib.import_module(name)
        for path in (*result.model.modules, *result.services):
            importlib.import_module(f"{name}.{getattr(path, 'path', None) or path.module}")
        outcome.imported = True
        for path in group.valid:
            _read_valid(path, name, outcome)
        for path in group.invalid:
            outcome.told[path] = _told(path, name)
            if not outcome.told[path]:
                outcome.silent[path] = reason(path, group, outcome.findings, _on_demand(path, group))
    finally:
        registry._packages.pop(name, None)
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]
    return outcome


def _sources(group: Group) -> list[Path]:
    """The schemas of a group, and those that its instances name."""
    found = dict.fromkeys(group.schemas)
    for path in (*group.valid, *group.invalid):
        with contextlib.suppress(MtosiError):
            root = xmlbind.read_xml(path)
            hints = root.get(f"{_XSI}schemaLocation", "").split()[1::2]
            hints += root.get(f"{_XSI}noNamespaceSchemaLocation", "").split()
            found |= {hinted: None for hint in hints if (hinted := path.parent / hint).is_file()}
    return list(found)


def _class_of(path: Path, package: str) -> tuple[etree._Element, type[xmlbind.XmlObject] | None]:
    """The root of an instance and its class: that of its element, else that of the type that it names."""
    root = xmlbind.read_xml(path)
    named = xmlbind.Scopes().qname(root.get(xmlbind.XSI_TYPE, ""), root) or ""
    return root, xmlbind.find_element(str(root.tag), package) or xmlbind.find_type(named, package)


def _read_valid(path: Path, package: str, outcome: Outcome) -> None:
    try:
        root, cls = _class_of(path, package)
    except MtosiError as error:
        known = {"attributes in one element": LIMITS, "invalid xmlChar": XML_1_1, "is not a valid URI": NO_URI}
        outcome.round_trip[path] = next((why for text, why in known.items() if text in str(error)), str(error))
        return
    if cls is None:
        outcome.round_trip[path] = UNDECLARED if root.get(xmlbind.XSI_TYPE) else "no class for the root"
        return
    warnings: list[xmlbind.XmlWarning] = []
    value = xmlbind.decode(root, cls, warnings=warnings)
    if warnings:
        outcome.false_warnings[path] = f"{warnings[0].rule}: {warnings[0]}"
    try:
        again = xmlbind.parse_xml(xmlbind.encode(value)) if not isinstance(value, xmlbind.Nil) else root
    except MtosiError as error:
        outcome.round_trip[path] = UNDECLARED if cls.__xml__.element is None else f"not written: {error}"
        return
    if difference := differing(root, again):
        outcome.round_trip[path] = BLANKS if _ONLY_BLANKS.match(difference) else difference


def _told(path: Path, package: str) -> str:
    """What the reader says about an invalid instance; empty for nothing."""
    try:
        root, cls = _class_of(path, package)
        if cls is None:
            return "no class for the root"
        warnings: list[xmlbind.XmlWarning] = []
        xmlbind.decode(root, cls, warnings=warnings)
    except MtosiError as error:
        return str(error)
    return str(warnings[0]) if warnings else ""


def _on_demand(path: Path, group: Group) -> str:
    """What validation against the schema says; empty for nothing."""
    try:
        report = Validator(SchemaSet.load(group.schemas[0])).validate_file(path)
    except MtosiError as error:
        return f"{type(error).__name__}: {error}"
    return "; ".join(issue.message for issue in report.issues)


def differing(one: etree._Element, other: etree._Element) -> str:
    """Where two elements differ, beyond prefixes, comments and blanks between elements; empty where they do not."""
    if one.tag != other.tag:
        return f"{one.tag} became {other.tag}"
    names = one.keys()
    if set(names) != set(other.keys()):
        return f"attributes of {one.tag}: {names} became {other.keys()}"
    for name in names:
        if not _alike(one.get(name, ""), one, other.get(name, ""), other):
            return f"attribute {name} of {one.tag}: {one.get(name)!r} became {other.get(name)!r}"
    if len(one) != len(other):
        return f"children of {one.tag}: {[child.tag for child in one]} became {[child.tag for child in other]}"
    before, after = _texts(one), _texts(other)
    blank = len(one) and not any(text.strip() for text in (*before, *after))
    pairs = zip(before, after, strict=True)
    if not blank and not all(_alike(text, one, again, other) for text, again in pairs):
        return f"text of {one.tag}: {before} became {after}"
    return next((found for pair in zip(one, other, strict=True) if (found := differing(*pair))), "")


def _texts(element: etree._Element) -> list[str]:
    return [element.text or "", *(child.tail or "" for child in element)]


def _alike(text: str, element: etree._Element, again: str, other: etree._Element) -> bool:
    """Whether two texts are the same, or the same qualified names."""
    return text == again or (bool(text.split()) and _resolved(text, element) == _resolved(again, other))


def _resolved(text: str, element: etree._Element) -> list[str]:
    """The words of a text, prefixes replaced by namespaces."""
    pairs = [word.rpartition(":") for word in text.split()]
    return [f"{{{element.nsmap.get(prefix or None, prefix)}}}{local}" for prefix, _, local in pairs]


def reason(path: Path, group: Group, findings: list[str], report: str) -> str:
    """Why the reader passed over what is wrong with an instance.

    Args:
        path: the instance.
        group: its group.
        findings: those of the generator.
        report: what validation against the schema says, empty for nothing.
    """
    schema = " ".join(file.read_text(encoding="utf-8", errors="replace") for file in group.schemas)
    instance = path.read_text(encoding="utf-8", errors="replace")
    known = {
        IDENTITY: re.search("key-sequence|identity-constraint", report),
        "a type that a declaration of a simple type blocks": re.search("blocked|not expected", report)
        and "block" in schema,
        "a class of characters that another release of Unicode has otherwise": "\\p{" in schema,
        "an attribute that a wildcard admits: its declaration is not looked up": "anyAttribute" in schema,
        "a wildcard of no namespace": 'namespace=""' in schema,
        "xsi:type names a type of another derivation": "xsi:type" in instance,
        "a fixed value of mixed content, or of a union": "fixed=" in schema,
        "ID that is there twice, or IDREF to nothing": re.search(r":ID(?:REFS?)?\b", schema),
        "a type that nothing defines": any("type-unresolved" in finding for finding in findings),
        "nothing is wrong that libxml2 could find": not report,
    }
    return next((name for name, found in known.items() if found), "other")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Group, Outcome]]]:
    """The groups that are taken, and what became of each."""
    named = os.environ.get("XSDTESTS")
    if not named:
        pytest.skip("XSDTESTS names no folder with github.com/w3c/xsdtests")
    every = list(groups(Path(named)))
    nist = [group for group in every if group.name.startswith("nist/")]
    others = [group for group in every if group not in nist]
    folder = tmp_path_factory.mktemp("w3c")
    sys.path.insert(0, str(folder))
    taken = [*others[::_STEP], *nist[:: 4 * _STEP]]
    yield [(group, trial(group, folder, f"w3c{number}")) for number, group in enumerate(taken)]
    sys.path.remove(str(folder))


Outcomes = list[tuple[Group, Outcome]]


def table(outcomes: Outcomes) -> str:
    """How much of the suite is in reach."""
    valid = sum(len(group.valid) for group, _ in outcomes)
    invalid = sum(len(group.invalid) for group, _ in outcomes)
    rows = [
        ("groups", len(outcomes), ""),
        ("generated", sum(outcome.generated for _, outcome in outcomes), ""),
        ("imported", sum(outcome.imported for _, outcome in outcomes), ""),
        ("valid instances", valid, ""),
        ("read without a warning", valid - sum(len(outcome.false_warnings) for _, outcome in outcomes), ""),
        ("written as they were read", valid - sum(len(outcome.round_trip) for _, outcome in outcomes), ""),
        ("invalid instances", invalid, ""),
        ("told by the reader", invalid - sum(len(outcome.silent) for _, outcome in outcomes), ""),
    ]
    lost = Counter(text for _, outcome in outcomes for text in outcome.round_trip.values())
    silent = Counter(text for _, outcome in outcomes for text in outcome.silent.values())
    rows += [("not written as read", count, why) for why, count in sorted(lost.items())]
    rows += [("silent", count, why) for why, count in sorted(silent.items())]
    return "\n".join(f"| {what} | {count} | {why} |" for what, count, why in rows)


@pytest.mark.endurance
def test_every_schema_generates_and_imports(outcomes: Outcomes) -> None:
    print("\n" + table(outcomes))
    assert [group.name for group, outcome in outcomes if not outcome.imported] == []
    lost = [text for _, outcome in outcomes if not outcome.generated for text in (*outcome.findings, outcome.error)]
    assert [text for text in lost if "not generated" in text and "is not a valid URI" not in text] == []


@pytest.mark.endurance
def test_no_valid_instance_gives_a_warning(outcomes: Outcomes) -> None:
    found = [f"{path.name}: {text}" for _, outcome in outcomes for path, text in outcome.false_warnings.items()]
    assert found == []


@pytest.mark.endurance
def test_instances_are_written_as_they_were_read(outcomes: Outcomes) -> None:
    found = {text for _, outcome in outcomes for text in outcome.round_trip.values()}
    assert found <= {BLANKS, LIMITS, XML_1_1, NO_URI, UNDECLARED}


@pytest.mark.endurance
def test_few_invalid_instances_are_passed_over_and_each_for_a_reason(outcomes: Outcomes) -> None:
    invalid = sum(len(group.invalid) for group, _ in outcomes)
    silent = [f"{path.name}: {why}" for _, outcome in outcomes for path, why in outcome.silent.items()]
    assert len(silent) * 315 <= 30 * invalid
    assert [text for text in silent if text.endswith(": other")] == []


def test_without_the_suite_the_trial_still_tells_documents_apart() -> None:
    one = etree.fromstring('<a xmlns:p="urn:p" t="p:x"><b>p:y</b> <c/></a>')
    assert differing(one, etree.fromstring('<a xmlns:q="urn:p" t="q:x"><b>q:y</b><c/></a>')) == ""
    assert "text of b" in differing(one, etree.fromstring('<a xmlns:p="urn:p" t="p:x"><b>p:z</b><c/></a>'))
    assert "children" in differing(one, etree.fromstring('<a xmlns:p="urn:p" t="p:x"><b>p:y</b></a>'))
    assert "attributes" in differing(one, etree.fromstring('<a xmlns:p="urn:p"><b>p:y</b><c/></a>'))
