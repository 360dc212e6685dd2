"""What goes over the wire is valid, whatever is asked and answered; libxml2 judges by the project's own schemas."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms import stubs
from mtosi_jms.binding import BindingProfile
from mtosi_jms.errors import MtosiFault
from mtosi_jms.jms import JmsMessage
from mtosi_jms.service import CallOptions, RequestContext, ServiceInfo, SupplierBase
from mtosi_jms.soap import fault_class, fault_kinds
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.eh import EquipmentHolderType
from mtosi_jms.stubs.nrf.eq import EquipmentType
from mtosi_jms.stubs.nrf.eq_inv import EquipmentOrEquipmentHolderType
from mtosi_jms.testing import exchange
from mtosi_jms.validation import SchemaSet, Validator

from .conftest import NE7, SmallEms


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator(SchemaSet.load())


def problems(validator: Validator, message: JmsMessage) -> list[str]:
    return [issue.message for issue in validator.validate_bytes(message.body).issues]


class Equipment(EquipmentInventoryRetrieval.Supplier):
    def get_all_equipment(self, request: Any, context: RequestContext) -> Iterator[EquipmentOrEquipmentHolderType]:
        for number in range(5):
            if number % 2:
                yield EquipmentOrEquipmentHolderType(eq=EquipmentType(user_label=f"card {number}"))
            else:
                yield EquipmentOrEquipmentHolderType(eh=EquipmentHolderType(user_label=f"slot {number}"))


def test_choices_are_cut_into_batches(validator: Validator) -> None:
    with exchange() as pair:
        batches = pair.stub(EquipmentInventoryRetrieval).get_all_equipment.batches(batch_size=2)
        asked = pair.scripted.take()
        replies = asked.replies([Equipment()])
        assert [problems(validator, one) for one in (asked.message, *replies)] == [[]] * 4
        pair.scripted.send(replies)
        found = [[(one.eq or one.eh).user_label for one in batch.eoh] for batch in batches]
        assert found == [["slot 0", "card 1"], ["slot 2", "card 3"], ["slot 4"]]


def operations() -> list[Any]:
    """Those with a response whose empty request is valid."""
    found = []
    for path in stubs.__services__:
        module, cls = path.split(":")
        service = getattr(importlib.import_module(f"mtosi_jms.stubs.{module}"), cls)
        info = service.__service__
        for operation in info.operations:
            fields = dataclasses.fields(info.load(operation.request))
            required = [one for one in fields if one.default is one.default_factory is dataclasses.MISSING]
            if operation.response and not required:
                found.append(pytest.param(service, operation, id=f"{cls}.{operation.name}"))
    assert len(found) >= 14
    return found


@pytest.mark.parametrize(("service", "operation"), operations())
def test_every_operation_of_every_service(service: Any, operation: Any, validator: Validator) -> None:
    """W, O8: asked with and without a batch size, and answered with each kind of fault that it declares."""
    info: ServiceInfo = service.__service__
    exception = info.load(operation.fault)
    kinds = [fault_class(kind, exception) for kind in fault_kinds(exception)]
    assert kinds

    class Failing(service.Supplier):  # type: ignore[misc,name-defined]
        def __init__(self, kind: type[MtosiFault]) -> None:
            self.kind = kind

        def handler(self, operation: Any) -> Any:
            def fail(request: Any, context: Any) -> Any:
                raise self.kind("because")

            return fail

    with exchange() as pair:
        bound = getattr(pair.stub(service), operation.python_name)
        for size in (0, 2):
            batches = bound.batches(batch_size=size, options=CallOptions(priority=5))
            asked = pair.scripted.take()
            assert problems(validator, asked.message) == []
            replies = [reply for kind in kinds for reply in asked.replies([Failing(kind)])]
            assert [problems(validator, reply) for reply in replies] == [[]] * len(kinds)
            pair.scripted.send(replies[:1])
            with pytest.raises(kinds[0]):
                next(batches)


def test_bare_faults_and_headers_twice_are_valid(validator: Validator) -> None:
    with exchange() as pair:
        pair.stub(ManagedElementRetrieval).get_managed_element.batches(me_ref=NE7, batch_size=1)
        asked = pair.scripted.take()
        unknown: SupplierBase = Equipment()
        (bare,) = asked.replies([unknown])
        torn = dataclasses.replace(asked, message=dataclasses.replace(asked.message, body=asked.message.body[:99]))
        (unread,) = torn.replies([SmallEms()])
        (twice,) = asked.replies([SmallEms()], profile=BindingProfile(fault_in_header=True))
    assert [problems(validator, one) for one in (bare, unread, twice)] == [[]] * 3
