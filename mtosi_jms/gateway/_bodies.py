"""Elements of bodies, and their names: a request's, its response's, its exception's."""

from __future__ import annotations

import logging
from typing import Final

from mtosi_jms.jms.body_check import BodyCheck

log = logging.getLogger(__package__)

OF_REQUEST: Final = "Request"
"""How the name of a request's element ends."""


def judge(check: BodyCheck | None, data: bytes, what: str) -> None:
    """Hold the body of an envelope against the schemas; what is only told of is logged.

    Args:
        check: judges it; None: nothing is judged.
        data: the envelope.
        what: it is, for the log.

    Raises:
        DecodeError: it does not fit them, and must.
    """
    if check is not None and (warnings := check.check(data)):
        log.warning("%s with %d warnings, the first: %s", what, len(warnings), warnings[0])
