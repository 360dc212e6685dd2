"""Python code for values: their annotations and their entries in the tables of classes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from mtosi_codegen.model import (
    Builtin,
    ClassDef,
    EnumValue,
    FacetValue,
    Field,
    ListValue,
    ModelGroup,
    ModelItem,
    ObjectValue,
    TypeModule,
    UnionValue,
    Value,
)
from mtosi_codegen.passes.order import private_name
from mtosi_codegen.passes.values import INTEGERS, builtin_of
from mtosi_codegen.render.layout import python, tuple_of

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
    """The class that annotates a reference to an element: the class of its type if the type has a name."""
    return next((ancestor for ancestor in cls.lineage() if ancestor.kind == "type"), cls)


def path_of(entry: ClassDef | EnumValue) -> str:
    """The name of a class in tables: `module:Class`."""
    target = entry.enum if isinstance(entry, EnumValue) else entry
    return f"{target.module.path}:{target.name}"


class Names:
    """How one generated file refers to others, and the imports that it needs for that.

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
        """The name of a class or enumeration in this file."""
        if module.home == self.home:
            return private_name(module, name)
        (self.run_time if run_time else self.typing).add(module)
        return f"{module.alias}.{name}"

    def imports(self, modules: Iterable[TypeModule]) -> list[str]:
        """The lines that import other generated modules."""
        folder_here = self.home.rpartition(".")[0]
        found = []
        for module in sorted(modules, key=lambda module: module.path):
            folder, _, name = module.path.rpartition(".")
            where = "." if folder == folder_here else f"..{folder}"
            found.append(f"from {where} import {name} as {module.alias}")
        return found

    def annotation(self, value: Value, shadowed: frozenset[str] = frozenset()) -> str:
        """The Python type of a value.

        Args:
            shadowed: built-in names that have another meaning in the scope of the annotation.
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
        """The annotation of a field in its class, without the `None` of an optional field."""
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
    """A built-in name; qualified by its module if a field of the class has the same name."""
    return f"_b.{name}" if name in shadowed else name


def table_type(value: Value) -> str:
    """The expression for a type in a table."""
    if isinstance(value, ObjectValue):
        return python(path_of(value.cls))
    if isinstance(value, EnumValue):
        return f"_x.enum({python(path_of(value))})"
    if isinstance(value, ListValue):
        return f"_x.list_of({table_type(value.item)})"
    if isinstance(value, UnionValue):
        return f"_x.union({', '.join(map(table_type, value.members))})"
    if isinstance(value, FacetValue):
        facets = [_facet(name, texts, builtin_of(value.base)) for name, texts in value.facets]
        return f"_x.simple({', '.join([table_type(value.base), *filter(None, facets)])})"
    return constant_of(value.name) if isinstance(value, Builtin) else "_x.RAW"


def _facet(name: str, texts: tuple[str, ...], kind: str) -> str:
    if name == "patterns":
        return f"pattern={python(texts[0])}" if len(texts) == 1 else f"patterns={python(texts)}"
    if name in ("default", "fixed"):
        return f"{name}={python(texts[0])}"
    if name == "values":
        return f"values={python(texts)}"
    text = texts[0].strip()
    if name in _COUNTS or kind in INTEGERS:
        return f"{name}={int(text)}" if re.fullmatch(r"[+-]?\d+", text) else ""
    return f"{name}={constant_of(kind)}.lenient({python(text)})[0]"


def table_entry(field: Field, cls: ClassDef) -> str:
    """The expression for a field in the table of its class."""
    if field.kind == "mixed":
        return f"_x.MIXED({python(field.name)})"
    if field.kind == "text":
        return f"_x.TEXT({python(field.name)}, {table_type(field.type)})"
    items = [python(field.name)]
    if field.kind == "any":
        items += [f"namespace={python(field.namespaces)}"] if field.namespaces != "##any" else []
        items += [f"min={field.minimum}"] if field.minimum else []
        items += [f"max={field.maximum}"] if field.maximum is not None else []
        items += [f"process={python(field.process)}"] if field.process != "lax" else []
        return f"_x.ANY({', '.join(items)})"
    items += [python(field.xml.local), table_type(field.type)]
    if field.kind == "attribute":
        items += ["required=True"] if field.minimum else ["prohibited=True"] if field.prohibited else []
        items += [f"ns={python(field.xml.namespace)}"] if field.xml.namespace else []
        return f"_x.A({', '.join(items)})"
    items += [f"min={field.minimum}"] if field.minimum else []
    items += [f"max={field.maximum}"] if field.maximum != 1 else []
    items += [f"ns={python(field.xml.namespace)}"] if field.xml.namespace != cls.namespace else []
    items += ["nillable=True"] if field.nillable else []
    items += [f"block={python(sorted(field.block))}"] if field.block else []
    items += ["head=True", f"members={python([path_of(member) for member in field.members])}"] if field.head else []
    return f"_x.E({', '.join(items)})"


def table_model(group: ModelGroup) -> str:
    """The expression for a content model in the table of its class."""
    items = [_model_item(item, group) if isinstance(item, ModelItem) else table_model(item) for item in group.items]
    return f"({python(group.kind)}, {group.minimum}, {group.maximum}, {tuple_of(items)})"


def _model_item(item: ModelItem, group: ModelGroup) -> str:
    name = python(item.field.name)
    if group.kind == "choice" and (item.minimum, item.maximum) == (1, 1):
        return name
    return f"({name}, {item.minimum}, {item.maximum})"
