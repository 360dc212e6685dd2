"""Schema sets: which files count, what is repaired, what is left out; all offline and in memory."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError, SchemaError
from mtosi_jms.validation import SchemaSet, Validator, default_folder
from mtosi_jms.validation._schemafile import resolve_location

XSD = "http://www.w3.org/2001/XMLSchema"
WriteSchema = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteSchema:
    """Writes a schema of a namespace below the test's folder; each keyword argument is an element and its type."""

    def writer(name: str, namespace: str, extra: str = "", prefixes: str = "", **elements: str) -> Path:
        body = "".join(f'<xs:element name="{element}" type="{kind}"/>\n' for element, kind in elements.items())
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        target = f'targetNamespace="{namespace}" xmlns:t="{namespace}"' if namespace else ""
        head = f'<xs:schema xmlns:xs="{XSD}" {target} {prefixes} elementFormDefault="qualified">'
        path.write_text(f"{head}\n{extra}\n{body}</xs:schema>", encoding="utf-8")
        return path

    return writer


def rules(schemas: SchemaSet) -> list[str]:
    return [note.rule for note in schemas.notes]


def valid(schemas: SchemaSet, document: str) -> bool:
    return Validator(schemas).validate_bytes(document.encode()).valid


# What is found


def test_the_projects_own_schemas_need_no_repair() -> None:
    schemas = SchemaSet.load()
    assert schemas.notes == []
    assert schemas.left_out == {}
    assert "getManagedElementRequest" in schemas.elements["http://www.tmforum.org/mtop/mri/xsd/mer/v1"]
    assert all(path.is_file() for paths in schemas.namespaces.values() for path in paths)


def test_in_a_release_tree_only_iis_xsd_folders_count(write: WriteSchema, tmp_path: Path) -> None:
    write("A/IIS/xsd/A.xsd", "urn:a", a="xs:int")
    write("B/iis/XSD/B.xsd", "urn:b", b="xs:int")
    write("A/IIS/xml/A1-1.xsd", "urn:a", newer="xs:int")
    write("tools/C.xsd", "urn:c", c="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert set(schemas.namespaces) == {"urn:a", "urn:b"}
    assert schemas.elements["urn:a"] == {"a"}
    assert not valid(schemas, '<newer xmlns="urn:a">1</newer>')


def test_any_other_folder_counts_as_a_whole(write: WriteSchema, tmp_path: Path) -> None:
    write("one.xsd", "urn:a", a="xs:int")
    write("deep/er/two.XSD", "urn:b", b="xs:int")
    assert set(SchemaSet.load(tmp_path).namespaces) == {"urn:a", "urn:b"}


def test_one_release_folder_brings_in_what_it_imports(write: WriteSchema, tmp_path: Path) -> None:
    write("A/IIS/xsd/A.xsd", "urn:a", '<xs:import namespace="urn:b" schemaLocation="../../../B/IIS/xsd/B.xsd"/>')
    write("B/IIS/xsd/B.xsd", "urn:b", b="xs:int")
    write("B/IIS/xsd/Other.xsd", "urn:other", other="xs:int")
    assert set(SchemaSet.load(tmp_path / "A" / "IIS" / "xsd").namespaces) == {"urn:a", "urn:b"}


def test_one_file_can_be_given(write: WriteSchema) -> None:
    assert valid(SchemaSet.load(write("one.xsd", "urn:a", a="xs:int")), '<a xmlns="urn:a">7</a>')


def test_a_missing_folder_is_a_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file or directory") as caught:
        SchemaSet.load(tmp_path / "nowhere")
    assert caught.value.file == str(tmp_path / "nowhere")


def test_a_folder_without_schemas_is_a_schema_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no XSD file"):
        SchemaSet.load(tmp_path)


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that cannot be listed; the tests may run as root, who may list every one."""
    scandir = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return tmp_path / "closed"


def test_a_subfolder_that_cannot_be_listed_is_told(write: WriteSchema, tmp_path: Path, closed: Path) -> None:
    write("closed/one.xsd", "urn:b", b="xs:int")
    with pytest.raises(SchemaError, match="no XSD file in this folder that can be read") as caught:
        SchemaSet.load(tmp_path)
    assert f"{closed}: Permission denied" in str(caught.value)
    write("one.xsd", "urn:a", a="xs:int")
    (note,) = SchemaSet.load(tmp_path).notes
    assert (note.rule, note.file, note.message) == ("unreadable", str(closed), "Permission denied")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_named_like_a_schema_is_not_read(write: WriteSchema, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.xsd")
    with pytest.raises(SchemaError, match=r"p\.xsd: not a regular file"):
        SchemaSet.load(tmp_path)
    os.mkfifo(tmp_path / "p.wsdl")
    write("one.xsd", "urn:a", a="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert valid(schemas, '<a xmlns="urn:a">7</a>')
    assert [(note.rule, Path(note.file).name, note.message) for note in sorted(schemas.notes, key=str)] == [
        ("unreadable", "p.wsdl", "not a regular file"),
        ("unreadable", "p.xsd", "not a regular file"),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_location_that_leads_to_a_pipe_is_not_followed(write: WriteSchema, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write("one.xsd", "urn:a", '<xs:import namespace="urn:b" schemaLocation="pipe"/>', a="xs:int")
    assert resolve_location(tmp_path, "pipe") == (None, False)
    assert set(SchemaSet.load(tmp_path).namespaces) == {"urn:a"}


def test_the_installed_schemas_are_found_where_there_is_no_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtosi_jms.validation._schemafile._PACKAGE", tmp_path / "site" / "mtosi_jms")
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme=None: str(tmp_path / f"{scheme or 'venv'}"))
    # A stray folder beside the package is somebody else's.
    (tmp_path / "site" / "xsd").mkdir(parents=True)
    with pytest.raises(ConfigError, match="not installed"):
        default_folder()
    installed = tmp_path / "venv" / "share" / "mtosi-jms" / "xsd"
    installed.mkdir(parents=True)
    assert default_folder() == installed


# What is repaired


def test_blanks_around_names_are_repaired_and_noted(write: WriteSchema, tmp_path: Path) -> None:
    inner = """<xs:element name=" outer"><xs:complexType><xs:sequence>
<xs:element name="ref " type="t:T "/></xs:sequence></xs:complexType></xs:element>
<xs:simpleType name="T"><xs:restriction base=" xs:int"/></xs:simpleType>"""
    path = write("a.xsd", "urn:a", inner)
    schemas = SchemaSet.load(tmp_path)
    assert [(note.rule, note.file, note.line) for note in schemas.notes] == [
        ("blank-name", str(path), 2),
        ("blank-name", str(path), 3),
        ("blank-name", str(path), 3),
        ("blank-name", str(path), 4),
    ]
    assert valid(schemas, '<outer xmlns="urn:a"><ref>1</ref></outer>')
    assert not valid(schemas, '<outer xmlns="urn:a"><ref>x</ref></outer>')


@pytest.mark.parametrize(
    ("namespace", "location", "of_b", "noted"),
    [
        *(
            ("urn:b", location, "urn:b", ["schema-location"])
            for location in ("B.XSD", ".\\b.xsd", " b.xsd ", "../{folder}/B.xsd", "no/such.xsd", "http://h/b.xsd")
        ),
        ("urn:wrong", "b.xsd", "urn:b", ["import-namespace"]),
        ("urn:a", "b.xsd", "urn:a", None),
    ],
)
def test_an_import_that_is_not_quite_right_is_repaired_and_noted(
    write: WriteSchema, tmp_path: Path, namespace: str, location: str, of_b: str, noted: list[str] | None
) -> None:
    location = location.replace("{folder}", tmp_path.name.upper())
    load = f'<xs:import namespace="{namespace}" schemaLocation="{location}"/>'
    write("a.xsd", "urn:a", load, f'xmlns:b="{of_b}"', a="b:T")
    write("b.xsd", of_b, '<xs:simpleType name="T"><xs:restriction base="xs:int"/></xs:simpleType>')
    schemas = SchemaSet.load(tmp_path)
    assert noted is None or rules(schemas) == noted
    assert valid(schemas, '<a xmlns="urn:a">1</a>')
    assert not valid(schemas, '<a xmlns="urn:a">x</a>')


def test_an_include_that_leads_nowhere_is_ignored_and_noted(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", '<xs:include schemaLocation="gone.xsd"/>', a="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert rules(schemas) == ["schema-location"]
    assert valid(schemas, '<a xmlns="urn:a">1</a>')


def test_attributes_of_the_xml_namespace_are_known(write: WriteSchema, tmp_path: Path) -> None:
    kind = """<xs:import namespace="http://www.w3.org/XML/1998/namespace"/><xs:element name="a"><xs:complexType>
<xs:attribute ref="xml:lang"/></xs:complexType></xs:element>"""
    write("a.xsd", "urn:a", kind)
    assert valid(SchemaSet.load(tmp_path), '<a xmlns="urn:a" xml:lang="de"/>')


def test_files_are_never_changed(write: WriteSchema, tmp_path: Path) -> None:
    path = write("a.xsd", "urn:a", '<xs:element name="b " type="xs:int"/>')
    before = path.read_bytes()
    SchemaSet.load(tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# Several files of one namespace


def test_files_that_include_each_other_are_one_schema(write: WriteSchema, tmp_path: Path) -> None:
    write("main.xsd", "urn:a", '<xs:include schemaLocation="part.xsd"/>', a="t:T")
    write("part.xsd", "", '<xs:simpleType name="T"><xs:restriction base="xs:int"/></xs:simpleType>', part="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert schemas.namespaces == {"urn:a": (tmp_path / "main.xsd",)}
    assert schemas.elements["urn:a"] == {"a", "part"}
    assert valid(schemas, '<part xmlns="urn:a">1</part>')


def test_files_that_include_each_other_in_a_ring_are_read(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", '<xs:include schemaLocation="b.xsd"/>', a="xs:int")
    write("b.xsd", "urn:a", '<xs:include schemaLocation="a.xsd"/>', b="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert valid(schemas, '<b xmlns="urn:a">1</b>')
    assert valid(schemas, '<a xmlns="urn:a">1</a>')


def test_files_that_complement_each_other_are_taken_together(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", a="xs:int")
    write("b.xsd", "urn:a", b="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert schemas.notes == []
    assert schemas.elements["urn:a"] == {"a", "b"}
    assert valid(schemas, '<b xmlns="urn:a">1</b>')


@pytest.mark.parametrize("leftover", ["A-old.xsd", "A - Copy.xsd", "Aa.xsd"])
def test_of_rivals_the_leftover_loses(write: WriteSchema, tmp_path: Path, leftover: str) -> None:
    write("A.xsd", "urn:a", a="xs:int")
    write(leftover, "urn:a", a="xs:string")
    schemas = SchemaSet.load(tmp_path)
    assert [(note.rule, note.file) for note in schemas.notes] == [("rival", str(tmp_path / leftover))]
    assert not valid(schemas, '<a xmlns="urn:a">text</a>')


def test_of_rivals_the_imported_one_wins(write: WriteSchema, tmp_path: Path) -> None:
    write("A.xsd", "urn:a", a="xs:int")
    write("A-old.xsd", "urn:a", a="xs:string")
    write("B.xsd", "urn:b", '<xs:import namespace="urn:a" schemaLocation="A-old.xsd"/>')
    assert valid(SchemaSet.load(tmp_path), '<a xmlns="urn:a">text</a>')


def test_of_rivals_the_one_that_a_wsdl_imports_wins(write: WriteSchema, tmp_path: Path) -> None:
    write("xsd/A.xsd", "urn:a", a="xs:int")
    write("xsd/A-new.xsd", "urn:a", a="xs:string")
    wsdl = f"""<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="{XSD}"><w:types><xs:schema>
<xs:import namespace="urn:a" schemaLocation="../xsd/A-new.xsd"/></xs:schema></w:types></w:definitions>"""
    (tmp_path / "wsdl").mkdir()
    (tmp_path / "wsdl" / "service.wsdl").write_text(wsdl, encoding="utf-8")
    (tmp_path / "wsdl" / "broken.wsdl").write_text("<w:definitions", encoding="utf-8")
    assert valid(SchemaSet.load(tmp_path), '<a xmlns="urn:a">text</a>')


# What cannot be used


def test_a_broken_schema_is_left_out_and_the_rest_validates(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", a="xs:int")
    broken = tmp_path / "broken.xsd"
    broken.write_text(f'<xs:schema xmlns:xs="{XSD}">\n<xs:element>', encoding="utf-8")
    other = tmp_path / "other.xsd"
    other.write_text("<html/>", encoding="utf-8")
    schemas = SchemaSet.load(tmp_path)
    assert [(note.rule, note.file, note.line) for note in schemas.notes] == [
        ("unreadable", str(broken), 2),
        ("unreadable", str(other), 1),
    ]
    assert valid(schemas, '<a xmlns="urn:a">1</a>')


@pytest.mark.obligation("GEN5")
def test_a_schema_with_a_dtd_without_entities_is_read(write: WriteSchema, tmp_path: Path) -> None:
    path = write("a.xsd", "urn:a", a="xs:int")
    doctype = '<!DOCTYPE xs:schema PUBLIC "x" "http://127.0.0.1:9/"\n[<!ATTLIST xs:schema id ID #IMPLIED>]>\n'
    text = path.read_text()
    head = text[: text.index("<xs:schema")]
    path.write_text(text.replace(head, f"{head}{doctype}", 1) if head else doctype + text)
    schemas = SchemaSet.load(tmp_path)
    assert not schemas.notes
    assert valid(schemas, '<a xmlns="urn:a">1</a>')
    assert not valid(schemas, '<a xmlns="urn:a">x</a>')


def test_a_schema_with_a_dtd_is_refused(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", a="xs:int")
    text = f'<!DOCTYPE s [<!ENTITY e SYSTEM "file:///etc/hostname">]><xs:schema xmlns:xs="{XSD}">&e;</xs:schema>'
    (tmp_path / "dtd.xsd").write_text(text, encoding="utf-8")
    (note,) = SchemaSet.load(tmp_path).notes
    assert note.rule == "unreadable"
    assert "DTD" in note.message


def test_what_libxml2_refuses_is_left_out_with_its_line_on_disk(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", a="xs:int")
    # Comments and attributes over several lines move the lines of what libxml2 is given.
    bad = write("bad.xsd", "urn:bad", '<!-- one\ntwo\nthree -->\n<xs:element\n\n  name="bad" type="t:Nowhere"/>')
    schemas = SchemaSet.load(tmp_path)
    (note,) = schemas.notes
    assert (note.rule, note.file, note.line) == ("left-out", str(bad), 7)
    assert "does not resolve" in note.message
    assert set(schemas.left_out) == {"urn:bad"}
    (issue,) = Validator(schemas).validate_bytes(b'<bad xmlns="urn:bad"/>').issues
    assert issue.kind == "undeclared"
    assert "Nowhere" in issue.message


def test_a_rival_steps_in_for_a_file_that_libxml2_refuses(write: WriteSchema, tmp_path: Path) -> None:
    write("A.xsd", "urn:a", a="t:Nowhere")
    write("A-old.xsd", "urn:a", a="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert schemas.left_out == {}
    assert valid(schemas, '<a xmlns="urn:a">1</a>')


def test_a_folder_without_any_usable_schema_is_an_error(write: WriteSchema, tmp_path: Path) -> None:
    write("a.xsd", "urn:a", a="t:Nowhere")
    with pytest.raises(SchemaError, match="no schema can be made of it"):
        SchemaSet.load(tmp_path)
    (tmp_path / "a.xsd").write_text("<xs:schema", encoding="utf-8")
    with pytest.raises(SchemaError, match="holds no usable schema"):
        SchemaSet.load(tmp_path)


def test_nothing_is_fetched_from_an_address(write: WriteSchema, tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        address = f"http://localhost:{server.getsockname()[1]}/x.xsd"
        write("a.xsd", "urn:a", f'<xs:import namespace="urn:x" schemaLocation="{address}"/>', a="xs:int")
        SchemaSet.load(tmp_path)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


# The release with many defects


def test_the_later_release_compiles_as_a_whole(shared: Path) -> None:
    folder = shared / "mtosi" / "4.0"
    schemas = SchemaSet.load(folder)
    assert schemas.left_out == {}
    rivals = {Path(note.file).name for note in schemas.notes if note.rule == "rival"}
    assert len(rivals) == 20
    assert {"Cc-old.xsd", "ITU-T-Definitions - Copy.xsd", "ProtectionControlMessages - old.xsd"} <= rivals
    assert {"eq.xsd", "FDFr.xsd"} <= {
        note.message.split("'")[1].rpartition("/")[2] for note in schemas.notes if note.rule == "schema-location"
    }


@pytest.mark.parametrize(
    ("location", "exact"), [("B.xsd", True), ("./sub/../B.xsd", True), ("b.xsd", False), ("B%2Exsd", True)]
)
def test_locations_are_resolved(tmp_path: Path, location: str, exact: bool) -> None:
    (tmp_path / "B.xsd").touch()
    assert resolve_location(tmp_path, location) == (tmp_path / "B.xsd", exact)


@pytest.mark.parametrize("location", ["", "  ", "C.xsd", "https://h/B.xsd", "a\0b", "B.xsd/deeper.xsd"])
def test_locations_that_lead_nowhere(tmp_path: Path, location: str) -> None:
    (tmp_path / "B.xsd").touch()
    assert resolve_location(tmp_path, location) == (None, False)


@pytest.mark.parametrize(("levels", "times"), [(40, 2), (3000, 1)])
def test_groups_that_multiply_are_left_out(write: WriteSchema, tmp_path: Path, levels: int, times: int) -> None:
    groups = "".join(
        f'<xs:group name="G{n}"><xs:sequence>{f"""<xs:group ref="t:G{n + 1}"/>""" * times}</xs:sequence></xs:group>\n'
        for n in range(levels)
    )
    groups += f'<xs:group name="G{levels}"><xs:sequence><xs:element name="e" type="xs:int"/></xs:sequence></xs:group>'
    path = write("laughs.xsd", "urn:l", groups + '<xs:complexType name="T"><xs:group ref="t:G0"/></xs:complexType>')
    with pytest.raises(SchemaError, match="more than 100000 particles or 200 levels"):
        SchemaSet.load(path)
    write("good.xsd", "urn:a", a="xs:int")
    schemas = SchemaSet.load(tmp_path)
    assert valid(schemas, '<a xmlns="urn:a">7</a>')
    (note,) = schemas.notes
    assert (note.rule, note.file, note.line) == ("left-out", str(path), 2)
    assert "laughs.xsd" in schemas.left_out["urn:l"]


@pytest.mark.parametrize(("count", "refused"), [(150, False), (3000, True)])
def test_a_long_chain_of_base_types_is_left_out(write: WriteSchema, count: int, refused: bool) -> None:
    types = '<xs:complexType name="T0"/>' + "".join(
        f'<xs:complexType name="T{n + 1}"><xs:complexContent><xs:extension base="t:T{n}"><xs:sequence>'
        f'<xs:element name="e{n}" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>\n'
        for n in range(count)
    )
    path = write("chain.xsd", "urn:a", types, a="xs:int")
    if refused:
        with pytest.raises(SchemaError, match=r"chain\.xsd:201: left out: more than 100000 particles or 200 levels"):
            SchemaSet.load(path)
    else:
        assert valid(SchemaSet.load(path), '<a xmlns="urn:a">7</a>')


def test_groups_within_the_bounds_count(write: WriteSchema) -> None:
    group = '<xs:group name="G"><xs:sequence><xs:element name="e" type="xs:int"/></xs:sequence></xs:group>'
    body = '<xs:element name="top"><xs:complexType><xs:group ref="t:G" maxOccurs="2"/></xs:complexType></xs:element>'
    schemas = SchemaSet.load(write("a.xsd", "urn:a", group + body))
    assert valid(schemas, '<top xmlns="urn:a"><e>1</e><e>2</e></top>')
    assert not valid(schemas, '<top xmlns="urn:a"/>')
