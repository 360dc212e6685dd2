"""The wheel: what is in it, and that it runs with what it requires alone."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What importing the runtime must not load: everything that an extra brings, and the generator.
OPTIONAL = {
    "backports",
    "elementpath",
    "hypothesis",
    "jinja2",
    "mtosi_codegen",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "pytest",
    "rich",
    "stomp",
    "xmlschema",
    "zeep",
}

OFFLINE = """
import socket
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

CORE = ("errors", "namespaces", "xmlbind", "service", "soap", "jms", "jms.binding", "patterns", "transport", "cli")


def python(executable: Path | str, code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(executable), "-I", "-W", "error", "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built as `make check` builds it."""
    out = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = out.glob("*.whl")
    return found


def site_of(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))


def installed(wheel: Path, folder: Path) -> Path:
    """The interpreter of a new venv that holds the wheel, made without any index."""
    venv.create(folder, symlinks=True)
    interpreter = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--quiet", "--no-index", "--no-deps"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return interpreter


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of a venv that holds the wheel and what it requires alone."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    interpreter = installed(wheel, folder)
    distribution = importlib.metadata.distribution("lxml")
    for name in {file.parts[0] for file in distribution.files or []}:
        (site_of(folder) / name).symlink_to(str(distribution.locate_file(name)))
    return interpreter


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of a venv that holds the wheel, and sees this environment's libraries behind it."""
    folder = tmp_path_factory.mktemp("full") / "venv"
    interpreter = installed(wheel, folder)
    libraries = sysconfig.get_path("purelib")
    # A path in a .pth file is added as it is: what makes this checkout importable in there is not followed.
    (site_of(folder) / "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return interpreter


def test_the_wheel_holds_two_packages_the_schemas_and_true_metadata(wheel: Path) -> None:
    checked = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "check_wheel.py"), str(wheel)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_core_runs_with_what_it_requires_alone(bare: Path, tmp_path: Path) -> None:
    result = python(bare, OFFLINE + "import mtosi_jms, mtosi_jms.soap; print(mtosi_jms.__file__)", tmp_path)
    assert result.returncode == 0, result.stderr
    assert str(bare.parent.parent) in result.stdout


def test_every_module_imports_or_names_its_extra(bare: Path, tmp_path: Path) -> None:
    result = python(bare, OFFLINE + IMPORT_ALL, tmp_path)
    assert result.returncode == 0, result.stderr
    outcome = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    refused = {name: text for name, text in outcome.items() if text != "imported"}
    assert [text for text in refused.values() if "pip install 'mtosi-jms[" not in text] == []
    assert [name for name in CORE if outcome[f"mtosi_jms.{name}"] != "imported"] == []


def test_importing_the_package_leaves_optional_libraries_alone(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import mtosi_jms\n"
    code += "print(*{name.partition('.')[0] for name in sys.modules})"
    result = python(sys.executable, code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()).isdisjoint(OPTIONAL)


def test_the_first_program_of_the_readme_runs_on_the_core_alone(bare: Path, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = readme.partition("```python\n")[2].partition("```")[0]
    result = python(bare, "import sys; sys.stdout.reconfigure(encoding='utf-8')\n" + OFFLINE + program, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "MD=EMS1/ME=NE-1" in result.stdout


def command(bare: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an installed command, deaf to the environment's own Python path."""
    run = [str(bare), "-I", str(bare.parent / name), *arguments]
    return subprocess.run(run, cwd=bare.parent, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ["mtosi-jms", "mtosi-codegen"])
def test_the_commands_answer_without_extras(bare: Path, name: str) -> None:
    result = command(bare, name, "--help")
    assert result.returncode == 0, result.stderr
    assert name in result.stdout


def test_the_generator_names_the_extra_that_it_needs(bare: Path, tmp_path: Path) -> None:
    sources = str(bare.parent.parent / "share" / "mtosi-jms" / "xsd")
    result = command(bare, "mtosi-codegen", "generate", sources, "--package", "acme", "--out", str(tmp_path))
    assert result.returncode == 0 or "pip install 'mtosi-jms[codegen]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_schemas_are_installed_with_it(bare: Path) -> None:
    share = bare.parent.parent / "share" / "mtosi-jms"
    assert list((share / "wsdl").rglob("*.wsdl"))
    assert list((share / "xsd").rglob("*.xsd"))


def test_the_checkout_holds_no_built_wheel() -> None:
    assert (
        shutil.which("git") is None
        or not subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "*.whl", "*.tar.gz"], capture_output=True, text=True
        ).stdout
    )


def run_example(interpreter: Path, name: str, cwd: Path) -> str:
    """What an example prints when it is run with an installed wheel, away from the checkout."""
    example = shutil.copy(ROOT / "examples" / name, cwd / name)
    done = subprocess.run(
        [str(interpreter), "-I", "-W", "error", str(example)],
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "says"), [("e01_simple_call.py", "fault: entityNotFound"), ("e02_batches.py", "[300, 300, 300, 100]")]
)
def test_the_examples_run_with_the_wheel_and_what_it_requires_alone(
    bare: Path, name: str, says: str, tmp_path: Path
) -> None:
    assert says in run_example(bare, name, tmp_path)


@pytest.mark.spark
@pytest.mark.endurance
def test_the_spark_example_runs_with_the_wheel(full: Path, tmp_path: Path) -> None:
    """400 elements in four batches: every vendor with its count, and one complete sequence in the ledger."""
    said = run_example(full, "e03_spark_landing.py", tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if line.startswith("|")]
    vendors = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
    assert set(vendors) == {"Kilotel", "Lumen & Sons", "Northwind Optical", "Transvega"}
    assert sum(vendors.values()) == 400
    heading = next(row for row in rows if "complete" in row)
    (sequence,) = [dict(zip(heading, row, strict=True)) for row in rows if len(row) == len(heading) and row != heading]
    assert sequence["complete"] == "true"
    assert [path.name for path in tmp_path.iterdir()] == ["e03_spark_landing.py"]
