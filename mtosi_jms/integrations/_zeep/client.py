"""The client: zeep's, with a requestor or a URL behind it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import zeep
from zeep.proxy import ServiceProxy
from zeep.wsdl import Document
from zeep.wsdl.bindings.soap import SoapBinding

from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.exchange import Requestor
from mtosi_jms.integrations._zeep.calls import Batches, JmsCall, names_jms
from mtosi_jms.integrations._zeep.reading import LocalTransport, checked_url, read_document
from mtosi_jms.masking import shown_half_made, without_login
from mtosi_jms.service import Address, CallOptions


class Client(zeep.Client):
    """A `zeep.Client` that calls over JMS, or over HTTP where it has a URL. See `client` for arguments and errors.

    Attributes:
        requestor: that makes the calls; None over HTTP.
        destination: where the supplier listens; over HTTP its URL.
        call_options: what each call sets that has no `_options`.
        sender_uri: the MTOSI header's senderURI over HTTP.
    """

    def __init__(
        self,
        wsdl: str | Path | Document,
        requestor: Requestor | None = None,
        destination: Address | None = None,
        *,
        url: str | None = None,
        sources: Sequence[str | Path] = (),
        options: CallOptions | None = None,
        sender_uri: str = "",
        wsse: Any = None,
        transport: zeep.Transport | None = None,
        service_name: str | None = None,
        port_name: str | None = None,
        plugins: list[zeep.Plugin] | None = None,
        settings: zeep.Settings | None = None,
    ) -> None:
        _check(requestor, destination, url)
        if url is not None and options is not None:
            raise ConfigError("options are for JMS; over HTTP give transport=zeep.Transport(operation_timeout=...)")
        self.requestor = requestor
        self.call_options = CallOptions.of(options, None)
        self.sender_uri = sender_uri
        address, login = (destination, None) if url is None else checked_url(url)
        self.destination = cast(Address, address)
        settings = settings or zeep.Settings(forbid_dtd=True)
        if not isinstance(wsdl, Document):
            wsdl = read_wsdl(wsdl, sources=sources, transport=transport, settings=settings)
        elif not isinstance(wsdl.transport, LocalTransport):
            raise ConfigError("wsdl: give a file, or what read_wsdl made of it")
        carrier = LocalTransport(transport, login)
        super().__init__(wsdl, wsse, carrier, service_name, port_name, plugins, settings)
        self._binding(service_name, port_name)

    @shown_half_made
    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {without_login(str(self.destination))}>"

    def bind(self, service_name: str | None = None, port_name: str | None = None) -> ServiceProxy:
        """The operations of a binding, at this client's destination. `service_name`: of the WSDL; None for any.
        `port_name`: of the service; None for the first port over JMS (with a URL over HTTP), else the first. Raises
        ConfigError: there is no such service or port."""
        binding = self._binding(service_name, port_name)
        return ServiceProxy(self, binding, address=str(self.destination), destination=self.destination)

    def batches(self, operation: str, /, *, batch_size: int, **arguments: Any) -> Batches:
        """Call an operation of the default service in the pattern MultipleBatchResponse.

        Args:
            batch_size: objects in one response at most; 0 for all in one.
            **arguments: as `client.service.OPERATION` takes them, `_soapheaders` and `_options` too.

        Returns:
            zeep's responses in order, each once; iteration ends when they are complete, or with an error.

        Raises:
            ConfigError: over HTTP; no such operation, or a one-way one.
            MtosiError: the request cannot be sent, as `Requestor.call_batches`.
            TypeError, zeep.exceptions.ValidationError: arguments that do not fit the operation.
        """
        if self.requestor is None:
            raise ConfigError(f"{operation}: batches need JMS; over HTTP there is one response")
        self.operation(operation)
        proxy = self.service
        headers = proxy[operation]._merge_soap_headers(arguments.pop("_soapheaders", None))
        given: Mapping[str, Any] = {**arguments, **({"_soapheaders": headers} if headers else {})}
        call = JmsCall(cast(Any, self), proxy._binding, proxy._binding_options, operation, (), given)
        return call.batches(batch_size)

    def operation(self, name: str) -> Any:
        """zeep's description of an operation of the default service: `.input.signature()` says what it takes. Raises
        ConfigError: there is none; with names that resemble it."""
        return _named("operation", name, self._binding(self._default_service_name, self._default_port_name).all())

    def _binding(self, service_name: str | None, port_name: str | None) -> SoapBinding:
        """The binding to use: of the transport that is wanted, else any. Raises ConfigError: no such service or port;
        SchemaError: there is no SOAP binding."""
        services = self.wsdl.services
        chosen = [_named("service", service_name, services)] if service_name else list(services.values())
        ports = {name: port for service in reversed(chosen) for name, port in service.ports.items()}
        if port_name:
            return _named("port", port_name, ports).binding
        bindings = [port.binding for service in chosen for port in service.ports.values()]
        if not service_name:
            bindings += self.wsdl.bindings.values()
        if not bindings:
            what = "no SOAP binding: there is nothing to call"
            raise SchemaError(what, file=str(self.wsdl.location), rule="no-service")
        return next((one for one in bindings if names_jms(one) is (self.requestor is not None)), bindings[0])


def client(
    wsdl: str | Path | Document,
    requestor: Requestor | None = None,
    destination: Address | None = None,
    *,
    url: str | None = None,
    **zeep_options: Any,
) -> Client:
    """A `zeep.Client` over JMS: `.service.operation(...)` as zeep has it, and `.batches("operation", batch_size=N)`.

    Args:
        wsdl: the WSDL's file, or what `read_wsdl` made of it, for several clients.
        requestor: makes the calls; its time limits, delivery policies and reply destination hold.
        destination: where the supplier listens. The WSDL's own address does not count.
        url: of a supplier that speaks HTTP, in place of `requestor` and `destination`.
        **zeep_options: `wsse`, `service_name`, `port_name`, `plugins` and `settings` as zeep has them; `transport`, a
            zeep transport that may fetch what is remote and, over HTTP, sends; `sources`, further files and folders
            where what an import misses may be; `options`, the `CallOptions` of each call; `sender_uri`, the header's
            senderURI over HTTP.

    Raises:
        ConfigError: neither or both of a requestor with destination and a URL; no HTTP URL; no such service or port.
        SchemaError: the WSDL or what it needs is not there, cannot be read, or has no SOAP binding.
        MissingExtraError: the generator's libraries are not installed.
        zeep.exceptions.Error: zeep cannot read the mended WSDL.
    """
    return Client(wsdl, requestor, destination, url=url, **zeep_options)


def read_wsdl(
    wsdl: str | Path,
    *,
    sources: Sequence[str | Path] = (),
    transport: zeep.Transport | None = None,
    settings: zeep.Settings | None = None,
) -> Document:
    """zeep's document of a WSDL, mended; clients may share it.

    Args:
        sources: further files and folders where what an import misses may be.
        transport: a zeep transport that may fetch what is remote; None: nothing is fetched.

    Raises:
        SchemaError: the WSDL or what it needs is not there or cannot be read.
        MissingExtraError: the generator's libraries are not installed.
        zeep.exceptions.Error: zeep cannot read the mended WSDL.
    """
    return read_document(wsdl, sources, transport, settings or zeep.Settings(forbid_dtd=True))


def _named(what: str, name: str, known: Mapping[str, Any]) -> Any:
    """One of several things, by name. Raises ConfigError: there is none; with names that resemble it."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 3)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
    raise ConfigError(f"the WSDL has no {what} {name!r}; {hint}")


def _check(requestor: object, destination: object, url: object) -> None:
    """See that there is one way to the supplier. Raises ConfigError: there are two, or none."""
    if url is not None and (requestor is not None or destination is not None):
        raise ConfigError("give a requestor and a destination, or a url: not both")
    if url is None and (requestor is None or destination is None):
        raise ConfigError("give a requestor and a destination, or a url")
    if requestor is not None and not hasattr(requestor, "call_batches"):
        raise ConfigError(f"requestor: give mtosi_jms.Requestor(...), not {type(requestor).__name__}")
