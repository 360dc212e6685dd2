"""BulkResponse: one request, one reply, the data in a file which supplier and requestor share (P2, C18)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, FileLocationError, MtosiFault
from mtosi_jms.service import CallOptions, RequestContext
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.soap import Envelope, header_text, parse
from mtosi_jms.stubs.fmw import hdr
from mtosi_jms.stubs.fmw.msg import UnsupportedPackingFormatFault
from mtosi_jms.stubs.fmw.notification_consumer import NotificationConsumer
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.stubs.nrf.ptp import PhysicalTerminationPointType
from mtosi_jms.testing import exchange

from .conftest import FaultyEms, SmallEms, fault_of

pytestmark = pytest.mark.obligation("P2", "C18")

KINDS = [(c, p) for c in ("NO_COMPRESSION", "GZIP") for p in ("NO_PACKING", "ZIP", "TAR")]
FIELDS = ("communicationPattern", "fileLocationURI", "compressionType", "packingType", "requestedBatchSize")
Fault = Callable[[Callable[[], Any]], MtosiFault]


def texts(header: Any) -> list[str | None]:
    return [header_text(header, field) for field in FIELDS]


def place(folder: Path, name: str = "out") -> str:
    return (folder / name).as_uri()


@pytest.mark.parametrize(("compression", "packing"), KINDS)
def test_the_data_comes_in_a_file(tmp_path: Path, compression: str, packing: str) -> None:
    uri = place(tmp_path)
    ems = SmallEms(5)
    with exchange([ems], supplier={"bulk_folders": tmp_path}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        reply = operation.bulk(file_location_uri=uri, compression=compression, packing=packing, batch_size=2)
    sizes = [5] if packing == "NO_PACKING" else [2, 2, 1]
    (context,) = ems.contexts
    assert (context.bulk.file_location_uri, context.bulk.compression, context.bulk.packing) == (
        uri,
        compression,
        packing,
    )
    assert texts(context.header) == ["BulkResponse", uri, compression, packing, "2"]
    assert texts(reply.envelope.header) == ["BulkResponse", uri, compression, packing, None]
    assert (reply.file_location_uri, reply.compression, reply.packing) == (uri, compression, packing)
    assert isinstance(reply.response, mer.GetAllManagedElementsResponse)
    assert reply.files(allowed=tmp_path) == [tmp_path / "out"]
    assert [str(me.name) for me in reply.objects(ManagedElementType, allowed=tmp_path)] == [
        f"MD=EMS1/ME=NE-{number}" for number in range(1, 6)
    ]
    envelopes = [parse(document.stream.read()) for document in reply.documents(allowed=tmp_path)]
    assert [len(envelope.body.me_list.me) for envelope in envelopes] == sizes
    headers = [envelope.header for envelope in envelopes]
    assert [header.batch_sequence_number for header in headers] == [*range(1, len(sizes) + 1)]
    assert [header.batch_sequence_end_of_reply for header in headers] == [*[False] * (len(sizes) - 1), True]
    assert {header.correlation_id for header in headers} == {context.correlation_id}
    assert not any(envelope.warnings for envelope in envelopes)


def test_a_nested_inventory_of_ready_made_responses(tmp_path: Path) -> None:
    with exchange([InventoryEms(Network(elements=3))], supplier={"bulk_folders": [tmp_path]}) as pair:
        operation = pair.stub(ResourceInventoryRetrieval).get_inventory
        reply = operation.bulk(file_location_uri=place(tmp_path), packing="TAR", compression="GZIP", batch_size=1)
        single = operation.bulk(file_location_uri=place(tmp_path, "single"))
    assert len(list(reply.documents(allowed=tmp_path))) == 3
    assert len(list(reply.objects(ManagedElementType, allowed=tmp_path))) == 3
    found = list(single.objects((ManagedElementType, PhysicalTerminationPointType), allowed=tmp_path, strict=True))
    assert len(found) > 3
    assert (single.compression, single.packing) == ("NO_COMPRESSION", "NO_PACKING")


def test_a_request_object_and_options_are_taken(tmp_path: Path) -> None:
    seen: list[Envelope] = []
    options = CallOptions(correlation_id=" 7 ", on_reply=seen.append)
    with exchange([SmallEms(1)], supplier={"bulk_folders": tmp_path}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        reply = operation.bulk(
            mer.GetAllManagedElementsRequest(), file_location_uri=place(tmp_path), packing="ZIP", options=options
        )
        with pytest.raises(ConfigError, match="no_field"):
            operation.bulk(file_location_uri=place(tmp_path), no_field=1)
    assert seen == [reply.envelope]
    assert reply.envelope.header.correlation_id == " 7 "


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compression": "LZMA"}, "compression is 'LZMA'; it must be one of NO_COMPRESSION, GZIP"),
        ({"packing": "RAR"}, "packing is 'RAR'; it must be one of NO_PACKING, ZIP, TAR"),
        ({"batch_size": -1}, "negative"),
        ({"file_location_uri": " "}, "file_location_uri"),
    ],
)
def test_terms_that_do_not_fit_are_refused_before_anything_is_sent(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with exchange() as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        with pytest.raises(ConfigError, match=said):
            operation.bulk(**{"file_location_uri": place(tmp_path), **changes})
        assert pair.provider.depth(pair.destination) == 0


def test_a_one_way_operation_has_no_bulk_response(tmp_path: Path) -> None:
    event = Notify(topic="Fault", message=NotifyMessage())
    with exchange() as pair, pytest.raises(ConfigError, match="one-way"):
        pair.stub(NotificationConsumer).notify.bulk(event, file_location_uri=place(tmp_path))


# The supplier refuses


def test_a_supplier_without_folders_does_no_bulk(tmp_path: Path) -> None:
    ems = SmallEms()
    with exchange([ems, InventoryEms(Network(elements=1))]) as pair:
        elements = pair.stub(ManagedElementRetrieval)
        one = fault_of(lambda: elements.get_managed_element.bulk(file_location_uri=place(tmp_path)))
        every = fault_of(lambda: elements.get_all_managed_elements.bulk(file_location_uri=place(tmp_path)))
    assert (one.kind, every.kind) == ("notImplemented", "unableToComply"), "the kind that the operation declares"
    assert "BulkResponse" in one.reason
    assert header_text(every.header, "communicationPattern") == "BulkResponse"
    assert ems.contexts == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ({"compression_type": None, "packing_type": None}, None),
        ({"compression_type": "VENDOR_EXT"}, "unsupportedCompressionFormat"),
        ({"packing_type": "MINOR_EXT"}, "unsupportedPackingFormat"),
        ({"file_location_uri": None}, "invalidInput"),
        ({"file_location_uri": "ftp://user:pa55@host/file"}, "invalidInput"),
        ({"file_location_uri": "file:///etc/passwd"}, "invalidInput"),
    ],
)
def test_other_terms_of_a_request(
    tmp_path: Path, header: dict[str, Any], kind: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    if header.get("compression_type"):
        header = {"compression_type": hdr.CompressionTypeType(value=hdr.CompressionEnumType.VENDOR_EXT, extension="x")}
    if header.get("packing_type"):
        header = {"packing_type": hdr.PackingTypeType(value=hdr.PackingEnumType.MINOR_EXT, extension="x")}
    with exchange([InventoryEms(Network(elements=1))], supplier={"bulk_folders": tmp_path}) as pair:
        operation = pair.stub(ResourceInventoryRetrieval).get_inventory
        options = CallOptions(header=header)
        if kind is None:
            reply = operation.bulk(file_location_uri=place(tmp_path), options=options)
            assert texts(reply.envelope.header)[2:4] == ["NO_COMPRESSION", "NO_PACKING"]
            return
        fault = fault_of(lambda: operation.bulk(file_location_uri=place(tmp_path), options=options))
    assert fault.kind == kind
    assert "pa55" not in fault.reason + caplog.text
    assert list(tmp_path.iterdir()) == []


def test_a_handler_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def act() -> Any:
        yield ManagedElementType()
        raise MtosiFault("enough", kind="unableToComply")

    with exchange([FaultyEms(act)], supplier={"bulk_folders": tmp_path}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        fault = fault_of(lambda: operation.bulk(file_location_uri=place(tmp_path), packing="ZIP", batch_size=1))
    assert (fault.kind, fault.reason) == ("unableToComply", "enough")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    failures: list[Exception] = []
    with exchange([SmallEms()], supplier={"bulk_folders": tmp_path, "on_error": failures.append}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        fault = fault_of(lambda: operation.bulk(file_location_uri=place(tmp_path)))
    assert fault.kind == "internalError"
    assert "No space left" in str(failures[0])
    assert list(tmp_path.iterdir()) == []


def test_other_patterns_know_nothing_of_files(tmp_path: Path) -> None:
    ems = SmallEms(2)
    with exchange([ems], supplier={"bulk_folders": tmp_path}) as pair:
        operation = pair.stub(ManagedElementRetrieval).get_all_managed_elements
        operation(options=CallOptions(header={"file_location_uri": place(tmp_path)}))
        list(operation.batches(batch_size=1))
    assert [context.bulk for context in ems.contexts] == [None, None]
    assert list(tmp_path.iterdir()) == []


# The requestor reads


def sample(shared: Path, name: str) -> bytes:
    path = shared / "samples" / "official-2.0" / "ManageResourceInventory" / name
    if not path.exists():
        pytest.skip(f"no sample {path}")
    return path.read_bytes()


def test_a_reply_that_names_no_file_means_the_file_that_was_asked_for(shared: Path, tmp_path: Path) -> None:
    """As TM Forum's sample has it: an empty response, and nothing of a file in its header."""
    wire = sample(shared, "3-2_afb_getInventoryResponse.xml")
    with exchange() as pair:
        pair.scripted.start(lambda asked: [asked.reply(wire)])
        operation = pair.stub(ResourceInventoryRetrieval).get_inventory
        options = CallOptions(correlation_id="3333")
        reply = operation.bulk(file_location_uri=place(tmp_path), packing="ZIP", options=options)
    assert (reply.file_location_uri, reply.compression, reply.packing) == (place(tmp_path), "NO_COMPRESSION", "ZIP")
    with pytest.raises(FileLocationError, match="no such file"):
        reply.files(allowed=tmp_path)


def test_the_fault_of_the_sample_is_raised(shared: Path, tmp_path: Path) -> None:
    wire = sample(shared, "3-3_afb_getInventoryException.xml")
    with exchange() as pair:
        pair.scripted.start(lambda asked: [asked.reply(wire)])
        operation = pair.stub(ResourceInventoryRetrieval).get_inventory
        fault = fault_of(lambda: operation.bulk(file_location_uri=place(tmp_path), packing="TAR"))
    assert isinstance(fault, UnsupportedPackingFormatFault)


class Bare(ManagedElementRetrieval.Supplier):
    """Answers with an empty response, with what the test says in its header."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Any:
        context.reply_fields.update(self.fields)
        return mer.GetAllManagedElementsResponse()


@pytest.mark.parametrize("uri", ["ftp://user:pa55@host/x", "file://host/x", "file:///etc/passwd"])
def test_a_peer_names_no_file_outside(tmp_path: Path, uri: str) -> None:
    folder = tmp_path / "allowed"
    folder.mkdir()
    with exchange([Bare(file_location_uri=uri)], supplier={"bulk_folders": tmp_path}) as pair:
        reply = pair.stub(ManagedElementRetrieval).get_all_managed_elements.bulk(file_location_uri=place(tmp_path))
    assert reply.file_location_uri == uri
    with pytest.raises(FileLocationError) as caught:
        list(reply.objects(ManagedElementType, allowed=folder))
    assert caught.value.scheme == uri.partition(":")[0]
    assert "pa55" not in str(caught.value)


# TM Forum's samples


@pytest.mark.parametrize(
    "name", ["3-1_afb_getInventoryRequest", "3-2_afb_getInventoryResponse", "3-3_afb_getInventoryException"]
)
def test_samples_are_read_as_bulk_response(shared: Path, name: str) -> None:
    envelope = parse(sample(shared, f"{name}.xml"))
    header = envelope.fault.header if envelope.fault is not None else envelope.header
    assert header_text(header, "communicationPattern") == "BulkResponse"
    assert envelope.fault is None or envelope.fault.kind == "unsupportedPackingFormat"
