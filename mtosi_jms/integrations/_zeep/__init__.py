"""What `mtosi_jms.integrations.zeep` is made of. Needs the extra `zeep`."""

from __future__ import annotations

from importlib.util import find_spec

from mtosi_jms.errors import MissingExtraError

for _library in ("elementpath", "zeep"):
    if find_spec(_library) is None:
        raise MissingExtraError(_library, "zeep")
