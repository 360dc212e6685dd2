"""zeep over JMS: several replies to one request, in order, complete or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import zeep
from zeep.plugins import HistoryPlugin

from mtosi_jms.errors import ConfigError, IncompleteBatchError, MtosiFault, ReplyTimeoutError
from mtosi_jms.integrations.zeep import Client, SoapFault, client
from mtosi_jms.patterns import Timeouts
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import Pair, gap, reorder

Calling = Callable[..., Client]
Paired = Callable[..., Pair]


def names(answers: Any) -> list[list[str]]:
    return [[me.name.rdn[1].value for me in answer.body.meList.me] for answer in answers]


ALL = [["NE-1", "NE-2"], ["NE-3", "NE-4"], ["NE-5"]]


def test_responses_come_in_order_and_complete(calling: Calling) -> None:
    with calling().batches("getAllManagedElements", batch_size=2) as batches:
        assert names(batches) == ALL
        assert len(batches.correlation_id) == 36


def test_arguments_are_those_of_the_operation(calling: Calling, keeping: Any) -> None:
    scope = {"rdn": [{"type": "MD", "value": "EMS1"}]}
    answers = calling().batches(
        "getAllManagedElements",
        batch_size=0,
        mdOrMlsnRef=scope,
        _soapheaders={"mtopHeader": {"originatorURI": "urn:a"}},
        _options=CallOptions(priority=9),
    )
    assert names(answers) == [["NE-1", "NE-2", "NE-3", "NE-4", "NE-5"]]
    (context,) = keeping.contexts
    assert (context.header.originator_uri, context.message.priority) == ("urn:a", 9)


def test_what_comes_out_of_order_is_put_in_order(retrieval: Any, paired: Paired, keeping: Any) -> None:
    pair = paired(keeping, tamper=lambda messages: reorder(messages, 4))
    ems = client(retrieval, pair.requestor, pair.destination)
    assert names(ems.batches("getAllManagedElements", batch_size=2)) == ALL


def test_what_is_missing_is_an_error_that_holds_the_rest(retrieval: Any, paired: Paired, keeping: Any) -> None:
    pair = paired(keeping, tamper=lambda messages: gap(messages, 1), timeouts=Timeouts(gap=0.2, grace=0.05))
    ems = client(retrieval, pair.requestor, pair.destination)
    batches = ems.batches("getAllManagedElements", batch_size=2)
    assert names([next(batches)]) == [["NE-1", "NE-2"]]
    with pytest.raises(IncompleteBatchError) as caught:
        next(batches)
    assert caught.value.missing == (2,)
    (held,) = caught.value.batches.values()
    assert names([held]) == [["NE-5"]]
    assert list(batches.held) == [3]


class Failing(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: Any) -> Any:
        yield from ()
        raise MtosiFault("it broke", kind="unableToComply")


def test_a_fault_ends_them(retrieval: Any, paired: Paired) -> None:
    pair = paired(Failing())
    ems = client(retrieval, pair.requestor, pair.destination)
    with pytest.raises(zeep.exceptions.Fault, match="it broke") as caught:
        list(ems.batches("getAllManagedElements", batch_size=2))
    assert isinstance(caught.value, SoapFault)


def test_plugins_see_each_reply(calling: Calling) -> None:
    history = HistoryPlugin(maxlen=5)
    seen = []
    for _ in calling(plugins=[history]).batches("getAllManagedElements", batch_size=2):
        seen.append(history.last_received["envelope"].findtext(".//{*}batchSequenceNumber"))
    assert seen == ["1", "2", "3"]


def test_what_is_given_up_leaves_nothing_pending(calling: Calling) -> None:
    ems = calling()
    with ems.batches("getAllManagedElements", batch_size=1) as batches:
        next(batches)
    assert ems.requestor is not None
    assert ems.requestor.pending == 0


def test_a_call_has_its_time(retrieval: Any, paired: Paired) -> None:
    pair = paired()
    ems = client(retrieval, pair.requestor, pair.destination)
    with pytest.raises(ReplyTimeoutError):
        next(ems.batches("getAllManagedElements", batch_size=2, _options=CallOptions(timeout=0.02)))


def test_wrong_use_is_told(calling: Calling, wsdls: Any, paired: Paired) -> None:
    ems = calling()
    with pytest.raises(ConfigError, match="did you mean getAllManagedElements"):
        ems.batches("getAllManagedElement", batch_size=2)
    with pytest.raises(ConfigError, match="batch_size: give a whole number"):
        ems.batches("getAllManagedElements", batch_size="2")  # type: ignore[arg-type]
    pair = paired()
    consumer = client(wsdls / "NotificationConsumer.wsdl", pair.requestor, pair.destination)
    with pytest.raises(ConfigError, match="notify is one-way: it has no batches"):
        consumer.batches("notify", batch_size=2, topic="x", message={"commonEventInformation": [{}]})
