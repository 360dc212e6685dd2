"""The values for the templates of types: plain values, names and expressions in Python's spelling, no layout.

docs/templates.md lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Final

from mtosi_codegen.model import ClassDef, EnumClass, FaultDef, Field, TypeModule
from mtosi_codegen.passes.names import SHADOWED
from mtosi_codegen.passes.order import bases_first, private_name
from mtosi_codegen.render.layout import python
from mtosi_codegen.render.values import Names, builtin, path_of, table_entry, table_model, table_type

_SECRETS: Final = frozenset({"security", "password"})
"""XML names of credentials, in lower case: their values stay out of `repr`, and so out of logs (C55)."""


class TypesView:
    """A file of types: those of one namespace, or of several that need each other. Each namespace has a `registry`."""

    def __init__(self, modules: Sequence[TypeModule]) -> None:
        self._names = names = Names(modules[0].home)
        self._several = len(modules) > 1
        self.namespaces = [module.namespace or "no namespace" for module in modules]
        self.makes_fields = self.shadows_builtins = self.shadows_field = False
        self.descriptors = [self._descriptor(module) for module in modules]
        self.enums = [_enum(module, enum) for module in modules for enum in module.enums]
        classes = [cls for module in modules for cls in module.classes]
        self.classes = [self._class(cls) for cls in (bases_first(classes) if self._several else classes)]
        self.faults = [self._fault(module, fault) for module in modules for fault in module.faults]
        self.name_class = next((private_name(cls.module, cls.name) for cls in classes if cls.mixin), "")
        self.registry = None if self._several else registry(modules[0])
        self.standard = sorted(names.standard)
        self.guarded = names.imports(names.typing - names.run_time)
        self.imports = names.imports(names.run_time)

    def _descriptor(self, module: TypeModule) -> SimpleNamespace:
        here = "__name__" if module.home == module.path else f"f\"{{__name__.rsplit('.', 2)[0]}}.{module.path}\""
        name = self._descriptor_name(module)
        return SimpleNamespace(name=name, here=here, namespace=module.namespace, prefix=module.prefix)

    def _descriptor_name(self, module: TypeModule) -> str:
        return f"_M{module.alias}" if self._several else "_M"

    def _class(self, cls: ClassDef) -> SimpleNamespace:
        base = "_x.XmlObject"
        if cls.base is not None:
            base = self._names.local(cls.base.module, cls.base.name, run_time=True)
        declared = [field for field in cls.fields if not field.prohibited]
        shadowed = frozenset(field.name for field in declared) & SHADOWED
        self.shadows_builtins |= bool(shadowed - {"field"})
        self.shadows_field |= "field" in shadowed
        kinds = {"element": "Element", "type": "Type", "anonymous": "Content of element"}
        return SimpleNamespace(
            name=private_name(cls.module, cls.name),
            doc=cls.doc or f"{kinds[cls.kind]} {cls.xml.local}.",
            bases=f"_x.{cls.mixin}, {base}" if cls.mixin else base,
            fields=[self._field(field, shadowed) for field in declared],
            entries=[table_entry(field, cls) for field in cls.fields],
            table=f"{self._descriptor_name(cls.module)}.{'element' if cls.kind == 'element' else 'complex_type'}",
            xml="None" if cls.kind == "anonymous" else python(cls.xml.local),
            options=_options(cls),
        )

    def _field(self, field: Field, shadowed: frozenset[str]) -> SimpleNamespace:
        annotation = self._names.field(field, shadowed)
        secret = field.xml.local.lower() in _SECRETS
        optional = not field.many and not field.minimum
        default = "None" if optional else ""
        if field.many or secret:
            made = [f"default_factory={builtin('list', shadowed)}"] if field.many else []
            made += ["default=None"] if optional else []
            made += ["repr=False"] if secret else []
            default = f"{'_field' if 'field' in shadowed else 'field'}({', '.join(made)})"
            self.makes_fields = True
        annotation += " | None" * optional
        return SimpleNamespace(name=field.name, doc=field.doc, annotation=annotation, default=default)

    def _fault(self, module: TypeModule, fault: FaultDef) -> SimpleNamespace:
        detail = fault.detail
        same = detail.kind == "element" and detail.xml.local == fault.element
        return SimpleNamespace(
            name=private_name(module, fault.name),
            doc=fault.doc or f"Fault {fault.element}.",
            detail=self._names.local(detail.module, detail.name, run_time=True),
            kind="" if same else fault.element,
        )


def registry(module: TypeModule) -> SimpleNamespace:
    """The classes of a module by their names in XML."""
    elements = {cls.xml.local: cls.name for cls in module.classes if cls.kind == "element"}
    types = {cls.xml.local: cls.name for cls in module.classes if cls.kind == "type"}
    types.update({enum.type_name: enum.name for enum in module.enums if enum.type_name})
    faults = {fault.element: fault.name for fault in module.faults}
    ordered = [dict(sorted(table.items())) for table in (elements, types, faults)]
    simple = {name: table_type(value) for name, value in sorted(module.simple.items())}
    return SimpleNamespace(elements=ordered[0], types=ordered[1], faults=ordered[2], simple=simple)


def shared_names(module: TypeModule) -> list[tuple[str, str]]:
    """For each class of a module: its name in the file that the module shares with others, and its own name."""
    entries: list[EnumClass | ClassDef | FaultDef] = [*module.enums, *module.classes, *module.faults]
    return sorted((private_name(module, entry.name), entry.name) for entry in entries)


def _options(cls: ClassDef) -> list[str]:
    options = [f"model={table_model(cls.model)}"] if cls.model is not None else []
    options += [f"{name}=True" for name in ("mixed", "abstract") if getattr(cls, name)]
    options += [f"block={python(sorted(cls.block))}"] if cls.block else []
    options += ["nillable=True"] if cls.nillable else []
    options += [f"substitutes={python(path_of(cls.substitutes))}"] if cls.substitutes is not None else []
    options += ["restricts=True"] if cls.restricts else []
    return options + ([f"any_attribute={python(cls.any_attribute)}"] if cls.any_attribute else [])


def _enum(module: TypeModule, enum: EnumClass) -> SimpleNamespace:
    doc = enum.doc or f"Values of {enum.type_name or enum.path[-1]}."
    members = [SimpleNamespace(name=enum.members[value], value=value, doc=about) for value, about in enum.values]
    return SimpleNamespace(name=private_name(module, enum.name), doc=doc, members=members)
