"""What `?wsdl` gives, and zeep as a client that works by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, MalformedXmlError
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpServer, WsdlFiles

zeep = pytest.importorskip("zeep", reason="zeep is not installed")

HEADER = {
    "communicationStyle": "RPC",
    "msgType": "REQUEST",
    "senderURI": "/MTOSI/InventoryOS",
    "destinationURI": "/MTOSI/EmsOS",
    "timestamp": "2026-01-01T00:00:00Z",
}


def test_zeep_calls_a_service_by_our_own_wsdl(services: Any, root: Path) -> None:
    wsdl = WsdlFiles([root / "wsdl" / "ManagedElementRetrieval.wsdl"])
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), wsdl=wsdl)) as server:
        client = zeep.Client(f"{server.url}/ManagedElementRetrieval?wsdl")
        names = {"rdn": [{"type": "MD", "value": "EMS1"}, {"type": "ME", "value": "NE-1"}]}
        header = HEADER | {"activityName": "getManagedElement", "communicationPattern": "SimpleResponse"}
        answer = client.service.getManagedElement(meRef=names, _soapheaders={"mtopHeader": header})
        assert answer.body.me.name.rdn[-1].value == "NE-1"
        names["rdn"][-1]["value"] = "nobody"
        with pytest.raises(zeep.exceptions.Fault, match="no MD=EMS1/ME=nobody"):
            client.service.getManagedElement(meRef=names, _soapheaders={"mtopHeader": header})


def test_zeep_fetches_everything_through_iterators(front: str, provider: Any) -> None:
    """By the official WSDL of MTOSI over HTTP, from a supplier on JMS; through brokers in `make endurance`.

    zeep loses what stands behind an element of another schema, so what stands before is compared.
    """
    client = zeep.Client(f"{front}/ManagedElementRetrieval?wsdl", settings=zeep.Settings(strict=False))
    header = HEADER | {"communicationPattern": "MultipleBatchResponse"}
    size = provider.network.elements // 6
    asked = header | {"activityName": "getAllManagedElements", "requestedBatchSize": size}
    answer = client.service.getAllManagedElements(_soapheaders={"mtopHeader": asked})
    found: list[tuple[str, ...]] = []
    while True:
        batch = answer.body.meList if hasattr(answer.body, "meList") else answer.body
        elements = batch.me if hasattr(batch, "me") else batch
        found += [(me.name.rdn[-1].value, me.userLabel, me.discoveredName, me.namingOs, me.owner) for me in elements]
        uri = answer.header.mtopHeader.iteratorReferenceURI
        if uri is None:
            break
        more = header | {"activityName": "getManagedElementsIterator", "iteratorReferenceURI": uri}
        answer = client.service.getManagedElementsIterator(_soapheaders={"mtopHeader": more})
    assert found == [
        (me.name.rdn[-1].value, me.user_label, me.discovered_name, me.naming_os, me.owner)
        for me in provider.network.managed_elements()
    ]


class TestFiles:
    def test_everything_that_is_imported_is_there(self, root: Path, services: Any, client: Any) -> None:
        wsdl = WsdlFiles([root / "wsdl" / "AlarmRetrieval.wsdl", root / "wsdl" / "ManagedElementRetrieval.wsdl"])
        with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), wsdl=wsdl)) as server:
            asks = client(server.url)
            text = asks.http.get(f"{server.url}/?wsdl").text
            assert "AlarmRetrieval" in text
            text = asks.http.get(f"{server.url}/ManagedElementRetrieval?WSDL").text
            assert f'location="{server.url}/ManagedElementRetrieval"' in text
            assert 'transport="http://schemas.xmlsoap.org/soap/http"' in text
            seen, left = set(), [f"{server.url}/wsdl/wsdl/ManagedElementRetrieval.wsdl"]
            while left:
                url = left.pop()
                answer = asks.http.get(url)
                assert answer.status_code == 200, url
                seen.add(url)
                left += {part.split('"')[0] for part in answer.text.split('ocation="')[1:]} - seen - {server.url}
                left = [one for one in left if one.endswith((".xsd", ".wsdl"))]
            assert len(seen) > 5

    def test_so_it_is_where_they_lie_far_apart(self, shared: Path) -> None:
        """The official WSDLs import schemas of other folders than their own."""
        (file,) = (shared / "mtosi" / "2.0").rglob("ManagedElementRetrievalHttp.wsdl")
        wsdl = WsdlFiles([file])
        seen: set[str] = set()
        left = {"/"}
        while left:
            path = left.pop()
            found = wsdl(path, "http://gateway")
            assert found is not None, path
            seen.add(path)
            named = {part.split('"')[0] for part in found.decode().split('ocation="')[1:]}
            left |= {one.removeprefix("http://gateway") for one in named if one.endswith(("xsd", "wsdl"))} - seen
        assert any("Framework" in path for path in seen)

    @pytest.mark.parametrize(
        "path",
        [
            "/wsdl/../pyproject.toml",
            "/wsdl/%2e%2e/pyproject.toml",
            "/wsdl/README.md",
            "/wsdl/wsdl/NotificationBroker.wsdl",
            "/wsdl/xsd/mri/mer.xsd",
            "/wsdl/no.xsd",
            "/wsdl//etc/passwd",
            "/x.xsd/../../a.wsdl",
        ],
    )
    def test_nothing_else_is_given_out(self, root: Path, services: Any, client: Any, path: str) -> None:
        wsdl = WsdlFiles([root / "wsdl" / "AlarmRetrieval.wsdl"])
        with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), wsdl=wsdl)) as server:
            answer = client(server.url).http.get(f"{server.url}{path}")
        assert answer.status_code == 405 or b"AlarmRetrieval" in answer.content

    def test_files_at_fault(self, tmp_path: Path) -> None:
        bad = tmp_path / "bad.wsdl"
        bad.write_text("<a>")
        with pytest.raises(MalformedXmlError, match=r"bad\.wsdl"):
            WsdlFiles([bad])
        for files in ([], [tmp_path / "no.wsdl"], [tmp_path]):
            with pytest.raises(ConfigError):
                WsdlFiles(files)
