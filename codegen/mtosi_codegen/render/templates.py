"""The templates: ours, and those of a folder that take their place. An error in one names its file and line."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from mtosi_codegen.render.layout import docstring, python
from mtosi_jms.errors import MissingExtraError, SchemaError

_FOLDER: Final = Path(__file__).parent.parent / "templates"
_SUFFIX: Final = ".jinja"
_OURS: Final = "default"


class Templates:
    """Templates, each compiled once. Pages are escaped, Python is not.

    Args:
        kind: folder of ours below `templates`; empty for those of packages.
        folder: templates that take the place of ours of the same name. They reach ours as `default/NAME`; files whose
            names begin with `_` are their own.

    Raises:
        SchemaError: the folder cannot be read, or has a file that is no template of ours.
        MissingExtraError: Jinja2 is not installed.
    """

    def __init__(self, kind: str = "", folder: Path | None = None) -> None:
        try:
            import jinja2
        except ImportError as error:
            raise MissingExtraError("jinja2", "codegen") from error
        shipped = jinja2.FileSystemLoader(_FOLDER / kind)
        loaders: list[jinja2.BaseLoader] = [jinja2.PrefixLoader({_OURS: shipped}), shipped]
        if folder is not None:
            _check(folder)
            loaders.insert(0, jinja2.FileSystemLoader(folder))
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader(loaders),
            undefined=jinja2.StrictUndefined,
            autoescape=jinja2.select_autoescape(("html.jinja",)),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.filters.update(python=python, docstring=docstring)

    def render(self, name: str, **values: object) -> str:
        """The text that a template makes of values.

        Raises:
            SchemaError: the template cannot be read or fails; with its file and line.
        """
        import jinja2

        try:
            return self._environment.get_template(name).render(values)
        except jinja2.TemplateSyntaxError as error:
            message = error.message or "not a template"
            raise SchemaError(message, file=error.filename or error.name or name, line=error.lineno) from None
        except Exception as error:
            raise _error(error, name) from error


def ours() -> list[Path]:
    """The files of our templates of packages, sorted."""
    return sorted(path for path in _FOLDER.iterdir() if path.is_file())


def _check(folder: Path) -> None:
    known = [path.name for path in ours()]
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise SchemaError(f"no folder of templates: {error.strerror}", file=str(folder)) from None
    for path in paths:
        if path.name in known:
            _check_text(path)
        elif not path.name.startswith(("_", ".")):
            hint = f"the templates are {', '.join(known)}; begin the name of your own with _"
            raise SchemaError(f"not the name of a template; {hint}", file=str(path))


def _check_text(path: Path) -> None:
    try:
        path.read_text(encoding="utf-8")
    except OSError as error:
        raise SchemaError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError:
        raise SchemaError("not UTF-8", file=str(path)) from None


def _error(error: Exception, name: str) -> SchemaError:
    """What a template failed with, and the last place in a template that it passed."""
    message = f"{type(error).__name__}: {error}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith(_SUFFIX):
            return SchemaError(message, file=frame.filename, line=frame.lineno)
    return SchemaError(message, file=name)
