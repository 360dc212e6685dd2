"""What a connection tells about itself and its provider."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.transport import Capability, Connection
from mtosi_jms.transport._descriptor import check_jms_version


@pytest.mark.obligation("R1")
def test_it_tells_what_is_at_the_other_end(connection: Connection) -> None:
    assert connection.metadata.provider
    assert check_jms_version(connection.metadata.jms_version)


def test_it_tells_what_it_can_do(connection: Connection) -> None:
    assert isinstance(connection.capabilities, frozenset)
    assert connection.capabilities <= set(Capability)


def test_each_has_an_id_and_no_client_id_unless_given(provider: Any) -> None:
    one, two = provider.connect(), provider.connect()
    assert one.id != two.id
    assert (one.client_id, two.client_id) == ("", "")
    assert provider.connect(client_id="mine").client_id == "mine"
