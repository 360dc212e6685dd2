"""From an object to XML text: schema order, fixed prefixes, every namespace declared once at the root.

Emission is strict: a missing required field, a value of the wrong type, outside its facets, or two alternatives of
one choice are an `EncodeError` with the path. What was kept on reading goes out where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.xmlbind.model import Group, emission_order, model_problem
from mtosi_jms.xmlbind.registry import prefix_for, qualified
from mtosi_jms.xmlbind.simpletypes import SimpleType
from mtosi_jms.xmlbind.table import RAW, ClassTable, Field
from mtosi_jms.xmlbind.values import Extras, Leaf, Nil, RawXml, XmlObject

DECLARATION: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_TAG = re.compile(r"<[^\s/>]+")

_PLAIN: Final = 0
_SIMPLE: Final = 1
_OBJECT: Final = 2
_RAW: Final = 3
_ANY: Final = 4


class _Out(NamedTuple):
    """How one field is written: tags ready made."""

    name: str
    kind: int
    many: bool
    required: bool
    tag: str
    start: str
    end: str
    target: Any
    field: Field


class _WritePlan:
    """The compiled table of one class, for writing."""

    def __init__(self, table: ClassTable) -> None:
        self.table = table
        self.model = table.model
        content = [item for item in table.fields if item.kind in ("element", "any")]
        self.outs = tuple(_out(item) for item in content)
        self.by_name = {out.name: out for out in self.outs}
        self.attributes = tuple(_out(item) for item in table.fields if item.kind == "attribute")
        self.text = next((_out(item) for item in table.fields if item.kind == "text"), None)
        self.mixed = next((item.name for item in table.fields if item.kind == "mixed"), None)
        names = [out.name for out in self.outs]
        self.get = _getter(names)
        spaces = {item.namespace for item in table.fields if item.kind in ("element", "attribute") and item.namespace}
        self.namespaces = frozenset(spaces)


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda obj: (get(obj),)


def _out(field: Field) -> _Out:
    tag = qualified(field.namespace, field.local) if field.kind in ("element", "attribute") else ""
    kind, target = _kind(field)
    required = field.min > 0 and not field.many
    return _Out(field.name, kind, field.many, required, tag, f"<{tag}>", f"</{tag}>", target, field)


def _kind(field: Field) -> tuple[int, Any]:
    if field.kind == "any":
        return _ANY, None
    if field.type is RAW:
        return _RAW, None
    simple = field.simple()
    if simple is not None:
        return (_PLAIN if simple.plain else _SIMPLE), simple
    return _OBJECT, field.table()


_plans: dict[ClassTable, _WritePlan] = {}


def _plan_of(table: ClassTable) -> _WritePlan:
    plan = _plans.get(table)
    if plan is None:
        plan = _plans[table] = _WritePlan(table)
    return plan


def escape_text(text: str) -> str:
    """Character data, escaped."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if "\r" in text:
        text = text.replace("\r", "&#13;")
    return text


def escape_attribute(text: str) -> str:
    """An attribute value, escaped for double quotes."""
    text = escape_text(text)
    return text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


class Writer:
    """Writes objects into one text whose namespaces are declared by whoever closes it.

    Attributes:
        parts: pieces of text so far.
        namespaces: the namespaces that the pieces need, to be declared on an element around them.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.namespaces: set[str] = set()
        self._plans: set[_WritePlan] = set()

    def root(self, obj: Any) -> None:
        """Write an object as the element of its own name.

        Raises:
            EncodeError: the object cannot become valid XML.
        """
        if isinstance(obj, RawXml):
            self.parts.append(obj.xml.decode("utf-8"))
            return
        table = getattr(type(obj), "__xml__", None)
        if table is None:
            raise EncodeError(f"{type(obj).__name__} is no class of a generated package")
        tag, extra = self._root_tag(table)
        try:
            self._object(obj, table, tag, extra)
        except EncodeError as error:
            raise EncodeError(str(error), type(obj).__name__) from None
        except RecursionError:
            raise EncodeError("nested too deep, or an object that holds itself", type(obj).__name__) from None

    def _root_tag(self, table: ClassTable) -> tuple[str, str]:
        if table.element is None:
            raise EncodeError(f"{table.cls.__name__} is a type: encode an instance of an element's class")
        if table.abstract:
            raise EncodeError(f"element {table.element} is abstract")
        if table.module.namespace:
            self.namespaces.add(table.module.namespace)
        return qualified(table.module.namespace, table.element), ""

    def text(self) -> str:
        """All pieces, with `namespaces` complete.

        Raises:
            EncodeError: a character that XML does not allow.
        """
        for plan in self._plans:
            self.namespaces |= plan.namespaces
        text = "".join(self.parts)
        if match := _FORBIDDEN.search(text):
            raise EncodeError(f"character U+{ord(match.group()):04X} is not allowed in XML")
        return text

    def _object(self, obj: Any, table: ClassTable, tag: str, attributes: str = "") -> None:
        plan = _plan_of(table)
        self._plans.add(plan)
        extras = obj.extras
        attributes += self._attributes(obj, plan, extras)
        if plan.text is not None or plan.mixed is not None:
            inner = self._character_content(obj, plan, extras)
            self.parts.append(f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>")
            return
        self.parts.append(f"<{tag}{attributes}>")
        before = len(self.parts)
        if plan.model is not None:
            self._modelled(obj, plan, plan.model, extras)
        elif extras is not None and (extras.elements or extras.leaves):
            self._with_extras(obj, plan, extras)
        else:
            for out, value in zip(plan.outs, plan.get(obj), strict=True):
                if value is not None:
                    self._field(out, value)
                elif out.required:
                    raise EncodeError("required, but not set", out.name)
        if extras is not None and extras.text:
            self.parts.append(escape_text(extras.text))
        if len(self.parts) == before:
            self.parts[-1] = f"<{tag}{attributes}/>"
        else:
            self.parts.append(f"</{tag}>")

    def _field(self, out: _Out, value: Any) -> None:
        if out.many:
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise EncodeError("a list is needed", out.name)
            if len(value) < out.field.min or (out.field.max is not None and len(value) > out.field.max):
                raise EncodeError(f"{len(value)} of {out.field.min}..{out.field.max or 'many'}", out.name)
            for index, item in enumerate(value):
                try:
                    self._value(out, item)
                except EncodeError as error:
                    raise EncodeError(str(error), f"{out.name}[{index}]") from None
            return
        if out.kind == _PLAIN and type(value) is str:
            if "&" in value or "<" in value or ">" in value or "\r" in value:
                value = escape_text(value)
            self.parts.append(f"{out.start}{value}{out.end}" if value else f"<{out.tag}/>")
            return
        try:
            self._value(out, value)
        except EncodeError as error:
            raise EncodeError(str(error), out.name) from None

    def _value(self, out: _Out, value: Any) -> None:
        if isinstance(value, Nil):
            self._nil(out, value)
        elif out.kind == _OBJECT:
            self._bound(out, value)
        elif out.kind in (_RAW, _ANY):
            self._free(value)
        else:
            text = escape_text(_format(out.target, value))
            self.parts.append(f"{out.start}{text}{out.end}" if text else f"<{out.tag}/>")

    def _nil(self, out: _Out, value: Nil) -> None:
        if not out.tag:
            raise EncodeError("nil where any element may stand")
        self.namespaces.add(XSI)
        self.parts.append(f'<{out.tag} xsi:nil="true"{self._known_attributes(dict(value.attributes))}/>')

    def _bound(self, out: _Out, value: Any) -> None:
        table = getattr(type(value), "__xml__", None)
        target: ClassTable = out.target
        if table is target:
            if not table.abstract:
                self._object(value, table, out.tag)
                return
        elif table is None:
            raise EncodeError(f"{target.cls.__name__} is needed, not {type(value).__name__}")
        tag, attributes = self._place(out, table, target)
        self._object(value, table, tag, attributes)

    def _place(self, out: _Out, table: ClassTable, target: ClassTable) -> tuple[str, str]:
        """Tag and xsi:type of a value whose class is not the declared one."""
        if out.field.head and table.element is not None and table.tag != out.field.tag:
            self.namespaces.add(table.module.namespace)
            return qualified(table.module.namespace, table.element), ""
        declared = target.type_qname
        if not table.is_a(target) and not (target.element is not None and target.base and table.is_a(target.base)):
            raise EncodeError(f"{target.cls.__name__} is needed, not {table.cls.__name__}")
        actual = table.type_qname
        if actual is None or actual == declared:
            if table.abstract:
                raise EncodeError(f"{table.cls.__name__} is abstract: give an instance of a class derived from it")
            return out.tag, ""
        namespace, local = split_clark(actual)
        self.namespaces |= {XSI, namespace} - {""}
        return out.tag, f' xsi:type="{qualified(namespace, local)}"'

    def _free(self, value: Any) -> None:
        if isinstance(value, RawXml):
            self.parts.append(value.xml.decode("utf-8"))
        elif isinstance(value, XmlObject):
            table = value.__xml__
            tag, attributes = self._root_tag(table)
            self._object(value, table, tag, attributes)
        else:
            raise EncodeError(f"RawXml or an element's object is needed, not {type(value).__name__}")

    def _character_content(self, obj: Any, plan: _WritePlan, extras: Extras | None) -> str:
        if plan.mixed is not None:
            writer = Writer()
            for part in getattr(obj, plan.mixed):
                if isinstance(part, str):
                    writer.parts.append(escape_text(part))
                else:
                    writer._free(part)
            inner = writer.text()
            self.namespaces |= writer.namespaces
            return inner
        if plan.text is None:
            return ""
        value = getattr(obj, plan.text.name)
        if value is None:
            return escape_text(extras.text) if extras else ""
        leaf = extras.leaves.get((plan.text.name, 0)) if extras else None
        text = leaf.text if leaf is not None and leaf.value == value else _format(plan.text.target, value)
        kept = "".join(kept.xml.xml.decode("utf-8") for kept in extras.elements) if extras else ""
        return escape_text(text) + kept

    def _attributes(self, obj: Any, plan: _WritePlan, extras: Extras | None) -> str:
        text = ""
        for out in plan.attributes:
            value = getattr(obj, out.name)
            if value is None:
                if out.required and not (extras and out.field.tag in extras.attributes):
                    raise EncodeError("required, but not set", out.name)
                continue
            leaf = extras.leaves.get((out.name, 0)) if extras else None
            try:
                written = leaf.text if leaf is not None and leaf.value == value else _format(out.target, value)
            except EncodeError as error:
                raise EncodeError(str(error), out.name) from None
            text += f' {out.tag}="{escape_attribute(written)}"'
        return text + self._known_attributes(extras.attributes) if extras and extras.attributes else text

    def _known_attributes(self, attributes: dict[str, str]) -> str:
        text = ""
        for tag, value in attributes.items():
            namespace, local = split_clark(tag)
            if namespace:
                self.namespaces.add(namespace)
            text += f' {qualified(namespace, local)}="{escape_attribute(value)}"'
        return text

    def _modelled(self, obj: Any, plan: _WritePlan, model: Group, extras: Extras | None) -> None:
        values = dict(zip((out.name for out in plan.outs), plan.get(obj), strict=True))
        counts = {name: len(v) if isinstance(v, list) else int(v is not None) for name, v in values.items()}
        problem = model_problem(model, counts)
        if problem and not (extras and extras.elements):
            raise EncodeError(problem)
        order = list(extras.order) if extras else []
        if {name: order.count(name) for name in set(order)} != {name: n for name, n in counts.items() if n}:
            order = emission_order(model, counts)
        self._in_order(order, values, plan, extras)

    def _with_extras(self, obj: Any, plan: _WritePlan, extras: Extras) -> None:
        values = dict(zip((out.name for out in plan.outs), plan.get(obj), strict=True))
        kept = {split_clark(item.xml.tag)[1] for item in extras.elements}
        order: list[str] = []
        for out in plan.outs:
            value = values[out.name]
            if value is None and out.required and out.field.local not in kept:
                raise EncodeError("required, but not set", out.name)
            order += [out.name] * (len(value) if isinstance(value, list) else int(value is not None))
        self._in_order(order, values, plan, extras)

    def _in_order(self, order: list[str], values: dict[str, Any], plan: _WritePlan, extras: Extras | None) -> None:
        """Write values one by one, with what was kept between them."""
        used: dict[str, int] = {}
        kept = list(extras.elements) if extras else []
        leaves = extras.leaves if extras else {}
        pending = [item for item in kept if item.after is None]
        self.parts += [item.xml.xml.decode("utf-8") for item in pending]
        kept = [item for item in kept if item.after is not None]
        for name in order:
            index = used.get(name, 0)
            used[name] = index + 1
            value = values[name][index] if isinstance(values[name], list) else values[name]
            out = plan.by_name[name]
            try:
                leaf = leaves.get((name, index))
                if leaf is None or leaf.value != value or isinstance(value, Nil):
                    self._value(out, value)
                else:
                    self._leaf(out, leaf)
            except EncodeError as error:
                raise EncodeError(str(error), f"{name}[{index}]" if out.many else name) from None
            here = [item for item in kept if item.after == (name, index)]
            if here:
                self.parts += [item.xml.xml.decode("utf-8") for item in here]
                kept = [item for item in kept if item.after != (name, index)]
        self.parts += [item.xml.xml.decode("utf-8") for item in kept]

    def _leaf(self, out: _Out, leaf: Leaf) -> None:
        attributes = self._known_attributes(dict(leaf.attributes))
        text = escape_text(leaf.text)
        self.parts.append(f"<{out.tag}{attributes}>{text}</{out.tag}>" if text else f"<{out.tag}{attributes}/>")


def _format(kind: SimpleType, value: Any) -> str:
    try:
        return kind.format(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
        raise EncodeError(f"no {kind.name}: {error}") from None


def declarations(namespaces: set[str]) -> str:
    """`xmlns:` attributes for namespaces, in the order of their prefixes."""
    pairs = sorted((prefix_for(namespace), namespace) for namespace in namespaces if namespace)
    return "".join(f' xmlns:{prefix}="{escape_attribute(namespace)}"' for prefix, namespace in pairs)


def encode_object(obj: Any) -> bytes:
    """A document with an object as its root element, UTF-8 with XML declaration.

    Raises:
        EncodeError: the object cannot become valid XML; with the path.
    """
    writer = Writer()
    writer.root(obj)
    text = writer.text()
    if not isinstance(obj, RawXml):
        text = _TAG.sub(lambda tag: tag.group() + declarations(writer.namespaces), text, count=1)
    return (DECLARATION + text).encode("utf-8")
