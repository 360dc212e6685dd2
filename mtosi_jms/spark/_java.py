"""Spark's own Java: the only module that takes it from PySpark, which has no public name for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Java:
    """The Java process of a session.

    Attributes:
        packages: its root package, such as in `packages.java.util.ArrayList()`.
    """

    packages: Any
    context: Any
    session: Any

    @property
    def class_loader(self) -> Any:
        """The class loader that knows the jars of the session."""
        return self.packages.java.lang.Thread.currentThread().getContextClassLoader()


def java_of(spark: SparkSession) -> Java:
    """Return the Java process of a session.

    Two things need it: tasks of Java that list and read files, because Python workers have no Hadoop; and the name of
    the jar that a class comes from, which nothing else in Spark tells.

    Raises:
        ConfigError: a session of Spark Connect, whose client has no Java.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise ConfigError(
            "Spark Connect cannot plan a landing: read it with spark.read.format('binaryFile') and parse_messages()"
        )
    context = spark.sparkContext
    return Java(context._jvm, context._jsc, spark._jsparkSession)
