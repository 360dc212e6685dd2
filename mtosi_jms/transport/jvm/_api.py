"""The classes of a provider's JMS API, `javax.jms` or `jakarta.jms`, and the mapping of its exceptions to errors."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    NamingError,
    ResourceLimitError,
    SelectorError,
    TransportError,
)
from mtosi_jms.transport.jvm import machine

_PACKAGES: Final = ("jakarta.jms", "javax.jms")
_INDIVIDUAL: Final = (("org.apache.activemq.artemis.", 101), ("org.apache.activemq.", 4), ("org.apache.qpid.jms.", 101))
"""The acknowledgement mode for single messages, by the package of each provider's classes. There is no general number:
4 is such a mode for ActiveMQ, but means "no acknowledgement" to WebLogic."""
_CLIENT_ACKNOWLEDGE: Final = 2
_MOST_CAUSES: Final = 8


class Api:
    """One JMS API. `individual`: single messages can be acknowledged. Raises ConfigError: no JMS connection factory."""

    def __init__(self, loader: Any, factory: Any) -> None:
        self.loader = loader
        self._package = ""
        for package in _PACKAGES:
            interface = machine.find_class(f"{package}.ConnectionFactory", loader)
            if interface is not None and isinstance(factory, interface):
                self._package = package
        if not self._package:
            known = ", ".join(f"{package}.ConnectionFactory" for package in _PACKAGES)
            raise ConfigError(
                f"{class_name(factory)} is not a connection factory ({known}); are the jars of javax.jms and of "
                "jakarta.jms mixed on the classpath?"
            )
        self.Crossing = machine.find_class(f"mtosi_jms.{self._package.partition('.')[0]}.Crossing", loader)
        self.Topic = self._class("Topic")
        self.Queue = self._class("Queue")
        self.TemporaryQueue = self._class("TemporaryQueue")
        self.TemporaryTopic = self._class("TemporaryTopic")
        self.ack_mode, self.individual = _CLIENT_ACKNOWLEDGE, False
        for prefix, number in _INDIVIDUAL:
            if class_name(factory).startswith(prefix):
                self.ack_mode, self.individual = number, True
                break

    def _class(self, name: str) -> Any:
        return machine.find_class(f"{self._package}.{name}", self.loader)


def class_name(thing: Any) -> str:
    return str(thing.getClass().getName())


class translated:  # noqa: N801 - used like a function
    """Turns Java exceptions of the block into errors of the SDK, with `what` before Java's own text."""

    __slots__ = ("_what",)

    def __init__(self, what: str = "") -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and isinstance(error, machine.jpype.JException):
            raise error_of(error, self._what) from None  # its traceback is Java's, and may show a credential


def error_of(error: Any, what: str = "") -> MtosiError:
    """Return the SDK's error for a Java exception, by the first of its causes whose class is known."""
    chain = list(_causes(error))
    texts: list[str] = []
    for one in chain:
        message = one.getMessage()
        if message is None or not any(str(message) in before for before in texts):  # causes repeat each other
            texts.append(_text(one))
    if any("/jms/" in one or ".jms." in one for one in texts if one.startswith(_LACKING)):
        texts.append("a jar of the JMS API is missing: the client needs its own of javax.jms and jakarta.jms, two APIs")
    text = ": ".join([*([what] if what else []), *texts])
    names = [class_name(one).rpartition(".")[2] for one in chain]
    for name in names:
        if name in _ERRORS:
            return _ERRORS[name](text)
        if name == "InvalidSelectorException":
            return SelectorError(text)
    if any(name in _NAMING for name in names):
        return NamingError(what or "JNDI", ": ".join(texts))
    return TransportError(text)


def _causes(error: Any) -> Iterator[Any]:
    """Yield the exception, its linked exceptions and its causes, each once."""
    left, seen = [error], 0
    while left and seen < _MOST_CAUSES:
        one = left.pop(0)
        seen += 1
        yield one
        linked = one.getLinkedException() if hasattr(one, "getLinkedException") else None
        for below in (linked, one.getCause()):
            if below is not None and not any(below.equals(other) for other in left):
                left.append(below)


def _text(error: Any) -> str:
    name, message = class_name(error).rpartition(".")[2], error.getMessage()
    return f"{name}: {message}" if message is not None else name


_LACKING: Final = ("ClassNotFoundException: ", "NoClassDefFoundError: ")
_ERRORS: Final[dict[str, type[MtosiError]]] = {
    "JMSSecurityException": AuthenticationError,
    "JMSSecuritySaslException": AuthenticationError,
    "ActiveMQSecurityException": AuthenticationError,
    "InvalidClientIDException": ClientIdInUseError,
    "InvalidDestinationException": InvalidDestinationError,
    "DestinationDoesNotExistException": InvalidDestinationError,
    "ResourceAllocationException": ResourceLimitError,
    "MessageFormatException": MessageRefusedError,
    "IllegalStateException": IllegalStateError,
    "ClassNotFoundException": ConfigError,
    "NoClassDefFoundError": ConfigError,
    "UnsupportedClassVersionError": ConfigError,
    "NoInitialContextException": ConfigError,
    "ConfigurationException": ConfigError,
    "AuthenticationException": AuthenticationError,
    "NoPermissionException": AuthenticationError,
}
_NAMING: Final = frozenset({"NamingException", "NameNotFoundException", "InvalidNameException", "NotContextException"})


def refused_login(error: MtosiError) -> MtosiError:
    """Return an error of connecting, with an AuthenticationError as LoginRefusedError."""
    return LoginRefusedError(str(error)) if isinstance(error, AuthenticationError) else error
