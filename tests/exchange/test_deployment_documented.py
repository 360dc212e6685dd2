"""docs/naming.md and docs/deployment.md: their files hold what they say, and their commands work."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mtosi_codegen.cli import main as codegen
from mtosi_jms.cli import main
from mtosi_jms.deployment import read_deployment
from mtosi_jms.jms import NamingContext, Queue, Topic


@pytest.fixture
def page(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """A page's text; its files lie in the current folder."""

    def read(name: str) -> str:
        text = (root / "docs" / name).read_text(encoding="utf-8")
        files = {"properties": "jndi.properties", "toml": "inventory-os.toml"}
        for kind, content in re.findall(r"```(properties|toml)\n(.*?)```", text, re.DOTALL):
            (tmp_path / files[kind]).write_text(content, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return text

    return read


def test_the_files_on_the_naming_page_hold_what_it_says(page: Callable[[str], str], tmp_path: Path) -> None:
    page("naming.md")
    names = NamingContext.of(tmp_path / "inventory-os.toml")
    assert names.lookup("jms/FaultTopic") == Topic("MTOSI.Fault")
    assert names.factory("jms/ConnectionFactory") == "memory:naming-page"
    assert NamingContext.of(tmp_path / "jndi.properties").lookup("jms/Other") == Queue("OTHER")


def test_the_commands_on_the_deployment_page_work(
    page: Callable[[str], str], root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page("deployment.md")
    assert "mtosi-jms deployment inventory-os.toml" in text
    assert read_deployment("inventory-os.toml").problems() == ()
    assert main(["deployment", "inventory-os.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "jms/InventoryOS"
    shutil.copytree(root / "wsdl", tmp_path / "wsdl")
    shutil.copytree(root / "xsd", tmp_path / "xsd")
    command = "mtosi-codegen deploy wsdl --deployment inventory-os.toml --out deployed"
    assert command in text
    assert codegen(command.split()[1:]) == 0
    assert b'"jms/InventoryRequests"' in (tmp_path / "deployed/wsdl/ResourceInventoryRetrieval.wsdl").read_bytes()
