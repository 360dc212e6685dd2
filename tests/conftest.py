"""What every area of the suite may ask for; nothing heavy is imported or started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtosi_jms.testing import fixtures

from .java_tools import JavaTools
from .selector_maker import SelectorMaker

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """The SDK's fixtures: pytest has them where this checkout is installed; elsewhere, and with `-p no:`, from here."""
    if not config.pluginmanager.has_plugin(fixtures.__name__):
        config.pluginmanager.register(fixtures, "fixtures of the checkout")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material (MTOSI_SHARED, else `shared` beside the checkout); skips where there is none."""
    folder = Path(os.environ.get("MTOSI_SHARED") or ROOT.parent / "shared")
    if not (folder / "mtosi").is_dir():
        pytest.skip(f"no reference material in {folder}: set MTOSI_SHARED")
    return folder.resolve()


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaTools:
    """Compiles and runs Java programs of the suite; skips where there is no compiler."""
    return JavaTools(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def selector_maker() -> type[SelectorMaker]:
    """The maker of random selectors."""
    return SelectorMaker
