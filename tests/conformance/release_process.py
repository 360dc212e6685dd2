"""Each operation of a generated package once over JMS: asked with its request element, answered with its exception.

Usage: release_process.py FOLDER PACKAGE. Prints a JSON object: service to operation to what came of it. A process of
its own, because a package that knows the same elements comes before the stubs.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from mtosi_jms.errors import MtosiFault
from mtosi_jms.namespaces import split_clark
from mtosi_jms.service import Call, OperationInfo, Service, ServiceInfo
from mtosi_jms.soap._faults import fault_class, fault_kinds
from mtosi_jms.testing import REQUESTOR, exchange
from mtosi_jms.xmlbind import RawXml

SUPPLIER = "jms/SupplierOS"


def request_of(info: ServiceInfo, operation: OperationInfo) -> RawXml:
    """The request's element, empty: what must be in it differs from operation to operation."""
    space, local = split_clark(str(info.load(operation.request).__xml__.tag))
    return RawXml(f'<r:{local} xmlns:r="{space}"></r:{local}>'.encode())


def one_way(pair: Any, info: ServiceInfo, operation: OperationInfo) -> dict[str, Any]:
    """Sends a one-way message to the address of the WSDL."""
    pair.requestor.call(Call(info, operation, info.address, request_of(info, operation)))
    asked = pair.scripted.take()
    return {"type": str(asked.envelope.header.msg_type), "reply_to": asked.message.reply_to, "fault": None}


def answered(pair: Any, stub: type[Service], operation: OperationInfo) -> dict[str, Any]:
    """Asks at the address of the WSDL and answers with the first kind of fault that the operation declares."""
    info = stub.__service__
    exception = info.load(operation.fault)
    wanted = fault_class(min(fault_kinds(exception)), exception)
    seen: list[Any] = []

    class Failing(stub.Supplier):  # type: ignore[misc,name-defined]
        def handler(self, named: OperationInfo) -> Any:
            def fail(request: Any, context: Any) -> Any:
                seen.append((named.name, type(request)))
                raise wanted("because")

            return fail

    batches = pair.requestor.call_batches(Call(info, operation, info.address, request_of(info, operation)), 5)
    asked = pair.scripted.take()
    pair.scripted.send(asked.replies([Failing()]))
    try:
        next(batches)
    except MtosiFault as fault:
        told = type(fault) if fault.detail is not None else None
    else:
        raise RuntimeError(f"{operation.name}: a response came where a fault was sent")
    if seen != [(operation.name, info.load(operation.request))]:
        raise RuntimeError(f"{operation.name}: carried out were {seen}")
    return {
        "type": str(asked.envelope.header.msg_type),
        "reply_to": str(asked.message.reply_to),
        "fault": "bare" if told is None else "typed" if told is wanted else told.__name__,
    }


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    package = importlib.import_module(sys.argv[2])
    found: dict[str, dict[str, Any]] = {}
    for path in package.__services__:
        module, _, name = path.partition(":")
        stub: type[Service] = getattr(importlib.import_module(f"{package.__name__}.{module}"), name)
        info = stub.__service__
        names = {REQUESTOR: "queue:REQUESTOR", SUPPLIER: "queue:SUPPLIER", info.address: "queue:SUPPLIER"}
        with exchange(names=names) as pair:
            stub(pair.requestor, info.address)  # as a user makes it
            found[info.name] = {
                operation.name: (
                    answered(pair, stub, operation) if operation.response else one_way(pair, info, operation)
                )
                for operation in info.operations
            }
    print(json.dumps(found))


main()
