"""MTOSI over HTTP beside MTOSI over JMS (extra `http`).

An `Endpoint` takes SOAP requests of HTTP clients, in RPC style and through iterators. A source answers them: a supplier
on a JMS provider (`ByRequestor`), or services in this process (`ByDispatcher`). An `HttpServer` serves the endpoint.

    requestor = mtosi_jms.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True)
    source = ByRequestor(requestor, "queue:EMS.OS", Store(64 * 2**20))
    with HttpServer(Endpoint(source), port=8080) as server:
        print(server.url)

In the other direction, a supplier on a JMS provider forwards requests to an HTTP peer:
`Supplier(connection, name, Forwarder(HttpPeer(url)))`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtosi_jms.registry import names_from

if TYPE_CHECKING:
    from mtosi_jms.gateway._access import Access, Throttled, address_of
    from mtosi_jms.gateway._endpoint import Endpoint, HttpOptions
    from mtosi_jms.gateway._forwarding import Forwarder, HttpPeer, Poster, iterator_operation
    from mtosi_jms.gateway._server import Application, HttpServer
    from mtosi_jms.gateway._sources import ByDispatcher, ByRequestor, Iterators, Request, Source, Store
    from mtosi_jms.gateway._wsdl import WsdlFiles

__all__ = [
    "Access",
    "Application",
    "ByDispatcher",
    "ByRequestor",
    "Endpoint",
    "Forwarder",
    "HttpOptions",
    "HttpPeer",
    "HttpServer",
    "Iterators",
    "Poster",
    "Request",
    "Source",
    "Store",
    "Throttled",
    "WsdlFiles",
    "address_of",
    "iterator_operation",
]

__getattr__ = names_from(__name__, __all__, "_wsdl", "_sources", "_access", "_forwarding", "_endpoint", "_server")
