"""What is written: the same bytes for the same sources, nothing of others touched; names from XML; no credentials."""

from __future__ import annotations

import hashlib
import importlib
import keyword
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_codegen import Difference, compare, generate, write
from mtosi_codegen.render import MARK
from mtosi_codegen.text import camel, constant, escaped, identifier, snake
from mtosi_jms.errors import SchemaError

HERE = Path(__file__).parent
PROGRAM = (
    "import hashlib, sys\n"
    "from mtosi_codegen import generate\n"
    "result = generate(sys.argv[1:])\n"
    "total = hashlib.sha256()\n"
    "for path, text in result.files.items(): total.update(f'{path}\\0{text}\\0'.encode())\n"
    "print(total.hexdigest(), [str(finding) for finding in result.findings])\n"
)


def _run(sources: list[Path], cwd: Path, seed: str, root: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, sources)],
        capture_output=True, text=True, cwd=cwd, check=True,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(root), str(root / "codegen")])},
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def expected(root: Path) -> str:
    """The output for the plain order in the plain place."""
    return _run(sorted((HERE / "sources").iterdir()), HERE, "0", root)


@pytest.mark.parametrize("seed", ["1", "2", "4711"])
def test_hash_seed_and_source_order(seed: str, expected: str, root: Path) -> None:
    files = sorted((HERE / "sources").iterdir(), key=lambda path: hashlib.sha256((seed + path.name).encode()).digest())
    assert _run(files, HERE, seed, root) == expected


def test_folder_and_working_directory(expected: str, tmp_path: Path, root: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy"
    copy.mkdir(parents=True)
    for path in sorted((HERE / "sources").iterdir(), reverse=True):
        shutil.copy(path, copy / path.name)
    assert _run([copy], tmp_path, "0", root) == expected
    assert _run([Path("copy")], tmp_path / "elsewhere", "3", root) == expected


FILES = {"__init__.py": f"{MARK}\n", "a/__init__.py": f"{MARK}\n", "a/b.py": f"{MARK}\nb = 'ä'\n"}


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


@pytest.mark.parametrize(
    ("xml", "python"),
    [
        ("meList", "me_list"),
        ("subscriptionID", "subscription_id"),
        ("aTNAName", "a_tna_name"),
        ("replyToURI", "reply_to_uri"),
        ("failureReplytoURI", "failure_replyto_uri"),
        ("m3100.AlarmStatus", "m3100_alarm_status"),
        ("eq-inv", "eq_inv"),
        ("partialSNCs", "partial_sncs"),
        ("getAllMLSNPPLinksWithTNAs", "get_all_mlsnpp_links_with_tnas"),
        ("MultiLayerSNPPLinkRetrieval", "multi_layer_snpp_link_retrieval"),
        ("from", "from_"),
        ("None", "none"),
        ("3rdParty", "n3rd_party"),
        ("_hidden", "hidden"),
        ("x__y", "x_y"),
        ("Größe", "größe"),
        ("", "x"),
        ("...", "x"),
    ],
)
def test_snake_case(xml: str, python: str) -> None:
    assert snake(xml) == python


@pytest.mark.parametrize(
    ("xml", "python"),
    [
        (("ManagedElementType",), "ManagedElementType"),
        (("me",), "Me"),
        (("InventoryDataType", "mdList"), "InventoryDataTypeMdList"),
        (("M3100.ArcQIStatusType",), "M3100ArcQIStatusType"),
        (("eq-inv",), "EqInv"),
        (("none",), "None_"),
        (("2",), "n2"),
    ],
)
def test_camel_case(xml: tuple[str, ...], python: str) -> None:
    assert camel(*xml) == python


@pytest.mark.parametrize(
    ("value", "member"),
    [
        ("CS_AVAILABLE", "CS_AVAILABLE"),
        ("SimpleResponse", "SimpleResponse"),
        ("http://www.w3.org/TR/xpath", "http_www_w3_org_TR_xpath"),
        ("ANSI-92", "ANSI_92"),
        ("EFFORT_SAME ", "EFFORT_SAME"),
        ("10", "n10"),
        ("", "EMPTY"),
        ("+", "x2b_"),
        ("class", "class_"),
    ],
)
def test_enumeration_members(value: str, member: str) -> None:
    assert constant(value) == member


@given(st.text())
def test_every_name_is_an_identifier_and_no_keyword(text: str) -> None:
    for name in (snake(text), camel(text), constant(text), escaped(text), identifier(text)):
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not name.startswith("_")


@given(st.text(alphabet="abAB_.-", min_size=1), st.text(alphabet="abAB_.-", min_size=1))
def test_escaped_names_tell_xml_names_apart(one: str, other: str) -> None:
    stripped = one.lstrip("_"), other.lstrip("_")
    if one != other and stripped == (one, other):
        assert escaped(one) != escaped(other)


SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="urn:s" elementFormDefault="qualified">
  <xs:element name="login"><xs:complexType><xs:sequence>
    <xs:element name="user" type="xs:string"/>
    <xs:element name="Password" type="xs:string"/>
    <xs:element name="security" type="xs:string" minOccurs="0"/>
    <xs:element name="securityType" type="xs:string" minOccurs="0"/>
  </xs:sequence><xs:attribute name="password" type="xs:string"/></xs:complexType></xs:element>
</xs:schema>"""


def test_credentials_are_not_in_the_repr(tmp_path: Path) -> None:
    (tmp_path / "s.xsd").write_text(SCHEMA)
    (text,) = (text for text in generate([tmp_path]).files.values() if "class Login" in text)
    lines = [line.strip() for line in text.splitlines()]
    assert "user: str" in lines
    assert "password: str = field(repr=False)" in lines
    assert "security: str | None = field(default=None, repr=False)" in lines
    assert "security_type: str | None = None" in lines
    assert sum("field(" in line and "repr=False" in line for line in lines) == 3


def test_a_result_and_its_model_have_a_short_repr() -> None:
    """Their objects refer to each other, so that a failing assertion on one of them would fill the memory."""
    result = generate([*HERE.glob("sources/*")])
    known = [result, result.model, result.model.schema, *result.services, *result.model.modules]
    assert [one for one in map(repr, known) if len(one) > 200] == []
    assert f"{len(result.files)} files" in repr(result)


# What must hold for any generated package; the text of the shipped ones is compared by `make check`.

IMPORTS = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of `sources/`."""
    result = generate([HERE / "sources"])
    assert [(finding.rule, finding.file) for finding in result.findings] == [("name-blanks", "messages.xsd")]
    folder = tmp_path_factory.mktemp("packages") / "shop"
    write(folder, result.files)
    return folder


def _ran(folder: Path, root: Path, *arguments: str) -> str:
    """What a process prints that may import the packages of a folder; a warning ends it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True, text=True, cwd=folder, env={"PYTHONPATH": f"{folder}:{root}"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_file_says_what_it_is_and_what_it_is_made_of(shop: Path) -> None:
    (banner,) = {path.read_text(encoding="utf-8").partition("\n")[0] for path in shop.rglob("*.py")}
    assert banner.startswith(f"{MARK} Sources: sha256:")
    assert len(banner.rpartition(":")[2]) == 64


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_modules_import_in_any_order_with_warnings_as_errors(seed: int, shop: Path, root: Path) -> None:
    modules = [".".join(path.relative_to(shop.parent).with_suffix("").parts) for path in shop.rglob("*.py")]
    names = sorted(name.removesuffix(".__init__") for name in modules)
    random.Random(seed).shuffle(names)
    _ran(shop.parent, root, "-c", IMPORTS, *names)


def test_one_service_does_not_import_the_types(shop: Path, root: Path) -> None:
    program = "import sys, shop.com_example.shop; print(*sorted(one for one in sys.modules if one.startswith('shop')))"
    assert _ran(shop.parent, root, "-c", program).split() == ["shop", "shop.com_example", "shop.com_example.shop"]


def test_the_text_is_as_the_formatter_leaves_it(shop: Path, root: Path) -> None:
    pytest.importorskip("ruff")
    _ran(shop.parent, root, "-m", "ruff", "format", "--isolated", "--no-cache", "--line-length=120", "--check", "shop")


def test_the_services_are_listed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(shop.parent)
    package = importlib.import_module("shop")
    assert package.__services__ == {"com_example.shop:Shop": "Shop"}
    info = importlib.import_module("shop.com_example.shop").Shop.__service__
    assert [(operation.name, operation.mep, operation.batch_path) for operation in info.operations] == [
        ("listOrders", "request-response", ("order_list", "order")),
        ("notify", "one-way", ()),
    ]
    assert info.load(info.operations[0].request).__name__ == "ListOrdersRequest"
