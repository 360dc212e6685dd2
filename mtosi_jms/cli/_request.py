"""Calls one operation and prints its replies: a single reply as XML, several as a line each, or all as JSON lines.

A fault is one line on standard error, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import difflib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from lxml import etree

from mtosi_jms.cli import terminal
from mtosi_jms.cli._contents import listed_in
from mtosi_jms.cli._objects import fill, plain
from mtosi_jms.cli._operations import operation_names
from mtosi_jms.cli.arguments import (
    add_release,
    add_stubs,
    add_validation,
    as_usage,
    completed_by,
    count,
    rate,
    validation_of,
)
from mtosi_jms.cli.calls import PreparedCall, Reply
from mtosi_jms.cli.documents import error_text
from mtosi_jms.cli.log import log_in_lines
from mtosi_jms.cli.providers import add_provider, open_connection, time_limits
from mtosi_jms.errors import ConfigError, MtosiFault, XmlError
from mtosi_jms.exchange import Requestor
from mtosi_jms.inventory import load_stubs
from mtosi_jms.namespaces import SOAP11, SOAP12, TMF854, clark
from mtosi_jms.registry import registered_module
from mtosi_jms.service import Call as OperationCall
from mtosi_jms.service import CallOptions, OperationInfo, ServiceInfo
from mtosi_jms.service.registry import services_of
from mtosi_jms.soap import Envelope, correlation_id
from mtosi_jms.spool import DurableLanding
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import (
    RawXml,
    XmlObject,
    XmlWarning,
    decode,
    modules_of,
    parse_xml,
    read_document,
    registered_packages,
    to_element,
)

_BODIES: Final = (clark(SOAP11, "Body"), clark(SOAP12, "Body"))
_SENDER: Final = "mtosi-jms"
_NAMES: Final = 3
_NEAR: Final = 3
_SHIPPED_1X: Final = "mtosi_jms.stubs11"
_CLOSE_SECONDS: Final = 0.5
"""Seconds that a provider has at least to answer when the connection closes."""
_QUICK: Final = 0.25
_TICK: Final = 0.001


class _ByStubs:
    def __init__(
        self,
        requestor: Requestor,
        to: str,
        service: ServiceInfo,
        operation: OperationInfo,
        request: XmlObject,
    ) -> None:
        self.service, self.operation = service.name, operation.name
        self.depth = len(operation.batch_path)
        self._requestor = requestor
        self._call = OperationCall(service, operation, to, request)

    def replies(self, options: CallOptions, batch_size: int | None) -> Iterator[Reply | None]:
        call = self._call._replace(options=options)
        if batch_size is None:
            response = self._requestor.call(call)
            yield None if response is None else _reply(response)
            return
        with self._requestor.call_batches(call, batch_size) as batches:
            for response in batches:
                yield _reply(response)


def _reply(response: XmlObject | RawXml) -> Reply:
    return Reply(to_element(response), lambda: plain(response))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    operation = parser.add_argument(
        "operation", metavar="[SERVICE.]OPERATION", help="the operation, such as getManagedElement"
    )
    completed_by(operation, operation_names)
    add_provider(parser)
    parser.add_argument("--to", required=True, metavar="NAME", help="destination where the supplier listens")
    parser.add_argument("--reply-to", metavar="NAME", help="destination for replies (a temporary queue)")
    parser.add_argument("--sender", default=_SENDER, metavar="URI", help="our logical name, senderURI (%(default)s)")
    parser.add_argument(
        "--batch-size",
        type=count,
        metavar="N",
        help="ask for batches of N objects; 0: all objects in one batch (no batches, but one SimpleResponse)",
    )
    body = parser.add_mutually_exclusive_group()
    body.add_argument(
        "--body", metavar="FILE", help="file with the request's element or an envelope around it (an empty request)"
    )
    body.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="a field of the request, such as meRef=MD=EMS1/ME=NE-7 or filter.location=Delft; may be repeated",
    )
    parser.add_argument("--landing", metavar="DIR", help="store each reply there before it is acknowledged")
    parser.add_argument("--timeout", type=rate, metavar="S", help="seconds to connect, send and receive, all together")
    parser.add_argument("--persistent", action="store_true", help="have the provider store the request")
    add_release(parser)
    add_stubs(parser)
    add_validation(parser, "replies")
    parser.add_argument(
        "--wsdl", metavar="FILE", help="call an operation of this WSDL, without stubs (needs the extra zeep)"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="PATH",
        help="file or folder with documents that the WSDL imports but does not find; may be repeated",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--show", choices=("xml", "summary"), help="how to print replies (xml for one, summary for several)"
    )
    shown.add_argument("--json", action="store_true", help="print one JSON line for each reply")


def run(args: argparse.Namespace) -> int:
    """Make the call; 1 where the answer is a fault."""
    make_call = _wsdl(args) if args.wsdl is not None else _stubs(args)
    if make_call is None:
        return 1
    deadline = None if args.timeout is None else time.monotonic() + args.timeout
    limits = time_limits(args, args.timeout) if args.timeout is not None else {}
    with log_in_lines(args), _closed_by(deadline) as stack:
        connection = stack.enter_context(open_connection(args, **limits))
        return _call(connection, args, make_call, stack, deadline)


def _stubs(args: argparse.Namespace) -> Callable[[Requestor], PreparedCall] | None:
    """What asks for an operation of the stubs; None where the file with the request cannot be read."""
    with as_usage():
        load_stubs(args.stubs)
        service, operation = find_operation(args.operation, args.release)
        request = None if args.body is not None else fill(service.load(operation.request), args.set)
    if request is None:
        try:
            request = _read(args.body, service, operation)
        except (XmlError, OSError) as error:
            terminal.problem(error_text(args.body, error))
            return None
    made = request
    return lambda requestor: _ByStubs(requestor, args.to, service, operation, made)


def _wsdl(args: argparse.Namespace) -> Callable[[Requestor], PreparedCall] | None:
    """What asks for an operation of a WSDL; None where the file with the request cannot be read."""
    by_wsdl = registered_module("calls", "wsdl")
    request = None
    if args.body is not None:
        try:
            request = _request_in(args.body)
        except (XmlError, OSError) as error:
            terminal.problem(error_text(args.body, error))
            return None
    document = by_wsdl.read(args.wsdl, args.source)

    def make(requestor: Requestor) -> PreparedCall:
        with as_usage():
            asked = args.set if request is None else request
            call: PreparedCall = by_wsdl.ByWsdl(document, requestor, args.to, args.operation, asked)
            return call

    return make


@contextmanager
def _closed_by(deadline: float | None) -> Iterator[ExitStack]:
    """A stack that is closed at the end; a provider that does not answer by a deadline is not waited for."""
    with ExitStack() as stack:
        try:
            yield stack
        finally:
            if deadline is not None:
                _close(stack.pop_all(), max(deadline - time.monotonic(), _CLOSE_SECONDS))


def _close(stack: ExitStack, seconds: float) -> None:
    failed: list[Exception] = []

    def close() -> None:
        try:
            stack.close()
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            failed.append(error)

    closing = threading.Thread(target=close, name="closing", daemon=True)
    closing.start()
    closing.join(seconds)
    if failed:
        raise failed[0]


def _read(file: str, service: ServiceInfo, operation: OperationInfo) -> XmlObject:
    element = _request_in(file)
    cls = service.load(operation.request)
    if element.tag != cls.__xml__.tag:
        raise ConfigError(f"{file}: {element.tag} is not a request of {operation.name}, which is {cls.__xml__.tag}")
    warnings: list[XmlWarning] = []
    request = decode(element, cls, warnings=warnings, source=file)
    for warning in warnings:
        terminal.note(f"{file}: {warning}")
    return request


def _request_in(file: str) -> etree._Element:
    """The request in a file: as it is, or in an envelope, whose header does not count."""
    root = parse_xml(read_document(file), source=file)
    body = next((child for child in root if child.tag in _BODIES), None)
    element = root if body is None else next(iter(body), None)
    if element is None:
        raise ConfigError(f"{file}: an empty body is not a request")
    return element


def _call(
    connection: Connection,
    args: argparse.Namespace,
    make_call: Callable[[Requestor], PreparedCall],
    stack: ExitStack,
    deadline: float | None,
) -> int:
    landing = stack.enter_context(DurableLanding(args.landing)) if args.landing else None
    requestor = stack.enter_context(
        Requestor(
            connection,
            sender_uri=args.sender,
            reply_to=args.reply_to,
            temporary_reply=args.reply_to is None,
            landing=landing,
            validate=validation_of(args),
        )
    )
    call = make_call(requestor)
    printer = _Printer(call, args)
    options = CallOptions(
        timeout=_time_left(args.timeout, deadline), persistent=args.persistent or None, on_reply=printer.take
    )
    try:
        for reply in call.replies(options, args.batch_size):
            printer.show(reply)
    except MtosiFault as fault:
        printer.show_fault(fault)
        return 1
    return 0


def _time_left(seconds: float | None, deadline: float | None) -> float | None:
    """Seconds left for the call; all of them where connecting took next to none."""
    if seconds is None or deadline is None:
        return seconds
    left = deadline - time.monotonic()
    return seconds if seconds - left < _QUICK else max(left, _TICK)


class _Printer:
    def __init__(self, call: PreparedCall, args: argparse.Namespace) -> None:
        self._called = {"service": call.service, "operation": call.operation}
        self._name = f"{call.service}.{call.operation}"
        self._json: bool = args.json
        self._xml = args.show == "xml" if args.show else args.batch_size is None
        self._depth = call.depth
        self._replies = 0
        self._envelope = Envelope()

    def take(self, envelope: Envelope) -> None:
        self._replies += 1
        self._envelope = envelope
        for warning in envelope.warnings:
            terminal.note(f"reply {self._replies}: {warning}")

    def show(self, reply: Reply | None) -> None:
        if reply is None:
            if self._json:
                terminal.print_json(self._called)
            else:
                terminal.say(f"sent: {self._name}, which has no reply")
            return
        element = reply.element
        if self._json:
            terminal.print_json({**self._facts(), "objects": self._objects(element), "body": reply.body()})
        elif self._xml:
            etree.indent(element)
            terminal.write(etree.tostring(element, encoding="unicode"))
        else:
            terminal.say(self._summary(element))
        terminal.flush()

    def show_fault(self, fault: MtosiFault) -> None:
        if self._json:
            details = {"kind": fault.kind, "reason": fault.reason, "code": fault.fault_code}
            terminal.print_json({**self._facts(), "fault": details})
        kind = fault.kind or fault.fault_code
        terminal.problem(f"{self._name}: {kind}: {fault.reason or 'without a reason'}")

    def _facts(self) -> dict[str, Any]:
        header = self._envelope.header
        return {
            "reply": self._replies,
            **self._called,
            "correlation_id": correlation_id(header),
            "batch_sequence_number": plain(getattr(header, "batch_sequence_number", None)),
            "end_of_reply": plain(getattr(header, "batch_sequence_end_of_reply", None)),
            "warnings": [str(warning) for warning in self._envelope.warnings],
        }

    def _summary(self, element: Any) -> str:
        facts = self._facts()
        number = facts["batch_sequence_number"]
        place = f"reply {self._replies}" if number is None else f"batch {number}"
        end = ", the last" if facts["end_of_reply"] else ""
        held = "; ".join(
            f"{group['count']} {group['type']}: {', '.join(group['names'])}"
            + (", ..." if group["count"] > len(group["names"]) else "")
            for group in self._objects(element)
        )
        return f"{place}{end}: {etree.QName(element).localname}: {held or 'no objects'}"

    def _objects(self, element: Any) -> list[dict[str, Any]]:
        return [group.to_json() for group in listed_in(element, self._depth, _NAMES)]


def find_operation(text: str, release: str = "2.0") -> tuple[ServiceInfo, OperationInfo]:
    """The operation that a name stands for.

    The first package of stubs that has the operation counts; the shipped stubs come last.

    Args:
        text: the operation's WSDL or Python name, behind the service's name and a dot where several services have it.
        release: 1.1: only packages of MTOSI 1.x count; 2.0: all but the shipped one of 1.1.

    Raises:
        ConfigError: an unknown operation, with the names that resemble it, or several services of a package have it.
    """
    service_name, _, name = text.rpartition(".")
    packages = _packages(release)
    for package in packages:
        found = [
            (service, operation)
            for service, operation in _operations(package)
            if name in (operation.name, operation.python_name) and service_name in ("", service.name)
        ]
        if len(found) > 1:
            several = " or ".join(f"{service.name}.{operation.name}" for service, operation in found)
            raise ConfigError(f"several services have {text!r}; give {several}")
        if found:
            return found[0]
    told = "" if release == "2.0" else f" in the stubs of MTOSI {release}"
    raise ConfigError(f"there is no operation {text!r}{told}{_hint(packages, service_name, name)}")


def _packages(release: str) -> list[str]:
    if release == "2.0":
        return [package for package in registered_packages() if package != _SHIPPED_1X]
    return [package for package in registered_packages() if TMF854 in modules_of(package)]


def _operations(package: str) -> Iterator[tuple[ServiceInfo, OperationInfo]]:
    for service in services_of(package):
        for operation in service.operations:
            yield service, operation


def _hint(packages: list[str], service_name: str, name: str) -> str:
    known = [found for package in packages for found in _operations(package)]
    by_text: dict[str, str] = {}
    for service, operation in known:
        for spelled in (operation.name, operation.python_name):
            for text in (spelled, f"{service.name}.{spelled}"):
                by_text.setdefault(text.lower(), f"{service.name}.{operation.name}")
    close: list[str] = []
    if service_name:
        close = difflib.get_close_matches(f"{service_name}.{name}".lower(), by_text, n=2 * _NEAR)
    close = close or difflib.get_close_matches(name.lower(), by_text, n=2 * _NEAR)  # the service may be misspelt
    near = list(dict.fromkeys(by_text[one] for one in close))[:_NEAR]
    if near:
        return f"; did you mean {', '.join(near)}?"
    return f"; the services are {', '.join(sorted({service.name for service, _ in known}))}"
