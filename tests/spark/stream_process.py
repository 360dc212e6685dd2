"""The driver of a stream, for tests that kill it: its arguments as JSON in a file.

Prints a line for each batch. With `finish` it takes what is left, and then prints what the table has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import mtosi_jms as mtosi


def main() -> None:
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    finish = sys.argv[2:] == ["finish"]
    spark = SparkSession.builder.master(asked["master"]).config(map=asked["settings"]).getOrCreate()
    spark.dataSource.register(mtosi.spark.InventorySource)
    spark.dataSource.register(mtosi.spark.MessageStreamSource)

    # Before PySpark 4.2 AvailableNow is a single batch: without a limit it takes all that is there.
    options = {name: value for name, value in asked["options"].items() if not (finish and name.startswith("max"))}

    def start(**trigger: Any) -> Any:
        rows = spark.readStream.format(asked["source"]).options(**options).load(asked["path"])
        writer = rows.writeStream.format(asked["format"]).option("checkpointLocation", asked["checkpoint"])
        return writer.trigger(**trigger).start(asked["table"])

    if not finish:
        start(processingTime="500 milliseconds").awaitTermination()
        return
    while True:
        query = start(availableNow=True)
        query.awaitTermination()
        if not sum(progress["numInputRows"] for progress in query.recentProgress):
            break
    table = spark.read.format(asked["format"]).load(asked["table"])
    found = [list(row) for row in table.select("correlation_id", "batch_number").collect()]
    told: dict[str, Any] = {"rows": found, "batches": query.recentProgress[-1]["batchId"]}
    if "body" in table.columns:
        ledger = mtosi.spark.ledger(table).select("correlation_id", "batches", "duplicates", "complete")
        told["ledger"] = [list(row) for row in ledger.collect()]
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
