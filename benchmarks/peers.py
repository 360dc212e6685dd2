"""The same decoding and encoding by zeep, xsdata, lxml and libxml2, each set up from our `xsd/`."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree
from network import Leaves, leaves_reader, read_leaves, snake

from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.xmlbind import decode, encode

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "xsd" / "mri" / "mer.xsd"
MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
RESPONSE = f"{{{MER}}}getAllManagedElementsResponse"


@dataclass(frozen=True)
class Library:
    """One way to bind XML to objects.

    Attributes:
        name: its name in the table.
        kind: `ours` or `peer`.
        decode: makes a response object from a document.
        elements: returns the managed elements of a response object.
        leaves: reads every leaf of a managed element.
        encode: makes a document from a response object.
    """

    name: str
    kind: str
    decode: Callable[[bytes], Any]
    elements: Callable[[Any], Any]
    leaves: Leaves
    encode: Callable[[Any], bytes]


def ours() -> Library:
    """This SDK."""
    return Library(
        "mtosi_jms.xmlbind",
        "ours",
        lambda data: decode(data, GetAllManagedElementsResponse),
        lambda response: response.me_list.me,
        read_leaves,
        encode,
    )


def zeep() -> Library:
    """zeep: `Element.parse` of a tree that lxml has parsed, and `Element.render` into a tree that lxml writes."""
    from zeep import xsd
    from zeep.loader import load_external
    from zeep.settings import Settings
    from zeep.transports import Transport

    transport: Any = Transport()  # type: ignore[no-untyped-call]
    settings = Settings()
    node = load_external(str(SCHEMA), transport, settings=settings)
    location = str(SCHEMA)
    schema: Any = xsd.Schema(node=node, transport=transport, location=location, settings=settings)  # type: ignore[no-untyped-call]
    element = schema.get_element(RESPONSE)

    def write(value: Any) -> bytes:
        holder = etree.Element("holder")
        element.render(holder, value)
        data: bytes = etree.tostring(holder[0], xml_declaration=True, encoding="UTF-8")
        return data

    read = leaves_reader(lambda name: name, "_value_1")

    def leaves(me: Any) -> tuple[Any, ...]:
        found = read(me)
        if me.location is None:
            # The location ends up in the optional wildcard before it, which only admits another namespace.
            found = (*found[:7], me._value_1.text, *found[8:])
        return found

    return Library(
        "zeep",
        "peer",
        lambda data: element.parse(etree.fromstring(data), schema),
        lambda response: response.meList.me,
        leaves,
        write,
    )


@contextmanager
def xsdata() -> Iterator[list[Library]]:
    """xsdata with each of its two handlers, with classes that exist during the block."""
    from xsdata.formats.dataclass.context import XmlContext
    from xsdata.formats.dataclass.parsers import XmlParser, handlers
    from xsdata.formats.dataclass.serializers import XmlSerializer, writers

    with tempfile.TemporaryDirectory(prefix="bench-xsdata-") as folder:
        cls = _generated(folder)
        context = XmlContext()

        def library(name: str, handler: Any, writer: Any) -> Library:
            parser = XmlParser(context=context, handler=handler)
            serializer = XmlSerializer(context=context, writer=writer)
            return Library(
                name,
                "peer",
                lambda data: parser.from_bytes(data, cls),
                lambda response: response.me_list.me,
                leaves_reader(lambda name: "type_value" if name == "type" else snake(name), "value"),
                lambda value: serializer.render(value).encode("utf-8"),
            )

        yield [
            library("xsdata, lxml", handlers.LxmlEventHandler, writers.LxmlEventWriter),
            library("xsdata, native", handlers.XmlEventHandler, writers.XmlEventWriter),
        ]


def _generated(folder: str) -> Any:
    """Return the class of the response that xsdata generates from our schemas."""
    # xsdata formats with ruff, which it looks for on PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "xsdata", "generate", str(SCHEMA)]
    command += ["--package", "bench_peer", "--structure-style", "namespaces"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("bench_peer.org.tmforum.mtop.mri.xsd.mer.v1")
    finally:
        sys.path.remove(folder)
    return module.GetAllManagedElementsResponse


def validator() -> etree.XMLSchema:
    """libxml2's validator of our schemas."""
    return etree.XMLSchema(etree.parse(str(SCHEMA)))
