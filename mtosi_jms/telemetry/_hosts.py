"""Which names a request over HTTP may give its host."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Final

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^][:/?#@\\]*)(?::[0-9]*)?")


def is_own_host(host: str, names: Collection[str] = ()) -> bool:
    """Whether the Host of a request may be a server's own: an address, `localhost`, or a name that it was told.

    Any other name may belong to a web site that has it point to this computer (DNS rebinding), so that the pages of the
    site reach the server through the browser of somebody who may.

    Args:
        host: the value of the header, with or without a port.
        names: the names of the server, in lower case.
    """
    found = _HOST.fullmatch(host.lower())
    if found is None:  # a path behind the port, say, which libraries take for the path of the request
        return False
    name = found[1].strip("[]")
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
