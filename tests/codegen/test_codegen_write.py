"""Writing and comparing: missing, extra, changed; nothing of others is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtosi_codegen import Difference, compare, write
from mtosi_codegen.render import MARK
from mtosi_jms.errors import SchemaError

FILES = {"__init__.py": f"{MARK}\n", "a/__init__.py": f"{MARK}\n", "a/b.py": f"{MARK}\nb = 'ä'\n"}


def test_what_is_written_compares_equal(tmp_path: Path) -> None:
    write(tmp_path / "p", FILES)
    assert compare(tmp_path / "p", FILES) == []
    assert (tmp_path / "p/a/b.py").read_bytes().endswith("b = 'ä'\n".encode())


def test_missing_extra_changed(tmp_path: Path) -> None:
    package = tmp_path / "p"
    write(package, FILES)
    (package / "a/b.py").write_text("changed")
    (package / "a/__init__.py").unlink()
    (package / "c.py").write_text("extra")
    (package / "__pycache__").mkdir()
    (package / "__pycache__/x.pyc").write_bytes(b"")
    assert compare(package, FILES) == [
        Difference("a/__init__.py", "missing"),
        Difference("a/b.py", "changed"),
        Difference("c.py", "extra"),
    ]


def test_a_package_that_is_not_there_is_missing_whole(tmp_path: Path) -> None:
    assert {difference.kind for difference in compare(tmp_path / "p", FILES)} == {"missing"}


def test_stale_generated_files_go_others_stay(tmp_path: Path) -> None:
    package = tmp_path / "p"
    write(package, {**FILES, "old.py": f"{MARK} Sources: x\n"})
    (package / "mine.py").write_text("# written by hand\n")
    write(package, FILES)
    assert not (package / "old.py").exists()
    assert (package / "mine.py").exists()
    assert compare(package, FILES) == [Difference("mine.py", "extra")]


def test_unchanged_files_keep_their_time(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    os.utime(tmp_path / "a/b.py", (1, 1))
    write(tmp_path, FILES)
    assert (tmp_path / "a/b.py").stat().st_mtime == 1
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the package should be")
    with pytest.raises(SchemaError, match="cannot be written"):
        write(tmp_path / "p", FILES)
