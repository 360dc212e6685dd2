"""What the tests of SOAP over HTTP share."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.transport import Connection

httpx = pytest.importorskip("httpx", reason="the extra http is not installed")

ELEMENTS = 70
ADDRESSES = ("senderURI", "destinationURI", "originatorURI")
_numbers = itertools.count()
TEXT = {"Content-Type": "text/xml; charset=utf-8"}


@pytest.fixture
def connection() -> Iterator[Connection]:
    """Over the embedded provider, one for each test."""
    with mtosi.connect(f"memory:gateway-{next(_numbers)}") as made:
        yield made


@pytest.fixture(scope="session")
def services() -> list[Any]:
    """Services over a network of `ELEMENTS` elements."""
    network = simulator.Network(elements=ELEMENTS, seed=1)
    return [simulator.ManagedElementEms(network), simulator.InventoryEms(network)]


@pytest.fixture
def official(shared: Path) -> Callable[[str], str]:
    """One of TM Forum's samples of ManageResourceInventory, by the beginning of its name."""
    folder = shared / "samples" / "official-2.0" / "ManageResourceInventory"

    def read(number: str) -> str:
        (path,) = folder.glob(f"{number}_*.xml")
        return path.read_text(encoding="utf-8")

    return read


class Client:
    """A client that works as MTOSI's clients over HTTP do.

    Args:
        url: of the server.
        options: of httpx.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        self.http = httpx.Client(timeout=60, trust_env=False, **options)

    def post(self, text: str | bytes, **headers: str) -> Any:
        """The HTTP response to an envelope."""
        return self.http.post(self.url, content=text, headers=TEXT | headers)

    def ask(self, text: str | bytes) -> tuple[int, Envelope]:
        """Status and envelope of the answer."""
        answer = self.post(text)
        return answer.status_code, parse(answer.content, needs_header=False)

    def fetch(self, first: str, further: str) -> Iterator[Envelope]:
        """All answers to a request, fetched through its iterator.

        Args:
            first: the request.
            further: the request of the iterator operation, with any iteratorReferenceURI.
        """
        status, envelope = self.ask(first)
        while True:
            assert (status, envelope.fault) == (200, None)
            yield envelope
            assert envelope.header is not None
            uri = envelope.header.iterator_reference_uri
            assert (uri is None) is (envelope.header.batch_sequence_end_of_reply is not False)
            if uri is None:
                return
            status, envelope = self.ask(with_iterator(further, uri))


def with_iterator(text: str, uri: str) -> str:
    """A request of an iterator operation for another iterator."""
    return re.sub(r"(<hdr:iteratorReferenceURI>)[^<]*", rf"\g<1>{uri}", text)


@pytest.fixture
def client() -> Iterator[Callable[..., Client]]:
    """Makes clients; they are closed with the test."""
    made: list[Client] = []

    def make(url: str, **options: Any) -> Client:
        made.append(Client(url, **options))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


@pytest.fixture
def with_uri() -> Callable[[str, str], str]:
    """A request of an iterator operation for another iterator."""
    return with_iterator


def _tree(element: Any) -> tuple[Any, ...]:
    return element.tag, (element.text or "").strip(), tuple(_tree(one) for one in element.iterchildren("*"))


@pytest.fixture
def printed() -> Callable[[bytes | str], tuple[Any, ...]]:
    """What an envelope says, without ids, addresses and times: element names and texts."""
    from lxml import etree

    def read(text: bytes | str) -> tuple[Any, ...]:
        root = etree.fromstring(
            text if isinstance(text, bytes) else text.encode(), etree.XMLParser(remove_comments=True)
        )
        for name in ("iteratorReferenceURI", "correlationId", "timestamp", "faultactor", *ADDRESSES):
            for found in root.xpath(f"//*[local-name()='{name}']"):
                found.getparent().remove(found)
        for code in root.xpath("//faultcode"):
            code.text = code.text.rpartition(":")[2]
        return _tree(root)

    return read
