"""What every area of the suite may ask for; nothing heavy is imported or started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtosi_jms.testing import fixtures

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
