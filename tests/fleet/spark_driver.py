"""Spark driver for the tests: learn the files of a folder, batch after batch, and end; may kill itself on the way.

    python spark_driver.py ROWS EVENTS CHECKPOINT FEATURES [before|after NUMBER]

ROWS are Parquet files, or JSON lines that simulate Kafka messages. With ``before`` or ``after``, the driver kills its
process group before or after the events of a batch are moved into place: before, the events are lost; after, they are
written but the batch is not committed. A driver that reaches the end prints every key and its state.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def session() -> object:
    from pyspark.sql import SparkSession

    import ccmem.fleet.spark

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("fleet").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.session.timeZone", "UTC")
    return ccmem.fleet.spark.configure(builder).getOrCreate()


def main() -> None:
    from pyspark.sql import functions

    import ccmem.fleet.spark
    from ccmem import AdaptiveCCM

    rows, events, checkpoint = sys.argv[1:4]
    features = [f"x{i}" for i in range(int(sys.argv[4]))]
    if len(sys.argv) > 5:
        when, place, rename, seen = sys.argv[5], int(sys.argv[6]), Path.rename, [0]

        def dying(self: Path, target: Path) -> Path:
            seen[0] += 1
            if seen[0] == place and when == "before":
                os.killpg(0, signal.SIGKILL)
            result = rename(self, target)
            if seen[0] == place:
                os.killpg(0, signal.SIGKILL)
            return result

        Path.rename = dying  # type: ignore[method-assign, assignment]
    spark = session()
    schema = ", ".join(["machine bigint", "time bigint", *(f"{name} float" for name in features)])
    reader = spark.readStream.option("maxFilesPerTrigger", 1)  # type: ignore[attr-defined]
    if any(Path(rows).glob("*.json")):  # bytes in a column named value, as Kafka has them
        messages = reader.format("text").load(rows).select(functions.col("value").cast("binary"))
        stream = ccmem.fleet.spark.rows_of_messages(messages, schema)
    else:
        stream = reader.schema(schema).parquet(rows)
    recipe = ccmem.fleet.spark.Recipe(AdaptiveCCM(n_slots=5))
    found = ccmem.fleet.spark.learn(stream, key="machine", order="time", features=features, recipe=recipe)
    ccmem.fleet.spark.write_events(found, events, checkpoint, availableNow=True).awaitTermination()
    for key, state in ccmem.fleet.spark.states(spark, checkpoint):
        print(key, state.hex())


if __name__ == "__main__":
    main()
