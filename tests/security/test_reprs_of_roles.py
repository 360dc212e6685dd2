"""Requestors, suppliers, stubs and what they give: no repr shows a login or what a message holds (C55)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.service import CallOptions
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing import InterceptedConnection, ScriptedSupplier

pytestmark = pytest.mark.obligation("C55")
MARK = "S3cr3t-Mark"
URI = f"http://noc:{MARK}@os.example/replies"


class Ems(ManagedElementRetrieval.Supplier):
    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        yield ManagedElementType(user_label=MARK)


def test_no_role_shows_a_secret_in_its_repr() -> None:
    names = {"jms/OS": "queue:OS", URI: "queue:OS", "jms/EMS": "queue:EMS"}
    names["jms/Scripted"] = "queue:SCRIPTED"
    with (
        mtosi.connect("memory:reprs", names=names) as connection,
        mtosi.Requestor(connection, sender_uri=URI) as requestor,
        mtosi.Supplier(connection, "jms/EMS", [Ems()], sender_uri=URI) as supplier,
        ScriptedSupplier(connection, "jms/Scripted") as scripted,
    ):
        stub = ManagedElementRetrieval(requestor, "jms/EMS")
        options = CallOptions(header={"security": MARK})
        batches = stub.get_all_managed_elements.batches(batch_size=1, options=options)
        objects = stub.get_all_managed_elements.objects(batch_size=1, options=options)
        shown: list[object] = [
            connection,
            InterceptedConnection(connection),
            options,
            requestor,
            requestor.aio,
            supplier,
            supplier.aio,
            scripted,
            stub,
            stub.aio,
            stub.get_all_managed_elements,
            stub.aio.get_all_managed_elements,
            batches,
            objects,
            mtosi.Dispatcher([Ems()], sender_uri=URI),
            ManagedElementRetrieval(requestor, f"jms:queue:EMS?password={MARK}"),
            ManagedElementRetrieval(requestor, f"jms:queue:EMS?password={MARK}").aio,
        ]
        assert [repr(one) for one in shown if MARK in f"{one!r} {one}"] == []
        assert list(batches) != []
        assert list(objects) != []
