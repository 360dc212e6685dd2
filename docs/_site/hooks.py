"""What the documentation site has beyond the pages in docs/: pages made from the code, and links to other files.

`make docs` runs it as a hook of MkDocs. Made anew with each build, so that they cannot go stale:

- the front page, the change log and the rules for contributors, from the files in the root of the repository;
- the examples, each a page with its code;
- the commands, from their parsers;
- the Python interface, a page for each public module that has names of its own, from its docstrings.

A link that is called as its file, such as [spark.md](spark.md), gets the title of that page. A link to a file of the
repository that is not a page of the site becomes plain text.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import mtosi_jms
from mtosi_jms.cli import COMMANDS, parser_for
from mtosi_jms.errors import MissingExtraError

ROOT: Final = Path(__file__).resolve().parents[2]

COPIED: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "xsd/README.md": "profile.md",
}
"""Files of the repository that are pages, and the pages' names."""
_INNER: Final = ("cli", "closing", "jars", "masking", "report", "stubs")
"""What the SDK's packages share among themselves, the commands, and generated code."""

_LINK: Final = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)+)\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$", re.DOTALL | re.MULTILINE)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


def public_modules() -> list[str]:
    """The public modules, but those whose names are all names of their package."""
    names = ["mtosi_jms"]
    for found in pkgutil.walk_packages(mtosi_jms.__path__, "mtosi_jms."):
        parts = found.name.split(".")[1:]
        if any(part.startswith("_") for part in parts) or parts[0] in _INNER:
            continue
        module = importlib.import_module(found.name)
        above = getattr(importlib.import_module(found.name.rpartition(".")[0]), "__all__", ())
        if set(getattr(module, "__all__", ())) - set(above):
            names.append(found.name)
    return names


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the version into the site's name, and the pages of all commands and packages where mkdocs.yml names them."""
    config.site_name = f"{config.site_name} {mtosi_jms.__version__}"
    config.nav = _filled(
        config.nav,
        {
            "the commands": [{name: f"reference/commands/{name}.md"} for name in COMMANDS],
            "the packages": [{package: f"reference/api/{package}.md"} for package in public_modules()],
        },
    )
    return config


def _filled(nav: Any, places: dict[str, list[dict[str, str]]]) -> Any:
    if isinstance(nav, dict):
        return {title: _filled(item, places) for title, item in nav.items()}
    if isinstance(nav, list):
        return [one for item in nav for one in _pages_of(item, places)]
    return nav


def _pages_of(item: Any, places: dict[str, list[dict[str, str]]]) -> list[Any]:
    return places[item] if isinstance(item, str) and item in places else [_filled(item, places)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for page, text in made_pages():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links of the site."""
    source = page.file.src_uri
    folder = _folder_of(source)
    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [_linked(markdown[end : code.start()], folder, source, files), code[0]]
        end = code.end()
    return "".join([*parts, _linked(markdown[end:], folder, source, files)])


def made_pages() -> Iterator[tuple[str, str]]:
    """Paths and texts of the pages that are made."""
    for name, page in COPIED.items():
        yield page, (ROOT / name).read_text(encoding="utf-8")
    yield "examples/index.md", _examples_page()
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield f"examples/{path.stem}.md", f"# {path.stem}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"
    for name in COMMANDS:
        yield f"reference/commands/{name}.md", _command_page(name)
    for package in public_modules():
        yield f"reference/api/{package}.md", f"# {package}\n\n::: {package}\n"


def _examples_page() -> str:
    lines = ["# Examples", "", "Each is a program that runs as it is: `python examples/NAME.py`.", ""]
    for path in sorted((ROOT / "examples").glob("*.py")):
        first = path.read_text(encoding="utf-8").split('"""', 2)[1].strip().splitlines()[0]
        lines.append(f"- [{path.stem}]({path.stem}.md): {first}")
    return "\n".join(lines) + "\n"


def _command_page(name: str) -> str:
    """What `--help` of a command prints, at a fixed width."""
    said = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        with redirect_stdout(said):
            parser_for(name).parse_args([name, "--help"])
    except SystemExit:
        pass
    except MissingExtraError as error:
        said.write(str(error))
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return f"# mtosi-jms {name}\n\n{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.\n\n```text\n{said.getvalue()}```\n"


def _folder_of(source: str) -> Path:
    """The folder from which the links of a page are meant."""
    for name, page in COPIED.items():
        if page == source:
            return (ROOT / name).parent
    return (ROOT / "docs" / source).parent


def _linked(text: str, folder: Path, source: str, files: Files) -> str:
    def link(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        path, mark, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return found[0]
        page = _page_of((folder / path).resolve())
        if page is None or (there := files.get_file_from_path(page)) is None:
            return found[0] if (folder / path).resolve().suffix in (".svg", ".png") else label
        if label.endswith(".md") and (title := _TITLE.search(there.content_string)):
            label = title[1]
        return f"[{label}]({os.path.relpath(page, Path(source).parent)}{mark}{anchor})"

    return _LINK.sub(link, text)


def _page_of(target: Path) -> str | None:
    """The page for a file of the repository."""
    if not target.is_relative_to(ROOT):
        return None
    name = target.relative_to(ROOT).as_posix()
    if name in COPIED:
        return COPIED[name]
    if name == "docs/design":
        return "design/index.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    if name == "examples":
        return "examples/index.md"
    if name.startswith("examples/"):
        return f"examples/{target.stem}.md"
    return None
