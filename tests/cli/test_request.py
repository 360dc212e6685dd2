"""`mtosi-jms request` over the embedded provider."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.spool import entries
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.xmlbind import encode

Capture = pytest.CaptureFixture[str]
NE2 = "MD=EMS1/ME=NE-2"


@pytest.fixture
def request_of(url: str, serving: Callable[..., Any], capsys: Capture) -> Callable[..., tuple[int, str, str]]:
    serving("--elements", "5")

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["request", *words, "--url", url, "--to", "queue:EMS", "--timeout", "20"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


Call = Callable[..., tuple[int, str, str]]


def test_one_reply_is_printed_as_xml(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", f"meRef={NE2}")
    assert (code, err) == (0, "")
    assert out.startswith("<")
    assert "getManagedElementResponse" in out.splitlines()[0]
    assert out.count("NE-2<") == 1


def test_several_replies_are_lines(request_of: Call) -> None:
    code, out, err = request_of("getAllManagedElements", "--batch-size", "2")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"batch 1: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-1, {NE2}",
        "batch 2: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-3, MD=EMS1/ME=NE-4",
        "batch 3, the last: getAllManagedElementsResponse: 1 ME: MD=EMS1/ME=NE-5",
    ]


def test_how_replies_are_shown_can_be_chosen(request_of: Call) -> None:
    out = request_of("getAllManagedElements", "--batch-size", "2", "--show", "xml")[1]
    assert out.count("getAllManagedElementsResponse xmlns") == 3
    out = request_of("getManagedElement", "--set", f"me_ref={NE2}", "--show", "summary")[1]
    assert out == f"reply 1: getManagedElementResponse: 1 ME: {NE2}\n"


def test_json_has_a_line_for_each_reply(request_of: Call) -> None:
    code, out, err = request_of("ManagedElementRetrieval.getManagedElement", "--set", f"meRef={NE2}", "--json")
    assert (code, err) == (0, "")
    (reply,) = [json.loads(line) for line in out.splitlines()]
    assert (reply["service"], reply["operation"]) == ("ManagedElementRetrieval", "getManagedElement")
    assert reply["body"]["me"]["name"] == NE2
    assert reply["batch_sequence_number"] is None
    assert len(reply["correlation_id"]) == 36


@pytest.mark.parametrize("form", ["element", "envelope"])
def test_a_request_from_a_file(request_of: Call, tmp_path: Path, form: str) -> None:
    request = GetManagedElementRequest(me_ref=name(NE2))
    data = encode(request) if form == "element" else Envelope(header=Header(), body=request).to_bytes()
    file = tmp_path / "request.xml"
    file.write_bytes(data)
    code, out, err = request_of("getManagedElement", "--body", str(file), "--show", "summary")
    assert (code, out) == (0, f"reply 1: getManagedElementResponse: 1 ME: {NE2}\n"), err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a/>", "is not a request of getManagedElement"),
        ("<a>", "get it again, complete"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "no MTOSI message has a DTD"),
    ],
)
def test_a_file_that_holds_no_request(request_of: Call, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "request.xml"
    file.write_text(text, encoding="utf-8")
    code, out, err = request_of("getManagedElement", "--body", str(file))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert reason in err


def test_a_file_that_is_not_there(request_of: Call, tmp_path: Path) -> None:
    code, _, err = request_of("getManagedElement", "--body", str(tmp_path / "no.xml"))
    assert (code, err.count("\n")) == (1, 1)
    assert "check the name" in err


def test_a_fault_is_one_line_and_a_json_line_too(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", "meRef=MD=EMS1/ME=no", "--json")
    assert code == 1
    assert json.loads(out)["fault"] == {
        "kind": "entityNotFound",
        "reason": "there is no MD=EMS1/ME=no",
        "code": "Server",
    }
    assert err == "error: ManagedElementRetrieval.getManagedElement: entityNotFound: there is no MD=EMS1/ME=no\n"


def test_replies_are_landed(request_of: Call, tmp_path: Path) -> None:
    words = ("--batch-size", "2", "--landing", str(tmp_path), "--reply-to", "queue:OS")
    assert request_of("getAllManagedElements", *words)[0] == 0
    landed = list(entries(tmp_path, strict=True))
    assert [entry.facts.properties["MTOSI_batchSequenceNumber"] for entry in landed if entry.facts] == [1, 2, 3]


def test_an_operation_without_a_reply(request_of: Call, url: str, tmp_path: Path) -> None:
    file = tmp_path / "notify.xml"
    file.write_text(
        '<notify xmlns="http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"><topic>T</topic><message/></notify>',
        encoding="utf-8",
    )
    code, out, err = request_of("NotificationConsumer.notify", "--body", str(file))
    assert (code, out) == (0, "sent: NotificationConsumer.notify, which has no reply\n")
    assert "required element commonEventInformation is missing" in err


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ("getManagedElment", "did you mean ManagedElementRetrieval.getManagedElement"),
        ("ManagedElementRetreival.getManagedElement", "did you mean ManagedElementRetrieval.getManagedElement"),
        ("AlarmRetrieval.getManagedElement", "ManagedElementRetrieval.getManagedElement"),
        ("zzz", "the services are AlarmRetrieval, "),
        ("notify", "give NotificationBroker.notify or NotificationConsumer.notify"),
        ("", "the services are"),
    ],
)
def test_an_operation_that_is_not_there(operation: str, text: str, capsys: Capture) -> None:
    assert main(["request", operation, "--url", "memory:", "--to", "queue:X"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert text in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--set", "meReff=MD=X"], "no field 'meReff'; did you mean meRef?"),
        (["--set", "meRef"], "must be path=value"),
        (["--set", "meRef=X"], "is not a name of the form"),
        (["--set", "meRef.rdn=X"], "no value can be given here"),
        (["--set", "meRef=MD=A", "--set", "meRef=MD=B"], "assigned twice"),
        (["--set", "meRef.rdn[0].type=MD"], "meRef.rdn: value is needed"),
        (["--stubs", "no_such_package"], "put the folder that contains it on PYTHONPATH, such as PYTHONPATH=src"),
        (["--stubs", "..stubs"], "stubs package '..stubs' cannot be imported"),
    ],
)
def test_a_field_that_cannot_be_set(words: list[str], text: str, capsys: Capture) -> None:
    assert main(["request", "getManagedElement", "--url", "memory:", "--to", "queue:X", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert text.replace("meRef.rdn:", "me_ref.rdn:") in err


def test_nobody_answers(url: str, capsys: Capture) -> None:
    words = ["--url", url, "--to", "queue:NOBODY", "--timeout", "0.1"]
    assert main(["request", "getAllManagedElements", *words]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")


def test_an_unknown_destination(url: str, capsys: Capture, tmp_path: Path) -> None:
    names = tmp_path / "jndi.properties"
    names.write_text("queue.jms/EmsOS=EMS\n", encoding="utf-8")
    words = ["--url", url, "--names", str(names), "--to", "jms/EmsO"]
    assert main(["request", "getAllManagedElements", *words]) == 1
    assert capsys.readouterr().err == (
        "error: 'jms/EmsO': no destination is known by this name; did you mean jms/EmsOS?\n"
    )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("carrier://u:s3cret@h:1", "scheme 'carrier' is not supported"),
        ("nothing", "a URL without a scheme is not supported"),
    ],
)
def test_an_url_that_nobody_serves(url: str, text: str, capsys: Capture) -> None:
    assert main(["request", "getAllManagedElements", "--url", url, "--to", "queue:X"]) == 1
    out, err = capsys.readouterr()
    assert text in err
    assert "s3cret" not in out + err


def test_the_environment_names_the_provider(
    serving: Any, url: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    serving("--elements", "3")
    monkeypatch.setenv("MTOSI_JMS_URL", url)
    assert main(["request", "getAllManagedElements", "--to", "queue:EMS", "--batch-size", "0"]) == 0
    assert "3 ME" in capsys.readouterr().out
    monkeypatch.setenv("MTOSI_JMS_URL", "")
    assert main(["request", "getAllManagedElements", "--to", "queue:EMS"]) == 2
    assert "--url" in capsys.readouterr().err


def test_a_password_file_that_is_empty(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").write_text("", encoding="utf-8")
    words = ["--url", "stomp://localhost:1", "--user", "u", "--password-file", str(tmp_path / "empty")]
    assert main(["request", "getAllManagedElements", "--to", "queue:X", *words]) == 1
    assert "its first line is empty; it must be the password" in capsys.readouterr().err
