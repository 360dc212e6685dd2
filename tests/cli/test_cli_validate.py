"""`mtosi-jms validate`: exit codes, lines, JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mtosi_jms.cli import main

HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
GOOD = f'<header xmlns="{HDR}"><activityName>getInventory</activityName></header>'
BAD = f'<header xmlns="{HDR}">\n<nonsense/>\n</header>'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.xml"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.xml"
    path.write_text(BAD, encoding="utf-8")
    return path


def test_a_valid_file_is_said_to_be_so(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(good)]) == 0
    assert capsys.readouterr() == (f"{good}: valid\n", "")


def test_an_invalid_file_is_told_with_line_and_path(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(bad)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{bad}:2: /header/nonsense: Element 'nonsense': This element is not expected.")
    assert err == ""


def test_several_files_are_counted(good: Path, bad: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cut.xml").write_text("<a>", encoding="utf-8")
    files = [str(path) for path in (good, bad, tmp_path / "cut.xml", tmp_path / "gone.xml")]
    assert main(["validate", *files]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "4 files: 1 valid, 1 invalid, 1 not well-formed, 1 unreadable"
    assert f"{tmp_path / 'gone.xml'}: cannot be read: No such file or directory" in out


def test_json_is_one_line_a_file_and_nothing_else(good: Path, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json", str(good), str(bad), "gone.xml"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == {"file": str(good), "well_formed": True, "valid": True, "issues": []}
    assert [set(line) for line in lines] == [{"file", "well_formed", "valid", "issues"}] * 3
    (issue,) = lines[1]["issues"]
    assert set(issue) == {"line", "path", "message", "kind"}
    assert (issue["line"], issue["path"], issue["kind"]) == (2, "/header/nonsense", "schema")
    assert (lines[2]["well_formed"], lines[2]["valid"], lines[2]["issues"][0]["line"]) == (False, False, None)


def test_schemas_can_be_given_and_their_repairs_are_noted_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xs = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
    schema = f'<xs:schema {xs} targetNamespace="urn:v"><xs:element name="v "/></xs:schema>'
    (tmp_path / "IIS" / "xsd").mkdir(parents=True)
    (tmp_path / "IIS" / "xsd" / "v.xsd").write_text(schema, encoding="utf-8")
    (tmp_path / "v.xml").write_text('<v xmlns="urn:v"/>', encoding="utf-8")
    assert main(["validate", str(tmp_path / "v.xml"), "--json", "--schemas", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["valid"] is True
    assert err.startswith("note: ")
    assert "blanks" in err


def test_a_folder_that_is_no_schema_folder_is_one_line(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["validate", str(good), "--schemas", str(tmp_path / "empty")]) == 1
    assert capsys.readouterr() == ("", f"error: {tmp_path / 'empty'}: no XSD file in this folder\n")


@pytest.mark.skipif(os.name != "posix", reason="file names are text elsewhere")
def test_a_file_name_that_is_no_text_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/\xff.xml")
    assert main(["validate", "--json", name]) == 1
    assert json.loads(capsys.readouterr().out)["file"] == name


def test_the_official_samples_end_with_one(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples = sorted(map(str, (shared / "samples" / "official-2.0").rglob("*.xml")))
    assert main(["validate", "--json", *samples, "--schemas", str(shared / "mtosi" / "2.0")]) == 1
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["file"] for report in reports] == samples
    assert sum(report["valid"] for report in reports) == 30
    assert sum(not report["well_formed"] for report in reports) == 2
