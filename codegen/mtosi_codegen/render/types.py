"""The text of a module of types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mtosi_codegen.model import ClassDef, EnumClass, FaultDef, Field, ModelGroup, ModelItem, TypeModule
from mtosi_codegen.passes.cycles import private_name
from mtosi_codegen.passes.names import SHADOWED
from mtosi_codegen.passes.order import bases_first
from mtosi_codegen.render.layout import INDENT, Brackets, Expression, docstring, flat, lines, string, tuple_of
from mtosi_codegen.render.values import Names, builtin, path_of, table_type

_SECRETS: Final = frozenset({"security", "password"})
"""XML names of credentials, in lower case: their values stay out of `repr`, and so out of logs (C55)."""

_ROOT: Final = '__name__.rsplit(".", 2)[0]'


def types_module(modules: Sequence[TypeModule], banner: str) -> str:
    """The text of the file that holds the classes of one module, or of several that share a home."""
    writer = _TypesFile(modules)
    body = [*writer.tables(), *writer.enums(), *writer.classes(), *writer.faults(), *writer.extras()]
    if len(modules) == 1:
        body += ["", "", *_dictionaries(modules[0])]
    about = " and ".join(module.namespace or "no namespace" for module in modules)
    head = [banner, *docstring(f"Types of {about}."), *writer.imports(), ""]
    return "\n".join([*head, *body]) + "\n"


def public_module(module: TypeModule, banner: str) -> str:
    """The text of a module whose classes live in a home that it shares."""
    shared = module.home.rpartition(".")[2]
    names = [enum.name for enum in module.enums] + [cls.name for cls in module.classes]
    names += [fault.name for fault in module.faults]
    pairs = sorted((private_name(module, name), name) for name in names)
    text = [banner, *docstring(f"Types of {module.namespace or 'no namespace'}."), "", *_FUTURE, ""]
    if module.simple:
        text += ["from mtosi_jms import xmlbind as _x", ""]
    text += [f"from .._shared.{shared} import {private} as {name}" for private, name in pairs]
    return "\n".join([*text, "", *_dictionaries(module)]) + "\n"


_FUTURE: Final = ("from __future__ import annotations",)


def _dictionaries(module: TypeModule) -> Iterator[str]:
    elements = {cls.xml.local: cls.name for cls in module.classes if cls.kind == "element"}
    types = {cls.xml.local: cls.name for cls in module.classes if cls.kind == "type"}
    types.update({enum.type_name: enum.name for enum in module.enums if enum.type_name})
    faults = {fault.element: fault.name for fault in module.faults}
    for name, table in (("__elements__", elements), ("__types__", types), ("__faults__", faults)):
        if table or name != "__faults__":
            pairs = tuple(f"{string(key)}: {string(table[key])}" for key in sorted(table))
            yield from lines(Brackets("{", pairs, "}"), prefix=f"{name} = " if table else f"{name}: dict[str, str] = ")
    if module.simple:
        simple = tuple(f"{string(key)}: {flat(table_type(value))}" for key, value in sorted(module.simple.items()))
        yield from lines(Brackets("{", simple, "}"), prefix="__simple__ = ")


class _TypesFile:
    def __init__(self, modules: Sequence[TypeModule]) -> None:
        self._modules = modules
        self._names = Names(modules[0].home)
        self._fields = False
        self._builtins = False
        self._shadows_field = False

    def _table_of(self, module: TypeModule) -> str:
        return "_M" if len(self._modules) == 1 else f"_M{module.alias}"

    def tables(self) -> Iterator[str]:
        """The module descriptors."""
        for module in self._modules:
            here = "__name__" if module.home == module.path else f'f"{{{_ROOT}}}.{module.path}"'.replace('"."', "'.'")
            items = (here, string(module.namespace), f"prefix={string(module.prefix)}", f"root={_ROOT}")
            yield from lines(Brackets("_x.Module(", items), prefix=f"{self._table_of(module)} = ")

    def imports(self) -> Iterator[str]:
        """The import lines, after everything else was rendered."""
        names = self._names
        yield from ("", *_FUTURE, "")
        if self._builtins:
            yield "import builtins as _b"
        if any(module.classes for module in self._modules):
            yield f"from dataclasses import dataclass{', field' * self._fields}"
            if self._shadows_field:
                yield "from dataclasses import field as _field"
        typing = sorted(names.typing - names.run_time, key=lambda module: module.path)
        guarded = [*sorted(names.standard), *(import_line(names.home, module.path) for module in typing)]
        if guarded:
            yield "from typing import TYPE_CHECKING"
        yield from ("", "from mtosi_jms import xmlbind as _x")
        for module in sorted(names.run_time, key=lambda module: module.path):
            yield import_line(names.home, module.path)
        if guarded:
            yield from ("", "if TYPE_CHECKING:", *((INDENT + line).rstrip() for line in _spaced(guarded)))

    def enums(self) -> Iterator[str]:
        """The enumerations."""
        for module in self._modules:
            for enum in module.enums:
                yield from ("", "", *_enum(module, enum))

    def classes(self) -> Iterator[str]:
        """The classes, each after its base."""
        every = [cls for module in self._modules for cls in module.classes]
        for cls in bases_first(every) if len(self._modules) > 1 else every:
            yield from ("", "", *self._class(cls))

    def faults(self) -> Iterator[str]:
        """The exception classes."""
        for module in self._modules:
            for fault in module.faults:
                yield from ("", "", *self._fault(module, fault))

    def extras(self) -> Iterator[str]:
        """The short way to make an MTOSI name."""
        for module in self._modules:
            for cls in module.classes:
                if cls.mixin:
                    name = private_name(module, cls.name)
                    yield from ("", "", f"def name(text: str) -> {name}:")
                    yield from docstring("The name that a text form such as `MD=EMS1/ME=NE-7` stands for.", INDENT)
                    yield from (f"{INDENT}parsed: {name} = {name}.parse(text)", f"{INDENT}return parsed")

    def _class(self, cls: ClassDef) -> Iterator[str]:
        base = "_x.XmlObject"
        if cls.base is not None:
            base = self._names.local(cls.base.module, cls.base.name, run_time=True)
        bases = ", ".join([f"_x.{cls.mixin}", base] if cls.mixin else [base])
        declared = [field for field in cls.fields if not field.prohibited]
        shadowed = frozenset(field.name for field in declared) & SHADOWED
        self._builtins = self._builtins or bool(shadowed - {"field"})
        self._shadows_field = self._shadows_field or "field" in shadowed
        yield "@dataclass(slots=True, kw_only=True)"
        yield f"class {private_name(cls.module, cls.name)}({bases}):"
        yield from docstring(_class_doc(cls), INDENT, ((field.name, field.doc) for field in declared))
        yield ""
        for field in declared:
            yield from self._declaration(field, shadowed)
        if declared:
            yield ""
        yield from lines(self._table(cls), prefix="__xml__ = ", indent=INDENT)

    def _declaration(self, field: Field, shadowed: frozenset[str]) -> Iterator[str]:
        annotation = self._names.field(field, shadowed)
        secret = field.xml.local.lower() in _SECRETS
        self._fields = self._fields or field.many or secret
        made: tuple[str, ...] = (f"default_factory={builtin('list', shadowed)}",) if field.many else ()
        if not field.many and not field.minimum:
            annotation += " | None"
            made = ("default=None",)
        if secret:
            made += ("repr=False",)
        if field.many or secret:
            call = Brackets("_field(" if "field" in shadowed else "field(", made)
            yield from lines(call, prefix=f"{field.name}: {annotation} = ", indent=INDENT)
        else:
            yield f"{INDENT}{field.name}: {annotation}{' = None' if made else ''}"

    def _table(self, cls: ClassDef) -> Brackets:
        module = self._table_of(cls.module)
        items: list[Expression] = []
        if cls.kind == "element":
            head = f"{module}.element("
            items.append(string(cls.xml.local))
        else:
            head = f"{module}.complex_type("
            items.append(string(cls.xml.local) if cls.kind == "type" else "None")
        fields = [_entry(field, cls) for field in cls.fields]
        if fields:
            items.append(tuple_of(fields, spread=True))
        if cls.model is not None:
            items.append(_model(cls.model, "model="))
        if cls.mixed:
            items.append("mixed=True")
        if cls.abstract:
            items.append("abstract=True")
        if cls.block:
            items.append(tuple_of([string(kind) for kind in sorted(cls.block)], head="block="))
        if cls.nillable:
            items.append("nillable=True")
        if cls.substitutes is not None:
            items.append(f"substitutes={string(path_of(cls.substitutes))}")
        if cls.restricts:
            items.append("restricts=True")
        if cls.any_attribute:
            items.append(tuple_of([string(admitted) for admitted in cls.any_attribute], head="any_attribute="))
        return Brackets(head, tuple(items))

    def _fault(self, module: TypeModule, fault: FaultDef) -> Iterator[str]:
        detail = fault.detail
        yield f"class {private_name(module, fault.name)}(_x.MtosiFault):"
        yield from docstring(fault.doc or f"Fault {fault.element}.", INDENT)
        yield ""
        yield f"{INDENT}__detail__ = {self._names.local(detail.module, detail.name, run_time=True)}"
        if detail.kind != "element" or detail.xml.local != fault.element:
            yield f"{INDENT}__kind__ = {string(fault.element)}"


def _spaced(guarded: list[str]) -> Iterator[str]:
    """Standard imports, then ours, an empty line between."""
    standard = [line for line in guarded if line.startswith("import")]
    ours = [line for line in guarded if not line.startswith("import")]
    yield from standard
    if standard and ours:
        yield ""
    yield from ours


def import_line(home: str, path: str) -> str:
    """The relative import of one generated module in another."""
    folder, _, name = path.rpartition(".")
    where = "." if folder == home.rpartition(".")[0] else f"..{folder}"
    return f"from {where} import {name} as _{path.replace('.', '_')}"


def _class_doc(cls: ClassDef) -> str:
    if cls.doc:
        return cls.doc
    if cls.kind == "element":
        return f"Element {cls.xml.local}."
    return f"Type {cls.xml.local}." if cls.kind == "type" else f"Content of element {cls.xml.local}."


def _enum(module: TypeModule, enum: EnumClass) -> Iterator[str]:
    yield f"class {private_name(module, enum.name)}(_x.XmlEnum):"
    about = enum.doc or (f"Values of {enum.type_name}." if enum.type_name else f"Values of {enum.path[-1]}.")
    yield from docstring(about, INDENT, ((enum.members[value], doc) for value, doc in enum.values))
    yield ""
    for value, _ in enum.values:
        yield f"{INDENT}{enum.members[value]} = {string(value)}"


def _entry(field: Field, cls: ClassDef) -> Expression:
    """A field as its table has it."""
    if field.kind == "mixed":
        return f"_x.MIXED({string(field.name)})"
    if field.kind == "text":
        return Brackets("_x.TEXT(", (string(field.name), table_type(field.type)))
    items: list[Expression] = [string(field.name)]
    if field.kind == "any":
        items += [f"namespace={string(field.namespaces)}"] if field.namespaces != "##any" else []
        items += [f"min={field.minimum}"] if field.minimum else []
        items += [f"max={field.maximum}"] if field.maximum is not None else []
        items += [f"process={string(field.process)}"] if field.process != "lax" else []
        return Brackets("_x.ANY(", tuple(items))
    items += [string(field.xml.local), table_type(field.type)]
    if field.kind == "attribute":
        items += ["required=True"] if field.minimum else ["prohibited=True"] if field.prohibited else []
        items += [f"ns={string(field.xml.namespace)}"] if field.xml.namespace else []
        return Brackets("_x.A(", tuple(items))
    items += [f"min={field.minimum}"] if field.minimum else []
    items += [f"max={field.maximum}"] if field.maximum != 1 else []
    items += [f"ns={string(field.xml.namespace)}"] if field.xml.namespace != cls.namespace else []
    items += ["nillable=True"] if field.nillable else []
    if field.block:
        items.append(tuple_of([string(kind) for kind in sorted(field.block)], head="block="))
    if field.head:
        items += ["head=True", tuple_of([string(path_of(member)) for member in field.members], head="members=")]
    return Brackets("_x.E(", tuple(items))


def _model(group: ModelGroup, head: str = "") -> Brackets:
    items: list[Expression] = []
    for item in group.items:
        if isinstance(item, ModelItem):
            items.append(_model_item(item, group))
        else:
            items.append(_model(item))
    parts = (string(group.kind), str(group.minimum), str(group.maximum), tuple_of(items))
    return tuple_of(parts, head=head)


def _model_item(item: ModelItem, group: ModelGroup) -> Expression:
    if group.kind == "choice" and (item.minimum, item.maximum) == (1, 1):
        return string(item.field.name)
    return tuple_of([string(item.field.name), str(item.minimum), str(item.maximum)])
