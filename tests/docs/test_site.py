"""The site has a page for each command and public module, and each page of docs/ has its place in the navigation."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import mtosi_jms
from mtosi_jms.cli import COMMANDS

pytest.importorskip("mkdocs")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "_site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config(hooks: ModuleType) -> Any:
    from mkdocs.config import load_config

    return hooks.on_config(load_config(str(ROOT / "mkdocs.yml")))


def in_navigation(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    return {page for item in (nav.values() if isinstance(nav, dict) else nav) for page in in_navigation(item)}


def test_every_page_is_in_the_navigation(hooks: ModuleType, config: Any) -> None:
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {name for name, _ in hooks.made_pages()}
    assert in_navigation(config.nav) == written | made


def test_every_command_has_a_page_that_shows_its_arguments(hooks: ModuleType) -> None:
    pages = dict(hooks.made_pages())
    assert [name for name in COMMANDS if "--help" not in pages[f"reference/commands/{name}.md"]] == []


def test_public_modules_have_pages(hooks: ModuleType) -> None:
    modules = hooks.public_modules()
    assert {"mtosi_jms", "mtosi_jms.errors", "mtosi_jms.jms.selector", "mtosi_jms.spark"} <= set(modules)
    assert [name for name in modules if "._" in name or name.startswith("mtosi_jms.stubs")] == []


def test_the_name_has_the_version(config: Any) -> None:
    assert config.site_name == f"mtosi-jms {mtosi_jms.__version__}"


def test_a_link_that_is_called_as_its_file_gets_the_title_of_the_page(hooks: ModuleType, config: Any) -> None:
    from mkdocs.structure.files import File, Files

    files = Files([File("stomp.md", config.docs_dir, config.site_dir, use_directory_urls=True)])
    page = SimpleNamespace(file=SimpleNamespace(src_uri="exchanges.md"))
    for written, shown in (("stomp.md", "ActiveMQ and Artemis over STOMP"), ("the brokers", "the brokers")):
        made = hooks.on_page_markdown(f"See [{written}](stomp.md#jars).", page, config, files)
        assert made == f"See [{shown}](stomp.md#jars)."
