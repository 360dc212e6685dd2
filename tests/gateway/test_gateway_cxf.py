"""Apache CXF at the HTTP end, both as a client and as a service, with what it generates from the gateway's own ?wsdl.

The WSDL given out is the official one of MTOSI over HTTP. In `make endurance` 20,000 elements pass a real broker.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpServer, WsdlFiles
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.nrf.me import ManagedElementListType, ManagedElementType
from mtosi_jms.xmlbind import decode, encode

from ..java_tools import CXF_HTTP, JavaPeer
from .conftest import forwarded, said

PATIENCE = 120
NEVER = 1_000_000


class Cxf(JavaPeer):
    """Apache CXF in a process of its own. `command`: runs CxfHttpPeer. `folder`: for what is passed, and for what the
    program complains of."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        super().__init__(command, folder, PATIENCE)
        self._folders = itertools.count()

    def fetch(self, wsdl: str, soap: str, size: int) -> list[list[ManagedElementType]]:
        """The elements of each response that its client gets, as it has read them."""
        folder = self.folder / f"fetched-{next(self._folders)}"
        folder.mkdir()
        (told,) = self.ask("fetch", wsdl, soap, str(size), str(folder))
        assert told[0] == "fetched", told
        files = [folder / f"{number}.xml" for number in range(1, int(told[1]) + 1)]
        return [list(decode(file.read_bytes(), mer.GetAllManagedElementsResponse).me_list.me) for file in files]

    def serve(self, elements: list[ManagedElementType], holds: int = NEVER) -> str:
        """URL of its service with some elements. `elements`: that it has. `holds`: number of the first response that
        waits for `go`."""
        file = self.folder / f"served-{next(self._folders)}.xml"
        file.write_bytes(encode(mer.GetAllManagedElementsResponse(me_list=ManagedElementListType(me=elements))))
        (told,) = self.ask("serve", str(file), str(holds))
        assert told[0] == "serves", told
        return told[1]


@pytest.fixture(scope="module")
def cxf(java: Any, official_wsdl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cxf]:
    """Apache CXF with the classes that it generates from an endpoint's `?wsdl`; one process for all tests."""
    jars = java.jars(*CXF_HTTP)
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([])), wsdl=WsdlFiles([official_wsdl]))) as server:
        wsdl = f"{server.url}/ManagedElementRetrieval?wsdl"
        given = httpx.get(wsdl, trust_env=False).content.replace(server.url.encode(), b"")
        imported = sorted(official_wsdl.parents[4].rglob("*.*sd*"))
        classes = java.of_wsdl(wsdl, [given, *(one.read_bytes() for one in imported)], jars)
    program = java.compiled(Path(__file__).with_name("CxfHttpPeer.java"), [*jars, classes])
    made = Cxf(program, tmp_path_factory.mktemp("cxf"))
    yield made
    made.kill()


class TestClient:
    @pytest.mark.parametrize("soap", [pytest.param("1.1", marks=pytest.mark.endurance), "1.2"])
    def test_it_fetches_every_element_in_order(self, cxf: Cxf, front: str, provider: Any, soap: str) -> None:
        size = provider.network.elements // 6
        fetched = cxf.fetch(f"{front}/ManagedElementRetrieval?wsdl", soap, size)
        assert {len(batch) for batch in fetched[:-1]} == {size}
        assert said(itertools.chain.from_iterable(fetched)) == said(provider.network.managed_elements())

    @pytest.mark.parametrize("provider", ["memory"], indirect=True)
    def test_it_gets_the_exception_of_its_wsdl(self, cxf: Cxf, front: str) -> None:
        (told,) = cxf.ask("next", f"{front}/ManagedElementRetrieval?wsdl", "1.2", f"{front}/iterator/unknown")
        assert told[:3] == ["fault", "GetManagedElementsIteratorException", "invalidInput"]
        assert told[3].startswith("no such iterator")


class TestService:
    def test_a_requestor_on_jms_gets_every_element_in_order(self, cxf: Cxf, provider: Any, queue_name: str) -> None:
        elements = list(provider.network.managed_elements())
        size, heads = len(elements) // 6, []

        def heard(reply: Envelope) -> None:
            heads.append((reply.header.batch_sequence_number, reply.header.batch_sequence_end_of_reply))

        with forwarded(provider.connection, cxf.serve(elements), queue_name) as stub:
            options = CallOptions(on_reply=heard)
            batches = list(stub.get_all_managed_elements.batches(batch_size=size, options=options))
        assert said(itertools.chain.from_iterable(one.me_list.me for one in batches)) == said(elements)
        count = len(batches)
        assert count == -(-len(elements) // size)
        assert heads == [(number, number == count) for number in range(1, count + 1)]

    @pytest.mark.parametrize("provider", ["memory"], indirect=True)
    def test_responses_come_before_the_last_is_there(self, cxf: Cxf, provider: Any, queue_name: str) -> None:
        elements = list(provider.network.managed_elements())[:30]
        with forwarded(provider.connection, cxf.serve(elements, holds=3), queue_name) as stub:
            batches = stub.get_all_managed_elements.batches(batch_size=10)
            came = [next(batches).me_list.me, next(batches).me_list.me]
            assert cxf.ask("go") == [["goes"]]
            came.append(next(batches).me_list.me)
            assert next(batches, None) is None
        assert said(itertools.chain.from_iterable(came)) == said(elements)
