"""W3C's SOAP over JMS 1.0: the JMS properties of requests and answers, and the faults for wrong requests.

Apache CXF and other JAX-WS stacks use this binding. It is added to MTOSI's own binding: headers, properties of Table 2
and bodies do not change. `BindingProfile.soap_jms` says which services use it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection
from typing import Final

from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import NamingError, SoapJmsFault
from mtosi_jms.jms import Destination, FrozenMap, JmsUri, is_jms_uri
from mtosi_jms.jms.message import JmsMessage, MessageType, Properties, PropertyValue
from mtosi_jms.masking import is_secret, without_login
from mtosi_jms.namespaces import TRANSPORT_JMS_W3C
from mtosi_jms.soap import Envelope
from mtosi_jms.xmlbind import codec_named, declares_utf8, self_described

__all__ = [
    "action_of",
    "as_reply",
    "as_request",
    "breach",
    "chooses",
    "document_of",
    "is_soap_jms",
    "says_fault",
    "self_describing",
    "speaks",
]

_PREFIX: Final = "SOAPJMS_"
_URI: Final = f"{_PREFIX}requestURI"
_TYPE: Final = f"{_PREFIX}contentType"
_VERSION: Final = f"{_PREFIX}bindingVersion"
_ACTION: Final = f"{_PREFIX}soapAction"
_FAULT: Final = f"{_PREFIX}isFault"
_SERVICE: Final = f"{_PREFIX}targetService"
_ENCODING: Final = f"{_PREFIX}contentEncoding"

_SUPPORTED: Final = "1.0"
_NOT_SENT: Final = frozenset({"targetService", "replyToName", "topicReplyToName"})
"""Parameters of a JMS URI that are not sent to the supplier: JMS properties and headers say the same."""
_MEDIA: Final = {"1.1": "text/xml", "1.2": "application/soap+xml"}
_PARAMETER: Final = re.compile(r""";\s*([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;\s]*))""")
_CHARSET: Final = re.compile(r"""(;\s*charset\s*=\s*)(?:"[^"]*"|'[^']*'|[^;\s]*)""", re.IGNORECASE)
_DECLARED: Final = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml\s[^>]*encoding\s*=\s*["']([^"']+)["']""")


def chooses(profile: BindingProfile, transport: str) -> bool:
    """Whether a service uses W3C's binding."""
    return profile.soap_jms == "w3c" or (profile.soap_jms == "wsdl" and transport == TRANSPORT_JMS_W3C)


def speaks(profile: BindingProfile, transports: Collection[str], message: JmsMessage) -> bool:
    """Whether a request for one of several services must follow W3C's binding. If only some of the services use it, the
    request's own properties decide.

        transports: the transports in the services' WSDLs.
    """
    chosen = {chooses(profile, transport) for transport in transports}
    return chosen == {True} or (True in chosen and is_soap_jms(message))


def is_soap_jms(message: JmsMessage) -> bool:
    """Whether a message has properties of W3C's binding."""
    return _TYPE in message.properties or _URI in message.properties


def as_request(
    message: JmsMessage, address: str | Destination, destination: Destination, *, action: str, version: str
) -> JmsMessage:
    """Return a request with the properties of W3C's binding.

    Args:
        destination: the destination of that address.
        action: the SOAP action of the WSDL; empty if it has none.
    """
    uri = _uri_of(address, destination)
    properties: dict[str, PropertyValue] = {_URI: _sent(uri), **_common(version)}
    if action:
        properties[_ACTION] = action
    if service := uri.parameters.get("targetService"):
        properties[_SERVICE] = service
    return _with(message, properties)


def as_reply(message: JmsMessage, request: JmsMessage, *, is_fault: bool, version: str) -> JmsMessage:
    """Return an answer with the properties of W3C's binding, as the same kind of message as its request."""
    properties = {**_common(version), _FAULT: is_fault}
    uri = request.properties.get(_URI)
    if isinstance(uri, str):  # requestors of CXF want it back
        properties[_URI] = uri
    kind = MessageType.BYTES if request.message_type is MessageType.BYTES else MessageType.TEXT
    return dataclasses.replace(_with(message, properties), message_type=kind)


def breach(message: JmsMessage, envelope: Envelope | None) -> SoapJmsFault | None:
    """Return the fault that W3C's binding defines for a wrong request; None if nothing is wrong."""
    code, words = _content(message, envelope) or _address(message) or _version(message) or ("", "")
    return SoapJmsFault(words, fault_code=code) if code else None


def action_of(message: JmsMessage) -> str:
    """Return the SOAP action of a request, a property or a parameter of the content type; empty if there is none, or
    they differ."""
    named = {_text(message, _ACTION).strip('"'), _parameters(_text(message, _TYPE)).get("action", "")} - {""}
    return named.pop() if len(named) == 1 else ""


def says_fault(message: JmsMessage) -> bool | None:
    """Return the value of SOAPJMS_isFault, a Boolean or, from a wire that has only text, a text; None if not set."""
    return {"true": True, "1": True, "false": False, "0": False}.get(_text(message, _FAULT).lower())


def document_of(message: JmsMessage) -> tuple[bytes, str]:
    """Return the document of a message so that it tells its encoding itself, and a text for a warning.

    A TextMessage is Unicode, here as UTF-8, whatever its XML declares. The encoding of a BytesMessage may be in
    SOAPJMS_contentType alone. The body itself is returned if it needs neither, see `mtosi_jms.xmlbind.self_described`.
    """
    if message.message_type is MessageType.TEXT:
        return declares_utf8(message.body), ""
    if message.message_type is not MessageType.BYTES:
        return message.body, ""
    charset = _parameters(_text(message, _TYPE)).get("charset", "") if _TYPE in message.properties else ""
    return self_described(message.body, charset)


def self_describing(message: JmsMessage) -> JmsMessage:
    """Return a message whose body can be read without its headers; the message itself if that is so already."""
    document, _ = document_of(message)
    if document is message.body:
        return message
    properties = message.properties
    if _TYPE in properties:
        properties = Properties({**properties, _TYPE: _CHARSET.sub(r"\1UTF-8", _text(message, _TYPE))})
    return dataclasses.replace(message, body=document, properties=properties)


def _uri_of(address: str | Destination, destination: Destination) -> JmsUri:
    if isinstance(address, str) and is_jms_uri(address):
        return JmsUri.parse(address)
    return JmsUri("topic" if destination.is_topic else "queue", destination.name)


def _sent(uri: JmsUri) -> str:
    kept = {name: value for name, value in uri.parameters.items() if name not in _NOT_SENT and not is_secret(name)}
    shown = FrozenMap({name: without_login(value) for name, value in kept.items()})
    return str(dataclasses.replace(uri, parameters=shown))


def _common(version: str) -> dict[str, PropertyValue]:
    return {_VERSION: _SUPPORTED, _TYPE: f"{_MEDIA.get(version, _MEDIA['1.1'])}; charset=UTF-8"}


def _with(message: JmsMessage, properties: dict[str, PropertyValue]) -> JmsMessage:
    return dataclasses.replace(message, properties=Properties({**message.properties, **properties}))


def _content(message: JmsMessage, envelope: Envelope | None) -> tuple[str, str] | None:
    if message.message_type not in (MessageType.TEXT, MessageType.BYTES):
        return "unsupportedJMSMessageFormat", f"a {message.message_type.value}: send a BytesMessage or a TextMessage"
    content_type = _text(message, _TYPE)
    if not content_type:
        return "missingContentType", f"the message has no property {_TYPE}"
    encoding = _text(message, _ENCODING)
    if encoding.lower() not in ("", "identity"):
        return "contentEncodingNotSupported", f"{_ENCODING} is {encoding[:40]!r}; send the envelope as it is"
    if wrong := _mismatch(message, content_type, envelope):
        return "contentTypeMismatch", f"{_TYPE} is {content_type[:80]!r}, {wrong}"
    return _soap_action(message, content_type)


def _mismatch(message: JmsMessage, content_type: str, envelope: Envelope | None) -> str | None:
    media = content_type.partition(";")[0].strip().lower()
    wanted = _MEDIA[envelope.version] if envelope is not None else media
    if media not in _MEDIA.values() or media != wanted:
        return f"the message is {wanted}" if media in _MEDIA.values() else f"taken are {' and '.join(_MEDIA.values())}"
    charset = _parameters(content_type).get("charset", "")
    if charset and codec_named(charset) is None:
        return "an encoding that is not known"
    declared = _DECLARED.match(message.body) if message.message_type is MessageType.BYTES else None
    if charset and declared is not None and codec_named(declared[1].decode("latin-1")) != codec_named(charset):
        return f"the XML declares {declared[1][:40].decode('latin-1')!r}"
    return None


def _soap_action(message: JmsMessage, content_type: str) -> tuple[str, str] | None:
    inside, action = _parameters(content_type).get("action", ""), _text(message, _ACTION).strip('"')
    if not inside or inside == action:
        return None
    if not action:
        return "missingSoapAction", f"{_TYPE} has an action, and there is no property {_ACTION}"
    return "mismatchedSoapAction", f"{_ACTION} is {action[:80]!r}, and the action in {_TYPE} is {inside[:80]!r}"


def _address(message: JmsMessage) -> tuple[str, str] | None:
    text = _text(message, _URI)
    if not text:
        return "missingRequestURI", f"the message has no property {_URI}"
    try:
        uri = JmsUri.parse(text)
    except NamingError as error:
        return "malformedRequestURI", f"{_URI} is not a JMS URI: {str(error)[:200]}"
    if "targetService" in uri.parameters:
        return "targetServiceNotAllowedInRequestURI", f"{_URI} has the parameter targetService"
    return None


def _version(message: JmsMessage) -> tuple[str, str] | None:
    version = _text(message, _VERSION)
    if version in ("", _SUPPORTED):
        return None
    return "unrecognizedBindingVersion", f"{_VERSION} is {version[:40]!r}; {_SUPPORTED} is spoken here"


def _text(message: JmsMessage, name: str) -> str:
    return str(message.properties.get(name, "")).strip()


def _parameters(content_type: str) -> dict[str, str]:
    found = _PARAMETER.findall(content_type)
    return {name.lower(): double or single or bare for name, double, single, bare in found}
