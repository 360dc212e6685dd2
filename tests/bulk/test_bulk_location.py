"""Which files a fileLocationURI of a peer leads to, and which it never does (C18)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtosi_jms.bulk import bulk_files, new_file
from mtosi_jms.errors import FileLocationError

pytestmark = pytest.mark.obligation("C18", "SEC17")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An allowed folder with `inventory.xml` in it; a secret lies beside the folder."""
    made = tmp_path / "transfer"
    made.mkdir()
    (made / "inventory.xml").write_text("<x/>")
    (tmp_path / "secret.xml").write_text("<secret/>")
    (tmp_path / "transfer-not").mkdir()
    (tmp_path / "transfer-not" / "inventory.xml").write_text("<secret/>")
    return made


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "FILE://{}", "file://localhost{}", "  file://{}\n"])
def test_a_file_below_an_allowed_folder_is_found(folder: Path, form: str) -> None:
    uri = form.format(folder / "inventory.xml")
    assert bulk_files(uri, folder) == [folder / "inventory.xml"]
    assert bulk_files(uri, [folder.parent / "transfer-not", str(folder)]) == [folder / "inventory.xml"]


def test_a_name_is_unquoted(folder: Path) -> None:
    (folder / "a b%.xml").write_text("<x/>")
    assert bulk_files(f"file://{folder}/a%20b%25.xml", folder) == [folder / "a b%.xml"]


def test_a_base_name_stands_for_the_files_that_begin_with_it(folder: Path) -> None:
    for name in ("inventory-1.xml.gz", "inventory_2.xml", "inventories.xml", "other-inventory.xml"):
        (folder / name).write_text("<x/>")
    found = bulk_files(f"file://{folder}/inventory", folder)
    assert [path.name for path in found] == ["inventory-1.xml.gz", "inventory.xml", "inventory_2.xml"]


@pytest.mark.parametrize(
    ("uri", "scheme"),
    [
        ("ftp://user:pa55@host:21/path/name", "ftp"),
        ("ftp://user;pa55@host:port/path/filename", "ftp"),
        ("https://user:pa55@host/x", "https"),
        ("sftp:pa55", "sftp"),
        ("/transfer/pa55.xml", ""),
        ("pa55.xml", ""),
        ("", ""),
    ],
)
def test_another_scheme_is_refused_by_name_and_no_password_is_shown(folder: Path, uri: str, scheme: str) -> None:
    with pytest.raises(FileLocationError) as caught:
        bulk_files(uri, folder)
    assert caught.value.scheme == scheme
    assert scheme in str(caught.value)
    assert "pa55" not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "file://{0}/../secret.xml",
        "file://{0}/%2e%2e/secret.xml",
        "file://{0}/sub/%2E%2E%2F../../secret.xml",
        "file://{0}/./inventory.xml",
        "file://{0}-not/inventory.xml",
        "file://{0}/../transfer-not/inventory.xml",
        "file:///etc/passwd",
        "file://{0}",
        "file://{0}/",
        "file:inventory.xml",
        "file://host{0}/inventory.xml",
        "file://user:pa55@host{0}/inventory.xml",
        "file://{0}/inventory.xml?a",
        "file://{0}/inventory.xml#a",
        "file://{0}/inventory.xml%00",
        "file://{0}/inventory.xml%0A",
        "file://{0}/%ff.xml",
        "file://[{0}/inventory.xml",
        "file://{0}/no-such",
        "file://{0}/no/such.xml",
    ],
)
def test_what_leads_elsewhere_is_refused(folder: Path, uri: str) -> None:
    (folder / "sub").mkdir()
    with pytest.raises(FileLocationError) as caught:
        bulk_files(uri.format(folder), folder)
    assert "pa55" not in str(caught.value)


def test_links_out_of_the_folder_are_refused_and_links_inside_followed(folder: Path) -> None:
    (folder / "out.xml").symlink_to(folder.parent / "secret.xml")
    (folder / "up").symlink_to(folder.parent)
    (folder / "in.xml").symlink_to(folder / "inventory.xml")
    for name in ("out.xml", "up/secret.xml", "out"):
        with pytest.raises(FileLocationError, match="outside"):
            bulk_files(f"file://{folder}/{name}", folder)
    assert bulk_files(f"file://{folder}/in.xml", folder) == [folder / "inventory.xml"]
    assert bulk_files(f"file://{folder}/up/transfer/inventory.xml", folder) == [folder / "inventory.xml"]


def test_what_is_no_regular_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    for name in ("pipe", "sub"):
        with pytest.raises(FileLocationError, match="regular"):
            bulk_files(f"file://{folder}/{name}", folder)


@pytest.mark.parametrize("name", ["n" * 300, "n" * 5000, "a/" * 3000 + "n"])
def test_what_no_file_can_be_called_is_refused(folder: Path, name: str) -> None:
    for find in (bulk_files, new_file):
        with pytest.raises(FileLocationError, match="cannot be read"):
            find(f"file://{folder}/{name}", folder)


def test_without_folders_nothing_is_allowed(folder: Path) -> None:
    with pytest.raises(FileLocationError, match="outside"):
        bulk_files(f"file://{folder}/inventory.xml", [])


def test_a_new_file_lies_in_a_folder_that_exists_and_is_allowed(folder: Path) -> None:
    (folder / "sub").mkdir()
    assert new_file(f"file://{folder}/new.zip", folder) == folder / "new.zip"
    assert new_file(f"file://{folder}/sub/new.zip", folder) == folder / "sub" / "new.zip"
    (folder / "up").symlink_to(folder.parent)
    (folder / "out.xml").symlink_to(folder.parent / "secret.xml")
    for name in ("no/new.zip", "up/new.zip", "sub", "../new.zip"):
        with pytest.raises(FileLocationError):
            new_file(f"file://{folder}/{name}", folder)
    # A link of the file's own name is replaced, not written through.
    assert new_file(f"file://{folder}/out.xml", folder) == folder / "out.xml"
