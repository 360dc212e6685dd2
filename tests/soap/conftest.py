"""What the tests of envelopes share: envelopes and faults as text."""

from __future__ import annotations

NAMES = {
    "h": "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1",
    "m": "http://www.tmforum.org/mtop/fmw/xsd/msg/v1",
    "mer": "http://www.tmforum.org/mtop/mri/xsd/mer/v1",
    "nam": "http://www.tmforum.org/mtop/fmw/xsd/nam/v1",
}
SOAP = {"1.1": "http://schemas.xmlsoap.org/soap/envelope/", "1.2": "http://www.w3.org/2003/05/soap-envelope"}
ERROR = "<h:header><h:msgType>ERROR</h:msgType><h:correlationId> 17 </h:correlationId></h:header>"
KIND = f"<m:entityNotFound>{ERROR}<m:reason>no NE-7</m:reason></m:entityNotFound>"

"""An exception kind, with a header."""
RDN = "<nam:rdn><nam:type>ME</nam:type><nam:value>NE-7</nam:value></nam:rdn>"
GET_ME = f"<mer:getManagedElementRequest><mer:meRef>{RDN}</mer:meRef></mer:getManagedElementRequest>"


def envelope(header: str | None, body: str = "<x/>", version: str = "1.1") -> bytes:
    """An envelope of what stands in the Header (None: there is none) and in the Body."""
    names = "".join(f' xmlns:{prefix}="{namespace}"' for prefix, namespace in NAMES.items())
    head = "" if header is None else f"<s:Header>{header}</s:Header>"
    return f'<s:Envelope xmlns:s="{SOAP[version]}"{names}>{head}<s:Body>{body}</s:Body></s:Envelope>'.encode()


def fault_text(detail: str | None, code: str = "Client", words: str = "words", more: str = "") -> str:
    """A SOAP 1.1 fault of its detail; None: there is none."""
    tail = "" if detail is None else f"<detail>{detail}</detail>"
    return f"<s:Fault><faultcode>{code}</faultcode><faultstring>{words}</faultstring>{more}{tail}</s:Fault>"
