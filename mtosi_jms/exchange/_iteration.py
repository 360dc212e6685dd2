"""Batches by iterator, the way of MTOSI 1.x in the RPC style: the reply has the first batch and an
iteratorReferenceURI; each request of the operation `...Iterator` with it gets the next one, until there is no
reference, or an end."""

from __future__ import annotations

import dataclasses
from typing import Any

from mtosi_jms.errors import IncompleteBatchError, ProtocolError
from mtosi_jms.patterns import Place, Standing, read_place, standing_of
from mtosi_jms.service import Call, OperationInfo, objects_in
from mtosi_jms.soap import Envelope, Header, correlation_id, header_text, header_texts
from mtosi_jms.stubs.fmw.hdr import CommunicationPatternType
from mtosi_jms.xmlbind import XmlObject

_PLACE = ("batchSequenceNumber", "batchSequenceEndOfReply")
"""Without the pattern: a reply to an iterator's request names that of the call, whether or not more follow."""
_LEAST = 0.001
"""Seconds, where the time of a call is over: the next request finds that out."""


class Iteration:
    """Where an answer by iterator stands. `next`: the request for the next batch, if there is one."""

    def __init__(self, call: Call, batch_size: int) -> None:
        self.next: Call | None = None
        self.is_used = False
        self._call = call
        self._size = batch_size
        self._operation = _iterator_of(call)
        self._reference: str | None = None
        self._number: int | None = None
        self._count = 0

    def note(self, envelope: Envelope, response: XmlObject, left: float | None) -> None:
        """Note a reply, and decide on `next`. `left`: seconds left for the whole call. Raises IncompleteBatchError:
        batches are missing; ProtocolError: a batch comes again, or there is neither an object nor an end."""
        header, self.next = envelope.header, None
        if header is None:
            return
        reference = header_text(header, "iteratorReferenceURI")
        if self._operation is None:
            self._check_whole(header, reference)
            return
        place = read_place(header_texts(header, _PLACE))
        number, end = place.number, place.end
        if not self.is_used and (reference is None or end):
            return
        self._check(number, correlation_id(header) or "")
        is_first, self.is_used = not self.is_used, True
        self._count += 1
        if end or (end is None and reference is None):
            return
        if number is None and not is_first and not objects_in(response, self._call.operation.batch_path):
            raise ProtocolError("the iterator gives no objects, and no end", correlation_id(header) or "")
        self._number = number
        self._reference = reference or self._reference
        self.next = self._request(self._operation, left)

    def _check_whole(self, header: Header, reference: str | None) -> None:
        """Refuse a reply whose rest only an iterator gives, where no operation asks for it."""
        place = read_place(header_texts(header, Place.FIELDS))
        if reference is not None and standing_of(place.number, place.end) is Standing.UNPLACED:
            reason = "the rest comes by iterator, and the service has no operation for it"
            raise IncompleteBatchError(correlation_id(header) or "", (), end_seen=False, reason=reason)

    def _check(self, number: int | None, identifier: str) -> None:
        last = self._count if self._number is None else self._number
        if number is None or not self._count or number == last + 1 or (self._number is None and number <= last):
            return
        if number <= last:
            raise ProtocolError(f"the iterator gave batch {number} after batch {last}", identifier)
        missing = range(last + 1, number)
        raise IncompleteBatchError(identifier, missing, end_seen=False, reason=f"the iterator gave batch {number}")

    def _request(self, operation: OperationInfo, left: float | None) -> Call:
        call = self._call
        header: dict[str, Any] = {
            **call.options.header,
            "communication_pattern": CommunicationPatternType.MultipleBatchResponse,
            "requested_batch_size": self._size,
            "iterator_reference_uri": self._reference,
        }
        options = dataclasses.replace(call.options, correlation_id=None, header=header)
        if left is not None:
            options = dataclasses.replace(options, timeout=max(left, _LEAST))
        cls = call.service.load(operation.request)
        request = call.request if type(call.request) is cls else cls()
        return call._replace(operation=operation, request=request, options=options)


def _iterator_of(call: Call) -> OperationInfo | None:
    """Return the operation that gives further batches of a call; None if there is none with the same response."""
    wanted = call.operation
    found = call.service.by_name.get(f"{wanted.name}Iterator") if call.service.root else None
    same = found is not None and (found.response, found.batch_path) == (wanted.response, wanted.batch_path)
    return found if same else None
