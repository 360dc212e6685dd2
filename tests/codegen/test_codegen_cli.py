"""The command: options, exit codes, report keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mtosi_codegen import cli
from mtosi_codegen.render import MARK

from .conftest import ASK, MESSAGES, Run, wsdl, xsd

HERE = Path(__file__).parent
SOURCES = str(HERE / "sources")


def test_generate_then_check(run: Run, tmp_path: Path) -> None:
    place = ("--package", "acme.shop", "--out", str(tmp_path))
    code, out, err = run("generate", SOURCES, *place)
    assert code == 0
    assert "1 service, 2 operations" in out
    assert " 1 finding, " in out
    assert "messages.xsd:21: name-blanks" in err
    assert (tmp_path / "acme/shop/__init__.py").is_file()
    assert run("check", SOURCES, *place)[0] == 0


def test_check_lists_what_differs(run: Run, tmp_path: Path) -> None:
    place = ("--package", "shop", "--out", str(tmp_path))
    run("generate", SOURCES, *place)
    (tmp_path / "shop/__init__.py").unlink()
    (tmp_path / "shop/more.py").write_text("")
    (tmp_path / "shop/lost.py").symlink_to("nowhere")
    (tmp_path / "shop/former.py").write_text(f"{MARK} Sources: none")
    (tmp_path / "shop/com_example/shop.py").write_text("")
    code, _, err = run("check", SOURCES, *place)
    assert code == 1
    for path, kind in (("__init__.py", "missing"), ("former.py", "extra"), ("com_example/shop.py", "changed")):
        assert f"{tmp_path / 'shop' / path}: {kind}; run mtosi-codegen generate" in err
    for path in ("more.py", "lost.py"):
        assert f"{tmp_path / 'shop' / path}: extra; not generated" in err, "generate leaves it alone"
    code, out, _ = run("check", SOURCES, *place, "--json")
    assert code == 1
    assert {difference["kind"] for difference in json.loads(out)["differences"]} == {"missing", "extra", "changed"}


def test_the_report(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "report.json"
    run("generate", SOURCES, "--package", "shop", "--out", str(tmp_path), "--report", str(file))
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert {"services", "types", "modules", "seconds"} <= set(report)
    (service,) = report["services"]
    assert {"name", "wsdl", "namespace", "address", "status", "operations", "findings"} <= set(service)
    assert (service["name"], service["wsdl"], service["status"]) == ("Shop", "shop.wsdl", "repaired")
    assert service["address"] == "jms://somewhere/Shop"
    assert [(operation["name"], operation["mep"]) for operation in service["operations"]] == [
        ("listOrders", "request-response"),
        ("notify", "one-way"),
    ]
    for operation in service["operations"]:
        assert {"name", "mep", "request", "response", "fault"} <= set(operation)
    (finding,) = service["findings"]
    assert set(finding) == {"rule", "file", "line", "message", "repair"}
    assert report["types"] > 20
    assert report["seconds"] > 0


@pytest.mark.obligation("001-S7")
def test_strict_refuses_repairs(run: Run, tmp_path: Path) -> None:
    code, _, err = run("generate", SOURCES, "--package", "shop", "--out", str(tmp_path), "--strict")
    assert code == 1
    assert "name-blanks" in err
    assert not (tmp_path / "shop").exists()


def test_what_can_be_generated_is_generated_all_the_same(run: Run, tree: Any, tmp_path: Path) -> None:
    folder = tree({"good.xsd": xsd('<x:element name="e" type="x:int"/>'), "bad.xsd": "<x:schema"})
    code, _, err = run("generate", str(folder), "--package", "p", "--out", str(tmp_path))
    assert code == 1
    assert "bad.xsd:1: not-xml" in err
    assert (tmp_path / "p/urn_t/types.py").is_file()


def test_inspect_writes_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("inspect", SOURCES)
    assert code == 0
    assert "listOrders" in out
    assert "name-blanks" in out
    assert list(tmp_path.iterdir()) == []
    code, out, _ = run("inspect", SOURCES, "--json")
    assert code == 0
    assert json.loads(out)["services"][0]["name"] == "Shop"


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["generate", "check", "docs", "inspect"])
def test_an_operation_that_no_service_has_is_wrong_usage(run: Run, tmp_path: Path, command: str) -> None:
    out = ("--out", str(tmp_path))
    assert run("generate", SOURCES, "--package", "p", *out)[0] == 0
    before = content(tmp_path)
    more = {"docs": out, "inspect": ()}.get(command, ("--package", "p", *out))
    code, printed, err = run(command, SOURCES, *more, "--operations", "Shop.notify,lstOrders")
    assert (code, printed) == (2, "")
    assert err == "error: --operations: no operation 'lstOrders'; did you mean listOrders, Shop.listOrders?\n"
    assert content(tmp_path) == before


def test_an_operation_of_a_file_that_is_left_out_is_said_to_lack_its_file(run: Run, tree: Any) -> None:
    code, _, err = run("inspect", str(tree({"bad.wsdl": "<w:definitions"})), "--operations", "ask")
    assert code == 2
    assert err == ("error: --operations: no operation 'ask'; mtosi-codegen inspect shows what the sources lack\n")


def test_an_operation_without_its_port_type_is_at_fault_not_wrong_usage(run: Run, tree: Any) -> None:
    pieces = "".join(text for name, text in ASK.items() if name != "port")
    folder = tree({"a.wsdl": wsdl(pieces), "messages.xsd": MESSAGES})
    code, out, err = run("inspect", str(folder), "--operations", "ask")
    assert code == 1
    assert "a.wsdl:" in out
    assert "; 1 service failed" in out
    assert "no operation" not in err


def test_a_run_that_lacks_something_removes_nothing(run: Run, tree: Any, tmp_path: Path) -> None:
    place = ("--package", "p", "--out", str(tmp_path / "out"))
    pages = ("--out", str(tmp_path / "pages"))
    folder = tree(
        {
            "a.wsdl": wsdl("".join(ASK.values())),
            "messages.xsd": MESSAGES,
            "e.xsd": xsd('<x:element name="e" type="x:int"/>'),
        }
    )
    sources = (str(folder / "a.wsdl"), str(folder / "e.xsd"))
    assert run("generate", *sources, *place)[0] == 0
    assert run("docs", *sources, *pages)[0] == 0
    package = tmp_path / "out" / "p"
    before, pages_before = content(package), content(tmp_path / "pages")
    (folder / "a.wsdl").write_text(wsdl("".join({**ASK, "types": ""}.values())))
    code, out, err = run("generate", *sources, *place)
    assert code == 1
    assert "; 1 service failed" in out
    kept = f"error: {package}: kept 4 files that may be outdated, because something could not be generated\n"
    assert err.endswith(kept)
    assert content(package).keys() == before.keys()
    assert content(package)["urn_m/types.py"] == before["urn_m/types.py"]
    code, out, err = run("check", *sources, *place)
    assert code == 1
    assert "up to date" in out, "generate would change nothing"
    assert err.endswith(kept)
    assert run("docs", *sources, *pages)[0] == 1
    assert content(tmp_path / "pages").keys() >= pages_before.keys()
    (folder / "a.wsdl").write_text(wsdl("".join(ASK.values())))
    assert run("generate", *sources, *place)[0] == 0
    assert content(package) == before


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("generate",),
        ("generate", SOURCES),
        ("generate", SOURCES, "--package", "not a name", "--out", "x"),
        ("generate", SOURCES, "--package", "class", "--out", "x"),
        ("generate", SOURCES, "--package", "p", "--out", "x", "--bindings", "smtp"),
        ("generate", SOURCES, "--package", "p", "--out", "x", "--operations", ","),
        ("check", SOURCES, "--package", "p"),
        ("inspect",),
        ("nonsense",),
    ],
)
def test_wrong_usage_is_2(run: Run, argv: tuple[str, ...]) -> None:
    code, out, err = run(*argv)
    assert code == 2
    assert out == ""
    assert "usage:" in err


def test_sources_at_fault_are_1(run: Run, tmp_path: Path) -> None:
    place = ("--package", "p", "--out", str(tmp_path / "out"))
    code, _, err = run("generate", str(tmp_path / "nowhere"), *place)
    assert code == 1
    assert "no such file or folder" in err
    empty = tmp_path / "empty"
    empty.mkdir()
    for argv in (("generate", str(empty), *place), ("check", str(empty), *place), ("inspect", str(empty))):
        code, _, err = run(*argv)
        assert code == 1
        assert "nothing to generate" in err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (OSError(5, "Input/output error", "a.xsd"), 1, "a.xsd: Input/output error"),
        (ValueError("two\nlines"), 1, "internal error, please report it: ValueError: two lines"),
        (RecursionError("deep"), 1, "internal error, please report it: RecursionError: deep"),
    ],
)
def test_whatever_goes_wrong_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(cli, "generate", fail)
    monkeypatch.delenv("MTOSI_JMS_DEBUG", raising=False)
    assert run("inspect", SOURCES) == (code, "", f"error: {text}\n")


def test_a_defect_shows_its_traceback_when_asked_to(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(cli, "generate", fail)
    monkeypatch.setenv("MTOSI_JMS_DEBUG", "1")
    with pytest.raises(ValueError, match="a defect"):
        run("inspect", SOURCES)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_one_line(root: Path) -> None:
    argv = [sys.executable, "-m", "mtosi_codegen", "inspect", SOURCES]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'codegen'}"},
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_a_reader_that_goes_away_is_no_problem(root: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mtosi_codegen", "inspect", SOURCES],
            stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
            env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'codegen'}"},
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
