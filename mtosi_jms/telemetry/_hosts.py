"""Which names a request over HTTP may give its host."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

__all__ = ["is_own_host"]


def is_own_host(host: str, names: Collection[str] = ()) -> bool:
    """Whether the Host of a request may be a server's own: an address, `localhost`, or a name that it was told.

    Any other name may belong to a web site that has it point to this computer (DNS rebinding), so that the pages of the
    site reach the server through the browser of somebody who may.

    Args:
        host: the value of the header, with or without a port.
        names: the names of the server, in lower case.
    """
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    name = name.strip("[]").lower()
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
