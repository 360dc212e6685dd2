"""curl as the client, by the commands of docs/gateway.md, which fetch every element through iterators.

In `make endurance` 20,000 elements pass a real broker.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.soap import parse
from mtosi_jms.stubs.mri import mer
from mtosi_jms.xmlbind import decode, to_element

from .conftest import ONE, said

PATIENCE = 300


@pytest.fixture(scope="module")
def blocks(root: Path) -> list[str]:
    """The blocks of the page that write the requests and post them."""
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    page = (root / "docs" / "gateway.md").read_text(encoding="utf-8")
    found = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "cat > " in block]
    assert [re.findall(r"cat > (\S+)", block) for block in found] == [["request.xml"], ["iterator.xml"]]
    return found


def test_the_page_fetches_every_element_in_order(blocks: list[str], front: str, provider: Any, tmp_path: Path) -> None:
    size = provider.network.elements // 6
    script = "\n".join(["set -e", *blocks]).replace("http://127.0.0.1:8080/", f"{front}/")
    script = script.replace(">50</hdr:requestedBatchSize>", f">{size}</hdr:requestedBatchSize>")
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    count = -(-provider.network.elements // size)
    assert done.stdout.endswith(f"{count} responses\n")
    answers = [parse((tmp_path / f"answer-{number}.xml").read_bytes()) for number in range(1, count + 1)]
    headers = [one.header for one in answers]
    assert [one.batch_sequence_number for one in headers] == [*range(1, count + 1)]
    assert [one.batch_sequence_end_of_reply for one in headers] == [False] * (count - 1) + [True]
    fetched = [me for one in answers for me in decoded(one).me_list.me]
    assert said(fetched) == said(provider.network.managed_elements())


def decoded(envelope: Any) -> Any:
    """The body of a response; that of an iterator, which our stubs lack, as one of the operation."""
    element = to_element(envelope.body)
    element.tag = str(element.tag).replace("getManagedElementsIterator", "getAllManagedElements")
    return decode(element, mer.GetAllManagedElementsResponse)


@pytest.mark.parametrize("provider", ["memory"], indirect=True)
@pytest.mark.parametrize(("size", "status"), [(0, "200"), (3 * 2**20, "200"), (65 * 2**20, "413")])
def test_a_large_request(front: str, tmp_path: Path, size: int, status: str) -> None:
    """curl asks first whether it may send one (Expect: 100-continue)."""
    file = tmp_path / "request.xml"
    file.write_text(ONE.replace("NAME", "NE-1").replace("<soap:Body>", f"<soap:Body>{' ' * size}"))
    command = ["curl", "-sS", "-o", "answer.xml", "-w", "%{http_code}", "-H", "Content-Type: text/xml"]
    done = subprocess.run(
        [*command, "--data-binary", f"@{file}", f"{front}/"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == status
