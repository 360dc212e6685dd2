"""The pages of a set: complete, linked, escaped, the same on every run; and the command that writes them."""

from __future__ import annotations

import json
import os
import posixpath
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import Result, generate
from mtosi_codegen.cli import main
from mtosi_codegen.docs import MARK, pages

from .conftest import ASK, MESSAGES, wsdl, xsd

HERE = Path(__file__).parent
SOURCES = HERE / "sources"
EVIL = "<script>alert('x')</script>"
Pages = Mapping[str, str]


class Page(HTMLParser):
    """Links, anchors, tags and text of a page; every element must be closed."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in self.VOID:
            self._open.append(tag)
        for name, value in attrs:
            if name in {"href", "src"}:
                self.links.append(value or "")
            elif name == "id":
                self.anchors.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def parsed(files: Pages) -> dict[str, Page]:
    return {path: Page(text) for path, text in files.items() if path.endswith(".html")}


def index_of(files: Pages) -> list[list[str]]:
    """What the search knows: name, kind and address of each."""
    found: list[list[str]] = json.loads(files["search-index.js"].removeprefix("const INDEX = ").rstrip(";\n"))
    return found


def broken(files: Pages) -> list[str]:
    """Links that lead nowhere."""
    found = parsed(files)
    links = [("", href) for _, _, href in index_of(files)]
    links += [(posixpath.dirname(path), link) for path, page in found.items() for link in page.links]
    wrong = []
    for folder, link in links:
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(folder, path)) if path else ""
        known = target in files if path else True
        if not known or (path and anchor and anchor not in found[target].anchors):
            wrong.append(f"{folder}: {link}")
    for path, page in found.items():
        wrong += [f"{path}: {link}" for link in page.links if link[:1] == "#" and link[1:] not in page.anchors]
    return wrong


@pytest.fixture(scope="module")
def profile(root: Path) -> Result:
    """The shipped profile."""
    return generate([root / "wsdl", root / "xsd"])


@pytest.fixture(scope="module")
def files(profile: Result) -> Pages:
    return pages(profile)


def test_all_links_of_the_profile_resolve(files: Pages) -> None:
    assert broken(files) == []
    assert sum(len(page.links) for page in parsed(files).values()) > 1000


def test_anchors_are_unique(files: Pages) -> None:
    for path, page in parsed(files).items():
        assert len(page.anchors) == len(set(page.anchors)), path


def test_every_operation_and_class_is_there(profile: Result, files: Pages) -> None:
    found = parsed(files)
    known = {(kind.partition(" of ")[0], name, href) for name, kind, href in index_of(files)}
    for service in profile.services:
        assert any(kind == "service" and name == service.name for kind, name, _ in known)
        for operation in service.operations:
            (href,) = [
                href
                for name, kind, href in index_of(files)
                if (name, kind) == (operation.name, f"operation of {service.name}")
            ]
            path, _, anchor = href.partition("#")
            assert anchor in found[path].anchors
            assert operation.name in found[path].text
            assert operation.mep in found[path].text
    for module in profile.model.modules:
        page = found[f"types/{module.path}.html"]
        names = [entry.name for entry in [*module.classes, *module.enums, *module.faults]]
        assert set(names) <= set(page.anchors)
        for cls in module.classes:
            assert {f"{cls.name}.{field.name}" for field in cls.fields} <= set(page.anchors)
        for enum in module.enums:
            assert all(value in page.text for value, _ in enum.values)


def test_nothing_comes_from_elsewhere(files: Pages) -> None:
    for page in parsed(files).values():
        assert [link for link in page.links if "//" in link or link.startswith("/")] == []
    assert "url(" not in files["style.css"]
    assert "@import" not in files["style.css"]
    assert "fetch" not in files["search.js"]


def test_every_page_says_what_made_it(files: Pages) -> None:
    assert all(text.startswith(f"{MARK}\n<!DOCTYPE html>\n") for path, text in files.items() if path.endswith(".html"))


def test_types_say_how_often_what_and_where_used(build: Callable[..., Result]) -> None:
    result = build(
        '<x:complexType name="Base"><x:sequence><x:element name="one" type="x:int"/>'
        '<x:element name="many" type="t:Colour" minOccurs="0" maxOccurs="unbounded"/>'
        '<x:element name="few" minOccurs="2" maxOccurs="3"><x:simpleType><x:restriction base="x:string">'
        '<x:pattern value="[a-z]+"/></x:restriction></x:simpleType></x:element></x:sequence>'
        '<x:attribute name="id" type="x:ID" use="required"/></x:complexType>'
        '<x:complexType name="More"><x:complexContent><x:extension base="t:Base"><x:choice>'
        '<x:element name="left" type="t:Base"/><x:element name="right" type="x:string" nillable="true"/>'
        "</x:choice></x:extension></x:complexContent></x:complexType>"
        '<x:simpleType name="Colour"><x:restriction base="x:string"><x:enumeration value="red"/>'
        '</x:restriction></x:simpleType><x:element name="top" type="t:More"/>'
    )
    files = pages(result)
    assert broken(files) == []
    text = " ".join(Page(files["types/urn_t.types.html"]).text.split())
    for part in (
        "one 1 int", "many 0..* Colour", "few 2..3 string pattern: [a-z]+", "id 1 ID", "right 0..1 or nil string",
        "Extends Base", "Derived More", "Derived top", "Of type More", "From Base : one , many , few , id",
        "Used 1 time More.left", "Content (left | right)",
        "red red", "Colour enumeration",
    ):  # fmt: skip
        assert part in text, part


def test_data_cannot_become_markup(build: Callable[..., Result]) -> None:
    doc = f"<x:annotation><x:documentation><![CDATA[{EVIL}]]></x:documentation></x:annotation>"
    value = EVIL.replace("<", "&lt;")
    result = build(
        f'{doc}<x:complexType name="T">{doc}<x:sequence><x:element name="e" type="t:E">{doc}</x:element>'
        f'<x:any namespace="{value.replace(" ", "")}"/></x:sequence></x:complexType>'
        f'<x:simpleType name="E"><x:restriction base="x:string"><x:enumeration value="{value}">{doc}'
        '</x:enumeration></x:restriction></x:simpleType><x:element name="lost" type="t:Gone"/>'
    )
    files = pages(result)
    for path, page in parsed(files).items():
        assert page.tags["script"] == 2, path
    assert parsed(files)["types/urn_t.types.html"].text.count(EVIL) >= 4
    assert EVIL not in "".join(text for path, text in files.items() if path.endswith(".html"))


def test_names_that_differ_in_case_alone_get_different_files(build: Callable[..., Result]) -> None:
    spaces = ["urn:one:Abc", "urn:one:abc", "urn:one:ABC"]
    result = build({f"{n}.xsd": xsd('<x:element name="e" type="x:int"/>', space) for n, space in enumerate(spaces)})
    files = pages(result)
    assert broken(files) == []
    types = [path for path in files if path.startswith("types/")]
    assert len({path.casefold() for path in types}) == len(result.model.modules)


def test_schemas_alone_and_bindings_and_operations(build: Callable[..., Result]) -> None:
    alone = pages(build({"messages.xsd": MESSAGES}))
    assert broken(alone) == []
    assert not any(path.startswith("services/") for path in alone)
    http = {"a.wsdl": wsdl("".join(ASK.values()).replace("soap/jms", "soap/http")), "messages.xsd": MESSAGES}
    every = pages(build(http, bindings="all"))
    assert broken(every) == []
    assert sum(path.startswith("services/") for path in every) == 1


def test_a_service_that_failed_has_a_page(build: Callable[..., Result]) -> None:
    text = wsdl("".join(ASK.values()).replace("m:askRequest", "m:nothingAtAll"))
    result = build({"a.wsdl": text, "messages.xsd": MESSAGES})
    assert result.failed
    files = pages(result)
    assert broken(files) == []
    (page,) = [page for path, page in parsed(files).items() if path.startswith("services/")]
    assert "ask was not generated" in page.text
    assert "element-unresolved" in page.text
    assert "element-unresolved" in Page(files["findings.html"]).text


def test_the_command_makes_examples(root: Path, tmp_path: Path) -> None:
    assert main(["docs", str(root / "wsdl" / "ManagedElementRetrieval.wsdl"), "--out", str(tmp_path)]) == 0
    page = Page((tmp_path / "services" / "mri.managed_element_retrieval.html").read_text(encoding="utf-8"))
    assert page.tags["pre"] == 4 * 3
    assert ":getManagedElementRequest xmlns:" in page.text


def test_schemas_that_give_no_examples_are_told(tree: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clash = MESSAGES.replace('name="what" type="x:string"', 'name="what" type="x:string" default="a" fixed="b"')
    folder = tree({"a.wsdl": wsdl("".join(ASK.values())), "messages.xsd": clash})
    assert main(["docs", str(folder), "--out", str(tmp_path / "pages")]) == 0
    assert "error: pages without examples: " in capsys.readouterr().err
    assert (tmp_path / "pages" / "index.html").is_file()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pages"
    assert main(["docs", str(SOURCES), "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{out / 'index.html'}: ")
    assert "messages.xsd:21: name-blanks" in captured.err
    assert {path.relative_to(out).as_posix() for path in out.rglob("*.*")} == set(pages(generate([SOURCES])))
    (out / "types" / "mine.html").write_text("mine", encoding="utf-8")
    (out / "types" / "former.html").write_text(f"{MARK}\n", encoding="utf-8")
    assert main(["docs", str(SOURCES), "--out", str(out), "--operations", "notify"]) == 0
    assert (out / "types" / "mine.html").exists(), "not ours"
    assert not (out / "types" / "former.html").exists(), "of an earlier run"
    assert "listOrders" not in (out / "services" / "com_example.shop.html").read_text(encoding="utf-8")


def test_sources_without_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["docs", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]) == 1
    assert "nothing to generate" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_same_bytes_in_every_process(root: Path, tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "mtosi_codegen", "docs", str(SOURCES), "--out", str(out)],
            check=True, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{root}{os.pathsep}{root / 'codegen'}"},
        )  # fmt: skip
        found.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*.*")})
    assert found[0] == found[1]


@pytest.mark.endurance
def test_a_whole_release(shared: Path) -> None:
    result = generate([shared / "mtosi" / "4.0"])
    files = pages(result)
    assert broken(files) == []
    assert sum(" of " in kind and kind.startswith("operation") for _, kind, _ in index_of(files)) == sum(
        len(service.operations) for service in result.services
    )
