"""The wheels: what is in them, and that they run with what they require alone. `make wheels` hands in those it made."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATIVE = "mtosi_jms/xmlbind/_core.abi3.so"
GIVEN = [Path(name) for name in os.environ.get("MTOSI_JMS_WHEELS", "").split()]
CASES = [(wheel, core) for wheel in GIVEN for core in (("native", "python") if "abi3" in wheel.name else ("python",))]
BUILD = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir")
PIP = (sys.executable, "-m", "pip", "--python")

OFFLINE = """
import socket, sys
sys.stdout.reconfigure(encoding="utf-8")
def refuse(*args, **kwargs):
    raise AssertionError("a connection was attempted")
socket.socket.connect = socket.getaddrinfo = refuse
"""

IMPORT_ALL = """
import importlib, pkgutil, mtosi_jms
from mtosi_jms.errors import MissingExtraError
for info in pkgutil.walk_packages(mtosi_jms.__path__, "mtosi_jms."):
    if info.name.rpartition(".")[2] == "__main__":
        continue
    try:
        importlib.import_module(info.name)
        print(info.name, "imported")
    except MissingExtraError as error:
        print(info.name, error)
"""

CORE = ("errors", "namespaces", "xmlbind", "service", "soap", "jms", "binding.mapping", "patterns", "transport", "cli")


def run(*command: object, cwd: Path, variables: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
    )


def output(*command: object, cwd: Path, variables: Mapping[str, str] = os.environ) -> str:
    done = run(*command, cwd=cwd, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Installed(NamedTuple):
    """A wheel in an environment of its own, away from the checkout."""

    interpreter: Path
    wheel: Path
    core: str

    def command(self, name: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run an installed command on the core that is to be used."""
        forced = {"MTOSI_JMS_CORE": "python"} if self.core == "python" else {}
        kept = {key: value for key, value in os.environ.items() if key != "MTOSI_JMS_CORE"}
        place = self.interpreter.parent / name if name else "-Werror"
        return run(self.interpreter, "-I", place, *arguments, cwd=cwd, variables=kept | forced)

    def python(self, *arguments: object, cwd: Path) -> str:
        """What Python prints, where a warning is an error."""
        done = self.command("", *arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(
    scope="module", params=CASES or [None], ids=lambda case: f"{case[1]}-{case[0].name}" if case else "here"
)
def bare(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A wheel of the release, or that of this checkout with the Python core, and what it requires alone."""
    out = tmp_path_factory.mktemp("bare")
    if request.param is None:
        output(*BUILD, out, ROOT, cwd=out, variables=os.environ | {"MTOSI_JMS_BUILD": "python"})
    wheel, core = request.param or (*out.glob("*.whl"), "python")
    folder = str(out / "venv")
    venv.create(folder, symlinks=True)
    interpreter = Path(folder, "bin", "python")
    output(*PIP, interpreter, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=out)
    site = Path(sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder}))
    distribution = importlib.metadata.distribution("lxml")
    for name in {file.parts[0] for file in distribution.files or []}:
        (site / name).symlink_to(str(distribution.locate_file(name)))
    return Installed(interpreter, wheel, core)


def test_a_wheel_holds_what_the_tree_holds(bare: Installed) -> None:
    found = {}
    for package in (ROOT / "mtosi_jms", ROOT / "codegen" / "mtosi_codegen"):
        files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        found |= {path.relative_to(package.parent).as_posix(): path for path in files if path.stem != "_core.abi3"}
    with zipfile.ZipFile(bare.wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name and name[-1] != "/"]
        share = next(name for name in names if ".data/" in name).partition("/")[0] + "/data/share/mtosi-jms/"
        folders = ("mtosi-1.1", "wsdl", "xsd")
        schemas = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
        found |= {share + path.relative_to(ROOT).as_posix(): path for path in schemas}
        native = [NATIVE] if "abi3" in bare.wheel.name else []
        assert sorted(names) == sorted([*found, *native])
        assert [name for name, path in found.items() if archive.read(name) != path.read_bytes()] == []


def test_it_says_which_core_it_runs_and_is_sound(bare: Installed, tmp_path: Path) -> None:
    done = bare.command("mtosi-jms", "doctor", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], told["core"]) == (0, True, bare.core)
    assert str(bare.interpreter.parent.parent) in next(
        one["detail"] for one in told["checks"] if one["name"] == "schemas"
    )


def test_every_module_imports_or_names_its_extra(bare: Installed, tmp_path: Path) -> None:
    said = bare.python("-c", OFFLINE + IMPORT_ALL, cwd=tmp_path)
    outcome = dict(line.split(" ", 1) for line in said.splitlines())
    refused = {name: text for name, text in outcome.items() if text != "imported"}
    assert [text for text in refused.values() if "pip install " not in text] == []
    assert [name for name in CORE if outcome[f"mtosi_jms.{name}"] != "imported"] == []


def test_the_first_program_of_the_readme_runs(bare: Installed, tmp_path: Path) -> None:
    program = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    assert "MD=EMS1/ME=NE-1" in bare.python("-c", OFFLINE + program, cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "says"), [("e01_simple_call.py", "fault: entityNotFound"), ("e02_batches.py", "[300, 300, 300, 100]")]
)
def test_the_examples_run(bare: Installed, name: str, says: str, tmp_path: Path) -> None:
    assert says in bare.python(shutil.copy(ROOT / "examples" / name, tmp_path), cwd=tmp_path)


def test_the_generator_answers_and_names_the_extra_that_it_needs(bare: Installed, tmp_path: Path) -> None:
    assert "mtosi-codegen" in bare.command("mtosi-codegen", "--help", cwd=tmp_path).stdout
    sources = bare.interpreter.parent.parent / "share" / "mtosi-jms" / "xsd"
    done = bare.command("mtosi-codegen", "generate", sources, "--package", "acme", "--out", tmp_path, cwd=tmp_path)
    assert "pip install 'mtosi-jms[codegen]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "code", "says"),
    [
        ({"CARGO": "no-such-cargo"}, 0, "without the native XML core, XML is read and written at about a fifth"),
        ({"CARGO": "no-such-cargo", "MTOSI_JMS_BUILD": "native"}, 1, "cannot be built: there is no no-such-cargo"),
        ({"CARGO": "/bin/false"}, 0, "cargo failed; install Rust 1."),
        ({"CARGO": "{old}", "MTOSI_JMS_BUILD": "native"}, 1, "be built: error: it needs rustc 1.99; install"),
        ({"MTOSI_JMS_BUILD": "fast"}, 1, "MTOSI_JMS_BUILD is native or python, not 'fast'"),
    ],
)  # fmt: skip
def test_where_the_core_cannot_be_built_one_line_says_why_and_what_helps(
    variables: dict[str, str], code: int, says: str, tmp_path: Path
) -> None:
    source, old, out = tmp_path / "source", tmp_path / "old", tmp_path / "out"
    old.write_text("#!/bin/sh\necho 'error: it needs rustc 1.99' >&2; exit 101\n", encoding="utf-8")
    old.chmod(0o755)
    shutil.copytree(ROOT / "native", source / "native", ignore=shutil.ignore_patterns("target"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in ("mtosi_jms", "codegen/mtosi_codegen", "wsdl", "xsd"):
        (source / folder).mkdir(parents=True)
    (source / "mtosi_jms" / "__init__.py").touch()
    given = {key: value.format(old=old) for key, value in variables.items()}
    kept = {key: value for key, value in os.environ.items() if key != "MTOSI_JMS_BUILD"}
    done = run(*BUILD, out, source, cwd=tmp_path, variables=kept | given)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert len([line for line in said.splitlines() if says in line]) == 1, said
    assert "Traceback" not in said
    assert [wheel.name.split("-", 2)[2] for wheel in out.glob("*.whl")] == ["py3-none-any.whl"] * (code == 0)
