"""Services by the elements that they use."""

from __future__ import annotations

import re

import pytest

import mtosi_jms.stubs
from mtosi_jms.errors import ConfigError
from mtosi_jms.namespaces import clark
from mtosi_jms.service.registry import find_operations, services_of

MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
NOTIFY = clark("http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1", "notify")
STUBS = mtosi_jms.stubs.__name__


def test_the_shipped_package_lists_its_services() -> None:
    names = [service.name for service in services_of(STUBS)]
    assert names == [*mtosi_jms.stubs.__services__.values()]
    assert "ManagedElementRetrieval" in names


@pytest.mark.parametrize("role", ["request", "response", "fault"])
@pytest.mark.parametrize("package", [STUBS])
def test_every_element_of_every_operation_is_found(package: str, role: str) -> None:
    for service in services_of(package):
        for operation in service.operations:
            if not getattr(operation, role):
                continue
            tag = service.load(getattr(operation, role)).__xml__.tag
            assert tag is not None
            usages = find_operations(tag)
            assert (service, operation, role) in [(use.service, use.operation, use.role) for use in usages]


def test_an_element_of_one_operation_has_one_use() -> None:
    (use,) = find_operations(clark(MER, "getManagedElementException"))
    assert (use.service.name, use.operation.name, use.role) == (
        "ManagedElementRetrieval",
        "getManagedElement",
        "fault",
    )


@pytest.mark.obligation("P24")
def test_an_element_that_services_share_has_several() -> None:
    uses = find_operations(NOTIFY)
    assert {use.service.name for use in uses} == {"NotificationBroker", "NotificationConsumer"}
    assert {use.operation.mep for use in uses} == {"one-way"}


@pytest.mark.parametrize("tag", ["{urn:nobody}thing", "thing", clark(MER, "getManagedElementReply")])
def test_what_no_service_uses_has_none(tag: str) -> None:
    assert find_operations(tag) == ()


@pytest.mark.parametrize("package", ["no_such_stubs", "..stubs", ".", ""])
def test_a_package_that_is_not_there_is_named(package: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"stubs package '{package}' cannot be imported")):
        services_of(package)
