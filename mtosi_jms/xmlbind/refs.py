"""References between generated classes are paths, resolved at first use: importing one module imports no other.

A path is `module:Class`, the module below the root of its package (`nrf.me:ManagedElementType`).
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from mtosi_jms.errors import ConfigError


@cache
def resolve_class(path: str, root: str) -> Any:
    """The class that a path names.

    Args:
        path: `module:Class`, relative to the root package.
        root: dotted name of the package that paths are relative to.

    Raises:
        ConfigError: there is no such class; the generated package is damaged or incomplete.
    """
    module_path, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(f"{root}.{module_path}"), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"generated class {path!r} of package {root!r} cannot be loaded: {error}") from error
