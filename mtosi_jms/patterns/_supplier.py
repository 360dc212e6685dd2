"""The supplier's side: cutting a result into batches while it comes, naming each reply's place, and where it goes (R3c,
R4, R5, C16, P33)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from mtosi_jms.errors import ConfigError, InvalidDestinationError, NamingError

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class BatchPosition:
    """batchSequenceNumber and batchSequenceEndOfReply of a reply; there is no one without the other (R5a)."""

    number: int
    end_of_reply: bool


@dataclass(frozen=True)
class Batch(Generic[T]):
    """The objects of one reply, in the handler's order, and the batch fields of its header."""

    objects: list[T]
    position: BatchPosition


def cut_batches(
    objects: Iterable[T],
    requested_size: int | None,
    *,
    first: int = 1,
    eager: bool = False,
    whole: Callable[[T], bool] | None = None,
) -> Iterator[Batch[T]]:
    """Cut a handler's objects into the batches of a MultipleBatchResponse (R4b, P31, C23, C24).

    A full batch is given out when the next object shows that it is not the last. With `eager` it is given out at once,
    at the price of an empty last batch when the number of objects is a multiple of the size.

    Args:
        objects: what the handler yields; read only as far as the batch at hand needs.
        requested_size: requestedBatchSize: objects in a batch at most; None or 0: all in a single one.
        first: number of the first batch.
        eager: do not look one object ahead.
        whole: says of an object that it is a ready-made reply, which makes a batch of its own.

    Yields:
        At least one batch; exactly the last has the end mark. An empty result is one empty batch.

    Raises:
        ConfigError: a negative size; or a ready-made reply beside others where a single reply was asked for.
    """
    size = requested_size or 0
    if size < 0:
        raise ConfigError(f"requestedBatchSize must not be negative: {requested_size}")
    return _cut(objects, size, first, eager, whole)


def _cut(
    objects: Iterable[T], size: int, number: int, eager: bool, whole: Callable[[T], bool] | None
) -> Iterator[Batch[T]]:
    group: list[T] = []
    sealed = False
    for item in objects:
        alone = whole is not None and whole(item)
        if group and (sealed or alone or len(group) == size):
            yield _not_last(group, number, size)
            group, number = [], number + 1
        group.append(item)
        sealed = alone
        if eager and size and (sealed or len(group) == size):
            yield _not_last(group, number, size)
            group, number = [], number + 1
    yield Batch(group, BatchPosition(number, True))


def _not_last(group: list[T], number: int, size: int) -> Batch[T]:
    if not size:
        raise ConfigError("ready-made replies cannot be joined into the single reply that was asked for")
    return Batch(group, BatchPosition(number, False))


def jms_correlation_id(
    message_id: str | None, jms_correlation_id: str | None, *, correlation_id_first: bool = False
) -> str | None:
    """JMSCorrelationID of every reply to a request, partial ones and faults included (R6a, O13c).

    Args:
        message_id: the request's JMSMessageID.
        jms_correlation_id: the request's JMSCorrelationID.
        correlation_id_first: whether the request's JMSCorrelationID is echoed where it has one, which serves requestors
            whose wire does not tell them their message ids (C62); otherwise JMSMessageID is (O13c).
    """
    first, second = (jms_correlation_id, message_id) if correlation_id_first else (message_id, jms_correlation_id)
    return first or second or None


class RouteSource(StrEnum):
    """Where the address of a reply was found."""

    FAILURE_REPLY_TO = "failureReplytoURI"
    REPLY_TO = "JMSReplyTo"
    NOWHERE = "nowhere"


@dataclass(frozen=True)
class ReplyRoute(Generic[D]):
    """Where a reply goes; `destination` is None if there is no way to answer. `source`: which field of the request
    decided."""

    destination: D | None
    source: RouteSource
    warning: str | None = None


def reply_route(
    *, is_error: bool, reply_to: D | None, failure_reply_to_uri: str | None, resolve: Callable[[str], D]
) -> ReplyRoute[D]:
    """Where a reply goes: an ERROR to failureReplytoURI if that can be resolved, all else to JMSReplyTo (R16d, C16).

    Args:
        is_error: whether the reply is an ERROR.
        reply_to: JMSReplyTo of the request, None where it has none.
        failure_reply_to_uri: failureReplytoURI of the request, a name; None or blank: absent.
        resolve: looks a name up; NamingError or InvalidDestinationError (a destination that the policy forbids) make
            the reply go to JMSReplyTo with a warning.
    """
    name = (failure_reply_to_uri or "").strip()
    warning = None
    if is_error and name:
        try:
            return ReplyRoute(resolve(name), RouteSource.FAILURE_REPLY_TO)
        except (NamingError, InvalidDestinationError) as error:
            warning = f"failureReplytoURI cannot be used, JMSReplyTo is: {error}"
    if reply_to is not None:
        return ReplyRoute(reply_to, RouteSource.REPLY_TO, warning)
    nowhere = "the request has no JMSReplyTo: no reply is sent"
    return ReplyRoute(None, RouteSource.NOWHERE, f"{warning}; {nowhere}" if warning else nowhere)
