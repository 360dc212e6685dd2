"""The public doubles: the pair in memory, the scripted supplier, and the fixtures for pytest."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mtosi_jms import testing
from mtosi_jms.errors import ConfigError, IllegalStateError, IncompleteBatchError, ReplyTimeoutError, TransportError
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import SUPPLIER, ScriptedSupplier, connect_privately, exchange, gap

EMS = ManagedElementEms(Network(elements=4))


def test_a_pair_of_real_ends() -> None:
    with exchange([EMS], threads=2) as pair:
        assert isinstance(pair.supplier, Supplier)
        assert len(pair.stub(ManagedElementRetrieval).get_all_managed_elements().me_list.me) == 4
        assert pair.connection is pair.requestor.connection
        assert pair.supplier.connection is not pair.connection
        with pytest.raises(ConfigError):
            _ = pair.scripted
        requestor = pair.requestor
    with pytest.raises(IllegalStateError):
        requestor.connection.session()


def test_a_pair_leaves_nothing_running() -> None:
    before = threading.active_count()
    with exchange([EMS], threads=3):
        assert threading.active_count() == before + 3
    with exchange([EMS], tamper=lambda replies: replies):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_pairs_do_not_know_each_other() -> None:
    with exchange() as one, exchange() as other:
        one.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1).close()
        assert (one.provider.held(), other.provider.held()) == (1, 0)


def test_the_example_in_the_docstring() -> None:
    with exchange([EMS], tamper=lambda replies: gap(replies, at=1), timeouts=Timeouts(gap=0.02)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        with pytest.raises(IncompleteBatchError):
            list(batches)


def test_requests_by_hand() -> None:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3)
        asked = pair.scripted.take()
        assert asked.envelope.header.requested_batch_size == 3
        replies = asked.replies([EMS])
        assert [reply.destination for reply in replies] == [Queue("REQUESTOR.OS")] * 2
        assert pair.provider.held() == 0
        pair.scripted.send(reversed(replies))
        assert [len(batch.me_list.me) for batch in batches] == [3, 1]


def test_a_raw_reply_is_addressed() -> None:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3)
        asked = pair.scripted.take()
        reply = asked.reply(b"<a/>")
        assert (reply.destination, reply.correlation_id) == (asked.message.reply_to, asked.message.message_id)
        pair.scripted.send([reply])
        with pytest.raises(ValueError, match="not a SOAP envelope"):
            next(batches)


def test_no_request_comes() -> None:
    with exchange() as pair:
        with pytest.raises(ReplyTimeoutError, match="no request came"):
            pair.scripted.take(0)
        with pytest.raises(IllegalStateError, match="without destination"):
            pair.scripted.send([JmsMessage(body=b"")])


def test_a_script_that_fails_is_seen_by_the_test() -> None:
    running = threading.Event()

    def script(asked: Any) -> list[JmsMessage]:
        running.set()
        raise ZeroDivisionError("in the script")

    with connect_privately() as connection:
        supplier = ScriptedSupplier(connection, SUPPLIER).start(script)
        connection.session().send(supplier.destination, JmsMessage(body=b""))
        assert running.wait(10)
        with pytest.raises(ZeroDivisionError, match="in the script"):
            supplier.close()
        supplier.close()


def test_by_hand_and_by_script_do_not_mix() -> None:
    with exchange() as pair:
        pair.scripted.start(lambda asked: asked.replies([EMS]))
        assert len(pair.stub(ManagedElementRetrieval).get_all_managed_elements().me_list.me) == 4
        pair.scripted.close()
        with pytest.raises(IllegalStateError):
            pair.scripted.take(0)


def test_a_clock_and_bounds_of_the_provider() -> None:
    with exchange(provider={"clock": lambda: 1_000_000.0, "capacity": 1, "send_timeout": 0}) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_all_managed_elements.batches(batch_size=1).close()
        with pytest.raises(TransportError, match="full"):
            stub.get_all_managed_elements.batches(batch_size=1)
        assert pair.scripted.take().message.timestamp_ms == 1_000_000_000


def test_everything_that_is_promised_is_there() -> None:
    assert [name for name in testing.__all__ if not hasattr(testing, name)] == []
    assert {"exchange", "ScriptedSupplier", "gap", "duplicate", "reorder", "truncate"} <= set(testing.__all__)
    assert set(testing.__all__) <= set(dir(testing))
    with pytest.raises(AttributeError, match="no attribute 'sleep'"):
        _ = testing.sleep
