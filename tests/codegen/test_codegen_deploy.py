"""`deploy`: addresses are set and read back, all else stays byte for byte, imports still lead somewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_codegen import generate
from mtosi_codegen.deploy import deploy
from mtosi_codegen.write import write_files
from mtosi_jms.errors import SchemaError
from mtosi_jms.jms import NamingContext, Queue

from .conftest import ASK, MESSAGES, Run, wsdl

pytestmark = pytest.mark.obligation("P22")
Tree = Callable[[Mapping[str, str | bytes]], Path]


def addresses(folder: Path) -> dict[str, str]:
    return {service.name: service.address for service in generate([folder]).services}


def put(sources: Path, out: Path, wanted: dict[str, str]) -> dict[str, bytes]:
    made = deploy([sources], wanted)
    write_files(out, made.files, made.originals)
    return dict(made.files)


@pytest.mark.obligation("001-S8", "001-S9")
def test_only_the_address_changes(root: Path, tmp_path: Path) -> None:
    wanted = {"ManagedElementRetrieval": "jms/EmsOS", "AlarmRetrieval": "/MTOSI/Alarms"}
    files = put(root / "wsdl", tmp_path, wanted)
    assert addresses(tmp_path) == wanted, "read back; and the imports lead somewhere"
    changed = {"wsdl/ManagedElementRetrieval.wsdl": "jms/EmsOS", "wsdl/AlarmRetrieval.wsdl": "/MTOSI/Alarms"}
    for path, data in files.items():
        original = (root / path).read_bytes()
        if path in changed:
            stem = Path(path).stem
            original = original.replace(f"jms://aserver/mtosi/{stem}".encode(), changed[path].encode())
        assert data == original, path
        assert (tmp_path / path).read_bytes() == data
    assert generate([tmp_path]).findings == ()


@pytest.mark.obligation("C42", "P21")
def test_a_whole_release_takes_addresses(shared: Path, tmp_path: Path) -> None:
    """Every JMS WSDL of MTOSI 2.0, named by the naming context; each file differs in its address alone."""
    source = shared / "mtosi" / "2.0"
    before = addresses(source)
    assert len(before) > 35
    files = put(source, tmp_path, {name: f"jms/{name}" for name in before})
    after = addresses(tmp_path)
    assert after == {name: f"jms/{name}" for name in before}
    names = NamingContext({f"jms/{name}": Queue(name) for name in before})
    assert {names.lookup(address).name for address in after.values()} == set(before)
    originals = {path: (source / path).read_bytes() for path in files}
    differing = [path for path, data in files.items() if data != originals[path]]
    assert len(differing) == len(before)
    for path in differing:
        old, new = originals[path].split(b"\n"), files[path].split(b"\n")
        (pair,) = [(one, two) for one, two in zip(old, new, strict=True) if one != two]
        assert pair[1].partition(b'location="')[0] == pair[0].partition(b'location="')[0]


@pytest.fixture
def small(tree: Tree) -> Callable[..., Path]:
    """A folder with the interface Oracle, its service as given, the text changed before it is written."""

    def make(service: str, change: Callable[[str], str | bytes] = lambda text: text) -> Path:
        body = ASK["types"] + ASK["messages"] + ASK["port"] + ASK["binding"] + service
        return tree({"in/oracle.wsdl": change(wsdl(body)), "in/messages.xsd": MESSAGES}) / "in"

    return make


SECOND_PORT = '<w:port name="q" binding="t:B"><s:address location="2"/></w:port>'
PORT = '<w:service name="X"><w:port name="p" binding="t:B"><s:address location="jms://old"/></w:port></w:service>'


@pytest.mark.parametrize(
    ("service", "added"),
    [
        (PORT, False),
        (PORT.replace('"jms://old"', "'jms://old'"), False),
        (PORT.replace(' location="jms://old"', ""), False),
        (PORT.replace('location="', 'x=" location=" other=\'a\' location  = "'), False),
        (PORT.replace('<s:address location="jms://old"/>', "<w:documentation>d</w:documentation>"), False),
        (PORT.replace('><s:address location="jms://old"/></w:port>', "/>"), False),
        (PORT.replace("<s:address", "<!-- <s:address l='no'/> --><![CDATA[<s:a/>]]><?p <s:a/>?><s:address"), False),
        (PORT.replace("</w:service>", f"{SECOND_PORT}</w:service>"), False),
        ("", True),
        ('<w:service name="OracleJms"/>', True),
        ('<w:service name="OracleJms"><w:documentation/></w:service>', True),
        (PORT.replace("t:B", "t:Other"), True),
    ],
)
def test_every_form_of_a_port(small: Any, tmp_path: Path, binding_name: str, service: str, added: bool) -> None:
    folder = small(service.replace("t:B", f"t:{binding_name}"))
    made = deploy([folder], {"Oracle": "jms/A&<\"'>B"})
    assert [port.added for port in made.ports] == [added]
    write_files(tmp_path / "out", made.files, made.originals)
    assert addresses(tmp_path / "out") == {"Oracle": "jms/A&<\"'>B"}
    text = made.files["oracle.wsdl"].decode()
    assert "jms://old" not in text or "t:Other" in text
    assert made.files["messages.xsd"] == (folder / "messages.xsd").read_bytes()


@pytest.fixture
def binding_name() -> str:
    return ASK["binding"].partition('name="')[2].partition('"')[0]


def declared(text: str, encoding: str, comment: str = "") -> str:
    return text.replace('version="1.0"?>', f'version="1.0" encoding="{encoding}"?>{comment}')


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: declared(text, "UTF-16").encode("utf-16"),
        lambda text: b"\xfe\xff" + declared(text, "UTF-16").encode("utf-16-be"),
        lambda text: declared(text, "ISO-8859-1", "<!-- \xfc -->").encode("latin-1"),
        lambda text: "\n  " + text,
    ],
)
@pytest.mark.parametrize("service", [PORT, ""])
def test_every_encoding_stays(
    small: Any, tmp_path: Path, binding_name: str, change: Callable[[str], Any], service: str
) -> None:
    folder = small(service.replace("t:B", f"t:{binding_name}"), change)
    made = deploy([folder], {"Oracle": "jms/Ü/Ω"})
    write_files(tmp_path / "out", made.files, made.originals)
    assert addresses(tmp_path / "out") == {"Oracle": "jms/Ü/Ω"}
    old, new = (folder / "oracle.wsdl").read_bytes(), made.files["oracle.wsdl"]
    at = next(place for place, (one, two) in enumerate(zip(old, new, strict=False)) if one != two)
    assert at > len(old) // 2, "the beginning is the same, byte order mark and declaration included"
    tail = 10 if service else 4
    assert old[-tail:] == new[-tail:]


def test_a_port_beside_its_binding_s_file(small: Any, tmp_path: Path, binding_name: str) -> None:
    folder = small("")
    importing = f'<w:import namespace="urn:w" location="oracle.wsdl"/>{PORT.replace("t:B", f"t:{binding_name}")}'
    (folder / "ports.wsdl").write_text(wsdl(importing))
    made = deploy([folder], {"Oracle": "jms/New"})
    assert [(port.wsdl, port.added) for port in made.ports] == [("ports.wsdl", False)]
    assert made.files["oracle.wsdl"] == (folder / "oracle.wsdl").read_bytes()
    write_files(tmp_path / "out", made.files, made.originals)
    assert addresses(tmp_path / "out") == {"Oracle": "jms/New"}


@given(address=st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zs", "Zl", "Zp", "Cf", "Co")), min_size=1))
def test_any_address_reads_back(root: Path, address: str) -> None:
    made = deploy([root / "wsdl" / "NotificationConsumer.wsdl"], {"NotificationConsumer": address})
    assert made.ports[0].address == address


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"ManagedElementRetrieva": "jms/X"}, "did you mean ManagedElementRetrieval"),
        ({"Zzz": "jms/X"}, "there are AlarmRetrieval"),
        ({"AlarmRetrieval": ""}, "is not a name"),
        ({"AlarmRetrieval": "a b"}, "is not a name"),
        ({"AlarmRetrieval": "a\nb"}, "is not a name"),
    ],
)
def test_what_cannot_be_deployed_is_a_typed_error(root: Path, wanted: dict[str, str], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        deploy([root / "wsdl"], wanted)


def test_the_sources_are_safe(root: Path, small: Any, run: Run, tmp_path: Path) -> None:
    folder = small("")
    before = (folder / "oracle.wsdl").read_bytes()
    code, _, err = run("deploy", folder / "oracle.wsdl", "--address", "Oracle=jms/X", "--out", folder)
    assert (code, len(err.splitlines())) == (1, 1)
    assert "is a source" in err
    code, _, err = run("deploy", folder, "--address", "Oracle=jms/X", "--out", folder / "deployed")
    assert (code, "lies inside a source" in err) == (1, True)
    assert (folder / "oracle.wsdl").read_bytes() == before
    assert not (folder / "deployed").exists()


def test_the_command_says_what_it_did(root: Path, run: Run, tmp_path: Path) -> None:
    names = tmp_path / "jndi.properties"
    names.write_text("queue.jms/EmsOS=EMS\n")
    argv = [
        "deploy",
        root / "wsdl",
        "--address",
        "AlarmRetrieval=jms/EmsOS",
        "--names",
        names,
        "--out",
        tmp_path / "out",
    ]
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    assert f"{tmp_path / 'out' / 'wsdl' / 'AlarmRetrieval.wsdl'}: AlarmRetrieval at jms/EmsOS (queue:EMS)" in out
    code, out, _ = run(*argv, "--json")
    (port,) = json.loads(out)["ports"]
    assert port == {
        "service": "AlarmRetrieval",
        "wsdl": "wsdl/AlarmRetrieval.wsdl",
        "address": "jms/EmsOS",
        "added": False,
        "destination": "queue:EMS",
    }


@pytest.mark.obligation("P21", "C42", "001-S9")
def test_a_deployment_gives_the_addresses(root: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ems.toml"
    file.write_text(
        'name = "jms/EmsOS"\nnames = { "jms/EmsOS" = "queue:EMS" }\n'
        '[suppliers]\nAlarmRetrieval = "jms/EmsOS"\nManagedElementRetrieval = "jms/EmsOS"\n'
    )
    out = tmp_path / "out"
    argv = ["deploy", root / "wsdl", "--deployment", file, "--out", out]
    assert run(*argv, "--address", "ManagedElementRetrieval=queue:MER")[0] == 0
    assert addresses(out) == {"AlarmRetrieval": "jms/EmsOS", "ManagedElementRetrieval": "queue:MER"}
    code, _, err = run(*argv, "--address", "AlarmRetrieval=jms/Ems")
    assert (code, "did you mean jms/EmsOS" in err) == (1, True)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        ((), 2, "no address"),
        (("--address", "AlarmRetrieval"), 2, "does not read SERVICE=ADDRESS"),
        (("--address", "AlarmRetrieval=jms/X", "--names", "gone.properties"), 1, "the names cannot be read"),
        (("--deployment", "gone.toml"), 1, "the deployment cannot be read"),
        (("--deployment", "empty.toml"), 1, "it has no suppliers"),
        (("--address", "AlarmsRetrieval=jms/X"), 1, "did you mean AlarmRetrieval"),
    ],
)
def test_what_is_wrong_is_one_line(
    root: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").write_text('name = "os"')
    got, out, err = run("deploy", root / "wsdl", "--out", "out", *argv)
    assert (got, out) == (code, "")
    assert words in err
    assert code == 2 or len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
