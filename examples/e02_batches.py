"""One request, many answers (MultipleBatchResponse): five elements in batches of two, then a large network.

Run it: python examples/e02_batches.py
"""

from __future__ import annotations

import mtosi_jms as mtosi
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

NAMES = {"jms/InventoryOS": "queue:INVENTORY.OS", "jms/EmsOS": "queue:EMS.OS"}


def ask(elements: int, batch_size: int) -> list[int]:
    """The sizes of the batches, in the order in which they were handed out."""
    ems = ManagedElementEms(Network(elements=elements))
    with (
        mtosi.connect("memory:e02", names=NAMES) as connection,
        mtosi.Supplier(connection, "jms/EmsOS", services=[ems]),
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS") as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        # Whatever order the provider delivers in, batches come in sequence, each once; a missing one is an error.
        return [len(batch.me_list.me) for batch in retrieval.get_all_managed_elements.batches(batch_size=batch_size)]


def main() -> None:
    """Ask for a small and a large network."""
    print("5 elements, batches of 2:", ask(5, 2))
    sizes = ask(1000, 300)
    print("1000 elements, batches of 300:", sizes, "in all", sum(sizes))


if __name__ == "__main__":
    main()
