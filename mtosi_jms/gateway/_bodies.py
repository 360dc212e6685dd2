"""Names of body elements (of requests, responses and exceptions), and the check of bodies against the schemas."""

from __future__ import annotations

import logging
from typing import Final

from mtosi_jms.jms.body_check import BodyCheck

log = logging.getLogger(__package__)

OF_REQUEST: Final = "Request"
"""Suffix of the name of a request's element."""


def judge(check: BodyCheck | None, data: bytes, what: str) -> None:
    """Check the body of an envelope against the schemas; log what is only a warning.

    Args:
        check: the check; None for no check.
        data: the envelope.
        what: what the envelope is, for the log.

    Raises:
        DecodeError: the body is not valid, and `check` requires that it is.
    """
    if check is not None and (warnings := check.check(data)):
        log.warning("%s with %d warnings, the first: %s", what, len(warnings), warnings[0])
