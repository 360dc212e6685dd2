"""Attributes of credentials: in no repr, warning, error or output, wherever they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.errors import DecodeError
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.xmlbind import Extras, Kept, Leaf, Nil, RawXml

pytestmark = pytest.mark.obligation("C55")

MARK = "S3cr3t-Mark"
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
SECURITY = {
    "attribute": f'<h:security kind="{MARK}">x</h:security>',
    "attribute of a namespace": f'<h:security h:kind="{MARK}">x</h:security>',
    "type": f'<h:security xsi:type="{MARK}">x</h:security>',
    "type with a prefix": f'<h:security xsi:type="nix:{MARK}">x</h:security>',
    "nil": f'<h:security xsi:nil="true" kind="{MARK}"/>',
    "not nil": f'<h:security xsi:nil="{MARK}">x</h:security>',
    "elements": f'<h:security kind="{MARK}"><x token="{MARK}">{MARK}</x>{MARK}</h:security>',
    "twice": f'<h:security>x</h:security><h:security kind="{MARK}">{MARK}</h:security>',
    "a name of its own": f'<h:mySecret kind="{MARK}">{MARK}</h:mySecret>',
    "its type": f'<h:securityType kind="{MARK}">x</h:securityType>',
}


def envelope(security: str) -> bytes:
    hdr = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
    return (
        f'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" token="{MARK}"><s:Header>'
        f'<h:header xmlns:h="{hdr}" {XSI}><h:activityName>a</h:activityName><h:msgType>REQUEST</h:msgType>'
        f'{security}</h:header></s:Header><s:Body><x xmlns="urn:x"/></s:Body></s:Envelope>'
    ).encode()


def told(found: Envelope) -> str:
    header: Any = found.header
    return f"{found!r} {header!r} {header.extras!r} {found.warnings!r} {[str(one) for one in found.warnings]}"


@pytest.mark.parametrize("security", SECURITY.values(), ids=SECURITY.keys())
def test_an_envelope_does_not_tell(security: str, tmp_path: Path, capsys: Any) -> None:
    data = envelope(security)
    found = parse(data)
    shown = told(found)
    try:
        parse(data, strict=True)
    except DecodeError as error:
        shown += str(error)
    assert MARK not in shown
    file = tmp_path / "envelope.xml"
    file.write_bytes(data)
    for command in (("inspect", str(file)), ("validate", str(file)), ("map", str(file))):
        main(list(command))
    out = capsys.readouterr()
    assert MARK not in out.out + out.err
    assert found.to_bytes() == data


def test_what_is_kept_shows_names_alone() -> None:
    extras = Extras(
        elements=[Kept(RawXml(f"<a b='{MARK}'/>".encode()), None, MARK)],
        attributes={"kind": MARK},
        leaves={("security", 0): Leaf(MARK, MARK, (("kind", MARK),))},
        texts={None: MARK},
    )
    assert MARK not in repr(extras) + repr(extras.elements) + repr(extras.leaves)
    assert "kind" in repr(extras)
    assert repr(Nil({"token": MARK})) == "Nil({'token': ***})"
