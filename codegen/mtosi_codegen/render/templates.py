"""The built-in templates, and the user's that replace them. An error in a template names its file and line."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from mtosi_codegen.render.layout import docstring, python
from mtosi_jms.errors import MissingExtraError, SchemaError

_FOLDER: Final = Path(__file__).parent.parent / "templates"
_SUFFIX: Final = ".jinja"
_BUILT_IN: Final = "default"


class Templates:
    """A set of templates, each compiled once. Values in pages are escaped, values in Python code are not.

    Args:
        kind: folder of built-in templates below `templates`; empty for the templates of packages.
        folder: folder of templates that replace built-in ones of the same name. They can include the built-in one as
            `default/NAME`. Files whose names begin with `_` are helpers of their own.

    Raises:
        SchemaError: the folder cannot be read, or has a file that replaces no built-in template.
        MissingExtraError: Jinja2 is not installed.
    """

    def __init__(self, kind: str = "", folder: Path | None = None) -> None:
        try:
            import jinja2
        except ImportError as error:
            raise MissingExtraError("jinja2", "codegen") from error
        shipped = jinja2.FileSystemLoader(_FOLDER / kind)
        loaders: list[jinja2.BaseLoader] = [jinja2.PrefixLoader({_BUILT_IN: shipped}), shipped]
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
        """Fill a template with values and return the text. Raises SchemaError: the template cannot be read or fails.
        The error names its file and line."""
        import jinja2

        try:
            return self._environment.get_template(name).render(values)
        except jinja2.TemplateSyntaxError as error:
            message = error.message or "not a template"
            raise SchemaError(message, file=error.filename or error.name or name, line=error.lineno) from None
        except Exception as error:
            raise _error(error, name) from error


def built_in() -> list[Path]:
    """The files of the built-in templates of packages, sorted."""
    return sorted(path for path in _FOLDER.iterdir() if path.is_file())


def _check(folder: Path) -> None:
    known = [path.name for path in built_in()]
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
    """The error of a template, with the last line of a template that ran."""
    message = f"{type(error).__name__}: {error}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith(_SUFFIX):
            return SchemaError(message, file=frame.filename, line=frame.lineno)
    return SchemaError(message, file=name)
