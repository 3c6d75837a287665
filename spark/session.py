"""The one builder of Spark sessions: any master, bounded memory, UTC, no user interface, quiet."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from warnings import catch_warnings

from spark.java import java_check
from spark.problems import JobProblem, SparkFailure, chain, java_death

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = re.compile(r"([1-9][0-9]{0,6})([mg])")
MEMORY_MIN_MIB = 512
"""Source: Spark starts with 450 MiB of heap or more, and Java counts a part of it as not usable."""
LOGGING = Path(__file__).with_name("log4j2.properties")
ROWS_PER_PARTITION = 1_000_000
"""Input rows per partition after a shuffle: a compromise between tasks of seconds and memory of a few MiB each."""
PARTITIONS_MAX = 2_000
SPLIT_BYTES = 64 * 2**20
"""Most compressed input per task; less with little input, so that each core has a task. Records of neighbouring hours
in few tasks are summed before they are shuffled: the larger, the less is shuffled.
"""
LISTED_HERE_MAX = 100_000
"""Local files that the driver lists by itself: a task for each takes ten times as long."""
DEATH_S = 20.0
"""Longest time, seconds, from a call that fails because Java ends to that end: Java removes its temporary files first,
and one without memory on a busy machine took more than five seconds.
"""
_DYING = re.compile(
    r"Py4J(Network)?Error|SparkContext was shut down|stopped SparkContext|Connection(Refused|Reset)Error"
    r"|Py4JJavaError(?!:)"  # whose text Java could not be asked for any more
)
OPEN_COST_BYTES = 256 * 1024
"""Cost of opening a file in bytes: gateways write many small segments to a near disk."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Spark engine and resources of jobs.

    Attributes:
        master: local[*], local[N], or any Spark master.
        memory: of the driver, which is all there is with a local master, and of each executor; as in 1g or 800m.
        work: folder where Spark spills; None: the system's temporary folder. Needs about as much room as the input.
        small: whether the input is less than SMALL_BYTES.
    """

    master: str = "local[*]"
    memory: str = "1g"
    work: str | None = None
    small: bool = False


SMALL_BYTES = 64 * 2**20
"""Bytes of input below which starting Java and compiling dominate, which a simpler compiler does sooner: with three
million records in 38 MB the access report took 56 CPU-seconds instead of 76, the load report 46 instead of 62.
"""
SMALL_RECORDS = 5_000_000
"""Records below which one partition after a shuffle is enough, and plans are not reconsidered while they run."""


METASPACE = "192m"
"""Size of loaded classes at which Java first looks for unused ones: with the default it would look four times, in vain,
before it has loaded all that a report needs (measured).
"""


def fit(spark: SparkSession, records: int) -> None:
    """Set the shuffle partitions of `spark` for this many records."""
    small = records < SMALL_RECORDS
    cores = spark.sparkContext.defaultParallelism
    partitions = 1 if small else max(2 * min(cores, 32), min(-(-records // ROWS_PER_PARTITION), PARTITIONS_MAX))
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.adaptive.enabled", str(not small).lower())


@contextmanager
def session(engine: Engine, name: str) -> Iterator[SparkSession]:
    """Yield a session that is stopped in the end.

    Raises:
        JobProblem: Java or PySpark is missing or too old, the memory is invalid, or Java died in the middle.
        SparkFailure: another error of Spark.
        OSError: raised in the body.
    """
    made = start(engine, name)
    java = made.sparkContext._gateway.proc  # type: ignore[union-attr] # what PySpark calls its process of Java
    try:
        yield made
    except JobProblem:
        raise
    except Exception as error:
        texts = " ".join(chain(error))
        status = _ended(java, texts)
        if status is not None:
            raise JobProblem(java_death(status)) from error
        if isinstance(error, OSError):
            raise
        raise SparkFailure(texts) from error
    finally:
        # A Java that has died, or dies meanwhile, is stopped all the same, without a message.
        with suppress(Exception), catch_warnings(action="ignore"):
            made.stop()


def _ended(java: subprocess.Popen[bytes], texts: str) -> int | None:
    """Return the exit status of Java, if it has ended or is about to, as the texts of an error show; None if it lives."""
    if _DYING.search(texts):
        with suppress(subprocess.TimeoutExpired):
            return java.wait(DEATH_S)
    return java.poll()


def start(engine: Engine, name: str) -> SparkSession:
    """Return a session; see `session`."""
    amount = MEMORY.fullmatch(engine.memory)
    if amount is None:
        raise JobProblem(f"--memory: {engine.memory!r} is not an amount. Write 800m or 2g.")
    if int(amount[1]) * (1024 if amount[2] == "g" else 1) < MEMORY_MIN_MIB:
        raise JobProblem(f"--memory: {engine.memory} is too little for Spark to start. Give {MEMORY_MIN_MIB}m or more.")
    java_check()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise JobProblem("Reports need PySpark. Install requirements/reports.txt.") from None
    os.environ.pop("SPARK_HOME", None)  # of another installation, whose version need not be that of our pyspark
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it logs each connection that it closes
    builder = SparkSession.builder.master(engine.master).appName(name)
    for key, value in _options(engine).items():
        builder = builder.config(key, value)
    with _quiet():
        made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")  # failures are exceptions, and become a sentence
    return made


def _options(engine: Engine) -> dict[str, str]:
    work = Path(engine.work or tempfile.gettempdir()).absolute()
    options = {
        "spark.driver.memory": engine.memory,
        "spark.executor.memory": engine.memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()} "
        f'"-Djava.io.tmpdir={work}" -Duser.timezone=UTC -XX:+UseParallelGC'
        f" -XX:MetaspaceSize={METASPACE}" + (" -XX:TieredStopAtLevel=1" if engine.small else ""),
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": (work / "herald-spark-warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.files.maxPartitionBytes": str(SPLIT_BYTES),
        "spark.sql.files.openCostInBytes": str(OPEN_COST_BYTES),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(
            LISTED_HERE_MAX if _is_here(engine.master) else 32
        ),
        "spark.sql.files.ignoreCorruptFiles": "false",  # it would leave records out silently
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.sources.commitProtocolClass": (
            "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
        ),
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.hadoop.parquet.page.write-checksum.enabled": "true",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if _is_here(engine.master):
        options |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return options


def _is_here(master: str) -> bool:
    """Return whether everything is on this machine, so that nothing needs to listen to the network."""
    return master.startswith("local") or urlsplit(master).hostname in ("127.0.0.1", "localhost")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Java's output at its start; this process's standard error is as before afterwards."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
