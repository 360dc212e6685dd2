"""Archives made to order."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any


def zipped(*members: tuple[str | zipfile.ZipInfo, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def tarred(*members: tuple[str, bytes], mode: Any = "w", format: int = tarfile.PAX_FORMAT, **changes: Any) -> bytes:
    """`changes`: other facts of each member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=format) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in changes.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
