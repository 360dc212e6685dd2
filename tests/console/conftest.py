"""Messages as a console sees them, and consoles that tests look at."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra console is not installed")
pytest.importorskip("jinja2", reason="the extra console is not installed")
httpx = pytest.importorskip("httpx", reason="the extra console is not installed")

from mtosi_jms.console import Console, Traffic  # noqa: E402 - it needs the extra
from mtosi_jms.errors import MessageRefusedError  # noqa: E402
from mtosi_jms.jms import JmsMessage, Queue  # noqa: E402
from mtosi_jms.spool import DurableLanding, Outbox  # noqa: E402
from mtosi_jms.transport import Backoff  # noqa: E402

ENVELOPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><s:Header><h:header><h:activityName>{operation}</h:activityName>
<h:msgType>{kind}</h:msgType><h:correlationId>{correlation}</h:correlationId>{more}</h:header></s:Header>
<s:Body>{body}</s:Body></s:Envelope>"""

_ids = itertools.count(1)

Make = Callable[..., JmsMessage]


@pytest.fixture
def make() -> Make:
    """Makes a message; a new message id unless one is given."""

    def build(
        kind: str = "RESPONSE",
        correlation: str = "c-1",
        batch: int | None = None,
        *,
        last: bool = False,
        operation: str = "getAllManagedElements",
        body: str = "<r/>",
        more: str = "",
        **headers: Any,
    ) -> JmsMessage:
        if batch is not None:
            more += f"<h:batchSequenceNumber>{batch}</h:batchSequenceNumber>"
        if last:
            more += "<h:batchSequenceEndOfReply>true</h:batchSequenceEndOfReply>"
        text = ENVELOPE.format(operation=operation, kind=kind, correlation=correlation, more=more, body=body)
        headers = {"message_id": f"ID:{next(_ids)}", "destination": Queue("OS"), **headers}
        return JmsMessage(body=text.encode(), **headers)

    return build


_SPACES = " ".join(
    f'xmlns:{name}="http://www.tmforum.org/mtop/{part}/xsd/{name}/v1"'
    for name, part in (("alm", "nra"), ("prc", "nra"), ("ei", "fmw"), ("cei", "fmw"), ("nam", "fmw"), ("notmsg", "fmw"))
)


@pytest.fixture
def event() -> Callable[..., str]:
    """An alarm by the name of its element, or the deletion of an object."""

    def build(element: str, name: str, time: str, severity: str = "", cause: str = "LOS") -> str:
        steps = (step.partition("=") for step in name.split("/"))
        rdns = (
            f"<nam:rdn><nam:type>{kind}</nam:type><nam:value>{value}</nam:value></nam:rdn>" for kind, _, value in steps
        )
        more = f"""<alm:probableCause><prc:probableCause>{cause}</prc:probableCause></alm:probableCause>
<alm:perceivedSeverity>{severity}</alm:perceivedSeverity>"""
        return f"""<alm:{element} {_SPACES}><ei:objectName>{"".join(rdns)}</ei:objectName><ei:osTime>{time}</ei:osTime>
{more if severity else ""}</alm:{element}>"""

    return build


@pytest.fixture
def notify(make: Make) -> Callable[..., JmsMessage]:
    """A notification with events."""

    def build(*events: str) -> JmsMessage:
        body = f"<notmsg:notify {_SPACES}><notmsg:message>{''.join(events)}</notmsg:message></notmsg:notify>"
        return make("NOTIFICATION", "", operation="notify", body=body)

    return build


@pytest.fixture
def network(tmp_path: Path) -> Callable[..., Path]:
    """Writes the tables of a network as `mtosi-jms topology` does."""
    pa = pytest.importorskip("pyarrow", reason="the extra tables is not installed")
    from pyarrow import parquet

    def written(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> Path:
        for name, rows in (("nodes", nodes), ("edges", edges)):
            (tmp_path / "network" / name).mkdir(parents=True)
            parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "network" / name / "part-0.parquet")
        return tmp_path / "network"

    return written


@pytest.fixture
def ring(network: Callable[..., Path]) -> Callable[[int, int], Path]:
    """Writes a network in which each of some elements has links to as many that follow it, in two layers."""

    def written(elements: int, each: int) -> Path:
        names = [f"MD=EMS1/ME=NE-{number}" for number in range(elements)]
        edges = [
            {
                "src": f"{name}/PTP=1",
                "dst": f"{names[(at + step**3) % elements]}/PTP=2",
                "kind": "link",
                "relationship": layer,
            }
            for at, name in enumerate(names)
            for step in range(1, each + 1)
            for layer in ("open_link" if step == each else "link",)
        ]
        return network([{"id": name, "type": "ME", "known": True} for name in names], edges)

    return written


@pytest.fixture
def traffic() -> Traffic:
    return Traffic()


class Browser:
    """Asks a console for pages without a server; keeps no cookies."""

    def __init__(self, app: Console) -> None:
        self._app = app

    def request(self, method: str, path: str, **options: Any) -> Any:
        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8085") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def get(self, path: str, **options: Any) -> Any:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Any:
        return self.request("POST", path, **options)


@pytest.fixture
def visit(traffic: Traffic) -> Callable[..., Browser]:
    """Opens a console on the traffic, or on another one."""

    def opened(other: Traffic | None = None, **options: Any) -> Browser:
        return Browser(Console(other or traffic, **options))

    return opened


class Refusing:
    """A provider that takes nothing."""

    def send(self, destination: Any, message: JmsMessage) -> JmsMessage:
        raise MessageRefusedError(destination, "no permission")


@pytest.fixture
def outbox(tmp_path: Path) -> Path:
    """The folder of an outbox with one dead message, dead-1."""
    folder = tmp_path / "outbox"
    with Outbox(folder, attempts=1, retry=Backoff(0, 0)) as box:
        box.put(JmsMessage(body=b"<a/>", properties={"MTOSIX_messageId": "dead-1"}), Queue("EMS"))
        box.resend(Refusing())
    return folder


@pytest.fixture
def landing(tmp_path: Path, make: Any) -> Path:
    """A landing with a reply that lacks batch 2, and a file that is not a message."""
    folder = tmp_path / "landing"
    body = """<m:getAllManagedElementsResponse xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"
 xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/nam/v1" xmlns:c="http://www.tmforum.org/mtop/fmw/xsd/coi/v1">
<m:meList><e:me xmlns:e="http://www.tmforum.org/mtop/nrf/xsd/me/v1"><c:name><n:rdn><n:type>MD</n:type>
<n:value>EMS1</n:value></n:rdn><n:rdn><n:type>ME</n:type><n:value>NE-{}</n:value></n:rdn></c:name></e:me></m:meList>
</m:getAllManagedElementsResponse>"""
    with DurableLanding(folder) as landed:
        for number in (1, 3):
            landed.land(make(batch=number, last=number == 3, body=body.format(number)))
    (folder / "broken.xml").write_text("<a")
    return folder
