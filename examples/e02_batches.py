"""One request, many responses (MultipleBatchResponse): five elements in batches of two, then a large network.

Run it: python examples/e02_batches.py
"""

from __future__ import annotations

import mtosi_jms as mtosi
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse

NAMES = {"jms/InventoryOS": "queue:INVENTORY.OS", "jms/EmsOS": "queue:EMS.OS"}


def size(batch: GetAllManagedElementsResponse) -> int:
    """How many elements a batch has."""
    return len(batch.me_list.me) if batch.me_list else 0


def ask(elements: int, batch_size: int) -> list[int]:
    """The sizes of the batches, in order."""
    ems = ManagedElementEms(Network(elements=elements))
    with (
        mtosi.connect("memory:e02", names=NAMES) as connection,
        mtosi.Supplier(connection, "jms/EmsOS", services=[ems]),
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS") as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        # Batches come in order, each once, whatever order the provider delivers in; a missing one is an error.
        # To get the objects instead of the batches: retrieval.get_all_managed_elements.objects().
        return [size(batch) for batch in retrieval.get_all_managed_elements.batches(batch_size=batch_size)]


def main() -> None:
    """Ask for a small and a large network."""
    print("5 elements, batches of 2:", ask(5, 2))
    sizes = ask(1000, 300)
    print("1000 elements, batches of 300:", sizes, "in all", sum(sizes))


if __name__ == "__main__":
    main()
