"""The verdict on every official sample, against libxml2 set up by hand without anything of ours."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
from lxml import etree

from mtosi_jms.validation import Report, SchemaSet, Validator

SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"


@pytest.fixture(scope="module")
def samples(shared: Path) -> list[Path]:
    return sorted((shared / "samples" / "official-2.0").rglob("*.xml"))


@pytest.fixture(scope="module")
def release(shared: Path) -> SchemaSet:
    return SchemaSet.load(shared / "mtosi" / "2.0")


@pytest.fixture(scope="module")
def reports(release: SchemaSet, samples: list[Path]) -> dict[str, Report]:
    validator = Validator(release)
    return {path.name: validator.validate_file(path) for path in samples}


@pytest.fixture(scope="module")
def oracle(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    """libxml2 over copies of all IIS/xsd folders, blanks cut out by a plain substitution, locations left alone."""
    release = shared / "mtosi" / "2.0"
    copies = tmp_path_factory.mktemp("release")
    imports = []
    for path in sorted(release.glob("*/IIS/xsd/*.xsd")):
        text = re.sub(r'\b(name|ref|type|base)="\s*([^"]*?)\s*"', r'\1="\2"', path.read_text(encoding="utf-8"))
        target = copies / path.relative_to(release)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        namespace = re.search(r'targetNamespace="([^"]*)"', text)
        assert namespace is not None
        imports.append(f'<xs:import namespace="{namespace.group(1)}" schemaLocation="{target.as_uri()}"/>')
    driver = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{"".join(imports)}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(driver))


def judged(root: etree._Element) -> list[etree._Element]:
    if root.tag != f"{SOAP}Envelope":
        return [root]
    found = list(root.iterfind(f"{SOAP}Header/*"))
    for entry in root.iterfind(f"{SOAP}Body/*"):
        found += list(entry.iterfind("detail/*")) if entry.tag == f"{SOAP}Fault" else [entry]
    return found


def by_hand(path: Path, schema: etree.XMLSchema) -> list[int] | None:
    """The lines of libxml2's findings on copies of what is judged; None where the file is not well-formed."""
    try:
        root = etree.parse(str(path), etree.XMLParser(remove_comments=True, remove_pis=True)).getroot()
    except etree.XMLSyntaxError:
        return None
    lines: list[int] = []
    for element in judged(root):
        if not schema.validate(copy.deepcopy(element)):
            lines += [entry.line for entry in schema.error_log]
    return lines


def test_there_are_sixty_samples(samples: list[Path]) -> None:
    assert len(samples) == 60


def test_every_verdict_agrees_with_libxml2(
    samples: list[Path], oracle: etree.XMLSchema, reports: dict[str, Report]
) -> None:
    assert len(reports) == len(samples)
    for path in samples:
        expected = by_hand(path, oracle)
        report = reports[path.name]
        assert report.well_formed is (expected is not None), path
        if expected is not None:
            assert [issue.line for issue in report.issues] == sorted(expected), path
            assert report.valid is (not expected), path


def test_the_counts_are_thirty_valid_and_two_malformed(reports: dict[str, Report]) -> None:
    verdicts = [(report.well_formed, report.valid) for report in reports.values()]
    assert verdicts.count((True, True)) == 30
    assert verdicts.count((True, False)) == 28
    assert verdicts.count((False, False)) == 2


@pytest.mark.parametrize("name", ["notify-EventLossCleared.xml", "notify-EventLossOccured.xml"])
def test_two_samples_use_a_prefix_that_they_do_not_declare(reports: dict[str, Report], name: str) -> None:
    (issue,) = reports[name].issues
    assert (issue.kind, issue.line) == ("malformed", 32)
    assert "m2" in issue.message


def test_an_unexpected_element_is_named_with_line_path_and_what_was_expected(reports: dict[str, Report]) -> None:
    (issue,) = reports["1-1_arr_getManagedElementRequest.xml"].issues
    assert issue.line == 18
    assert issue.path == "/Envelope/Body/getManagedElementRequest/meName"
    assert issue.message == "Element 'mer:meName': This element is not expected. Expected is ( mer:meRef )."


def test_a_repaired_name_is_the_one_that_is_expected(reports: dict[str, Report]) -> None:
    (issue,) = reports["2-1_abr_getAllManagedElementsRequest.xml"].issues
    assert "Expected is ( mer:mdOrMlsnRef )" in issue.message


def test_examples_beside_the_samples_do_not_count(reports: dict[str, Report]) -> None:
    # The release has a schema with this element as an example in IIS/xml, for the same namespace.
    (issue,) = reports["Md1-1.xml"].issues
    assert issue.path == "/md/newAttribute"


def test_an_event_that_no_schema_imports_is_judged(reports: dict[str, Report]) -> None:
    assert reports["notify-Heartbeat.xml"].valid
    assert reports["notify-BackupStatus.xml"].valid


def test_a_value_is_quoted_where_it_is_wrong(reports: dict[str, Report]) -> None:
    issues = reports["1-1_sit_getActiveAlarmsRequest.xml"].issues
    assert [issue.line for issue in issues] == [37, 46]
    assert "PS_INDETERMINATE" in issues[0].message


def test_judging_as_a_stream_finds_the_same(
    release: SchemaSet, samples: list[Path], reports: dict[str, Report]
) -> None:
    streaming = Validator(release, large=1)
    for path in samples:
        report = streaming.validate_file(path)
        assert report == reports[path.name]


def test_field_captures_are_judged_like_libxml2_does(shared: Path, release: SchemaSet, oracle: etree.XMLSchema) -> None:
    validator = Validator(release)
    captures = sorted((shared / "samples" / "field").rglob("*.xml"))
    assert len(captures) > 100
    for path in captures:
        report = validator.validate_file(path)
        judged_by_schema = [issue.line for issue in report.issues if issue.kind in ("schema", "undeclared")]
        assert judged_by_schema == sorted(by_hand(path, oracle) or []), path
