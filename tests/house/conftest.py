"""What the tests of the house share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def structure() -> ModuleType:
    """The tool that reads the structure of the code; tests are not a package."""
    spec = importlib.util.spec_from_file_location("house_structure", Path(__file__).with_name("structure.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
