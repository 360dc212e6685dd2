"""The consumer runtime over the embedded provider: what succeeds, raises, hangs, is killed, drained. None is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import ClientIdInUseError, ConfigError, HandlerTimeoutError, IllegalStateError, TransportError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue, Topic
from mtosi_jms.runtime import Backoff, ConsumerRuntime, RuntimeRules, State, answering, events
from mtosi_jms.service import RequestContext
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrb.rscoc import ResourceObjectCreation
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import connect_privately

from ..waiting import PATIENCE, background, until

WORK = Queue("WORK")


def fails(context: Any) -> None:
    raise ValueError("of the handler, with secret=hush")


class TestHandling:
    def test_messages_are_handled_in_order_and_acknowledged(self, desk: Any) -> None:
        names = [str(number) for number in range(50)]
        desk.send(*names)
        with desk.runtime(destination="jms/Work"):
            desk.handled.until(lambda: len(desk.handled.done) == 50)
        assert desk.handled.done == names
        assert desk.provider.held() == 0

    def test_concurrency_handlers_run_at_the_same_time(self, desk: Any) -> None:
        barrier = threading.Barrier(4)
        for key in "abcd":
            desk.handled.acts[key] = lambda context: barrier.wait(PATIENCE)
        desk.send(*"abcd")
        with desk.runtime(rules={"concurrency": 4}):
            desk.handled.until(lambda: len(desk.handled.done) == 4)

    def test_messages_of_a_key_are_handled_one_at_a_time_and_in_order(self, desk: Any) -> None:
        """The first of key a waits; all of key b pass it, and nothing of key a does."""
        go = threading.Event()
        desk.handled.acts["a0"] = lambda context: go.wait(PATIENCE)
        desk.send("a0", "a1", "b0", "a2", "b1", "b2")
        with desk.runtime(key=lambda message: message.body[:1], rules={"concurrency": 3, "in_flight": 6}):
            desk.handled.until(lambda: len(desk.handled.done) == 3)
            assert desk.handled.done == ["b0", "b1", "b2"]
            assert "a1" not in desk.handled.begun
            go.set()
            desk.handled.until(lambda: len(desk.handled.done) == 6)
        assert [one for one in desk.handled.done if one[0] == "a"] == ["a0", "a1", "a2"]

    def test_a_retry_delays_its_key_and_no_other(self, desk: Any) -> None:
        attempts: list[int] = []

        def twice(context: Any) -> None:
            attempts.append(context.attempt)
            if context.attempt < 3:
                raise ValueError

        desk.handled.acts["a0"] = twice
        desk.send("a0", "a1", "b0")
        with desk.runtime(
            key=lambda message: message.body[:1], rules={"concurrency": 2, "retry": Backoff(10.0, 10.0, 0.0)}
        ) as runtime:
            desk.handled.until(lambda: desk.handled.done == ["b0"])
            for count in (1, 2):
                until(lambda count=count: (runtime.health.failures, runtime.health.backlog) == (count, 2))
                desk.clock.advance(11)
            desk.handled.until(lambda: len(desk.handled.done) == 3)
        assert attempts == [1, 2, 3]
        assert desk.handled.done == ["b0", "a0", "a1"]

    def test_at_most_in_flight_messages_are_held(self, desk: Any) -> None:
        go = threading.Event()
        desk.handled.acts["0"] = lambda context: go.wait(PATIENCE)
        desk.send(*(str(number) for number in range(10)))
        with desk.runtime(rules={"in_flight": 3}) as runtime:
            until(lambda: (runtime.health.in_flight, runtime.health.backlog) == (1, 2))
            assert desk.provider.depth(WORK) == 7
            go.set()
            desk.handled.until(lambda: len(desk.handled.done) == 10)

    def test_a_handler_sends_from_a_session_of_its_own(self, desk: Any) -> None:
        out = Queue("OUT")

        def forward(message: JmsMessage, context: Any) -> None:
            context.session.send(out, JmsMessage(body=message.body.upper()))

        desk.send("a", "b")
        with desk.runtime(handler=forward) as runtime:
            until(lambda: runtime.health.handled == 2)
        assert [message.body for message in desk.session.browse(out)] == [b"A", b"B"]

    @pytest.mark.obligation("001-I9")
    def test_a_topic_has_one_subscription_however_many_handlers(self, desk: Any) -> None:
        topic = Topic("NEWS")
        with desk.runtime(destination=topic, durable="runtime", selector="n > 1", rules={"concurrency": 3}):
            for number in range(4):
                desk.session.send(topic, JmsMessage(body=b"%d" % number, properties={"n": number}))
            desk.handled.until(lambda: len(desk.handled.done) == 2)
        assert sorted(desk.handled.done) == ["2", "3"]
        desk.session.unsubscribe("runtime")


class TestFailing:
    @pytest.mark.obligation("001-I2", "001-I17", "SEC22")
    def test_poison_is_parked_with_its_reason_and_the_others_go_on(self, desk: Any) -> None:
        desk.handled.acts["poison"] = fails
        desk.send("a")
        desk.send("poison", properties={"n": 7}, correlation_id="c-1", time_to_live_ms=60_000)
        desk.send("b")
        with desk.runtime(rules={"attempts": 3}) as runtime:
            until(lambda: runtime.health.parked == 1)
            desk.handled.until(lambda: desk.handled.done == ["a", "b"])
            health = runtime.health
        assert desk.handled.begun.count("poison") == 3
        [parked] = desk.parked()
        assert (parked.body, parked.correlation_id, parked.expiration_ms) == (b"poison", "c-1", 0)
        assert parked.delivery_mode is DeliveryMode.PERSISTENT
        identifier = parked.properties["MTOSIX_originalMessageId"]
        assert str(identifier).startswith("ID:")
        assert dict(parked.properties) == {
            "n": 7,
            "MTOSIX_originalDestination": "queue:WORK",
            "MTOSIX_originalMessageId": identifier,
            "MTOSIX_parkedReason": "ValueError",
            "MTOSIX_attempts": 3,
        }
        assert (health.handled, health.parked, health.failures) == (2, 1, 3)
        assert [type(error) for error in desk.errors] == [ValueError] * 3
        assert desk.provider.held() == 1

    def test_by_default_messages_are_parked_in_the_providers_queue(self, desk: Any) -> None:
        desk.handled.acts["poison"] = fails
        desk.send("poison")
        with desk.runtime(parking=None, rules={"attempts": 1}) as runtime:
            until(lambda: runtime.health.parked == 1)
        [parked] = desk.session.browse(Queue("DLQ"))
        assert parked.properties["MTOSIX_parkedReason"] == "ValueError"

    def test_a_message_whose_key_function_raises_is_parked(self, desk: Any) -> None:
        desk.send("a", "b")

        def key(message: JmsMessage) -> Any:
            return {"a": 1}[message.body.decode()]

        with desk.runtime(key=key) as runtime:
            until(lambda: (runtime.health.parked, runtime.health.handled) == (1, 1))
        [parked] = desk.parked()
        assert (parked.body, parked.properties["MTOSIX_parkedReason"]) == (b"b", "KeyError")

    def test_attempts_wait_longer_each_time(self, desk: Any) -> None:
        desk.handled.acts["a"] = fails
        desk.send("a")
        with desk.runtime(rules={"attempts": 4, "retry": Backoff(10.0, 25.0, 0.0)}) as runtime:
            for count, wait in enumerate((10, 20, 25), 1):
                until(lambda count=count: runtime.health.backlog == 1 and runtime.health.failures == count)
                desk.clock.advance(wait - 1)
                assert runtime.health.failures == count
                desk.clock.advance(1)
            until(lambda: runtime.health.parked == 1)

    def test_the_log_has_facts_and_no_secrets(self, desk: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "mtosi_jms.runtime")  # the wire log has bodies
        desk.handled.acts["payload-hush"] = fails
        desk.send("payload-hush", properties={"token": "hush"})
        desk.send("fine")
        with desk.runtime(rules={"attempts": 1}) as runtime:
            until(lambda: (runtime.health.parked, runtime.health.handled) == (1, 1))
        records = [record for record in caplog.records if record.name == "mtosi_jms.runtime"]
        assert [record.event for record in records] == ["connected", "attempt failed", "parked", "handled", "ended"]
        failed = records[1]
        assert (failed.destination, failed.error, failed.failed_attempts) == ("queue:WORK", "ValueError", 1)
        assert failed.message_id.startswith("ID:")
        assert "hush" not in caplog.text + repr([vars(record) for record in records])

    def test_a_failing_hook_does_not_end_the_runtime(self, desk: Any) -> None:
        def hook(error: BaseException, message: Any) -> None:
            raise RuntimeError

        desk.handled.acts["poison"] = fails
        desk.send("poison", "a")
        with desk.runtime(on_error=hook, rules={"attempts": 2}):
            desk.handled.until(lambda: desk.handled.done == ["a"])


class TestHanging:
    def test_a_handler_past_its_deadline_is_replaced(self, desk: Any) -> None:
        """What it does later is of no account: its session is closed, and it does not acknowledge."""
        go, raised = threading.Event(), []

        def hangs(context: Any) -> None:
            session = context.session
            if context.attempt == 1:
                assert context.cancelled.wait(PATIENCE)
                assert go.wait(PATIENCE)
                try:
                    session.send(Queue("OUT"), JmsMessage(body=b"too late"))
                except IllegalStateError as error:
                    raised.append(error)

        desk.handled.acts["a"] = hangs
        desk.send("a", "b")
        with desk.runtime(rules={"deadline": 60.0, "attempts": 2}) as runtime:
            desk.handled.until(lambda: desk.handled.begun == ["a"])
            desk.clock.advance(61)
            desk.handled.until(lambda: sorted(desk.handled.done) == ["a", "b"])
            until(lambda: runtime.health.handled == 2)
            assert runtime.health.stuck == 1
            go.set()
            until(lambda: runtime.health.stuck == 0)
        assert len(raised) == 1
        assert [type(error) for error in desk.errors] == [HandlerTimeoutError]
        assert desk.session.browse(Queue("OUT")) == []
        assert desk.provider.held() == 0

    @pytest.mark.obligation("SEC22")
    def test_a_message_whose_handler_always_hangs_is_parked(self, desk: Any) -> None:
        go = threading.Event()
        desk.handled.acts["a"] = lambda context: go.wait(PATIENCE)
        desk.send("a", "b")
        with desk.runtime(rules={"deadline": 60.0, "attempts": 2}) as runtime:
            for count in (1, 2):
                desk.handled.until(lambda count=count: desk.handled.begun.count("a") == count)
                desk.clock.advance(61)
            desk.handled.until(lambda: "b" in desk.handled.done)
            until(lambda: runtime.health.parked == 1)
            go.set()
        [parked] = desk.parked()
        assert parked.properties["MTOSIX_parkedReason"] == "HandlerTimeoutError"


class TestStuck:
    """Handlers that hang hold a bounded number of threads; then no more is taken, until one of them returns."""

    @pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 3), (4, 2), (3, None)])
    def test_stuck_threads_are_bounded(self, desk: Any, concurrency: int, most: int | None) -> None:
        bound = most or 4 * concurrency
        go, names = threading.Event(), [f"{number}" for number in range(40)]
        for one in names:
            desk.handled.acts[one] = lambda context: go.wait(PATIENCE)
        desk.send(*names)
        rules = {"concurrency": concurrency, "max_stuck": most, "deadline": 10.0, "attempts": 1}
        with desk.runtime(rules=rules) as runtime:
            until(lambda: desk.clock.advance(11) or runtime.health.state is State.STUCK)
            for _ in range(10):
                desk.clock.advance(11)
            assert runtime.health.stuck == bound
            assert not runtime.health.is_alive(1e9)
            assert len(desk.handled.begun) <= bound + concurrency
            assert sum(one.name.startswith("handler-") for one in threading.enumerate()) <= bound + concurrency
            assert desk.provider.depth(WORK) >= len(names) - bound - 5 * concurrency
            go.set()
            until(lambda: runtime.health.handled + runtime.health.parked == len(names))
            until(lambda: (runtime.health.state, runtime.health.stuck) == (State.RUNNING, 0))
        assert desk.provider.depth(WORK) == 0

    def test_cancelled_is_set_although_no_thread_is_replaced(self, desk: Any) -> None:
        go = threading.Event()
        desk.handled.acts["hangs"] = lambda context: go.wait(PATIENCE)
        desk.handled.acts["looks"] = lambda context: context.cancelled.wait(PATIENCE)
        desk.send("hangs")
        with desk.runtime(rules={"concurrency": 2, "max_stuck": 1, "deadline": 10.0, "attempts": 1}) as runtime:
            desk.handled.until(lambda: desk.handled.begun == ["hangs"])
            desk.clock.advance(5)
            desk.send("looks")
            desk.handled.until(lambda: "looks" in desk.handled.begun)
            desk.clock.advance(6)
            until(lambda: runtime.health.state is State.STUCK)
            desk.clock.advance(5)
            until(lambda: runtime.health.parked == 2)
            go.set()
        assert [type(error) for error in desk.errors] == [HandlerTimeoutError] * 2

    @pytest.mark.parametrize("returns", [False, True])
    def test_draining_counts_stuck_handlers(self, desk: Any, returns: bool) -> None:
        go = threading.Event()
        desk.handled.acts["a"] = lambda context: go.wait(PATIENCE)
        desk.send("a")
        runtime = desk.runtime(rules={"deadline": 10.0, "attempts": 1}).start()
        desk.handled.until(lambda: desk.handled.begun == ["a"])
        desk.clock.advance(11)
        until(lambda: runtime.health.stuck == 1)
        if returns:
            go.set()
        assert runtime.drain(PATIENCE if returns else 0) is returns
        assert runtime.drain(0) is returns
        go.set()
        until(lambda: runtime.health.stuck == 0)
        assert runtime.drain(0)


class TestKilling:
    @pytest.mark.obligation("001-I19")
    def test_a_lost_connection_is_opened_again_and_nothing_is_lost(self, desk: Any) -> None:
        connections: list[Any] = []
        go = threading.Event()
        desk.handled.acts["a"] = lambda context: go.wait(PATIENCE)

        def connect() -> Any:
            connections.append(desk.connect())
            return connections[-1]

        desk.send("a", "b", "c")
        with desk.runtime(connect=connect, key=lambda message: 1) as runtime:
            desk.handled.until(lambda: desk.handled.begun == ["a"])
            connections[0].close()
            until(lambda: len(connections) == 2 and runtime.health.state is State.RUNNING)
            go.set()
            desk.handled.until(lambda: len(desk.handled.done) == 4)
            until(lambda: runtime.health.handled == 3)
        assert desk.handled.done == ["a", "a", "b", "c"], "the first one was handled without its word being heard"
        assert desk.provider.held() == 0

    @pytest.mark.obligation("001-I19")
    def test_connecting_is_repeated_until_it_succeeds(self, desk: Any) -> None:
        tries = iter([TransportError("no broker"), TransportError("no broker"), None])

        def connect() -> Any:
            error = next(tries)
            if error is not None:
                raise error
            return desk.connect()

        desk.send("a")
        with desk.runtime(connect=connect) as runtime:
            desk.handled.until(lambda: desk.handled.done == ["a"])
            until(lambda: runtime.health.consecutive_failures == 0)

    @pytest.mark.obligation("CON2")
    def test_a_client_id_that_the_broker_still_holds_is_tried_again(self, desk: Any) -> None:
        tries: Any = iter([desk.connect(), ClientIdInUseError("in use"), IllegalStateError("in use"), None])

        def connect() -> Any:
            found = next(tries)
            if isinstance(found, Exception):
                raise found
            made.append(found or desk.connect())
            return made[-1]

        made: list[Any] = []
        with desk.runtime(connect=connect) as runtime:
            until(lambda: runtime.health.state is State.RUNNING)
            made[0].close()
            desk.send("a")
            desk.handled.until(lambda: desk.handled.done == ["a"])

    @pytest.mark.parametrize("mistake", ["a closed connection", "a subscription that is taken"])
    def test_a_configuration_error_is_not_tried_again(self, desk: Any, mistake: str) -> None:
        asked: list[Any] = []
        topic = Topic("EVENTS")
        desk.connection.session().consumer(topic, durable="noc")

        def connect() -> Any:
            asked.append(desk.connect())
            if mistake == "a closed connection":
                asked[-1].close()
            return asked[-1]

        runtime = desk.runtime(connect=connect, destination=topic, durable="noc")
        with pytest.raises(IllegalStateError):
            background(runtime.run).result(PATIENCE)
        assert len(asked) == 1
        assert runtime.health.state is State.ENDED

    def test_failures_are_counted_across_a_lost_connection(self, desk: Any) -> None:
        connections: list[Any] = []

        def connect() -> Any:
            connections.append(desk.connect())
            return connections[-1]

        desk.handled.acts["a"] = fails
        desk.send("a")
        with desk.runtime(connect=connect, rules={"attempts": 2, "retry": Backoff(10.0, 10.0, 0.0)}) as runtime:
            until(lambda: (runtime.health.failures, runtime.health.backlog) == (1, 1))
            connections[0].close()
            until(lambda: runtime.health.parked == 1)
        [parked] = desk.parked()
        assert parked.properties["MTOSIX_attempts"] == 2

    def test_a_given_connection_that_is_lost_ends_the_runtime(self, desk: Any) -> None:
        connection = desk.connect()
        runtime = desk.runtime(connect=connection).start()
        connection.close()
        until(lambda: runtime.health.state is State.ENDED)
        until(lambda: len(desk.errors) == 2)
        assert all(isinstance(error, IllegalStateError) for error in desk.errors)
        assert runtime.drain()

    def test_a_message_that_cannot_be_parked_is_delivered_again(self, desk: Any) -> None:
        """The parking place is full: the message is not acknowledged, and comes again until there is room."""
        desk.provider.limits = desk.provider.limits.changed(capacity=1, send_timeout=0)
        desk.session.send(Queue("PARKED"), JmsMessage(body=b"in the way"))
        desk.handled.acts["a"] = fails
        desk.send("a")
        with desk.runtime(rules={"attempts": 1}) as runtime:
            until(lambda: runtime.health.consecutive_failures > 2)
            assert runtime.health.parked == 0
            desk.session.consumer(Queue("PARKED")).receive(0).acknowledge()
            until(lambda: runtime.health.parked == 1)
        assert desk.handled.begun == ["a"], "its failures are remembered"


class TestDraining:
    def test_running_handlers_finish_and_waiting_messages_are_handed_back(self, desk: Any) -> None:
        entered, go, drained = threading.Event(), threading.Event(), []

        def slow(context: Any) -> None:
            entered.set()
            assert go.wait(PATIENCE)

        desk.handled.acts["a"] = slow
        desk.send("a", "b", "c")
        runtime = desk.runtime().start()
        assert entered.wait(PATIENCE)
        draining = threading.Thread(target=lambda: drained.append(runtime.drain()))
        draining.start()
        until(lambda: runtime.health.state is State.DRAINING)
        go.set()
        draining.join(PATIENCE)
        assert drained == [True]
        assert desk.handled.done == ["a"]
        assert [message.body for message in desk.session.browse(WORK)] == [b"b", b"c"]
        assert runtime.health.state is State.ENDED

    def test_the_message_of_a_slow_handler_is_handed_back(self, desk: Any) -> None:
        cancelled = threading.Event()

        def slow(context: Any) -> None:
            assert context.cancelled.wait(PATIENCE)
            cancelled.set()

        desk.handled.acts["a"] = slow
        desk.send("a")
        runtime = desk.runtime().start()
        desk.handled.until(lambda: desk.handled.begun == ["a"])
        assert not runtime.drain(0)
        assert cancelled.wait(PATIENCE)
        [message] = desk.session.browse(WORK)
        assert (message.body, message.redelivered) == (b"a", True)

    def test_a_handler_may_end_the_runtime_it_runs_in(self, desk: Any) -> None:
        runtime = desk.runtime()
        desk.handled.acts["last"] = lambda context: runtime.drain()
        desk.send("a", "last", "b")
        runtime.run()
        assert desk.handled.done == ["a", "last"]
        assert [message.body for message in desk.session.browse(WORK)] == [b"b"]

    def test_draining_ends_attempts_to_connect(self, desk: Any) -> None:
        tried = threading.Event()

        def connect() -> Any:
            tried.set()
            raise TransportError("no broker")

        runtime = desk.runtime(connect=connect, rules={"reconnect": Backoff(1000.0, 1000.0, 0.0)})
        running = threading.Thread(target=runtime.run)
        running.start()
        assert tried.wait(PATIENCE)
        assert runtime.drain()
        running.join(PATIENCE)
        assert not running.is_alive()

    def test_a_runtime_runs_once(self, desk: Any) -> None:
        runtime = desk.runtime()
        assert runtime.health.state is State.NEW
        assert runtime.drain()
        with pytest.raises(IllegalStateError, match="once"):
            runtime.run()
        with desk.runtime() as runtime:
            with pytest.raises(IllegalStateError, match="once"):
                runtime.start()
            assert runtime.health.state is State.RUNNING


class TestSettingUp:
    def test_parking_where_messages_come_from(self, desk: Any) -> None:
        with pytest.raises(ConfigError, match="where they come from"):
            desk.runtime(destination="jms/Work", parking="jms/Work")

    @pytest.mark.obligation("001-I9", "001-I11", "001-I18")
    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"destination": "jms/Work", "parking": WORK}, "where they come from"),
            ({"parking": Topic("PARKED")}, "parked at a queue"),
            ({"durable": "d"}, "durable"),
            ({"destination": "jms/Nowhere"}, "jms/Nowhere"),
        ],
    )
    def test_what_does_not_go_together(self, desk: Any, options: dict[str, Any], why: str) -> None:
        with pytest.raises(ConfigError, match=why):
            desk.runtime(**options).start()

    def test_nowhere_to_park(self, desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        connection = desk.connect()
        monkeypatch.setattr(type(connection), "dead_letter", None)
        with pytest.raises(ConfigError, match="where to park"):
            desk.runtime(connect=connection, parking=None).start()
        connection.close()


# The runtime with requests and with notifications.

NAMES = {"jms/OS": "queue:OS", "jms/Ems": "queue:EMS", "jms/Topic": "topic:T"}


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: RequestContext) -> Iterator[ManagedElementType]:
        for number in range(7):
            yield ManagedElementType(name=name(f"MD=EMS/ME={number}"))


@contextmanager
def answered(rules: RuntimeRules) -> Iterator[tuple[ConsumerRuntime, ManagedElementRetrieval]]:
    with connect_privately(NAMES) as connection:
        supplier = mtosi.Supplier(connection, "jms/Ems", services=[Ems()])
        with (
            ConsumerRuntime(connection, supplier.destination, answering(supplier), rules=rules) as runtime,
            mtosi.Requestor(connection, sender_uri="jms/OS") as requestor,
        ):
            yield runtime, ManagedElementRetrieval(requestor, "jms/Ems")


def test_a_supplier_answers_in_the_runtime() -> None:
    with answered(RuntimeRules(concurrency=3)) as (runtime, retrieval):
        calls = [retrieval.get_all_managed_elements.batches(batch_size=3) for _ in range(6)]
        assert [[len(batch.me_list.me) for batch in call] for call in calls] == [[3, 3, 1]] * 6
    assert (runtime.health.handled, runtime.health.failures) == (6, 0)


def test_each_event_is_handled_and_a_message_that_cannot_be_read_is_parked(desk: Any) -> None:
    topic, seen = Topic("T"), []

    def on_event(event: Any, envelope: Any) -> None:
        seen.append((type(event).__name__, envelope.header.msg_name))

    connection = desk.connect()
    rules = RuntimeRules(attempts=2, retry=Backoff(0.0, 0.0, 0.0))
    with ConsumerRuntime(connection, topic, events(on_event), rules=rules) as runtime:
        publisher = mtosi.Publisher(connection, {"Inventory": topic}, sender_uri="jms/Ems")
        publisher.publish(ResourceObjectCreation(), category="Inventory")
        connection.session().send(topic, JmsMessage(body=b"<torn"))
        publisher.publish(ResourceObjectCreation(), category="Inventory")
        until(lambda: (runtime.health.handled, runtime.health.parked) == (2, 1))
    assert seen == [("ResourceObjectCreation", "notify")] * 2
    [parked] = desk.session.browse(connection.dead_letter)
    assert parked.body == b"<torn"
    assert parked.properties["MTOSIX_parkedReason"] == "MalformedXmlError"
    connection.close()
