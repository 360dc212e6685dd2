"""Planning of a landing: which files are input, what each is, duplicates, rejects with their reasons; no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, ExchangeError, MtosiError, SpoolError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables.envelope import body_digest
from mtosi_jms.tables.files import list_files, local_path
from mtosi_jms.tables.landing import Plan, PlannedFile, partition, plan_landing, readable
from mtosi_jms.tables.sequences import describe

Put = Callable[..., Path]


def plan(folder: Path, **options: str) -> Plan:
    return plan_landing(SourceOptions.parse({"path": str(folder), **options}))


def names(landing: Plan) -> list[str]:
    return [Path(file.path).name for file in landing.files]


def rejected(landing: Plan) -> dict[str, tuple[int | None, str]]:
    return {Path(reject.file).name: (reject.line, reject.reason) for reject in landing.rejects}


def test_only_envelopes_are_input(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.batch("c", 1, True, envelopes.me("a"))
    for name in ("b.xml", "a.xml.gz", "a.xml.zst", "deep/er/C.XML"):
        put(name, text if name == "b.xml" else text.replace(">c<", f">{name}<"))
    for name in ("b.json", "acks.log", ".b.xml", "b.xml.part", "notes.txt"):
        put(name, "no xml")
    found = plan(landing)
    assert names(found) == ["a.xml.gz", "a.xml.zst", "b.xml", "C.XML"]
    assert found.rejects == ()


def files_in(*paths: Path | str) -> list[str]:
    return [Path(path).name for path in sorted({file.path for file in list_files(list(map(str, paths)), [])})]


def test_file_glob_and_url_are_paths_too(put: Put, landing: Path, envelopes: Any) -> None:
    odd = put("named.dat", envelopes.batch("c", 1, True, ""))
    put("a1.xml", envelopes.batch("d", 1, True, ""))
    put("b1.xml", envelopes.batch("e", 1, True, ""))
    assert files_in(odd) == ["named.dat"]
    assert files_in(landing / "a*") == ["a1.xml"]
    assert files_in(landing.as_uri(), landing) == ["a1.xml", "b1.xml"]


def test_what_is_not_there_is_an_error(landing: Path) -> None:
    with pytest.raises(SpoolError, match="no such file or folder"):
        files_in(landing / "nothing")
    with pytest.raises(SpoolError, match="no such file or folder"):
        files_in(landing / "*.xml")
    with pytest.raises(ConfigError, match="a spool must be on a file system of this machine; s3: is none"):
        local_path("s3://bucket/x", "a spool")


def test_empty_folder_is_an_empty_landing(landing: Path) -> None:
    found = plan(landing)
    assert (found.files, found.rejects, found.sequences, found.counts) == ((), (), (), {})


def test_rejects_have_file_line_and_reason(put: Put, landing: Path, envelopes: Any) -> None:
    good = envelopes.batch("c", 1, True, envelopes.me("a"))
    put("good.xml", good)
    put("empty.xml", "")
    put("blank.xml", " \n ")
    put("truncated.xml", good[: good.index("</me:me>")])
    put("cut-in-header.xml", good[: good.index("<hdr:senderURI>")])
    for name in ("cut.xml.gz", "cut.xml.zst"):
        path = put(name, good)
        path.write_bytes(path.read_bytes()[:-20])
    put("stranger.xml", "<?xml version='1.0'?>\n\n<order xmlns='urn:shop'><item/></order>")
    put("text.xml", "just words")
    put("headless.xml", envelopes.envelope("", "<v:hello/>"))
    put("kindless.xml", envelopes.envelope(envelopes.header(correlationId="x"), "<v:hello/>"))
    put("bodyless.xml", envelopes.envelope(envelopes.header(msgType="RESPONSE"), ""))
    put("dtd.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
    put("binary.xml", b"\x00\x01\x02\xff" * 50)
    found = plan(landing)
    assert names(found) == ["good.xml"]
    reasons = rejected(found)
    assert reasons["empty.xml"] == (1, "empty file")
    assert reasons["blank.xml"] == (1, "empty file")
    assert reasons["truncated.xml"][0] == 4
    assert reasons["truncated.xml"][1].startswith("ends early (truncated)")
    assert reasons["cut-in-header.xml"][1].startswith("ends early (truncated)")
    assert reasons["cut.xml.gz"][1].startswith("damaged compressed data")
    assert reasons["cut.xml.zst"][1].startswith("damaged compressed data")
    assert reasons["stranger.xml"] == (3, "not SOAP: the root element is {urn:shop}order")
    assert reasons["text.xml"][1].startswith("not well-formed")
    assert reasons["headless.xml"] == (2, "no MTOSI header in the SOAP header")
    assert "wrong kind" in reasons["kindless.xml"][1]
    assert reasons["bodyless.xml"][1] == "wrong kind: a response with an empty body"
    assert "DTD" in reasons["dtd.xml"][1]
    assert reasons["binary.xml"][1]
    assert len(reasons) == 13


def test_damage_in_the_middle_is_found_by_full_verification(put: Put, landing: Path, envelopes: Any) -> None:
    elements = "".join(envelopes.me(f"n{index}") for index in range(200))
    text = envelopes.batch("c", 1, True, elements)
    middle = text.index("<me:me>", len(text) // 2)
    put("a.xml", text[:middle] + "<oops>" + text[middle:])
    assert names(plan(landing)) == ["a.xml"]
    full = plan(landing, verify="full")
    assert full.files == ()
    assert full.sequences == ()
    assert rejected(full)["a.xml"][1].startswith("not well-formed")


def test_what_will_not_be_read_is_verified_at_once(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.request()
    put("request.xml", text.replace("<mer:getAllManagedElementsRequest/>", "<mer:a>" + "<b/>" * 5000 + "</mer:b>"))
    found = plan(landing)
    assert found.counts == {}
    assert rejected(found)["request.xml"][1].startswith("not well-formed")


def test_kinds_are_counted(put: Put, landing: Path, envelopes: Any) -> None:
    put("a.xml", envelopes.request("c"))
    put("b.xml", envelopes.fault("c"))
    put("c.xml", envelopes.batch("c", 1, True, ""))
    put("d.xml", envelopes.envelope(envelopes.header(msgType="NOTIFICATION"), "<v:notify/>"))
    put("e.xml", envelopes.envelope(envelopes.header(correlationId="x"), "<v:getThingResponse/>"))
    found = plan(landing)
    assert found.counts == {"request": 1, "fault": 1, "response": 2, "notification": 1}
    assert found.sequences[0].faults == 1
    assert not found.sequences[0].complete


def test_header_values(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.batch(" 42 ", 7, True, "").replace(">7<", ">\n 7 <").replace(">true<", "> 1 <")
    put("a.xml", text)
    put("b.xml", envelopes.batch("", 1, None, ""))
    put("c.xml", envelopes.batch("  \n", "", None, ""))
    first, second, third = plan(landing).files
    assert (first.correlation_id, first.batch_number, first.end_of_reply) == (" 42 ", 7, True)
    assert (second.correlation_id, second.end_of_reply) == (None, None)
    assert (third.correlation_id, third.batch_number) == (None, None)


def test_soap_1_2_and_utf_16_are_read(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.batch("c", 1, True, envelopes.me("a"))
    put(
        "soap12.xml",
        text.replace("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"),
    )
    wide = envelopes.batch("d", 1, True, envelopes.me("\u00e4")).replace(
        "version='1.0'", "version='1.0' encoding='UTF-16'"
    )
    put("utf16.xml", wide.encode("utf-16"))
    put("bom.xml", b"\xef\xbb\xbf" + envelopes.batch("e", 1, True, "").encode())
    found = plan(landing)
    assert found.rejects == ()
    assert [file.correlation_id for file in found.files] == ["e", "c", "d"]


def test_duplicates_are_removed_whatever_they_look_like(
    put: Put, landing: Path, envelopes: Any, other_prefixes: Any
) -> None:
    elements = envelopes.me("a", "<coi:userLabel>  x </coi:userLabel>")
    text = envelopes.batch("c", 1, True, elements)
    put("1.xml", text)
    put("2/copy.xml.gz", text)
    put("3-later.xml", envelopes.batch("c", 1, True, elements, time="2025-05-05T00:00:00Z"))
    put("4-prefixes.xml", other_prefixes.batch("c", 1, True, elements))
    put("5-layout.xml", text.replace("<me:me>", "\n  <me:me>\n").replace("<mer:meList>", "<mer:meList><!-- x -->"))
    put("6-conflict.xml", envelopes.batch("c", 1, True, elements.replace("  x ", "x")))
    found = plan(landing)
    assert names(found) == ["1.xml", "6-conflict.xml"]
    assert [Path(path).name for path in found.files[0].duplicates] == [
        "copy.xml.gz",
        "3-later.xml",
        "4-prefixes.xml",
        "5-layout.xml",
    ]
    (sequence,) = found.sequences
    assert (sequence.duplicates, sequence.conflicts, sequence.batches, sequence.complete) == (4, (1,), 1, False)


def test_a_damaged_copy_does_not_take_the_place_of_a_whole_one(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.batch("c", 1, True, "".join(envelopes.me(f"n{index}") for index in range(200)))
    put("a.xml", text.replace("<me:me>", "<me:me><broken>", 150))
    put("b.xml", text)
    found = plan(landing)
    assert names(found) == ["b.xml"]
    assert list(rejected(found)) == ["a.xml"]
    assert found.counts == {"response": 1}


def test_without_correlation_id_nothing_is_a_duplicate(put: Put, landing: Path, envelopes: Any) -> None:
    text = envelopes.batch(None, 1, True, envelopes.me("a"))
    put("a.xml", text)
    put("b.xml", text)
    assert names(plan(landing)) == ["a.xml", "b.xml"]


@pytest.mark.parametrize("limit", [1, 10_000_000])
def test_digest_is_the_same_streamed_or_held(put: Put, envelopes: Any, other_prefixes: Any, limit: int) -> None:
    inner = (
        '<coi:vendorExtensions><v:a v:b="1" c="2">t<v:d/> u </v:a> </coi:vendorExtensions><me:location xsi:nil="true"/>'
    )
    typed = '<coi:owner xsi:type="v:T"> o </coi:owner>'
    one = put("a.xml", envelopes.batch("c", 1, True, envelopes.me("a", typed + inner)))
    two = put(
        "b.xml", other_prefixes.batch("x", 2, None, other_prefixes.me("a", typed + inner)).replace('"v:T"', '"zv:T"')
    )
    three = put("c.xml", envelopes.batch("c", 1, True, envelopes.me("a", typed + inner.replace("> u <", ">u<"))))
    assert body_digest(str(one), limit) == body_digest(str(two), limit) == body_digest(str(one), 10_000_000)
    assert body_digest(str(one), limit) != body_digest(str(three), limit)


def test_incomplete_sequences_mark_fail_or_go(put: Put, landing: Path, envelopes: Any) -> None:
    put("a1.xml", envelopes.batch("a", 1, False, ""))
    put("a3.xml", envelopes.batch("a", 3, True, ""))
    put("b1.xml", envelopes.batch("b", 1, True, ""))
    put("r.xml", envelopes.request("a"))
    found = plan(landing)
    assert [file.complete for file in found.files] == [False, False, True, None]
    keep = SourceOptions.parse({"path": str(landing)})
    drop = SourceOptions.parse({"path": str(landing), "onIncomplete": "filter"})
    fail = SourceOptions.parse({"path": str(landing), "onIncomplete": "fail"})
    assert len(readable(found, keep)) == 4
    assert [Path(file.path).name for file in readable(found, drop)] == ["b1.xml", "r.xml"]
    with pytest.raises(ExchangeError, match=r"1 incomplete sequences: 'a' missing 2"):
        readable(found, fail)


def test_descriptions_name_what_lacks(put: Put, landing: Path, envelopes: Any) -> None:
    put("a.xml", envelopes.batch("a", 2, False, ""))
    put("b.xml", envelopes.batch(None, 1, False, ""))
    put("c1.xml", envelopes.batch("c", 1, True, ""))
    put("c2.xml", envelopes.batch("c", 2, None, ""))
    put("f.xml", envelopes.fault("c"))
    texts = [describe(found) for found in plan(landing).sequences]
    assert texts[0] == "'a' missing 1, the end of the reply never came"
    assert texts[1] == "'c' numbers beyond the end, or below the first: 2, ended by a fault"
    assert texts[2].endswith("b.xml the end of the reply never came")


def test_partitions_hold_each_file_once_and_are_stable() -> None:
    files = [
        PlannedFile(f"/{index:03d}", 1000 * (index % 7 + 1), "response", None, None, None, "") for index in range(100)
    ]
    dealt = partition(files, 8)
    assert partition(list(reversed(files)), 8) == dealt
    assert sorted(file.path for part in dealt for file in part) == [file.path for file in files]
    loads = [sum(file.size for file in part) for part in dealt]
    assert max(loads) - min(loads) <= 7000


def test_partitions_follow_size() -> None:
    small = [PlannedFile(f"/{index}", 10, "response", None, None, None, "") for index in range(50)]
    large = [PlannedFile(f"/{index}", 400 * 2**20, "response", None, None, None, "") for index in range(50)]
    assert len(partition(small, None)) == 1
    assert len(partition(large, None)) >= 40
    assert partition([], None) == []


@pytest.mark.parametrize(
    "data", [b"", b"\x1f\x8b", b"<", b"<a", b"\xff\xfe<\x00", b"\x1f\x8b\x08\x00", b"<?xml version='9'?><a/>"]
)
def test_any_bytes_give_a_reject_and_no_other_error(put: Put, landing: Path, data: bytes) -> None:
    (landing / "x.xml").write_bytes(data)
    found = plan(landing, verify="full")
    assert found.files == ()
    assert len(found.rejects) == 1
    assert issubclass(SpoolError, MtosiError)


def test_unreadable_file_is_a_reject(put: Put, landing: Path, envelopes: Any) -> None:
    put("a.xml", envelopes.batch("a", 1, True, ""))
    (landing / "dangling.xml").symlink_to(landing / "nowhere")
    assert rejected(plan(landing))["dangling.xml"][1].startswith("cannot be read")
