"""Replies land durably; Spark reads the landing as a typed table, with a ledger of complete sequences.

Run it: python examples/e03_spark_landing.py
It needs the extra `spark` and Java 17 or later.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import mtosi_jms as mtosi
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.spark import local_session
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval

NAMES = {"jms/InventoryOS": "queue:INVENTORY.OS", "jms/EmsOS": "queue:EMS.OS"}


def land(folder: Path) -> None:
    """Ask for a network, and write every reply to disk before it is acknowledged."""
    with (
        mtosi.connect("memory:e03", names=NAMES) as connection,
        mtosi.Supplier(connection, "jms/EmsOS", services=[ManagedElementEms(Network(elements=400))]),
        mtosi.DurableLanding(folder) as landing,
        mtosi.Requestor(connection, sender_uri="jms/InventoryOS", landing=landing) as requestor,
    ):
        for _ in ManagedElementRetrieval(requestor, "jms/EmsOS").get_all_managed_elements.objects(batch_size=100):
            pass


def main() -> None:
    """Land a network's inventory and read it with Spark."""
    with tempfile.TemporaryDirectory() as folder:
        land(Path(folder))
        with local_session("e03") as spark:
            spark.dataSource.register(mtosi.spark.InventorySource)
            elements = spark.read.format("mtosi").option("objectType", "ME").load(folder)
            elements.groupBy("manufacturer").count().orderBy("manufacturer").show(truncate=False)

            messages = spark.read.format("mtosi").option("objectType", "MESSAGE").load(folder)
            mtosi.spark.ledger(messages).show(truncate=False)


if __name__ == "__main__":
    main()
