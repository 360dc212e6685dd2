"""What a supplier makes of the objects of a handler: responses, or the file of a BulkResponse (P2, P33, C18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mtosi_jms.bulk import BulkFile, BulkTerms, Compression, Folders, Packing, new_file
from mtosi_jms.errors import ConfigError, FileLocationError, MtosiFault
from mtosi_jms.exchange.messages import whole_number
from mtosi_jms.patterns import Batch, BatchPosition
from mtosi_jms.service import OperationInfo, ServiceInfo
from mtosi_jms.soap import Header, header_text
from mtosi_jms.stubs.fmw.hdr import CompressionEnumType, CompressionTypeType, PackingEnumType, PackingTypeType
from mtosi_jms.xmlbind import XmlObject


class ResponseMaker:
    def __init__(self, service: ServiceInfo, operation: OperationInfo) -> None:
        self._operation = operation
        self._cls = service.load(operation.response)

    def is_response(self, item: object) -> bool:
        return isinstance(item, self._cls)

    def response(self, batch: Batch[Any]) -> Any:
        """Return the response with the objects of a batch. Raises ConfigError: it has no list for them."""
        if len(batch.objects) == 1 and self.is_response(batch.objects[0]):
            return batch.objects[0]
        path = self._operation.batch_path
        if not path and not batch.objects:
            return self._cls()
        if not path:
            raise ConfigError(f"{self._operation.name}: the handler must yield {self._cls.__name__}")
        return _nested(self._cls, path, batch.objects)


def _nested(cls: type[XmlObject], path: Sequence[str], objects: list[Any]) -> XmlObject:
    name, *rest = path
    value = _nested(cls.__xml__.field(name).table().cls, rest, objects) if rest else objects
    return cls(**{name: value})  # type: ignore[arg-type]


class BulkSupplier:
    """A BulkResponse request that may be carried out, with the `terms` that it asks for. Raises MtosiFault: it is
    refused, with the fitting kind if the operation declares it, else `unableToComply`; without `folders` always."""

    def __init__(self, service: ServiceInfo, operation: OperationInfo, header: Header, folders: Folders) -> None:
        self._service = service
        self._operation = operation
        if not folders:
            raise self._refused("BulkResponse is not done by this supplier", "notImplemented")
        compression = header_text(header, "compressionType") or Compression.NO_COMPRESSION
        packing = header_text(header, "packingType") or Packing.NO_PACKING
        if compression not in list(Compression):
            raise self._refused("compressionType is unknown here", "unsupportedCompressionFormat")
        if packing not in list(Packing):
            raise self._refused("packingType is unknown here", "unsupportedPackingFormat")
        uri = header_text(header, "fileLocationURI") or ""
        try:
            self._path: Path = new_file(uri, folders)
        except FileLocationError as error:
            raise self._refused(str(error), "invalidInput") from None
        size = max(whole_number(header.requested_batch_size) or 0, 0)
        self.terms = BulkTerms.of(uri, compression, packing, 0 if packing == Packing.NO_PACKING else size)

    @property
    def header_fields(self) -> Mapping[str, Any]:
        return {
            "file_location_uri": self.terms.file_location_uri,
            "compression_type": CompressionTypeType(value=CompressionEnumType(self.terms.compression)),
            "packing_type": PackingTypeType(value=PackingEnumType(self.terms.packing)),
        }

    def _refused(self, why: str, kind: str) -> MtosiFault:
        cls = self._service.load(self._operation.fault) if self._operation.fault else None
        declared = {field.local for field in cls.__xml__.fields} if cls is not None else set()
        return MtosiFault(why, kind=kind if kind in declared else "unableToComply")

    def write(
        self, batches: Iterable[Batch[Any]], maker: ResponseMaker, document: Callable[[Any, BatchPosition], bytes]
    ) -> None:
        with BulkFile(self._path, self.terms.compression, self.terms.packing) as file:
            for batch in batches:
                file.add(document(maker.response(batch), batch.position))
