"""What went wrong in one of Spark's Python processes stands in one line, above Python's traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from mtosi_jms.spark import parse_messages, register_functions

pytestmark = pytest.mark.spark

Put = Callable[..., Path]
Failing = Callable[[Any, Any, Path], Any]


def while_planning(spark: Any, envelopes: Any, landing: Path) -> Any:
    (landing / "1.xml").write_text("<order/>")
    return spark.read.format("mtosi").option("mode", "FAILFAST").option("columns", "name_text").load(str(landing))


def while_reading(spark: Any, envelopes: Any, landing: Path) -> Any:
    damaged = "".join(map(envelopes.me, "d" * 999)) + "<me:me></me:mo>"
    (landing / "1.xml").write_text(envelopes.batch("d", 1, True, damaged))
    return spark.read.format("mtosi").option("mode", "FAILFAST").option("columns", "name_text").load(str(landing))


def while_parsing(spark: Any, envelopes: Any, landing: Path) -> Any:
    return parse_messages(
        spark.createDataFrame([("<order/>",)], "body string"), "ME", mode="FAILFAST", columns=("name_text",)
    )


def while_analyzing(spark: Any, envelopes: Any, landing: Path) -> Any:
    register_functions(spark)
    return spark.sql("select o.* from values ('x') as m(body), lateral mtosi_objects(body, 'MEE') o")


@pytest.mark.parametrize(
    ("fail", "line"),
    [
        (while_planning, "mtosi_jms.errors.MtosiError: {landing}/1.xml:1: not SOAP: the root element is order"),
        (while_reading, "mtosi_jms.errors.MtosiError: {landing}/1.xml:"),
        (while_parsing, "mtosi_jms.errors.MtosiError: 1: not SOAP: the root element is order"),
        (while_analyzing, "mtosi_jms.errors.ConfigError: objectType 'MEE': no such class in the stubs"),
    ],
)
def test_the_line_comes_before_the_traceback(
    fail: Failing, line: str, spark: Any, envelopes: Any, landing: Path
) -> None:
    with pytest.raises(PySparkException) as failure:
        fail(spark, envelopes, landing).collect()
    text = str(failure.value)
    expected = line.format(landing=landing)
    assert expected in text
    assert text.index(expected) < text.index("Traceback (most recent call last)")
    assert "_workers" in text.partition("Traceback (most recent call last)")[2], "the traceback is there too"
