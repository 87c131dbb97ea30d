"""A fleet on Spark Structured Streaming: one stateful processor around the step.

The state of a key is its bytes, in RocksDB, checkpointed by Spark; events come out as flat rows, each once if they are
written with :func:`write_events` (or any sink that knows batches by their number). Order within a micro-batch is
restored by the order column; rows that come in a later batch than rows after them are dropped.

    spark = ccmem.fleet.spark.configure(SparkSession.builder).getOrCreate()
    recipe = Recipe(AdaptiveCCM(), "standard")
    rows = spark.readStream.schema("machine string, time bigint, a float, b float").parquet("incoming/")
    events = learn(rows, key="machine", order="time", features=["a", "b"], recipe=recipe)
    query = write_events(events, "events/", checkpoint="checkpoint/")

See docs/fleet.md for Kafka, for reading memories back and for what it costs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ccmem.fleet.step import KeyedEvent, Member, Recipe, Rows, advance
from ccmem.io.persistence import from_bytes, to_bytes

if TYPE_CHECKING:
    import pandas as pd

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE = "state binary"


def configure(builder: Any) -> Any:
    """Configure a session builder for stateful processing with RocksDB."""
    return builder.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)


def rows_of_messages(messages: Any, schema: str) -> Any:
    """Return flat rows from a stream of messages whose ``value`` is a JSON object, as Kafka delivers them.

    ``schema`` names the columns ("machine string, time bigint, flow float"). A message that is not such an object
    becomes a row of nulls, which :func:`learn` refuses; filter such rows out first.
    """
    from pyspark.sql import functions

    text = functions.col("value").cast("string")
    return messages.select(functions.from_json(text, schema).alias("row")).select("row.*")


def learn(
    rows: Any,
    *,
    key: str,
    order: str,
    features: Sequence[str],
    recipe: Recipe | None = None,
    label: str | None = None,
    late: str = "drop",
) -> Any:
    """Return the events of a stream of flat rows as a stream with the columns of a ``KeyedEvent``.

    ``rows`` is a streaming DataFrame with one column each for key (string or bigint), order (bigint, double or
    timestamp) and every feature (float or double; all become the type of the first). ``late="stop"`` ends the query
    with an error over rows that come in a later batch than rows after them, or twice, instead of dropping them.
    """
    from pyspark.sql import functions, types

    kinds = {field.name: field.dataType for field in rows.schema.fields}
    for name in (key, order, *features, *([label] if label is not None else [])):
        if name not in kinds:
            raise ValueError(f"the stream has no column {name!r}; its columns are {', '.join(map(repr, kinds))}")
    if not isinstance(kinds[key], (types.StringType, types.LongType)):
        raise ValueError(f"the key {key!r} is of type {kinds[key].simpleString()}; cast it to string or bigint")
    if not isinstance(kinds[order], (types.LongType, types.DoubleType, types.TimestampType)):
        raise ValueError(f"the order {order!r} is of type {kinds[order].simpleString()}; cast it to bigint or double")
    if late not in ("drop", "stop"):
        raise ValueError(f"late={late!r} is unknown; use 'drop' or 'stop'")
    number: Any = functions.col(order)
    if isinstance(kinds[order], types.TimestampType):
        number = functions.unix_micros(number)
    double = isinstance(kinds[features[0]], types.DoubleType)
    chosen = [functions.col(key).alias("key"), number.alias("order")]
    chosen += [
        functions.col(name).cast("double" if double else "float").alias(f"x{i}") for i, name in enumerate(features)
    ]
    chosen += [functions.col(label).alias("label")] if label is not None else []
    flat = rows.select(*chosen)
    kind = {field.name: field.dataType.simpleString() for field in flat.schema.fields}
    schema = f"key {kind['key']}, order {kind['order']}, kind string, "
    schema += ", ".join(f"{name} {'double' if name == 'evidence' else 'bigint'}" for name in KeyedEvent._fields[3:])
    return flat.groupBy("key").transformWithStateInPandas(
        statefulProcessor=_processor(recipe or Recipe(), len(features), double, late),
        outputStructType=schema,
        outputMode="Append",
        timeMode="None",
    )


def _processor(recipe: Recipe, n_features: int, double: bool, late: str) -> Any:
    """Build the stateful processor; defined in a function because its base class comes with Spark."""
    from pyspark.sql.streaming import StatefulProcessor

    model, scale = to_bytes(recipe.model), recipe.scale

    class Processor(StatefulProcessor):  # type: ignore[misc, unused-ignore]
        def init(self, handle: Any) -> None:
            self.recipe = Recipe(from_bytes(model), scale)
            self.memory = handle.getValueState("memory", STATE)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            import pandas as pd

            name = key[0]
            if name is None:
                raise ValueError("a row has no key; filter such rows out first")
            frame = pd.concat(list(rows))
            if frame["order"].isna().any():
                raise ValueError(f"key {name!r}: a row has no order; filter such rows out first")
            columns = [frame[f"x{i}"].to_numpy() for i in range(n_features)]
            X = np.ascontiguousarray(np.stack(columns, axis=1), np.float64 if double else np.float32)
            labels = frame["label"].to_numpy() if "label" in frame else None
            member = Member(self.recipe, name, bytes(self.memory.get()[0]) if self.memory.exists() else None)
            events, dropped = advance(member, Rows(frame["order"].to_numpy(), X, labels), late)
            if dropped < len(frame):
                self.memory.update((member.to_bytes(),))
            if events:
                yield pd.DataFrame(events, columns=list(KeyedEvent._fields))

        def close(self) -> None:
            pass

    return Processor()


def write_events(
    events: Any, folder: str | os.PathLike[str], checkpoint: str | os.PathLike[str], **trigger: Any
) -> Any:
    """Start a query that writes ``events`` to Parquet files in ``folder``, all events of a batch together and once.

    A batch that is repeated after a crash replaces its own files. ``trigger``: arguments of Spark's ``trigger``.
    """
    target = Path(folder)

    def write(batch: Any, number: int) -> None:
        temporary, final = target / f".{number:09d}.tmp", target / f"batch-{number:09d}"
        shutil.rmtree(temporary, ignore_errors=True)
        batch.write.parquet(temporary.as_uri())
        if final.exists():
            shutil.rmtree(final)
        temporary.rename(final)

    target = target.absolute()
    target.mkdir(parents=True, exist_ok=True)
    writer = events.writeStream.option("checkpointLocation", Path(checkpoint).absolute().as_uri())
    return writer.foreachBatch(write).trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def states(spark: Any, checkpoint: str | os.PathLike[str]) -> Iterator[tuple[Any, bytes]]:
    """Return every key and its state as of the last committed batch, read from a query's checkpoint."""
    reader = spark.read.format("statestore").option("stateVarName", "memory")
    for row in reader.load(Path(checkpoint).absolute().as_uri()).select("key.key", "value.state").collect():
        yield row[0], bytes(row[1])
