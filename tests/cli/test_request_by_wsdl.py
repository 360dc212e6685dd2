"""`mtosi-jms request --wsdl`: an operation of a WSDL, without stubs, by zeep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zeep")

from mtosi_jms.cli import main
from mtosi_jms.spool import entries
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.xmlbind import encode

Capture = pytest.CaptureFixture[str]
Call = Callable[..., tuple[int, str, str]]
NE2 = "MD=EMS1/ME=NE-2"


@pytest.fixture
def request_of(url: str, serving: Callable[..., Any], root: Path, capsys: Capture) -> Call:
    """Calls `request` with the WSDL of a service."""
    serving("--elements", "5", "--services", "ManagedElementRetrieval,ResourceInventoryRetrieval")

    def call(*words: str, wsdl: str = "ManagedElementRetrieval") -> tuple[int, str, str]:
        capsys.readouterr()
        file = str(root / "wsdl" / f"{wsdl}.wsdl")
        code = main(["request", "--wsdl", file, *words, "--url", url, "--to", "queue:EMS", "--timeout", "20"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


def test_one_reply_is_printed_as_xml(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", f"meRef={NE2}")
    assert (code, err) == (0, "")
    assert "getManagedElementResponse" in out.splitlines()[0]
    assert out.count("NE-2<") == 1


def test_fields_are_filled_step_by_step(request_of: Call) -> None:
    code, out, _ = request_of(
        "getManagedElement",
        *("--set", "meRef.rdn[0].type=MD", "--set", "meRef.rdn[0].value=EMS1"),
        *("--set", "meRef.rdn[1].type=ME", "--set", "meRef.rdn[1].value=NE-3"),
        *("--show", "summary"),
    )
    assert (code, out) == (0, "reply 1: getManagedElementResponse: 1 ME: MD=EMS1/ME=NE-3\n")


def test_several_replies_are_lines(request_of: Call, tmp_path: Path) -> None:
    code, out, err = request_of("getAllManagedElements", "--batch-size", "2", "--landing", str(tmp_path / "landing"))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"batch 1: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-1, {NE2}",
        "batch 2: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-3, MD=EMS1/ME=NE-4",
        "batch 3, the last: getAllManagedElementsResponse: 1 ME: MD=EMS1/ME=NE-5",
    ]
    assert len(list(entries(tmp_path / "landing"))) == 3


def test_json_has_the_names_of_the_schema(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", f"meRef={NE2}", "--json")
    assert (code, err) == (0, "")
    (reply,) = [json.loads(line) for line in out.splitlines()]
    assert (reply["service"], reply["operation"]) == ("ManagedElementRetrieval_MSG", "getManagedElement")
    assert reply["body"]["me"]["name"]["rdn"][1] == {"type": "ME", "value": "NE-2"}
    assert len(reply["correlation_id"]) == 36
    assert reply["objects"] == [{"type": "ME", "count": 1, "names": [NE2]}]


def test_a_fault_is_one_line(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", "meRef=MD=EMS1/ME=NE-9", "--json")
    assert code == 1
    assert json.loads(out)["fault"]["kind"] == "entityNotFound"
    assert err == "error: ManagedElementRetrieval_MSG.getManagedElement: entityNotFound: there is no MD=EMS1/ME=NE-9\n"


def test_a_request_from_a_file(request_of: Call, tmp_path: Path) -> None:
    file = tmp_path / "request.xml"
    file.write_bytes(encode(GetManagedElementRequest(me_ref=name(NE2))))
    assert request_of("getManagedElement", "--body", str(file), "--show", "summary")[0] == 0
    code, _, err = request_of("getAllManagedElements", "--body", str(file))
    assert code == 2
    assert "is not a request of getAllManagedElements" in err
    file.write_text("<request")
    assert request_of("getManagedElement", "--body", str(file))[0] == 1


def test_a_service_of_the_wsdl_may_be_named(request_of: Call) -> None:
    assert request_of("ManagedElementRetrievalJms.getManagedElement", "--set", f"meRef={NE2}")[0] == 0
    code, _, err = request_of("ManagedElementRetrival.getManagedElement")
    assert code == 2
    assert "no service 'ManagedElementRetrival'; did you mean ManagedElementRetrievalJms?" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("getManagedElements",), "no operation 'getManagedElements'; did you mean getManagedElement"),
        (("getManagedElement", "--set", "mRef=x"), "'mRef=x': no field 'mRef'; did you mean meRef?"),
        (("getManagedElement", "--set", "meRef.rdm.type=x"), "no field 'rdm'; did you mean rdn?"),
        (("getManagedElement", "--set", "meRef.rdn.type.x=x"), "type has no fields"),
        (("getManagedElement", "--set", "meRef[1]=MD=EMS1"), "meRef is not a list"),
        (("getManagedElement", "--set", "meRef=nothing"), "does not fit"),
        (("getManagedElement", "--set", "meRef.rdn.type=MD"), "getManagedElement: Missing element value"),
        (("getManagedElement", "--set", "meRef"), "must be path=value"),
    ],
)
def test_wrong_use_is_told(request_of: Call, words: tuple[str, ...], told: str) -> None:
    code, out, err = request_of(*words)
    assert (code, out) == (2, "")
    assert told.replace("=x'", "'") in err


def test_lists_choices_and_numbers(request_of: Call) -> None:
    code, out, _ = request_of(
        "getInventory",
        *("--set", f"filter.baseInstance={NE2}", "--set", "filter.baseInstance=MD=EMS1/ME=NE-3"),
        *("--set", "filter.includedObjectType.objectType=ME", "--set", "filter.includedObjectType.granularity=NAME"),
        *("--set", "diffDateAndTime=2020-01-01T00:00:00Z", "--show", "summary"),
        wsdl="ResourceInventoryRetrieval",
    )
    assert code == 0
    assert f"; 2 ME: {NE2}, MD=EMS1/ME=NE-3; " in out


def test_a_wsdl_that_is_not_there(request_of: Call) -> None:
    code, _, err = request_of("getManagedElement", wsdl="Nothing")
    assert code == 1
    assert "Nothing.wsdl: no such file" in err
