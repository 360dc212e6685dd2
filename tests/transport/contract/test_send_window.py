"""A window of unconfirmed sends: so many and no more, the first failure told, nothing open after it."""

from __future__ import annotations

from typing import Any

import pytest

from mtosi_jms.errors import ConfigError, IllegalStateError, TransportError
from mtosi_jms.jms import Queue
from mtosi_jms.transport import Connection, SendWindow

from ...waiting import PATIENCE, background
from .conftest import text

pytestmark = pytest.mark.obligation("A12")


def test_no_more_than_its_size_are_unconfirmed(connection: Connection, queue: Queue, gate: Any, bodies: Any) -> None:
    session = connection.session()
    window = SendWindow(session, 3)

    def send_all() -> None:
        for number in range(10):
            window.send(queue, text(number))
        window.settle()

    sending = background(send_all)
    for left in range(7):
        assert gate.await_held(3, PATIENCE), left
        gate.release()
    assert gate.await_held(3, PATIENCE)
    assert not gate.await_held(4, 0)
    assert not sending.done()
    gate.release_all()
    sending.result(PATIENCE)
    assert bodies(connection.session().consumer(queue)) == [str(number) for number in range(10)]


@pytest.mark.obligation("A8")
def test_the_first_failure_is_raised_when_nothing_is_open(connection: Connection, queue: Queue, gate: Any) -> None:
    session = connection.session()
    window = SendWindow(session, 4)
    for number in range(4):
        window.send(queue, text(number))
    assert gate.await_held(4, PATIENCE)
    gate.fail(TransportError("of the third"), 2)
    gate.fail(TransportError("of the second"), 1)
    fifth = background(lambda: window.send(queue, text(4)))
    gate.release()
    assert not fifth.done()
    gate.release()
    assert isinstance(fifth.exception(PATIENCE), TransportError)
    window.settle()
    window.send(queue, text(5))
    assert gate.await_held(1, PATIENCE)
    gate.release()
    window.settle()


def test_a_send_that_raises_leaves_nothing_open(connection: Connection, queue: Queue) -> None:
    session = connection.session()
    window = SendWindow(session, 2)
    window.send(queue, text(1))
    session.close()
    with pytest.raises(IllegalStateError):
        window.send(queue, text(2))
    window.settle()


def test_a_window_lets_something_through(connection: Connection) -> None:
    with pytest.raises(ConfigError, match="at least 1, not 0"):
        SendWindow(connection.session(), 0)
