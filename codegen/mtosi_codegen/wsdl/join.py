"""Joins bindings, port types and messages to services; each operation gets the elements of its messages.

Where names do not match, the closest spelling is used and reported; what cannot be joined is left out and reported.
Look-ups stay within the files that a WSDL reaches, so two services may share names and namespace. Parts with types get
elements here (`elements`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import SequenceMatcher
from typing import Final, Literal

from mtosi_codegen.findings import Findings
from mtosi_codegen.load import Bindings, Document, Sources, has_ports_only, wanted_transport
from mtosi_codegen.model import Operation, Service
from mtosi_codegen.text import snake
from mtosi_codegen.wsdl.elements import MadeElements
from mtosi_codegen.wsdl.model import (
    Binding,
    BoundMessage,
    BoundOperation,
    Definitions,
    Message,
    Part,
    Port,
    PortOperation,
    PortType,
)
from mtosi_codegen.wsdl.read import read_definitions
from mtosi_codegen.xsd.model import Place, QName, SchemaSet

_SUFFIXES: Final = ("MSG", "RPC", "PortType", "Binding", "Service", "Soap", "Jms", "JMS", "Http", "HTTP")
_CLOSE: Final = 0.8
_ROLES: Final = frozenset({"request", "response", "input", "output", "in", "out", "msg", "message"})
_STYLES: Final = ("document", "rpc")
_LEFT_OUT: Final = "not generated: operation left out"

_MTOSI_HEADER: Final = "header"
"""The local name of the MTOSI header, in the namespaces of all releases and vendors."""

Kind = Literal["request", "response"]


def _whole(text: str, most: int) -> int:
    """A number of JMS. Raises ValueError: it is not a number from 0 to `most`."""
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise ValueError(text)
    return int(text)


_DELIVERY: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "deliveryMode": ("persistent", {"PERSISTENT": True, "NON_PERSISTENT": False}.__getitem__),
    "timeToLive": ("time_to_live", lambda text: _whole(text, 2**63 - 1) / 1000),
    "priority": ("priority", lambda text: _whole(text, 9)),
}
"""Elements of W3C's SOAP over JMS: the option of a call that each sets, and what reads its value."""


def _instead(setting: str) -> str:
    """What says in the SDK what an element of W3C's SOAP over JMS says, where calls do not follow it."""
    if setting.endswith("eplyToName"):
        return "a requestor receives where its reply_to says"
    return "connect says how the provider is reached" if setting.startswith("jndi") else "calls have no such option"


def services_of(sources: Sources, schema: SchemaSet, findings: Findings, bindings: Bindings = "jms") -> list[Service]:
    """Return one service for each wanted SOAP binding, and for each port type of the WSDLs without any SOAP binding.

    Args:
        schema: gets an element for each message or part that has only types.
        bindings: which SOAP bindings are wanted.

    Returns:
        The services in order of file and line; those without SOAP binding come last.
    """
    found: list[Service] = []
    made = MadeElements(schema)
    for root in (*sources.roots, *sources.abstract):
        scope = sources.scope(root)
        definitions = read_definitions(scope, findings)
        definitions.ports += read_definitions(outer_documents(sources, root), findings).ports
        if root in sources.abstract:
            wanted = _abstract_bindings(definitions, root)
        else:
            here = (binding for binding in definitions.bindings if binding.place.file == root.name)
            on_jms = {port.binding for port in definitions.ports if port.jms}
            wanted = [one for one in here if wanted_transport(one.transport, bindings) or one.name in on_jms]
        for binding in wanted:
            service = _Joiner(definitions, binding, made, findings).service()
            service.files = tuple(sorted(document.name for document in scope))
            found.append(service)
        for other in definitions.others:
            if other.place.file == root.name:
                message = f"binding {other.name.local!r} {other.kind}"
                repair = "nothing serves it" + "; its port type is generated" * (root in sources.abstract)
                findings.add("binding-unserved", *other.place, message, repair)
    return found


def _abstract_bindings(definitions: Definitions, root: Document) -> list[Binding]:
    """Stand-ins for bindings in a WSDL without SOAP binding: for its own port types and those in its other bindings."""
    bound = {other.type for other in definitions.others if other.place.file == root.name}
    return [
        Binding(
            port_type.name,
            port_type.name,
            "",
            "",
            port_type.place,
            tuple(
                BoundOperation(
                    operation.name, operation.place, "", "", BoundMessage(), BoundMessage(), labels=operation.labels
                )
                for operation in port_type.operations
            ),
        )
        for port_type in definitions.port_types.values()
        if port_type.place.file == root.name or port_type.name in bound
    ]


def outer_documents(sources: Sources, root: Document) -> list[Document]:
    """The WSDLs without bindings that import this one, directly or not: they may contain its ports."""
    candidates = [document for document in sources.documents if document.kind == "wsdl"]
    return [other for other in candidates if has_ports_only(other.root) and root in sources.scope(other)]


def stripped_name(name: str) -> str:
    """An interface's name without suffixes for its binding (`_MSG`, `SoapJmsBinding`, `Jms`)."""
    end = len(name)
    while suffix := next((one for one in _SUFFIXES if name.endswith(one, 0, end)), ""):
        end -= len(suffix)
        end -= name.endswith("_", 0, end)
    return name[:end] or name


class _Joiner:
    def __init__(self, definitions: Definitions, binding: Binding, made: MadeElements, findings: Findings) -> None:
        self._all = definitions
        self._binding = binding
        self._made = made
        self._findings = findings
        self._failed: list[str] = []
        self._uncalled: list[str] = []

    def service(self) -> Service:
        binding = self._binding
        port_type = self._port_type()
        ports = [port for port in self._all.ports if port.binding == binding.name]
        port = ports[0] if ports else None
        operations: list[Operation] = []
        if not binding.operations:
            message = f"{'binding' if binding.style else 'port type'} {binding.name.local!r} has no operations"
            self.report("no-service", binding.place, message, "left out: nothing to call")
        if port_type is not None:
            for bound, operation in self._pairs(port_type):
                joined = self._operation(bound, operation)
                operations.extend([joined] if joined else [])
        return Service(
            self._name(port_type),
            binding.name.local,
            binding.place.file,
            binding.name.namespace,
            port_type.name.local if port_type else binding.type.local,
            binding.transport,
            port.address if port else "",
            binding.place,
            operations,
            failed=self._failed,
            uncalled=self._uncalled,
            doc=port_type.doc if port_type else "",
            soap_version=binding.version,
            delivery=self._delivery(ports),
        )

    def _delivery(self, ports: list[Port]) -> dict[str, object]:
        """What W3C's SOAP over JMS says of messages; the port counts before its service, that before the binding."""
        found: dict[str, object] = {}
        for setting in (*self._binding.settings, *(ports[0].settings if ports else ())):
            option, read = _DELIVERY.get(setting.name, ("", None))
            if read is None or setting.fault:
                why = setting.fault or _instead(setting.name)
                self.report("soap-jms", setting.place, f"soapjms:{setting.name}", f"left out: {why}")
                continue
            try:
                found[option] = read(setting.value)
            except (KeyError, ValueError):
                text = f"soapjms:{setting.name} is {setting.value!r}"
                self.report("soap-jms", setting.place, text, "left out: it is not a value of JMS")
        for setting in (setting for port in ports[1:] for setting in port.settings):
            self.report("soap-jms", setting.place, f"soapjms:{setting.name}", "left out: the first port counts")
        return found

    @property
    def style(self) -> str:
        """The style of the binding; empty if no SOAP binding sets it."""
        return self._binding.style

    @property
    def namespace(self) -> str:
        """The namespace of the binding."""
        return self._binding.name.namespace

    def report(self, rule: str, place: Place, message: str, repair: str) -> None:
        """Add a finding."""
        self._findings.add(rule, place.file, place.line, message, repair)

    def _name(self, port_type: PortType | None) -> str:
        """The interface's name: the port type's, or the files' if both have one name and the port type another."""
        name = stripped_name(port_type.name.local if port_type else self._binding.name.local)
        if port_type is None or port_type.place.file == self._binding.place.file:
            return name
        folder, _, file = self._binding.place.file.rpartition("/")
        stem = stripped_name(file.rpartition(".")[0] or file)
        home, _, other = port_type.place.file.rpartition("/")
        if folder == home and stem.casefold() != name.casefold() and stripped_name(other.rpartition(".")[0]) == stem:
            message = f"files are named {stem!r}, the port type is named {name!r}"
            self.report("service-name", self._binding.place, message, f"service named {stem!r}")
            return stem
        return name

    def _port_type(self) -> PortType | None:
        wanted = self._binding.type
        found = self._all.port_types.get(wanted)
        if found is None:
            same = [port_type for name, port_type in self._all.port_types.items() if name.local == wanted.local]
            same = same or list(self._all.port_types.values())[: len(self._all.port_types) == 1]
            found = same[0] if same else None
            repair = f"{found.name} is used" if found else "not generated: the service has no operations"
            message = f"port type {wanted} is not defined"
            self.report("binding-type-missing", self._binding.place, message, repair)
            if found is None:
                self._failed.extend(operation.name for operation in self._binding.operations)
        return found

    # Operations

    def _pairs(self, port_type: PortType) -> Iterator[tuple[BoundOperation, PortOperation]]:
        """Pair binding operations with those of the port type: by name, by similarity, the last pair by its words."""
        pairs = self._namesakes(port_type)
        left = [operation for operation in port_type.operations if operation not in pairs.values()]
        lost: list[BoundOperation] = []
        for bound in (bound for bound in self._binding.operations if bound not in pairs):
            near = [(_closeness(bound.name, operation.name), operation) for operation in left]
            best = max(near, key=lambda pair: pair[0], default=(0.0, None))
            if best[1] is None or best[0] < _CLOSE:
                lost.append(bound)
            else:
                pairs[bound] = best[1]
                left.remove(best[1])
        if len(lost) == len(left) == 1 and _agree(lost[0], left[0]):
            pairs[lost.pop()] = left.pop()
        for bound, operation in pairs.items():
            if bound.name != operation.name:
                message = f"the binding says {bound.name!r}, the port type {operation.name!r}"
                self.report("operation-drift", bound.place, message, f"taken as one operation, {operation.name!r}")
        for bound in lost:
            message = f"operation {bound.name!r} is not in port type {port_type.name.local!r}"
            self.report("operation-undefined", bound.place, message, "not generated: no message is known")
            self._failed.append(bound.name)
        for operation in left:
            message = f"operation {operation.name!r} of the port type is not in binding {self._binding.name.local!r}"
            self.report("operation-unbound", operation.place, message, "left out: nothing says how to send it")
        return ((bound, pairs[bound]) for bound in self._binding.operations if bound in pairs)

    def _namesakes(self, port_type: PortType) -> dict[BoundOperation, PortOperation]:
        """Pair operations of one name. Overloads belong together by the names of input and output, then of one of them.

        What no name tells apart is paired in its order, with a finding if more than one pair is left.
        """
        pairs: dict[BoundOperation, PortOperation] = {}
        for name in dict.fromkeys(bound.name for bound in self._binding.operations):
            bounds = [bound for bound in self._binding.operations if bound.name == name]
            left = [operation for operation in port_type.operations if operation.name == name]
            overloaded = len(left) > 1
            for needed in (2, 1):
                for bound in [bound for bound in bounds if bound not in pairs]:
                    same = [operation for operation in left if _labels_alike(bound, operation) == needed]
                    if overloaded and len(same) == 1:
                        pairs[bound] = same[0]
                        left.remove(same[0])
            rest = dict(zip((bound for bound in bounds if bound not in pairs), left, strict=False))
            for bound, operation in rest.items():
                if overloaded and (len(left) > 1 or _labels_alike(bound, operation) < 0):
                    message = (
                        f"operation {name!r} is overloaded, and the names of input and output do not tell which it is"
                    )
                    repair = "taken in the order of the port type: the SOAP action may be that of another"
                    self.report("operation-overloaded", bound.place, message, repair)
            pairs.update(rest)
        return pairs

    def _operation(self, bound: BoundOperation, operation: PortOperation) -> Operation | None:
        if operation.answers_first:
            kind = "solicit-response" if operation.input is not None else "notification"
            message = f"operation {operation.name!r} is a {kind}: its service speaks first"
            self.report("operation-reversed", operation.place, message, "left out: nothing calls it")
            self._uncalled.append(operation.name)
            return None
        style = bound.style or self._binding.style
        if style and style not in _STYLES:
            message = f"operation {operation.name!r} has style {style!r}"
            self.report("binding-style", bound.place, message, "read as document/literal")
        if bound.input.encoded or bound.output.encoded:
            message = f"binding {self._binding.name.local!r} asks for the SOAP encoding"
            repair = "read as literal: no types and references are written into messages"
            self.report("binding-style", self._binding.place, message, repair)
        bodies = _Bodies(self, bound, operation, self._made)
        request = bodies.body(operation.input, bound.input, "request")
        response = bodies.body(operation.output, bound.output, "response") if operation.output else None
        if request is None or (operation.output is not None and response is None):
            self._failed.append(operation.name)
            return None
        headers = tuple(dict.fromkeys(bodies.headers()))
        faults = list(bodies.faults())
        mep: Literal["request-response", "one-way"] = "request-response" if operation.output else "one-way"
        return Operation(
            operation.name,
            operation.place,
            mep,
            request[1],
            response[1] if response else None,
            faults[0][1] if faults else None,
            request[0].name.local,
            response[0].name.local if response else "",
            faults[0][0].name.local if faults else "",
            fault_elements=tuple(element for _, element in faults),
            headers=headers,
            bound_name=bound.name,
            action=bound.action,
            doc=operation.doc,
        )

    # Messages

    def message(self, name: QName, place: Place) -> Message | None:
        """The message of a name, or, with a finding, the most similar one; None if there is none."""
        alias = self._all.aliases.get(place.file, {}).get(name.namespace, name.namespace)
        found = self._all.messages.get(name) or self._all.messages.get(QName(alias, name.local))
        if found is not None:
            return found
        same = [message for key, message in self._all.messages.items() if key.local == name.local]
        if same:
            text = f"message {name} is not defined"
            self.report("message-namespace", place, text, f"{same[0].name} is used")
            return same[0]
        return self._nearest(name, place)

    def header_part(self, message: QName, name: str) -> Part | None:
        """The part that a header names; the message may be in another namespace than the header says."""
        known = self._all.messages.get(message)
        same = (other for key, other in self._all.messages.items() if key.local == message.local)
        parts = (part for found in ([known] if known else same) for part in found.parts)
        return next((part for part in parts if part.name == name), None)

    def _nearest(self, name: QName, place: Place) -> Message | None:
        """The message whose name differs in case or by one or two letters."""
        near: Iterable[tuple[float, Message]] = (
            (_closeness(name.local, key.local), message) for key, message in self._all.messages.items()
        )
        best = max(near, key=lambda pair: pair[0], default=(0.0, None))
        if best[1] is None or best[0] < 0.95:
            return None
        self.report("message-undefined", place, f"message {name} is not defined", f"{best[1].name} is used")
        return best[1]


class _Bodies:
    """The elements that the messages of one operation carry."""

    def __init__(self, joiner: _Joiner, bound: BoundOperation, operation: PortOperation, made: MadeElements) -> None:
        self._joiner = joiner
        self._bound = bound
        self._operation = operation
        self._made = made

    def body(self, name: QName | None, bound: BoundMessage, kind: Kind) -> tuple[Message, QName] | None:
        """A message and the element in its body; None, with a finding, if there is none."""
        operation = self._operation
        message = self._joiner.message(name, operation.place) if name is not None else None
        if message is None:
            text = f"{kind} message {name or 'without a name'} of operation {operation.name!r} is not defined"
            self._joiner.report("message-undefined", operation.place, text, _LEFT_OUT)
            return None
        parts = self._parts(message, bound, kind)
        element: QName | None
        if self._style(message, parts) == "rpc":
            element = self._wrapper(message, parts, bound, kind)
        elif parts or (message.parts and bound.body_parts is None and not bound.headers and not bound.attachments):
            element = self._document(message, parts, kind)
        else:
            element = self._empty(message, kind)
        return (message, element) if element is not None else None

    def _parts(self, message: Message, bound: BoundMessage, kind: Kind) -> list[Part]:
        """The parts of a message that go into the body."""
        own = {
            header.part for header in bound.headers if header.message.local == message.name.local and not header.fault
        }
        for name in bound.attachments:
            text = f"part {name!r} of {self._named(message, kind)} is a MIME attachment"
            self._joiner.report("message-part", message.place, text, "left out: attachments are not carried")
        excluded = own | set(bound.attachments)
        parts = [part for part in message.parts if part.name not in excluded]
        if bound.body_parts is None:
            return parts
        named = [part for part in message.parts if part.name in bound.body_parts]
        if bound.body_parts and not named:
            text = (
                f"the body of {self._named(message, kind)} is said to be {' '.join(bound.body_parts)!r}, no part of it"
            )
            self._joiner.report("message-part", message.place, text, "all parts are taken")
            return parts
        return named

    def _named(self, message: Message, kind: str) -> str:
        return f"{kind} message {message.name.local!r} of operation {self._operation.name!r}"

    def _style(self, message: Message, parts: list[Part]) -> str:
        style = self._bound.style or self._joiner.style
        if style:
            return style
        if not parts or any(part.type is None for part in parts):
            return "document"
        text = f"the parts of message {message.name.local!r} have types, and no SOAP binding says how they travel"
        self._joiner.report("message-part", message.place, text, "read as rpc/literal")
        return "rpc"

    # The rpc style

    def _wrapper(self, message: Message, parts: list[Part], bound: BoundMessage, kind: Kind) -> QName:
        operation = self._operation
        namespace = bound.namespace
        if not namespace:
            namespace = self._joiner.namespace
            if self._joiner.style:
                text = f"the body of {self._named(message, kind)} has no namespace, which the rpc style needs"
                self._joiner.report(
                    "binding-style", self._bound.place, text, f"that of the WSDL is used, {namespace!r}"
                )
        parts = [self._mended(part) for part in parts]
        if any(part.element is not None for part in parts):
            text = f"{self._named(message, kind)} names an element, and the rpc style needs types"
            self._joiner.report("binding-style", message.place, text, "written inside the element of the operation")
        name = QName(namespace, operation.name + "Response" * (kind == "response"))
        doc = f"The {'results' if kind == 'response' else 'parameters'} of {operation.name}."
        if not self._made.wrapper(name, parts, message.place, doc):
            self._taken(name, message, kind)
        return name

    def _mended(self, part: Part) -> Part:
        """The part. If its type is the name of an element, that element replaces the type."""
        if part.element is None and part.type is not None and self._made.means_element(part.type):
            text = f"part {part.name!r} names the type {part.type}, which is an element"
            self._joiner.report("message-part", part.place, text, "the element is taken")
            return Part(part.name, part.type, None, part.place)
        return part

    def _taken(self, name: QName, message: Message, kind: str) -> None:
        text = f"{self._named(message, kind)} needs an element {name}, and there is another of that name"
        self._joiner.report("message-part", message.place, text, "the content of both stays XML")

    # The document style

    def _document(self, message: Message, parts: list[Part], kind: Kind) -> QName | None:
        candidates = [self._mended(part) for part in parts if part.element is not None or part.type is not None]
        if not candidates:
            text = f"{self._named(message, kind)} has no body element"
            self._joiner.report("message-part", message.place, text, _LEFT_OUT)
            return None
        chosen = candidates[0] if self._marked(kind) else _body_part(candidates)
        if chosen is None or (self._marked(kind) and len(candidates) > 1):
            chosen = candidates[0]
            text = f"{self._named(message, kind)} has several body parts"
            repair = f"{chosen.name!r} is taken; the others travel beside it, as further elements of the envelope"
            self._joiner.report("message-part", message.place, text, repair)
        if chosen.element is not None:
            return chosen.element
        name = QName("", chosen.name)
        text = (
            f"part {chosen.name!r} of {self._named(message, kind)} has a type, and the document style needs an element"
        )
        if not self._made.typed(
            name, chosen.type, chosen.place, f"Part {chosen.name} of message {message.name.local}."
        ):
            self._taken(name, message, kind)
        self._joiner.report("message-part", chosen.place, text, "written as an element without namespace")
        return name

    def _marked(self, kind: Kind) -> bool:
        """Whether the binding names the parts of the body."""
        return bool((self._bound.input if kind == "request" else self._bound.output).body_parts)

    def _empty(self, message: Message, kind: Kind) -> QName:
        """An element for a body without parts: only the element shows which message it is."""
        operation, namespace = self._operation, self._joiner.namespace
        plain = operation.name + "Response" * (kind == "response")
        names = [QName(namespace, local) for local in (plain, message.name.local, f"{plain}Empty")]
        name = next((name for name in names if not self._made.is_taken(name)), names[-1])
        self._made.wrapper(name, (), message.place, f"The empty {kind} of {operation.name}.")
        text = f"{self._named(message, kind)} has no body part"
        self._joiner.report("message-part", message.place, text, f"its body is an empty element {name}")
        return name

    # Beside the body

    def headers(self) -> Iterator[QName]:
        """The elements of header parts but the MTOSI header. Those with a type are made, undefined ones reported."""
        for header in (*self._bound.input.headers, *self._bound.output.headers):
            part = self._joiner.header_part(header.message, header.part)
            if part is None:
                text = f"header part {header.part!r} of message {header.message.local!r} is not defined"
                self._joiner.report("message-part", header.place, text, "left out; such a header block stays XML")
                continue
            element = part.element
            if element is None and part.type is not None:
                element = QName(header.namespace, part.name)
                self._made.typed(element, part.type, part.place, f"Header part {part.name}.")
            if element is not None and not header.fault and element.local != _MTOSI_HEADER:
                yield element

    def faults(self) -> Iterator[tuple[Message, QName]]:
        """The messages of the faults, each with the element in its detail."""
        for name, message_name in self._operation.faults:
            message = self._joiner.message(message_name, self._operation.place)
            element = self._fault(message, self._bound.fault_spaces.get(name, "")) if message is not None else None
            if message is not None and element is not None:
                yield message, element
            else:
                text = f"fault {name!r} of operation {self._operation.name!r} has no element"
                self._joiner.report("fault-undefined", self._operation.place, text, "left out; such a fault stays XML")

    def _fault(self, message: Message, namespace: str) -> QName | None:
        parts = [self._mended(part) for part in message.parts]
        named = [part.element for part in parts if part.element is not None]
        if named or not parts or parts[0].type is None:
            return named[0] if named else None
        name = QName(namespace, parts[0].name)
        if not self._made.typed(name, parts[0].type, parts[0].place, f"Fault {message.name.local}."):
            self._taken(name, message, "fault")
        return name


def _labels_alike(bound: BoundOperation, operation: PortOperation) -> int:
    """How many of input and output a binding and a port type name alike; -1 if they name one otherwise.

    WSDL's default for a name that is not given (2.4.5) is the operation's, with `Request` or `Response` if it has both.
    """
    two_way = operation.input is not None and operation.output is not None
    alike = 0
    for given, own, suffix in zip(bound.labels, operation.labels, ("Request", "Response"), strict=True):
        default = operation.name + suffix * two_way
        if (given or default) == (own or default):
            alike += 1
        elif given:
            return -1
    return alike


def _body_part(parts: list[Part]) -> Part | None:
    """The only part, the only one named a body, or the only one not named a header; None if that is not unique."""
    if len(parts) > 1:
        bodies = [part for part in parts if "body" in part.name.casefold()]
        parts = bodies or [part for part in parts if not _calls_header(part)]
    return parts[0] if len(parts) == 1 else None


def _calls_header(part: Part) -> bool:
    names = (part.name, part.element.local if part.element is not None else "")
    return any("header" in name.casefold() for name in names)


def _closeness(one: str, other: str) -> float:
    if one.casefold() == other.casefold():
        return 1.0
    return SequenceMatcher(None, one.casefold(), other.casefold(), autojunk=False).ratio()


def _agree(bound: BoundOperation, operation: PortOperation) -> bool:
    """Whether the names have the same words in any order, or the header messages show that both belong together."""
    own = _words(bound.name)
    bound_to = {header.message.local for header in (*bound.input.headers, *bound.output.headers) if not header.fault}
    messages = {name.local for name in (operation.input, operation.output) if name is not None}
    named = [_words(name) for name in (operation.name, *sorted(messages))]
    return bool(bound_to & messages) or own in named


def _words(name: str) -> list[str]:
    return sorted(word for word in snake(name).split("_") if word not in _ROLES)
