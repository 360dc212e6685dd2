"""docs/jvm.md: its code runs, and it names every client."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.jars import CLIENTS
from mtosi_jms.jms import NamingContext

from .clients import jars_of


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "jvm.md").read_text(encoding="utf-8")


@pytest.mark.broker
def test_the_code_on_the_page_runs(
    page: str, artemis: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jpype", reason="JPype is not installed")
    properties = re.findall(r"```properties\n(.*?)```", page, re.DOTALL)[0]
    file = tmp_path / "jndi.properties"
    file.write_text(properties.replace("127.0.0.1:61616", f"127.0.0.1:{artemis.endpoints.ports['openwire']}"))
    for name, value in {
        "JNDI_PROPERTIES": str(file),
        "BROKER_JARS": os.pathsep.join(jars_of("artemis")),
        "MTOSI_JMS_USER": artemis.endpoints.user,
        "MTOSI_JMS_PASSWORD": artemis.endpoints.password,
    }.items():
        monkeypatch.setenv(name, value)
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(block, "jvm.md", "exec"), {})
    assert capsys.readouterr().out == "{'retries': Short(3)} True\n"


@pytest.mark.parametrize("name", ["jvm.md", "jvm-providers.md"])
def test_every_jndi_properties_can_be_read(root: Path, name: str) -> None:
    blocks = re.findall(r"```properties\n(.*?)```", (root / "docs" / name).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        assert NamingContext.from_properties(block).properties["java.naming.factory.initial"]


def test_the_page_names_all_clients(page: str) -> None:
    for kind, client in CLIENTS.items():
        assert re.search(rf"^\| `{kind}` \| .*\b{re.escape(client.version)}\b", page, re.MULTILINE)
