"""`mtosi-jms query`: SQL over the tables of a landing, and of an ingest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")

from mtosi_jms.cli import main
from mtosi_jms.errors import MtosiError
from mtosi_jms.tables import query, write

Put = Callable[[str, "str | bytes"], Path]


@pytest.fixture
def tables(troubled: Path, tmp_path: Path) -> Path:
    write(troubled, tmp_path / "inventory", object_type="ALL")
    return tmp_path / "inventory"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM me WHERE complete AND correlation_id = 'whole'", [(3,)]),
        ("SELECT a.name_text FROM ME a JOIN ME b USING (name_text) WHERE a.manufacturer = 'Acme'", [("MD=M/ME=w1",)]),
        ('SELECT (SELECT count(*) FROM "EQ") + 1', [(1,)]),
        ("SELECT missing FROM ledger WHERE correlation_id = 'gap'", [([2],)]),
        ("SELECT count(*) > 5 FROM REJECTS WHERE reason != ''", [(True,)]),
        ("SELECT kind FROM message WHERE source_file LIKE '%/request.xml'", [("request",)]),
        ("SELECT 'me'", [("me",)]),
    ],
)
def test_a_landing_has_the_tables_that_the_query_names(troubled: Path, sql: str, rows: list[Any]) -> None:
    with query(troubled, sql) as answer:
        assert list(answer.rows) == rows
        assert any("incomplete sequences" in note for note in answer.notes)


def test_the_tables_of_an_ingest_are_those_of_its_landing(troubled: Path, tables: Path) -> None:
    sql = "SELECT name_text, complete, batch_number FROM ME ORDER BY ALL"
    with query(troubled, sql) as landed, query(tables, sql) as ingested:
        assert landed.columns == ingested.columns
        assert list(landed.rows) == list(ingested.rows)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT colour FROM ME", "line 1, column 8"),
        ("SELECT name_text,\n  colour FROM ME", "line 2, column 3"),
        (f"SELECT {'name_text, ' * 50} colour FROM ME", "line 1, column 559"),
        ("SELEC", "line 1, column 1"),
        ("SELECT * FROM ZZ", "line 1, column 15.*ZZ"),
        ("", "no query"),
        ("SELECT * FROM alarm", "alarm does not exist! The tables are ME"),
        ("SELECT '\udcff'", "UTF-8"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("SELECT * FROM '/etc/passwd'", "does not exist"),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "disabled"),
        ("ATTACH '/tmp/x.db'", "disabled"),
        ("SET memory_limit = '1TB'", "lock"),
        ("SELECT * FROM answer", "does not exist"),
    ],
)
def test_errors_are_of_ours_and_say_where(tables: Path, sql: str, says: str) -> None:
    answer = [1]  # no name of Python is a table
    with pytest.raises(MtosiError, match=rf"(?s)SQL: .*{says}"), query(tables, sql) as found:
        list(found.rows)
    assert answer == [1]


def test_a_query_that_needs_too_much_is_refused(tables: Path) -> None:
    sql = "SELECT list(a.range ORDER BY random()) FROM range(10000000) a"
    with pytest.raises(MtosiError, match="SQL: "), query(tables, sql, memory="20MB") as answer:
        list(answer.rows)


@pytest.mark.parametrize(
    ("form", "read"),
    [
        (["--json"], json.loads),
        (["--csv"], lambda text: [dict(zip(text.split()[0].split(","), text.split()[1].split(","), strict=True))]),
    ],
)
def test_the_command_prints_rows(
    tables: Path, form: list[str], read: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", str(tables), "SELECT name_text AS name FROM ME WHERE manufacturer = 'Acme'", *form]) == 0
    assert read(capsys.readouterr().out) == [{"name": "MD=M/ME=w1"}]


def test_the_command_fails_with_one_line(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(tables), "SELECT x FROM ME"]) == 1
    assert capsys.readouterr().err.startswith("error: SQL: line 1, column 8: ")
    assert main(["query", str(tmp_path / "nowhere"), "SELECT 1"]) == 1
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["query", str(tables), "SELECT name_text, NULL AS none FROM ME WHERE complete ORDER BY 1 DESC"]) == 0
    assert re.search(r"MD=M/ME=w1 +NULL\n", capsys.readouterr().out)
