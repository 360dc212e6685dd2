"""A requestor that asks for batches for ever and lands every reply: what the kill test kills.

Usage: receiving_process.py FOLDER LOG. Prints a line for each batch that it was handed.
"""

from __future__ import annotations

import itertools
import sys

from mtosi_jms import DurableLanding, Requestor, Supplier, connect
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

NAMES = {"jms/InventoryOS": "queue:INVENTORY.OS", "jms/EmsOS": "queue:EMS.OS"}


def main(folder: str, log: str) -> None:
    with (
        connect("memory:", names=NAMES) as connection,
        Supplier(connection, "jms/EmsOS", [ManagedElementEms(Network(elements=100))]),
        DurableLanding(folder, ack_log=log) as landing,
        Requestor(connection, sender_uri="jms/InventoryOS", landing=landing) as requestor,
    ):
        retrieval = ManagedElementRetrieval(requestor, "jms/EmsOS")
        for _ in itertools.count():
            for number, _batch in enumerate(retrieval.get_all_managed_elements.batches(batch_size=5), 1):
                print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
