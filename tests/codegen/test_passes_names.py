"""The passes over names and modules: homes of namespaces, stable names, cycles, pruning, faults and operations."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import Result, write
from mtosi_codegen.findings import Findings
from mtosi_codegen.load import load
from mtosi_codegen.model import Builtin, ObjectValue
from mtosi_codegen.passes.dedupe import collect
from mtosi_codegen.passes.modules import split_namespace

from .conftest import ASK, MESSAGES, wsdl, xsd


def _type(name: str) -> str:
    return f'<x:complexType name="{name}"><x:sequence><x:element name="e" type="x:int"/></x:sequence></x:complexType>'


def _names(result: Result) -> dict[str, str]:
    return {f"{cls.kind} {cls.xml.local}": cls.name for cls in result.model.classes}


def test_the_order_of_definitions_does_not_matter(build: Callable[..., Result]) -> None:
    names = ["a-b", "a.b", "a_b", "AB", "aB"]
    forward = _names(build("".join(map(_type, names))))
    backward = _names(build("".join(map(_type, reversed(names)))))
    assert forward == backward
    assert len(set(forward.values())) == len(names)
    assert forward["type AB"] == "AB"


def test_one_more_definition_does_not_rename_the_others(build: Callable[..., Result]) -> None:
    before = _names(build(_type("OneType") + '<x:element name="one" type="t:OneType"/>'))
    after = _names(build(_type("OneType") + _type("Zwei") + '<x:element name="one" type="t:OneType"/>'))
    assert before.items() <= after.items()


def test_anonymous_types_give_way_to_named_ones(build: Callable[..., Result]) -> None:
    inline = (
        '<x:complexType name="A"><x:sequence><x:element name="b"><x:complexType/></x:element></x:sequence>'
        "</x:complexType>"
    )
    names = _names(build(inline + _type("AB")))
    assert names["type AB"] == "AB"
    assert names["anonymous b"] == "A_B"


def test_fields_of_a_base_keep_their_names(build: Callable[..., Result]) -> None:
    result = build(
        '<x:complexType name="Z"><x:sequence><x:element name="someName" type="x:int"/></x:sequence>'
        '</x:complexType><x:complexType name="A"><x:complexContent><x:extension base="t:Z"><x:sequence>'
        '<x:element name="some_name" type="x:int"/></x:sequence></x:extension></x:complexContent>'
        "</x:complexType>"
    )
    fields = {cls.name: [field.name for field in cls.all_fields()] for cls in result.model.classes}
    assert fields == {"Z": ["some_name"], "A": ["some_name", "some_x5f_name"]}


def test_no_class_takes_a_name_that_the_module_uses(build: Callable[..., Result], package: Any) -> None:
    pairs = ["Str", "str", "Dataclass", "dataclass", "Field", "field", "List", "list"]
    result = build("".join(f'<x:element name="{name}" type="t:{name}"/>{_type(name)}' for name in pairs))
    names = _names(result)
    assert {names[f"type {name}"] for name in pairs} >= {"Str", "Dataclass", "Field", "List"}
    assert not {"str", "dataclass", "field", "list"} & set(names.values())
    module = importlib.import_module(f"{package(result)}.urn_t.types")
    assert [getattr(module, names[f"type {name}"])(e=1).e for name in pairs] == [1] * len(pairs)


def test_enumeration_values_whose_names_are_all_taken(build: Callable[..., Result]) -> None:
    values = ["a-b", "a_b", "a_b_", "a_x2d_b", "a_x2d_b_", "+1", "-1", "1"]
    literals = "".join(f'<x:enumeration value="{value}"/>' for value in values)
    schema = xsd(f'<x:simpleType name="E"><x:restriction base="x:string">{literals}</x:restriction></x:simpleType>')
    (enum,) = build(schema).model.enums
    assert len(set(enum.members.values())) == len(values)
    assert [enum.members[value] for value in values[1:5]] == values[1:5]
    assert enum.members["1"] == "n1"


@pytest.mark.parametrize(
    ("namespace", "path"),
    [
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v1", ("nrf", "me")),
        ("http://www.tmforum.org/mtop/nrf/xsd/eq-inv/v1", ("nrf", "eq_inv")),
        ("http://www.tmforum.org/mtop/nra/xsd/ituArc/v1", ("nra", "itu_arc")),
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v1-1", ("nrf", "me_v1_1")),
        ("http://www.tmforum.org/mtop/nrf/xsd/me/v2", ("nrf", "me_v2")),
        ("http://www.tmforum.org/mtop/mri/wsdl/mer/v1-0", ("mri", "mer_v1_0")),
        ("http://www.tmforum.org/mtop/sb/csi/v1/ext", ("org_tmforum", "mtop_sb_csi_v1_ext")),
        ("http://www.acme.com/inv/2", ("com_acme", "inv_2")),
        ("http://acme.com:8080/", ("com_acme", "types")),
        ("urn:acme:inv", ("urn_acme", "inv")),
        ("urn:acme", ("urn_acme", "types")),
        ("tmf854.v1", ("ns_tmf854_v1", "types")),
        ("http://[not-an-address", ("ns_http", "not_an_address")),
        ("", ("local", "types")),
    ],
)
def test_namespace_to_folder_and_module(namespace: str, path: tuple[str, str]) -> None:
    assert split_namespace(namespace) == path


def test_namespaces_that_would_share_a_module_do_not(build: Callable[..., Result]) -> None:
    body = '<x:element name="e" type="x:int"/>'
    result = build(
        {"a.xsd": xsd(body, "http://acme.com/a-b"), "b.xsd": xsd(body, "http://acme.com/a_b"),
         "c.xsd": xsd(body, "http://acme.com/c")}
    )  # fmt: skip
    paths = {module.namespace: module.path for module in result.model.modules}
    assert len(set(paths.values())) == 3
    assert paths["http://acme.com/c"] == "com_acme.c"
    assert all(path.startswith("com_acme.") for path in paths.values())


def test_a_long_namespace_fits_a_file_name(build: Callable[..., Result], package: Any) -> None:
    spaces = [f"http://acme.com/{'long/' * 80}{end}" for end in ("a", "b")]
    result = build({f"{space[-1]}.xsd": xsd('<x:element name="e" type="x:int"/>', space) for space in spaces})
    assert package(result)
    paths = {module.path for module in result.model.modules}
    assert len(paths) == 2
    assert max(map(len, paths)) < 250


def _derived(name: str, base: str) -> str:
    return (
        f'<x:complexType name="{name}"><x:complexContent><x:extension base="{base}"><x:sequence>'
        f'<x:element name="of{name}" type="t:Colour"/></x:sequence></x:extension></x:complexContent></x:complexType>'
    )


def test_modules_in_a_circle_import_in_any_order(build: Callable[..., Result], tmp_path: Path, root: Path) -> None:
    def schema(own: str, other: str, base: str) -> str:
        return xsd(
            f'<x:import namespace="urn:{other}" schemaLocation="{other}.xsd"/><x:complexType name="Root"/>'
            '<x:simpleType name="Colour"><x:restriction base="x:string"><x:enumeration value="red"/></x:restriction>'
            f"</x:simpleType>{_derived('Leaf', base)}"
            f'<x:element name="leaf" type="t:Leaf"/>',
            f"urn:{own}",
            f'xmlns:o="urn:{other}"',
        )

    result = build({"a.xsd": schema("a", "b", "o:Root"), "b.xsd": schema("b", "a", "o:Leaf")})
    assert result.findings == ()
    assert sorted(result.files) == [
        "__init__.py", "_shared/__init__.py", "_shared/urn_a_types_urn_b_types.py", "urn_a/__init__.py",
        "urn_a/types.py", "urn_b/__init__.py", "urn_b/types.py",
    ]  # fmt: skip
    write(tmp_path / "ring", result.files)
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "from mtosi_jms import xmlbind\n"
        "import ring.urn_a.types as a, ring.urn_b.types as b\n"
        "assert issubclass(a.Leaf, b.Root) and issubclass(b.Leaf, a.Leaf) and a.Root is not b.Root\n"
        "leaf = b.LeafElement(of_leaf=a.Colour.red, **{n.name: b.Colour.red for n in b.Leaf.__xml__.own})\n"
        "data = xmlbind.encode(leaf)\n"
        "assert xmlbind.decode(data) == leaf, data\n"
    )
    for order in (["ring.urn_a.types", "ring.urn_b.types"], ["ring.urn_b.types", "ring.urn_a.types"]):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *order],
            capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": f"{tmp_path}:{root}"}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


def test_the_same_definition_twice_counts_once(tree: Any) -> None:
    body = '<x:element name="e" type="x:int"/>'
    folder = tree({"a.xsd": xsd('<x:include schemaLocation="b.xsd"/>' + body), "b.xsd": xsd("\n\n" + body)})
    findings = Findings()
    schema = collect(load([folder], findings).units, findings)
    assert [str(name) for name in schema.elements] == ["{urn:t}e"]
    assert len(findings) == 0


def test_of_two_different_ones_the_first_counts(build: Callable[..., Result]) -> None:
    result = build(
        {
            "a.xsd": xsd('<x:include schemaLocation="b.xsd"/><x:element name="e" type="x:int"/>'),
            "b.xsd": xsd('<x:element name="e" type="x:string"/>'),
        }
    )
    assert [finding.rule for finding in result.findings] == ["definition-conflict"]
    assert '_x.TEXT("value", _x.INT)' in result.files["urn_t/types.py"]


def test_definitions_too_deep_to_compare_are_a_conflict(build: Any) -> None:
    def nested(levels: int) -> str:
        content = f'{"<x:sequence>" * levels}<x:element name="e" type="x:int"/>{"</x:sequence>" * levels}'
        return f'\n<x:complexType name="T">{content}</x:complexType>'

    include = '<x:include schemaLocation="b.xsd"/>'
    result = build({"a.xsd": xsd(include + nested(248)), "b.xsd": xsd(nested(247))})
    assert [(finding.rule, finding.file, finding.line) for finding in result.findings] == [
        ("too-large", "a.xsd", 4),
        ("definition-conflict", "b.xsd", 4),
    ]


def test_what_an_operation_can_hold_stays(build: Callable[..., Result]) -> None:
    unused = (
        '<x:complexType name="Unused"><x:sequence><x:element name="c" type="t:Colour"/></x:sequence></x:complexType>'
        '<x:simpleType name="Colour"><x:restriction base="x:string"><x:enumeration value="red"/></x:restriction>'
        "</x:simpleType>"
        '<x:complexType name="Longer"><x:complexContent><x:extension base="t:AnswerType"/></x:complexContent>'
        "</x:complexType>"
    )
    files = {
        "a.wsdl": wsdl("".join(ASK.values())),
        "messages.xsd": MESSAGES.replace("</x:schema>", unused + "</x:schema>"),
        "other.xsd": xsd('<x:element name="o" type="x:int"/>', "urn:o"),
    }
    everything, chosen = build(files), build(files, operations=["ask"])
    assert {module.namespace for module in everything.model.modules} == {"urn:m", "urn:o"}
    names = {cls.name for cls in chosen.model.classes}
    assert names == {
        "AskRequest", "AskResponse", "AskException", "AnswerType", "Longer", "TroubleType", "Lost", "Refused",
    }  # fmt: skip
    assert chosen.model.enums == []
    assert everything.model.enums != []


def test_members_of_members_count_abstract_ones_do_not(build: Callable[..., Result]) -> None:
    result = build(
        '<x:complexType name="T"/><x:element name="head" type="t:T"/>'
        '<x:element name="middle" type="t:T" substitutionGroup="t:head" abstract="true"/>'
        '<x:element name="leaf" type="t:T" substitutionGroup="t:middle"/>'
        '<x:complexType name="Use"><x:sequence><x:element ref="t:head"/><x:element ref="t:leaf"/></x:sequence>'
        "</x:complexType>"
    )
    use = next(cls for cls in result.model.classes if cls.name == "Use")
    assert [[member.name for member in field.members] for field in use.fields] == [["Leaf"], []]
    assert [field.head for field in use.fields] == [True, False]


def test_a_simple_element_is_its_value_unless_it_is_a_head(build: Callable[..., Result]) -> None:
    result = build(
        '<x:element name="plain" type="x:int"/><x:element name="head" type="x:int"/>'
        '<x:element name="member" type="x:int" substitutionGroup="t:head"/>'
        '<x:complexType name="Use"><x:sequence><x:element ref="t:plain"/><x:element ref="t:head"/></x:sequence>'
        "</x:complexType>"
    )
    use = next(cls for cls in result.model.classes if cls.name == "Use")
    assert use.fields[0].type == Builtin("int")
    assert isinstance(use.fields[1].type, ObjectValue)


def test_a_head_that_nothing_defines(build: Callable[..., Result]) -> None:
    result = build('<x:element name="e" type="x:int" substitutionGroup="t:no"/>')
    assert [finding.rule for finding in result.findings] == ["element-unresolved"]


CODE = '<x:element name="code" type="x:int"/>'
SEQUENCE = f'<x:complexType><x:sequence>{CODE}<x:element name="text" type="x:string"/></x:sequence></x:complexType>'
EXTENSION = (
    '<x:complexType><x:complexContent><x:extension base="t:TroubleType">'
    f"<x:sequence>{CODE}</x:sequence></x:extension></x:complexContent></x:complexType>"
)
CHOICE = "<x:complexType><x:choice>{}</x:choice></x:complexType>"


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        (CHOICE.format('<x:element ref="t:lost"/><x:element ref="t:refused"/>'), ["lost", "refused"]),
        (CHOICE.format('<x:element ref="t:lost"/>'), ["lost"]),
        (CHOICE.format('<x:element name="local" type="t:TroubleType"/>'), ["local"]),
        (
            CHOICE.format(
                '<x:element ref="t:lost"/><x:sequence><x:element name="first" type="t:TroubleType"/>'
                '<x:element name="detail" type="t:TroubleType"/></x:sequence>'
            ),
            ["first", "lost"],
        ),
        (SEQUENCE, ["askException"]),
        (EXTENSION, ["askException"]),
    ],
)
def test_kinds(build: Callable[..., Result], content: str, kinds: list[str]) -> None:
    start = MESSAGES.index('<x:element name="askException">') + len('<x:element name="askException">')
    end = MESSAGES.index("</x:element>", MESSAGES.index("</x:choice>"))
    result = build({"a.wsdl": wsdl("".join(ASK.values())), "messages.xsd": MESSAGES[:start] + content + MESSAGES[end:]})
    assert result.findings == ()
    assert [fault.element for fault in result.model.faults] == kinds
    text = result.files["urn_m/types.py"]
    for fault in result.model.faults:
        assert f"class {fault.name}(_x.MtosiFault):" in text
        assert f'"{fault.element}": "{fault.name}"' in text
