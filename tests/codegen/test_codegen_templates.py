"""Templates: those of a folder take the place of ours, one by one; an error in one names file and line."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mtosi_codegen import Result, compare, generate
from mtosi_codegen.cli import main
from mtosi_codegen.render.layout import WIDTH, fold
from mtosi_codegen.render.templates import built_in
from mtosi_jms.errors import SchemaError

HERE = Path(__file__).parent
SOURCES = HERE / "sources"
HEAD = "head.py.jinja"
Make = Callable[[Mapping[str, str]], Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "templates"


@pytest.fixture
def made(folder: Path) -> Make:
    """The package of `sources` with some templates replaced."""

    def make(templates: Mapping[str, str]) -> Result:
        folder.mkdir(exist_ok=True)
        for name, text in templates.items():
            (folder / name).write_text(text, encoding="utf-8")
        return generate([SOURCES], templates=folder)

    return make


def test_a_licence_header_in_every_file(made: Make) -> None:
    result = made({HEAD: "{{ banner }}\n# Copyright Acme\n"})
    assert {text.split("\n")[1] for text in result.files.values()} == {"# Copyright Acme"}
    plain = generate([SOURCES]).files
    assert {path: text.replace("# Copyright Acme\n", "") for path, text in result.files.items()} == plain


def test_another_base_class_and_one_more_import(made: Make) -> None:
    (shipped,) = [path.read_text(encoding="utf-8") for path in built_in() if path.name == "class.py.jinja"]
    result = made(
        {
            "class.py.jinja": shipped.replace("({{ cls.bases }})", "(_acme.Base, {{ cls.bases }})"),
            "types.py.jinja": '{% extends "default/types.py.jinja" %}\n'
            "{% block imports %}\n{{ super() }}from acme import base as _acme\n{% endblock %}\n",
        }
    )
    text = result.files["com_example/shop_messages.py"]
    assert "\nfrom acme import base as _acme\n" in text
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.decorator_list]
    assert {ast.unparse(node.bases[0]) for node in classes} == {"_acme.Base"}


def test_files_of_ones_own(made: Make) -> None:
    result = made({HEAD: '{{ banner }}\n{% include "_licence.txt" %}', "_licence.txt": "# Free\n"})
    assert {text.split("\n")[1] for text in result.files.values()} == {"# Free"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{{ banner }}\n{{ nothing }}\n", 2, "'nothing' is undefined"),
        ("{{ banner }}\n\n{% if %}\n", 3, "Expected an expression"),
        ("{{ banner }}\n{% for x in 3 %}{% endfor %}\n", 2, "not iterable"),
        ("{{ banner }}\n{{ 1 / 0 }}\n", 2, "division by zero"),
        ("{{ banner | nosuch }}\n", 1, "nosuch"),
        ('{% include "head.py.jinja" %}\n', 1, "RecursionError"),
        ('{{ banner }}\n{% include "_gone" %}\n', 2, "_gone"),
    ],
)
def test_an_error_names_file_and_line(made: Make, folder: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        made({HEAD: text})
    assert (caught.value.file, caught.value.line) == (str(folder / HEAD), line)


@pytest.mark.parametrize(
    ("templates", "file", "message"),
    [
        ({HEAD: "# Copyright Acme\n{{ banner }}\n"}, "package.py.jinja", "must begin with {{ banner }}"),
        ({HEAD: "{{ banner }}\nno Python\n"}, "package.py.jinja", "line 2 of __init__.py is not Python"),
    ],
)
def test_what_comes_out_is_checked(made: Make, templates: dict[str, str], file: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        made(templates)
    assert caught.value.file == file


def test_a_name_that_no_template_has_is_told(made: Make, folder: Path) -> None:
    with pytest.raises(SchemaError, match=r"not the name of a template; the templates are class\.py") as caught:
        made({"clas.py.jinja": ""})
    assert caught.value.file == str(folder / "clas.py.jinja")


def test_a_template_that_is_no_text(made: Make, folder: Path) -> None:
    folder.mkdir()
    (folder / HEAD).write_bytes(b"\xff")
    with pytest.raises(SchemaError, match="not UTF-8") as caught:
        made({})
    assert caught.value.file == str(folder / HEAD)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no folder of templates"):
        generate([SOURCES], templates=tmp_path / "nowhere")


def test_templates_written_out_give_the_same_package(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: {len(built_in())} templates\n"
    assert sorted(path.name for path in folder.iterdir()) == [path.name for path in built_in()]
    assert generate([SOURCES], templates=folder).files == generate([SOURCES]).files
    assert main(["templates", str(folder)]) == 0, "the same files again"


def test_a_changed_template_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["templates", str(folder)])
    (folder / HEAD).write_text("mine", encoding="utf-8")
    (folder / "types.py.jinja").unlink()
    assert main(["templates", str(folder)]) == 1
    assert "head.py.jinja: exists, and differs from ours" in capsys.readouterr().err
    assert (folder / HEAD).read_text(encoding="utf-8") == "mine"
    assert not (folder / "types.py.jinja").exists(), "nothing was written"


def test_generate_and_check_by_templates(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir()
    (folder / HEAD).write_text("{{ banner }}\n# Copyright Acme\n", encoding="utf-8")
    place = [str(SOURCES), "--package", "p", "--out", str(tmp_path)]
    assert main(["generate", *place, "--templates", str(folder)]) == 0
    assert main(["check", *place, "--templates", str(folder)]) == 0
    assert main(["check", *place]) == 1
    written = {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.py")}
    (folder / HEAD).write_text("{{ banner }}\n{{ oops }}\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["generate", *place, "--templates", str(folder)]) == 1
    assert f"error: {folder / HEAD}:2: UndefinedError: 'oops' is undefined\n" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (tmp_path / "p").rglob("*.py")} == written, "nothing was written"


def test_generated_files_are_known_again(made: Make, tmp_path: Path) -> None:
    from mtosi_codegen import write

    write(tmp_path / "p", made({HEAD: "{{ banner }}\n# Copyright Acme\n"}).files)
    plain = generate([SOURCES], operations=["notify"]).files
    write(tmp_path / "p", plain)
    assert compare(tmp_path / "p", plain) == []


def test_without_jinja2_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\nfrom mtosi_codegen.cli import main\n"
        f"sys.exit(main(['inspect', {str(SOURCES)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1, "error: jinja2 is not installed: pip install 'mtosi-jms[codegen]'\n",
    )  # fmt: skip


def test_the_page_names_every_template_and_what_it_is_given(root: Path) -> None:
    page = (root / "docs" / "templates.md").read_text(encoding="utf-8")
    lists = dict(re.findall(r"^\| `(\w+)` (\|.*\n(?:\| +\|.*\n)*)", page.partition("| of |")[2], re.MULTILINE))
    for path in built_in():
        assert f"| `{path.name}` |" in page
        used = re.findall(rf"\b({'|'.join(lists)})\.([a-z]\w*)", path.read_text(encoding="utf-8"))
        used = [(name, attribute) for name, attribute in used if attribute != "py"]
        assert [f"{name}.{attribute}" for name, attribute in used if f"`{attribute}`" not in lists[name]] == [], path


LONG = "a" * 50


@pytest.mark.parametrize(
    "line",
    [
        f"value = call({LONG}, {LONG}, {LONG})",
        f"    def method(self, one: {LONG}, two: dict[str, {LONG}]) -> tuple[{LONG}, {LONG}]:",
        f'table = {{"{LONG}": "(", "b": "{LONG}", "c": "{LONG}"}}',
        f"field: list[{LONG}] = field({LONG}, {LONG})",
        f"    def method1(self, one: {LONG}, context: {LONG}) -> Done:",
        f"class Name(Base[{LONG}, {LONG}, {LONG}]):",
        f"        return one_of(({LONG},), ({LONG}, {LONG}), x=['{LONG})'])",
        f"{LONG}{LONG}_long_name = {LONG}({LONG}, {LONG})",
    ],
)
def test_long_lines_fold_as_the_formatter_folds_them(line: str, tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    body = "\n        pass" if line.startswith("    def") else "\n    pass" if line.endswith(":") else ""
    folded = fold(f"{line}{body}").strip("\n")
    assert max(map(len, folded.split("\n"))) <= WIDTH
    assert ast.dump(ast.parse(inside(folded))) == ast.dump(ast.parse(inside(f"{line}{body}")))
    file = tmp_path / "a.py"
    file.write_text(inside(folded) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", f"--line-length={WIDTH}",
               "--config=format.quote-style='preserve'", "--diff", str(file)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def inside(text: str) -> str:
    """Indented text in what it can stand in."""
    head = "class A:\n" if text.startswith("    def") else "def a():\n    if a:\n" if text.startswith("    ") else ""
    return head + text


@pytest.mark.parametrize("line", [f'"""{"word " * 40}(a, b)"""', f"# {LONG}({LONG}, {LONG})", f"{LONG}{LONG}{LONG}"])
def test_what_has_no_place_to_fold_stays(line: str) -> None:
    assert fold(line) == line
    assert fold(f'"""One\n\n{line}\n"""') == f'"""One\n\n{line}\n"""'
