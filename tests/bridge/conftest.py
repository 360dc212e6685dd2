"""What the tests of the bridge share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from lxml import etree

from mtosi_jms.xmlbind import XmlObject, encode

Complaints: TypeAlias = Callable[[XmlObject], list[str]]


@pytest.fixture(scope="session")
def complaints(release: Any) -> Complaints:
    """What the schemas of MTOSI's release say against a notification."""

    def complain(notification: XmlObject) -> list[str]:
        release.validate(etree.fromstring(encode(notification)))
        return [f"line {error.line}: {error.message}" for error in release.error_log]

    return complain
