"""What the tests of Spark share: envelopes made to order, and a landing for them."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main
from mtosi_jms.compression import ZSTD

from .troubles import troubled_landing

GUIDE = Path(__file__).parents[2] / "docs/spark.md"
MTOP = "http://www.tmforum.org/mtop/"
SPACES = {
    "soap": "http://schemas.xmlsoap.org/soap/envelope/",
    "hdr": f"{MTOP}fmw/xsd/hdr/v1",
    "mer": f"{MTOP}mri/xsd/mer/v1",
    "rir": f"{MTOP}mri/xsd/rir/v1",
    "inv": f"{MTOP}nrf/xsd/invdata/v1",
    "me": f"{MTOP}nrf/xsd/me/v1",
    "eh": f"{MTOP}nrf/xsd/eh/v1",
    "eq": f"{MTOP}nrf/xsd/eq/v1",
    "ptp": f"{MTOP}nrf/xsd/ptp/v1",
    "coi": f"{MTOP}fmw/xsd/coi/v1",
    "cri": f"{MTOP}nrb/xsd/cri/v1",
    "lay": f"{MTOP}nrb/xsd/lay/v1",
    "gen": f"{MTOP}fmw/xsd/gen/v1",
    "nam": f"{MTOP}fmw/xsd/nam/v1",
    "v": "urn:vendor",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}


def section(title: str) -> str:
    """A section of the guide."""
    return GUIDE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]


def examples(title: str) -> list[str]:
    """The blocks of Python in a section of the guide."""
    return re.findall(r"```python\n(.*?)```", section(title), re.DOTALL)


@dataclass(frozen=True)
class Envelopes:
    """Makes envelopes as text; `{p}` stands before prefixes so that the same message can be written with others."""

    prefix: str = ""

    def declarations(self) -> str:
        return " ".join(f'xmlns:{self.prefix}{name}="{uri}"' for name, uri in SPACES.items())

    def rename(self, text: str) -> str:
        for name in SPACES if self.prefix else ():
            text = text.replace(f"<{name}:", f"<{self.prefix}{name}:").replace(f"</{name}:", f"</{self.prefix}{name}:")
            text = text.replace(f" {name}:", f" {self.prefix}{name}:")
        return text

    def envelope(self, header: str, body: str) -> str:
        content = self.rename(f"<soap:Header>{header}</soap:Header>\n<soap:Body>{body}</soap:Body>")
        soap = f"{self.prefix}soap"
        return f"<?xml version='1.0'?>\n<{soap}:Envelope {self.declarations()}>\n{content}\n</{soap}:Envelope>\n"

    def header(self, **fields: Any) -> str:
        content = "".join(f"<hdr:{name}>{value}</hdr:{name}>" for name, value in fields.items() if value is not None)
        return f"<hdr:header>{content}</hdr:header>"

    def batch(
        self,
        cid: str | None,
        number: int | None,
        end: bool | None,
        elements: str,
        *,
        time: str = "2024-01-01T00:00:00Z",
    ) -> str:
        """A batch of getAllManagedElements; without number and end mark a reply that says nothing of batches."""
        several = (number, end) != (None, None)
        header = self.header(
            activityName="getAllManagedElements",
            msgName="getAllManagedElementsResponse",
            msgType="RESPONSE",
            senderURI="/EMS",
            correlationId=cid,
            communicationPattern="MultipleBatchResponse" if several else "SimpleResponse",
            communicationStyle="MSG",
            batchSequenceNumber=number,
            batchSequenceEndOfReply=None if end is None else str(end).lower(),
            timestamp=time,
        )
        response = "mer:getAllManagedElementsResponse"
        return self.envelope(header, f"<{response}><mer:meList>{elements}</mer:meList></{response}>")

    def inventory(self, data: str, *, cid: str = "inv", element: str = "getInventoryResponse") -> str:
        """A whole reply of getInventory."""
        header = self.header(
            activityName="getInventory",
            msgName=element,
            msgType="RESPONSE",
            correlationId=cid,
            batchSequenceNumber=1,
            batchSequenceEndOfReply="true",
        )
        return self.envelope(header, f"<rir:{element}><rir:inventoryData>{data}</rir:inventoryData></rir:{element}>")

    def request(self, cid: str = "c") -> str:
        header = self.header(
            activityName="getAllManagedElements", msgType="REQUEST", senderURI="/OS", correlationId=cid
        )
        return self.envelope(header, "<mer:getAllManagedElementsRequest/>")

    def fault(self, cid: str | None = None) -> str:
        header = self.header(activityName="getAllManagedElements", msgType="ERROR", correlationId=cid)
        detail = f"<mer:getAllManagedElementsException><v:kind>{header}</v:kind></mer:getAllManagedElementsException>"
        fault = f"<soap:Fault><faultcode>Server</faultcode><detail>{detail}</detail></soap:Fault>"
        return self.envelope("", fault)

    def name(self, *parts: str) -> str:
        """`name("MD=a", "ME=b")`."""
        rdns = (part.partition("=") for part in parts)
        steps = "".join(
            f"<nam:rdn><nam:type>{kind}</nam:type><nam:value>{value}</nam:value></nam:rdn>" for kind, _, value in rdns
        )
        return f"<coi:name>{steps}</coi:name>"

    def me(self, name: str, inner: str = "") -> str:
        """A managed element of MD `M`."""
        return f"<me:me>{self.name('MD=M', f'ME={name}')}{inner}</me:me>\n"


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with the libraries that are installed here, but not with this package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    # What is added by a .pth file is no site directory: its own .pth files, this checkout's among them, do not count.
    Path(paths["purelib"], "libraries.pth").write_text(sysconfig.get_path("purelib"))
    python = Path(paths["scripts"], Path(sys.executable).name)
    found = subprocess.run(
        [python, "-c", "import pyarrow, lxml, mtosi_jms"], capture_output=True, text=True, cwd=folder
    )
    if "No module named 'mtosi_jms'" not in found.stderr:
        pytest.skip("this package is installed among its libraries")
    return str(python)


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `spark-archive` makes."""
    out = tmp_path_factory.mktemp("package") / "mtosi_jms.zip"
    assert main(["spark-archive", "--out", str(out)]) == 0
    return out


@pytest.fixture
def envelopes() -> Envelopes:
    return Envelopes()


@pytest.fixture
def other_prefixes() -> Envelopes:
    return Envelopes("z")


Put = Callable[..., Path]


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


@pytest.fixture
def mounted(landing: Path) -> str:
    """The landing as one that only fsspec opens."""
    pytest.importorskip("fsspec")
    return f"local://{landing}"


@pytest.fixture
def put(landing: Path) -> Put:
    """Writes a file of the landing; text or bytes, compressed where the name ends in .gz or .zst."""
    return writer(landing)


def writer(landing: Path) -> Put:
    """What writes files of a landing."""

    def write(name: str, content: str | bytes) -> Path:
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        if name.endswith((".gz", ".zst")):
            data = gzip.compress(data) if name.endswith(".gz") else import_module(ZSTD).compress(data)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def troubled(put: Put, landing: Path, envelopes: Envelopes, other_prefixes: Envelopes) -> Path:
    """A landing with everything that a plan must see."""
    troubled_landing(put, envelopes, other_prefixes)
    return landing


@pytest.fixture(scope="session", autouse=True)
def stubs() -> None:
    from mtosi_jms.inventory import load_stubs

    load_stubs(())
