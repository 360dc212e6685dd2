"""The native core from an archive on the search path, such as Spark's `--py-files`.

A system loads libraries from files only, so the core is unpacked for as long as that takes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zipimport import zipimporter


def packed_core(archive: zipimporter, name: str) -> Any:
    """Import the native core from an archive. Raises ImportError: the archive has no core for this Python and system,
    or it does not load."""
    for suffix in EXTENSION_SUFFIXES:
        try:
            library = archive.get_data(os.path.join(archive.archive, *name.split(".")) + suffix)  # noqa: PTH118
        except OSError:
            continue
        try:
            return _loaded(library, name, suffix)
        except OSError as error:
            raise ImportError(f"it cannot be unpacked: {error}") from error
    raise ModuleNotFoundError(f"no {name} in {archive.archive}", name=name)


def _loaded(library: bytes, name: str, suffix: str) -> Any:
    # Windows keeps a library that is loaded.
    with tempfile.TemporaryDirectory(prefix="mtosi-core-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / f"core{suffix}"
        file.write_bytes(library)
        spec = spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - the suffix is that of a library
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules[name] = module
    return module
