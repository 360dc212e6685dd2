"""Every namespace that the SDK itself names, each with its preferred prefix.

Generated stubs carry the namespaces of their own types; only what the binding, the envelope and the commands
refer to by hand stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lxml import etree

__all__ = [
    "COI",
    "GEN",
    "HDR",
    "MSG",
    "MTOP",
    "NAM",
    "NOTMSG",
    "PREFIXES",
    "SOAP11",
    "SOAP12",
    "TMF854",
    "TRANSPORT_HTTP",
    "TRANSPORT_JMS_MTOSI",
    "TRANSPORT_JMS_W3C",
    "WSDL",
    "WSDL_SOAP11",
    "WSDL_SOAP12",
    "XML",
    "XMLNS",
    "XSD",
    "XSI",
    "clark",
    "local_name",
    "split_clark",
]

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
XSD: Final = "http://www.w3.org/2001/XMLSchema"
XML: Final = "http://www.w3.org/XML/1998/namespace"
XMLNS: Final = "http://www.w3.org/2000/xmlns/"

SOAP11: Final = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12: Final = "http://www.w3.org/2003/05/soap-envelope"

WSDL: Final = "http://schemas.xmlsoap.org/wsdl/"
WSDL_SOAP11: Final = "http://schemas.xmlsoap.org/wsdl/soap/"
WSDL_SOAP12: Final = "http://schemas.xmlsoap.org/wsdl/soap12/"

TRANSPORT_JMS_MTOSI: Final = "http://schemas.xmlsoap.org/soap/jms"
TRANSPORT_JMS_W3C: Final = "http://www.w3.org/2010/soapjms/"
TRANSPORT_HTTP: Final = "http://schemas.xmlsoap.org/soap/http"

MTOP: Final = "http://www.tmforum.org/mtop/"
HDR: Final = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
TMF854: Final = "tmf854.v1"
"""The one namespace of MTOSI 1.0 and 1.1: header, types and messages."""
MSG: Final = "http://www.tmforum.org/mtop/fmw/xsd/msg/v1"
NAM: Final = "http://www.tmforum.org/mtop/fmw/xsd/nam/v1"
GEN: Final = "http://www.tmforum.org/mtop/fmw/xsd/gen/v1"
COI: Final = "http://www.tmforum.org/mtop/fmw/xsd/coi/v1"
NOTMSG: Final = "http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"

PREFIXES: Final[dict[str, str]] = {
    XSI: "xsi",
    XSD: "xsd",
    XML: "xml",
    SOAP11: "soap",
    SOAP12: "soap12",
    HDR: "hdr",
    TMF854: "tmf854",
    MSG: "msg",
    NAM: "nam",
    GEN: "gen",
    COI: "coi",
    NOTMSG: "notmsg",
}


def clark(namespace: str, local: str) -> str:
    """The `{namespace}local` form that lxml uses; the bare local name where there is no namespace."""
    return f"{{{namespace}}}{local}" if namespace else local


def split_clark(tag: str) -> tuple[str, str]:
    """`{namespace}local` as (namespace, local); the namespace is empty where the tag has none."""
    if tag.startswith("{"):
        namespace, _, local = tag[1:].rpartition("}")
        return namespace, local
    return "", tag


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace."""
    return split_clark(str(element.tag))[1]
