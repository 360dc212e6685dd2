"""Values as Python: their annotations and what stands for them in the tables."""

from __future__ import annotations

import re
from typing import Final

from mtosi_codegen.model import (
    Builtin,
    ClassDef,
    EnumValue,
    FacetValue,
    Field,
    ListValue,
    ObjectValue,
    TypeModule,
    UnionValue,
    Value,
)
from mtosi_codegen.passes.cycles import private_name
from mtosi_codegen.passes.values import INTEGERS, builtin_of
from mtosi_codegen.render.layout import Brackets, Expression, string, tuple_of

_CONSTANTS: Final = {
    "normalizedString": "NORMALIZED",
    "anyURI": "ANY_URI",
    "anySimpleType": "ANY_SIMPLE",
    "base64Binary": "BASE64",
    "hexBinary": "HEX",
}
_PYTHON: Final = {
    "boolean": "bool",
    "decimal": "_decimal.Decimal",
    "float": "float",
    "double": "float",
    "dateTime": "_dt.datetime",
    "date": "_dt.date",
    "time": "_dt.time",
    "duration": "_x.Duration",
    "base64Binary": "bytes",
    "hexBinary": "bytes",
    "NMTOKENS": "list[str]",
    "IDREFS": "list[str]",
    "ENTITIES": "list[str]",
}
_COUNTS: Final = frozenset({"min_length", "max_length", "digits", "fraction"})
_STANDARD: Final = {"_dt": "import datetime as _dt", "_decimal": "import decimal as _decimal"}


def constant_of(name: str) -> str:
    """The run-time library's name of a built-in type."""
    text = _CONSTANTS.get(name) or re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).upper()
    return f"_x.{text}"


def type_class(cls: ClassDef) -> ClassDef:
    """The class to annotate a reference to an element with: that of its type where that has a name."""
    return next((ancestor for ancestor in cls.lineage() if ancestor.kind == "type"), cls)


def path_of(entry: ClassDef | EnumValue) -> str:
    """`module:Class`, as tables name classes."""
    target = entry.enum if isinstance(entry, EnumValue) else entry
    return f"{target.module.path}:{target.name}"


class Names:
    """How one generated file refers to others, and what it has to import for that.

    Args:
        home: dotted path of the file below the package.
    """

    def __init__(self, home: str) -> None:
        self.home = home
        self.run_time: set[TypeModule] = set()
        self.typing: set[TypeModule] = set()
        self.standard: set[str] = set()
        self.library = False

    def local(self, module: TypeModule, name: str, *, run_time: bool = False) -> str:
        """A class or enumeration as this file names it."""
        if module.home == self.home:
            return private_name(module, name)
        (self.run_time if run_time else self.typing).add(module)
        return f"{module.alias}.{name}"

    def annotation(self, value: Value, shadowed: frozenset[str] = frozenset()) -> str:
        """The Python type of a value.

        Args:
            shadowed: built-in names that mean something else where the annotation stands.
        """
        if isinstance(value, ObjectValue):
            cls = type_class(value.cls)
            return self.local(cls.module, cls.name)
        if isinstance(value, EnumValue):
            return self.local(value.enum.module, value.enum.name)
        if isinstance(value, FacetValue):
            return self.annotation(value.base, shadowed)
        if isinstance(value, ListValue):
            return f"{builtin('list', shadowed)}[{self.annotation(value.item, shadowed)}]"
        if isinstance(value, UnionValue):
            return " | ".join(dict.fromkeys(self.annotation(member, shadowed) for member in value.members))
        if isinstance(value, Builtin):
            return self._python(value.name, shadowed)
        self.library = True
        return "_x.RawXml"

    def _python(self, name: str, shadowed: frozenset[str]) -> str:
        text = "int" if name in INTEGERS else _PYTHON.get(name, "str")
        alias = text.partition(".")[0]
        if alias in _STANDARD:
            self.standard.add(_STANDARD[alias])
        self.library = self.library or alias == "_x"
        return re.sub(r"\w+", lambda match: builtin(match.group(), shadowed), text) if "." not in text else text

    def field(self, field: Field, shadowed: frozenset[str] = frozenset()) -> str:
        """The annotation of a field as the class has it, without the None of an absent one."""
        if field.kind == "any":
            self.library = True
            return f"{builtin('list', shadowed)}[_x.XmlObject | _x.RawXml]"
        if field.kind == "mixed":
            self.library = True
            return f"{builtin('list', shadowed)}[{builtin('str', shadowed)} | _x.XmlObject | _x.RawXml]"
        text = self.annotation(field.type, shadowed)
        if field.nillable:
            self.library = True
            text += " | _x.Nil"
        return f"{builtin('list', shadowed)}[{text}]" if field.many else text


def builtin(name: str, shadowed: frozenset[str]) -> str:
    """A built-in name, through its module where a field of the class has the same name."""
    return f"_b.{name}" if name in shadowed else name


def table_type(value: Value) -> Expression:
    """What stands for a type in a table."""
    if isinstance(value, ObjectValue):
        return string(path_of(value.cls))
    if isinstance(value, EnumValue):
        return f"_x.enum({string(path_of(value))})"
    if isinstance(value, ListValue):
        return Brackets("_x.list_of(", (table_type(value.item),))
    if isinstance(value, UnionValue):
        return Brackets("_x.union(", tuple(table_type(member) for member in value.members))
    if isinstance(value, FacetValue):
        facets = [_facet(name, texts, builtin_of(value.base)) for name, texts in value.facets]
        return Brackets("_x.simple(", (table_type(value.base), *(facet for facet in facets if facet is not None)))
    return constant_of(value.name) if isinstance(value, Builtin) else "_x.RAW"


def _facet(name: str, texts: tuple[str, ...], kind: str) -> Expression | None:
    if name == "patterns":
        return f"pattern={string(texts[0])}" if len(texts) == 1 else tuple_of([*map(string, texts)], head="patterns=")
    if name in ("default", "fixed"):
        return f"{name}={string(texts[0])}"
    if name == "values":
        return tuple_of([string(text) for text in texts], head="values=")
    text = texts[0].strip()
    if name in _COUNTS or kind in INTEGERS:
        return f"{name}={int(text)}" if re.fullmatch(r"[+-]?\d+", text) else None
    return f"{name}={constant_of(kind)}.lenient({string(text)})[0]"
