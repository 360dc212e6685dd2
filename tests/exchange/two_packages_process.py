"""Exchanges between the SDK's stubs and a second generated package that knows the same elements.

Usage: two_packages_process.py FOLDER, where the package `acme` is. Prints a line for each exchange.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from mtosi_jms.patterns import Timeouts
from mtosi_jms.testing import exchange


class World:
    """The classes of one package."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.service = importlib.import_module(f"{root}.mri.managed_element_retrieval").ManagedElementRetrieval
        self.mer = importlib.import_module(f"{root}.mri.mer")
        self.me = importlib.import_module(f"{root}.nrf.me").ManagedElementType
        self.not_found = importlib.import_module(f"{root}.fmw.msg").EntityNotFoundFault
        self.name = importlib.import_module(f"{root}.fmw.nam").name

    def supplier(self) -> Any:
        world = self

        class Ems(self.service.Supplier):  # type: ignore[name-defined,misc]
            def get_managed_element(self, request: Any, context: Any) -> Any:
                assert type(request) is world.mer.GetManagedElementRequest, type(request)
                assert type(request.me_ref).__module__ == f"{world.root}.fmw.nam"
                if str(request.me_ref) == "ME=none":
                    raise world.not_found("there is none")
                return world.mer.GetManagedElementResponse(me=world.me(name=request.me_ref, location="here"))

            def get_all_managed_elements(self, request: Any, context: Any) -> Any:
                return [world.me(location=str(number)) for number in range(3)]

        return Ems()


def converse(asking: World, answering: World) -> str:
    with exchange([answering.supplier()], timeouts=Timeouts(first_reply=5)) as pair:
        stub = pair.stub(asking.service)
        element = stub.get_managed_element(me_ref=asking.name("ME=1")).me
        assert type(element) is asking.me, type(element)
        batches = list(stub.get_all_managed_elements.batches(batch_size=2))
        assert [type(one) for one in batches] == [asking.mer.GetAllManagedElementsResponse] * 2
        with pytest.raises(asking.not_found) as caught:
            stub.get_managed_element(me_ref=asking.name("ME=none"))
        fault = caught.value
        assert type(fault.detail).__module__ == f"{asking.root}.fmw.msg"
        return f"{asking.root} asks {answering.root}: {element.location}, {fault.reason}, {fault.header.msg_type}"


def main(folder: str) -> None:
    sys.path.insert(0, folder)
    ours, theirs = World("mtosi_jms.stubs"), World("acme")
    for asking in (ours, theirs):
        for answering in (ours, theirs):
            print(converse(asking, answering))


if __name__ == "__main__":
    main(sys.argv[1])
