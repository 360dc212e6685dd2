"""What `map` and `inspect` say of files that are not envelopes: one line, exit code 1, never a traceback."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from mtosi_jms.cli import main
from mtosi_jms.compression import ZSTD

zstd = import_module(ZSTD).compress
HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
HEADER = f'<h:header xmlns:h="{HDR}"><h:msgType>REQUEST</h:msgType></h:header>'
GOOD = f'<s:Envelope xmlns:s="{SOAP}">\n<s:Header>{HEADER}</s:Header>\n<s:Body><x/></s:Body>\n</s:Envelope>'
LOL = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))

# Content, and what stands behind the file's name.
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ":1: empty document; get it again"),
    "blank": (b" \n\t ", ":1: empty document; get it again"),
    "not xml": (b"MTOSI_msgType=REQUEST", ":1: Start tag expected"),
    "binary": (bytes(range(256)), ":"),
    "not well-formed": (GOOD.replace("</s:Header>", "</s:Heder>").encode(), ":2: Opening and ending tag mismatch"),
    "truncated": (GOOD[:-20].encode(), ":3: "),
    "truncated at the end of an element": (GOOD[:-14].encode(), ":3: "),
    "wrong encoding": (GOOD.replace("REQUEST", "R\xe9Q").encode("latin-1"), ":2: "),
    "unknown encoding": (b'<?xml version="1.0" encoding="martian"?>' + GOOD.encode(), ":1: "),
    "damaged gzip": (gzip.compress(GOOD.encode())[:-12], ": damaged compressed data: "),
    "gzip of nothing": (gzip.compress(b""), ":1: empty document"),
    "damaged zstd": (zstd(GOOD.encode())[:-12], ": damaged compressed data: "),
    "zstd of nothing": (zstd(b""), ":1: empty document"),
    "not soap": (b"<a>\n</a>", ":1: not a SOAP envelope: the root element is a; give a file with one SOAP envelope"),
    "other envelope": (b"<s:Envelope xmlns:s='urn:mail'/>", ":1: not a SOAP envelope"),
    "no body": (f'<s:Envelope xmlns:s="{SOAP}"/>'.encode(), ":1: a SOAP envelope without a Body"),
    "no header": (GOOD.replace(HEADER, "").encode(), ":1: a SOAP envelope without an MTOSI header"),
    "foreign header": (GOOD.replace(HDR, "urn:other").encode(), ":1: a SOAP envelope without an MTOSI header"),
    "10,000 deep": (b"<a>" * 10_000 + b"</a>" * 10_000, ":1: nested too deep"),
    "10,000 deep inside": (GOOD.replace("<x/>", "<x>" * 10_000 + "</x>" * 10_000).encode(), ":3: nested too deep"),
    "billion laughs": (
        f'<!DOCTYPE x [<!ENTITY l0 "lol">{LOL}]>{GOOD.replace("<x/>", "<x>&l9;</x>")}'.encode(),
        ":1: a document type declaration (DTD) is not allowed; no MTOSI message has",
    ),
    "external entity": (
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>{GOOD.replace("<x/>", "<x>&e;</x>")}'.encode(),
        ":1: a document type declaration (DTD) is not allowed",
    ),
    "external entity in utf-16": (
        f'<?xml version="1.0"?>\n<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd">{GOOD}'.encode("utf-16"),
        ":2: a document type declaration (DTD) is not allowed",
    ),
    "undeclared entity": (GOOD.replace("<x/>", "<x>&e;</x>").encode(), ":3: Entity 'e' not defined"),
}

LENIENT = {
    "wrong type": "<h:requestedBatchSize>many</h:requestedBatchSize>",
    "unknown enumeration value": "<h:communicationPattern>SmokeSignals</h:communicationPattern>",
    "unknown element": "<h:languageCode>en</h:languageCode>",
    "unknown attribute": "<h:msgName colour='red'>x</h:msgName>",
    "elements in a value": "<h:msgName><b>x</b></h:msgName>",
    "repeated": "<h:msgType>RESPONSE</h:msgType>",
    "nil": "<h:msgName xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:nil='true'/>",
}


@pytest.fixture(params=["map", "inspect"])
def command(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
@pytest.mark.parametrize("case", BAD)
def test_one_line_says_file_line_reason_and_advice(
    case: str, options: tuple[str, ...], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = BAD[case]
    file = tmp_path / "bad.xml"
    file.write_bytes(content)
    assert main([command, str(file), *options]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {file}{words}")
    assert re.fullmatch(r"error: [^\n]+; (get it again|no MTOSI message|give a file)[^\n]+\n", err)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
@pytest.mark.parametrize("case", LENIENT)
def test_a_breach_is_a_warning_with_line_and_path(
    case: str, options: tuple[str, ...], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.xml"
    file.write_text(GOOD.replace("</h:header>", f"\n{LENIENT[case]}</h:header>"), encoding="utf-8")
    assert main([command, str(file), *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    if options:
        warnings = json.loads(out)["warnings"]
        assert any(w["line"] == 3 and w["path"].startswith("/Envelope/Header/header") for w in warnings)
    else:
        assert re.search(r"^warning: line 3 /Envelope/Header/header", out, re.MULTILINE)


def test_a_missing_file_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "gone.xml")]) == 1
    words = "cannot be read: No such file or directory; check the name"
    assert capsys.readouterr() == ("", f"error: {tmp_path / 'gone.xml'}: {words}\n")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "secret.xml"
    file.write_text(GOOD, encoding="utf-8")
    file.chmod(0)
    assert main([command, str(file)]) == 1
    words = "cannot be read: Permission denied; make it readable for this user"
    assert capsys.readouterr() == ("", f"error: {file}: {words}\n")


def test_a_name_that_no_file_can_have_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "a\0b.xml"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: a\\x00b.xml: ")
    assert "internal error" not in err


def test_a_file_of_50_megabytes_is_read(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    element = f"<m:me><m:location>{'Raffles Place 1 ' * 64}</m:location></m:me>"
    content = element * (50_000_000 // len(element) + 1)
    mer, me = "http://www.tmforum.org/mtop/mri/xsd/mer/v1", "http://www.tmforum.org/mtop/nrf/xsd/me/v1"
    body = (
        f'<r:getAllManagedElementsResponse xmlns:r="{mer}" xmlns:m="{me}">'
        f"<r:meList>{content}</r:meList></r:getAllManagedElementsResponse>"
    )
    file = tmp_path / "large.xml"
    file.write_text(GOOD.replace("<x/>", body), encoding="utf-8")
    assert file.stat().st_size > 50_000_000
    assert main([command, str(file), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["file"], err) == (str(file), "")
    if command == "inspect":
        assert found["objects"][0]["count"] == content.count("<m:me>")


@pytest.mark.obligation("TAB9")
@pytest.mark.parametrize("kind", ["device", "pipe", "folder with a pipe"])
def test_what_never_ends_is_refused(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "pipe.xml"
    if kind == "device" and not path.exists():
        pytest.skip("no /dev/zero here")
    if kind != "device":
        os.mkfifo(path)
    assert main([command, str(path.parent if kind == "folder with a pipe" else path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: {path}: cannot be read: a named pipe, socket or device, not a file\n"


def test_a_reader_that_went_away_is_no_fault_of_the_file(command: str, tmp_path: Path) -> None:
    file = tmp_path / "good.xml"
    file.write_text(GOOD, encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    try:
        code = [sys.executable, "-m", "mtosi_jms", command, *[str(file)] * 50]
        done = subprocess.run(code, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", ["map", "inspect", "validate"])
def test_files_are_unpacked_whatever_the_name(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = []
    for number, data in enumerate((GOOD.encode(), gzip.compress(GOOD.encode()), zstd(GOOD.encode()))):
        file = tmp_path / f"{number}.xml"
        file.write_bytes(data)
        code = main([command, str(file), "--json"])
        told = json.loads(capsys.readouterr().out)
        answers.append((code, {key: value for key, value in told.items() if key != "file"}))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1]


def test_damaged_data_is_not_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, data in enumerate((gzip.compress(GOOD.encode()), zstd(GOOD.encode()))):
        file = tmp_path / f"{number}.xml.gz"
        file.write_bytes(data[:-12])
        assert main(["validate", str(file)]) == 1
        assert "damaged compressed data" in capsys.readouterr().out


def test_every_sample_is_taken_or_refused_with_a_reason(
    command: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = 0
    for sample in sorted(map(str, (shared / "samples").rglob("*.xml"))):
        code = main([command, sample, "--json"])
        out, err = capsys.readouterr()
        if code == 0:
            told = json.loads(out)
            assert (told["file"], err) == (sample, "")
            assert any(told.get(key) for key in ("body", "fault", "properties", "warnings"))
            found += 1
        else:
            assert code == 1
            assert err.startswith(f"error: {sample}:")
            assert err.count("\n") == 1
    assert found > 100
