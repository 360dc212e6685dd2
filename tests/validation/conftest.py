"""A validator over the project's own schemas, and small documents to put into it."""

from __future__ import annotations

import pytest

from mtosi_jms.validation import SchemaSet, Validator

HEADER = """<hdr:header>
      <hdr:activityName>getManagedElement</hdr:activityName>
      <hdr:msgName>getManagedElement</hdr:msgName>
      <hdr:msgType>REQUEST</hdr:msgType>
      <hdr:senderURI>jms/InventoryOS</hdr:senderURI>
      <hdr:destinationURI>jms/EmsOS</hdr:destinationURI>
      <hdr:correlationId>17</hdr:correlationId>
      <hdr:communicationPattern>SimpleResponse</hdr:communicationPattern>
      <hdr:communicationStyle>MSG</hdr:communicationStyle>
      <hdr:timestamp>2024-05-06T07:08:09Z</hdr:timestamp>
    </hdr:header>"""
REQUEST = """<mer:getManagedElementRequest>
      <mer:meRef>
        <nam:rdn><nam:type>MD</nam:type><nam:value>EMS1</nam:value></nam:rdn>
        <nam:rdn><nam:type>ME</nam:type><nam:value>NE-7</nam:value></nam:rdn>
      </mer:meRef>
    </mer:getManagedElementRequest>"""
FAULT = """<soap:Fault>
      <faultcode>soap:Server</faultcode>
      <faultstring>no such element</faultstring>
      <detail>
        <mer:getManagedElementException>
          <msg:entityNotFound>
            <hdr:header/>
            <msg:reason>NE-7 is not known</msg:reason>
          </msg:entityNotFound>
        </mer:getManagedElementException>
      </detail>
    </soap:Fault>"""


@pytest.fixture(scope="session")
def own() -> Validator:
    """A validator over the project's own schemas."""
    return Validator(SchemaSet.load())


def envelope(header: str | None = HEADER, body: str = REQUEST, after: str = "") -> bytes:
    """An envelope of a header block and body content; what is not given is valid."""
    head = "" if header is None else f"<soap:Header>\n    {header}\n  </soap:Header>"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"
    xmlns:hdr="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1" xmlns:msg="http://www.tmforum.org/mtop/fmw/xsd/msg/v1"
    xmlns:nam="http://www.tmforum.org/mtop/fmw/xsd/nam/v1" xmlns:mer="http://www.tmforum.org/mtop/mri/xsd/mer/v1">
  {head}
  <soap:Body>
    {body}
  </soap:Body>{after}
</soap:Envelope>""".encode()
