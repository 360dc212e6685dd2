"""Decoding bytes to objects and reading each leaf, and encoding objects to bytes, compared with zeep and xsdata."""

from __future__ import annotations

from typing import Any

import peers
from lxml import etree
from measure import Comparison, Kind, Side, compare
from network import BATCH, as_text, batch
from peers import Library

from mtosi_jms.xmlbind import encode


def documents(count: int) -> list[bytes]:
    """Return a number of different responses of one batch each."""
    return [encode(batch(1 + number * BATCH)) for number in range(count)]


def decoding(*, quick: bool) -> Comparison:
    """Decode responses of 500 managed elements, and read every leaf of every object."""
    data = documents(1 if quick else 4)
    megabytes = sum(map(len, data)) / 1e6
    with peers.xsdata() as xsdata:
        libraries = [peers.ours(), peers.zeep(), *xsdata]
        _verify_decoding(libraries, data[0])
        sides = [Side(library.name, _kind(library), _decoder(library, data)) for library in libraries]
        # With a comment, and with the prefixes of another sender.
        odd = [document.replace(b"</mer:meList>", b"<!-- --></mer:meList>") for document in data]
        odd = [document.replace(b"coi:", b"c:").replace(b"xmlns:coi=", b"xmlns:c=") for document in odd]
        sides.insert(1, Side("mtosi_jms.xmlbind, a comment at the end", "ours", _decoder(libraries[0], odd)))
        sides += _limits(data)
        size = len(data[0]) / BATCH
        return compare(
            "decode",
            f"decode: XML to objects, every leaf read; {BATCH} managed elements of {size:,.0f} bytes a document",
            "managed elements",
            sides,
            rounds=3 if quick else 7,
            megabytes=megabytes,
            notes=["the limits read no leaf and make no object"],
        )


def _kind(library: Library) -> Kind:
    return "ours" if library.kind == "ours" else "peer"


def _decoder(library: Library, data: list[bytes]) -> Any:
    read, elements, leaves = library.decode, library.elements, library.leaves

    def run() -> int:
        count = 0
        for document in data:
            for element in elements(read(document)):
                leaves(element)
                count += 1
        return count

    return run


def _limits(data: list[bytes]) -> list[Side]:
    """Return the limits: parsing alone, and parsing with validation, which every library on top of lxml needs first."""
    schema = peers.validator()

    def parse() -> int:
        return sum(len(etree.fromstring(document)[0]) for document in data)

    def validate() -> int:
        count = 0
        for document in data:
            root = etree.fromstring(document)
            schema.assertValid(root)
            count += len(root[0])
        return count

    return [Side("lxml parse alone", "limit", parse), Side("lxml parse and libxml2 validation", "limit", validate)]


def _verify_decoding(libraries: list[Library], document: bytes) -> None:
    """Check that all libraries read the same leaves, compared as text."""
    expected: list[Any] | None = None
    for library in libraries:
        found = [as_text(library.leaves(me)) for me in library.elements(library.decode(document))]
        if expected is not None and found != expected:
            raise RuntimeError(f"{library.name} read other leaves than {libraries[0].name}")
        expected = found


def encoding(*, quick: bool) -> Comparison:
    """Encode responses of 500 managed elements."""
    data = documents(1 if quick else 4)
    with peers.xsdata() as xsdata:
        libraries = [peers.ours(), peers.zeep(), *xsdata]
        sides = [Side(library.name, _kind(library), _encoder(library, data)) for library in libraries]
        trees = [etree.fromstring(document) for document in data]

        def write_trees() -> int:
            for tree in trees:
                etree.tostring(tree, xml_declaration=True, encoding="UTF-8")
            return len(trees) * BATCH

        sides.append(Side("lxml writing trees that are there", "limit", write_trees))
        return compare(
            "encode",
            f"encode: objects to XML; {BATCH} managed elements a document",
            "managed elements",
            sides,
            rounds=3 if quick else 7,
            megabytes=sum(map(len, data)) / 1e6,
            notes=["xsdata also writes a nil element for each nillable one that is absent"],
        )


def _encoder(library: Library, data: list[bytes]) -> Any:
    values = [library.decode(document) for document in data]
    _verify_encoding(library, values[0], data[0])
    write = library.encode

    def run() -> int:
        for value in values:
            write(value)
        return len(values) * BATCH

    return run


def _verify_encoding(library: Library, value: Any, document: bytes) -> None:
    """Check that the output of a library has the same leaves as the document from which its objects were made."""
    ours = peers.ours()
    written = [ours.leaves(me) for me in ours.elements(ours.decode(library.encode(value)))]
    if written != [ours.leaves(me) for me in ours.elements(ours.decode(document))]:
        raise RuntimeError(f"{library.name} wrote other leaves than it had read")
