"""Messages that a real broker takes from nobody, in an outbox: dead with the broker's reason, while others go on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from mtosi_jms.errors import MessageRefusedError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Outbox
from mtosi_jms.testing import ManualClock
from mtosi_jms.transport import connect

pytestmark = pytest.mark.broker

HEADER = JmsMessage(body=b"<x/>", properties={"p": "y" * 400_000})
BODY = JmsMessage(body=b"x" * 101 * 1024 * 1024)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        pytest.param("artemis", HEADER, id="artemis"),
        pytest.param("activemq", BODY, id="activemq", marks=pytest.mark.endurance),
    ],
)
def test_one_that_is_too_large(request: pytest.FixtureRequest, tmp_path: Path, kind: str, message: JmsMessage) -> None:
    clock = ManualClock(1_000)
    with (
        connect(request.getfixturevalue(kind).endpoints.url("stomp")) as connection,
        Outbox(tmp_path / "outbox", attempts=2, clock=clock) as outbox,
    ):
        session = connection.session()
        with pytest.raises(MessageRefusedError):
            outbox.send(session, Queue("TOO.LARGE"), message)
        outbox.put(JmsMessage(body=b"<y/>"), Queue("OTHERS"))
        while len(outbox):
            with suppress(TransportError):  # a broker that refuses one closes the connection
                outbox.resend(session)
            clock.advance(60)
        assert [one.reason.partition(":")[0] for one in outbox.dead] == ["MessageRefusedError"]
        assert len(outbox) == 0
