"""One request, one response (SimpleResponse), and a fault as a typed error.

Run it: python examples/e01_simple_call.py
"""

from __future__ import annotations

import mtosi_jms as mtosi
from mtosi_jms.stubs.fmw.msg import EntityNotFoundFault
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType

# The deployment: logical names, as in MTOSI headers, and JMS destinations.
NAMES = {"jms/InventoryOS": "queue:INVENTORY.OS", "jms/EmsOS": "queue:EMS.OS"}


class Ems(ManagedElementRetrieval.Supplier):
    """A supplier with one element. Operations without a method answer notImplemented."""

    def get_managed_element(
        self, request: GetManagedElementRequest, context: mtosi.RequestContext
    ) -> GetManagedElementResponse:
        if request.me_ref is None or str(request.me_ref) != "MD=EMS1/ME=NE-7":
            raise EntityNotFoundFault(f"there is no {request.me_ref}")
        element = ManagedElementType(name=request.me_ref, location="Bergen, room 12", software_version="9.2.0")
        return GetManagedElementResponse(me=element)


def main() -> None:
    """Request one element that the supplier knows, and one that it does not know."""
    with (
        mtosi.connect("memory:", names=NAMES) as connection,
        mtosi.Supplier(connection, "jms/EmsOS", services=[Ems()]),
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS") as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")

        element = retrieval.get_managed_element(me_ref="MD=EMS1/ME=NE-7").me
        if element is not None:
            print(element.name, element.location, element.software_version)

        try:
            retrieval.get_managed_element(me_ref="MD=EMS1/ME=NE-8")
        except EntityNotFoundFault as fault:
            print("fault:", fault.kind, "-", fault.reason)


if __name__ == "__main__":
    main()
