"""Names of columns differ also without regard to case, because Spark does not tell them apart otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from mtosi_jms import xmlbind as x
from mtosi_jms.errors import ConfigError
from mtosi_jms.spark import SourceOptions
from mtosi_jms.tables._structs import Struct
from mtosi_jms.tables.columns import arrow_schema, full_schema, own_columns, shown_names
from mtosi_jms.xmlbind import decode

SPACE = "urn:test:cases"
_M = x.Module("tables_of_cases", SPACE, prefix="cases", root="nowhere")


@dataclass(slots=True, kw_only=True)
class Cases(x.XmlObject):
    """Fields whose names differ only by case."""

    x: Any = None
    X: Any = None
    X_2: Any = None
    Complete: Any = None

    __xml__ = _M.complex_type("Cases", tuple(x.E(name, name, x.STRING) for name in ("x", "X", "X_2", "Complete")))


NAMES = ["x", "X_2", "X_2_2", "Complete"]


@pytest.mark.obligation("TAB8")
def test_each_field_has_a_column_of_its_own() -> None:
    inner = "".join(f"<{name}>{number}</{name}>" for number, name in enumerate(("x", "X", "X_2", "Complete")))
    element = etree.fromstring(f"<c xmlns='{SPACE}'>{inner}</c>")
    taken, put = Struct(Cases.__xml__), Struct(Cases.__xml__)
    taken.take(element, 0)
    put.put(decode(element, Cases), 0, element, [])
    expected = dict(zip(NAMES, "0123", strict=True))
    assert taken.finish(1).to_pylist() == put.finish(1).to_pylist() == [expected]
    narrow = Struct(Cases.__xml__)
    narrow.narrow(["X_2"])
    narrow.take(element, 0)
    assert narrow.finish(1).to_pylist() == [{"X_2": "1"}]


@pytest.mark.obligation("TAB8")
def test_our_columns_give_way_to_a_field_of_any_case() -> None:
    names = arrow_schema(Cases).names
    assert names == NAMES
    ours = shown_names(names)
    assert (ours["complete"], ours["name_text"]) == ("complete_", "name_text")
    assert own_columns([*names, "complete_"])["complete"] == "complete_"


@pytest.mark.obligation("TAB8")
def test_columns_that_differ_only_by_case_are_refused_by_name() -> None:
    options = SourceOptions.parse({"path": "x", "columnNameOfCorruptRecord": "User_Label"})
    with pytest.raises(ConfigError, match="'user_label' and 'User_Label'"):
        full_schema(options)
    assert isinstance(full_schema(SourceOptions.parse({"path": "x"})), pa.Schema)
