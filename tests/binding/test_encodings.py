"""Encodings of documents: what octets, declarations and content types say, and what is stored of a message."""

import codecs

import pytest

from mtosi_jms import soap
from mtosi_jms.binding.mapping import from_jms
from mtosi_jms.binding.soap_jms import document_of, self_describing
from mtosi_jms.jms import JmsMessage, MessageType
from mtosi_jms.spool import Spool
from mtosi_jms.xmlbind import declares_utf8, in_utf8, parse_xml, self_described

PLACE = "Z\u00fcrich"
ENVELOPE = (
    '<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Header>'
    '<h:header xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><h:activityName>Z\u00fcrich</h:activityName>'
    "</h:header></S:Header><S:Body><x/></S:Body></S:Envelope>"
)
DECLARED = ("", "UTF-8", "utf-8", "US-ASCII", "ISO-8859-1", "windows-1252", "UTF-16", "UTF-16BE", "GBK", "x-nobody")
CODECS = {"ISO-8859-1": "latin-1", "UTF-16": "utf-16", "UTF-16LE": "utf-16-le", "UTF-16BE": "utf-16-be", "GBK": "gbk"}


def declaration(name: str) -> str:
    return f'<?xml version="1.0"\n encoding="{name}"?>\n' if name else ""


def read(data: bytes) -> str | None:
    """The place that anyone reads in a document without help."""
    assert soap.parse(data).header.activity_name == parse_xml(data)[0][0][0].text
    return soap.parse(data).header.activity_name


def w3c(body: bytes, charset: str) -> JmsMessage:
    properties = {
        "SOAPJMS_contentType": f'text/xml; charset="{charset}"; action=x',
        "SOAPJMS_bindingVersion": "1.0",
        "SOAPJMS_requestURI": "jms:queue:EMS",
    }
    return JmsMessage(body=body, message_type=MessageType.BYTES, properties=properties)


@pytest.mark.obligation("ENC1")
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("name", DECLARED)
def test_text_message_that_declares_another_encoding(name, mark, tmp_path):
    body = mark + (declaration(name) + ENVELOPE).encode()
    message = JmsMessage(body=body, message_type=MessageType.TEXT)
    entry = Spool(tmp_path).write(message, 1)

    assert from_jms(message).header.activity_name == PLACE
    assert read(entry.read_body()) == PLACE
    assert from_jms(entry.message()).header.activity_name == PLACE
    assert entry.damage() == ""
    assert read(in_utf8(from_jms(message).to_bytes())) == PLACE


@pytest.mark.obligation("ENC1")
@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "utf-16-le"])
def test_a_declaration_after_many_blanks_counts(codec, tmp_path):
    document = f'<?xml version="1.0"{" " * 3_000}encoding="ISO-8859-1"?>{ENVELOPE}'
    kind = MessageType.TEXT if codec == "utf-8" else MessageType.BYTES
    message = JmsMessage(body=document.encode(codec), message_type=kind)
    assert from_jms(message).header.activity_name == read(Spool(tmp_path).write(message, 1).read_body()) == PLACE


@pytest.mark.obligation("ENC1")
@pytest.mark.parametrize("charset", CODECS)
def test_bytes_message_with_its_encoding_in_the_content_type(charset, tmp_path):
    message = w3c(ENVELOPE.encode(CODECS[charset]), charset)
    entry = Spool(tmp_path).write(message, 1)

    envelope = from_jms(message)
    assert (envelope.header.activity_name, envelope.warnings) == (PLACE, [])
    assert read(entry.read_body()) == PLACE
    assert from_jms(entry.message()).header.activity_name == PLACE
    if charset != "UTF-16":  # its mark tells it
        assert entry.message().properties["SOAPJMS_contentType"] == "text/xml; charset=UTF-8; action=x"


@pytest.mark.obligation("ENC2")
@pytest.mark.parametrize(
    ("declared", "charset", "codec", "warns"),
    [
        ("ISO-8859-1", "ISO-8859-1", "latin-1", False),
        ("ISO-8859-1", "", "latin-1", False),
        ("UTF-16", "UTF-16", "utf-16", False),
        ("UTF-16", "UTF-16BE", "utf-16-be", False),
        ("", "", "utf-16", False),
        ("", "utf-8", "utf-16", True),
        ("", "", "utf-16-le", True),
        ("UTF-8", "ISO-8859-1", "utf-8", True),
        ("UTF-8", "ISO-8859-1", "latin-1", True),
        ("ISO-8859-1", "utf-8", "utf-8", True),
        ("ISO-8859-1", "utf-8", "latin-1", True),
        ("", "us-ascii", "utf-8", True),
        ("UTF-16", "", "utf-8", True),
        ("", "x-nobody", "utf-8", True),
    ],
)
def test_what_counts(declared, charset, codec, warns):
    data = (declaration(declared) + ENVELOPE).encode(codec)

    found, warning = self_described(data, charset)

    assert read(found) == PLACE
    assert bool(warning) is warns
    assert self_described(found) == (found, "")
    assert read(in_utf8(found)) == PLACE
    if warns:
        assert any(warning in str(one) for one in from_jms(w3c(data, charset)).warnings)


@pytest.mark.obligation("ENC2")
@pytest.mark.parametrize("charset", ["", "UTF-8", "us-ascii", "UTF-16", "utf-7", "idna", "x\0y", "gbk"])
@pytest.mark.parametrize("data", [b"", b"<", b"<?", b"\xff", b"\xff\xfe", b"\xff\xfe\0", b"<\0", b"\0<a", b"<?xml "])
def test_octets_of_any_kind_are_kept_or_become_utf8(data, charset):
    for document in (self_described(data, charset)[0], in_utf8(data), declares_utf8(data)):
        assert document == data or document.decode() is not None
    for kind in (MessageType.BYTES, MessageType.TEXT):
        message = JmsMessage(
            body=data, message_type=kind, properties={"SOAPJMS_contentType": f"a/b; charset={charset}"}
        )
        assert document_of(self_describing(message))[0] == self_describing(message).body


def test_messages_that_need_no_help_stay_the_same():
    message = JmsMessage(body=b'<?xml version="1.0" encoding="UTF-8"?>\n<a/>')
    assert self_describing(message) is message
