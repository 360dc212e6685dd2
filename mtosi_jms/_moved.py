"""Modules that have moved since 0.1: their old names work for one release, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Final

MOVED: Final = {
    "mtosi_jms.aio": "mtosi_jms.exchange",
    "mtosi_jms.awaited": "mtosi_jms.service.aio",
    "mtosi_jms.delivery": "mtosi_jms.spool",
    "mtosi_jms.inventory.place": "mtosi_jms.inventory",
    "mtosi_jms.jms.frozen": "mtosi_jms.jms",
    "mtosi_jms.jms.uri": "mtosi_jms.jms",
    "mtosi_jms.messages": "mtosi_jms.exchange.messages",
    "mtosi_jms.notifications.events": "mtosi_jms.notifications",
    "mtosi_jms.notifications.timing": "mtosi_jms.notifications",
    "mtosi_jms.requestor": "mtosi_jms.exchange",
    "mtosi_jms.signals": "mtosi_jms.exchange.signals",
    "mtosi_jms.spark.options": "mtosi_jms.spark",
    "mtosi_jms.spark.selector": "mtosi_jms.spark",
    "mtosi_jms.spark.session": "mtosi_jms.spark",
    "mtosi_jms.supplier": "mtosi_jms.exchange",
    "mtosi_jms.transport.base": "mtosi_jms.transport",
    "mtosi_jms.transport.completion": "mtosi_jms.transport",
    "mtosi_jms.transport.window": "mtosi_jms.transport",
    "mtosi_jms.usages": "mtosi_jms.service.registry",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module by its old name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new} now", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(new)


def install() -> None:
    """Have the old names found, after everything else."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
