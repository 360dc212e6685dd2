"""The encoder: from an object to XML text in the order of the schema, with fixed prefixes that the root declares.

Writing is strict: a missing required field, a value of a wrong type or outside its facets, or two alternatives of one
choice raise an `EncodeError` with the path. But an object that was read is written as it was: with kept elements in
their places, and with the faults that its document already had.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from typing import Any, Final

from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import XSI, split_clark
from mtosi_jms.xmlbind._arrange import arranged
from mtosi_jms.xmlbind._encodings import DECLARATION
from mtosi_jms.xmlbind._native import native_writer
from mtosi_jms.xmlbind._objects import XmlObject, needed
from mtosi_jms.xmlbind._plan import (
    ANY,
    KEEP,
    OBJECT,
    STRING,
    Between,
    Names,
    Out,
    WritePlan,
    check_list,
    escape_attribute,
    escape_text,
    extras_of,
    forbidden_character,
    forbidden_place,
    has_forbidden,
    is_excused,
    is_text,
    substitutes,
    write_plan,
)
from mtosi_jms.xmlbind._registry import XSI_NIL, XSI_TYPE
from mtosi_jms.xmlbind._simpletypes import SimpleType
from mtosi_jms.xmlbind._table import ClassTable
from mtosi_jms.xmlbind._values import Extras, Leaf, Nil, RawXml

_TAG = re.compile(rb"<[^\s/>]+")
_NOTHING: Final = Extras()
_YES: Final = ("true", "1")


class Writer:
    """Writes objects into one text. The caller has to declare the namespaces of `names` on an element around it."""

    def __init__(self) -> None:
        self.parts: list[str | bytes] = []
        self.names = Names()
        self._roots: list[Any] = []
        self._native = native_writer()
        self._depth = 0

    def root(self, obj: Any) -> None:
        """Write an object as the element of its own name. Raises EncodeError: the object cannot be written as valid
        XML."""
        if isinstance(obj, RawXml):
            self.parts.append(obj.xml.decode("utf-8"))
            return
        table = getattr(type(obj), "__xml__", None)
        if table is None:
            raise EncodeError(f"{type(obj).__name__} is not a class of a generated package")
        self._roots.append(obj)
        try:
            tag, attributes = self._own_tag(obj, table)
            self._object(obj, table, tag, attributes)
        except EncodeError as error:
            raise error.inside(type(obj).__name__) from None
        except RecursionError:
            raise EncodeError("nested too deep, or an object that holds itself", type(obj).__name__) from None

    def content(self) -> bytes:
        """Return all pieces, in UTF-8. Raises EncodeError: a character that XML does not allow."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 and isinstance(parts[0], bytes) else _joined(parts)
        if data is not None:
            return data
        character = forbidden_character("".join(part for part in self.parts if isinstance(part, str)))
        places = (forbidden_place(root, type(root).__name__) for root in self._roots)
        place = next((place for place in places if place is not None), "")
        raise EncodeError(f"character {character} is not allowed in XML", place)

    def _own_tag(self, obj: XmlObject, table: ClassTable) -> tuple[str, str]:
        if table.element is None:
            extras = extras_of(obj)
            if extras is None or not extras.element:
                raise EncodeError(f"{table.cls.__name__} is a type: encode an instance of an element's class")
            return self.names.qualified(extras.element), self._type(table)
        if table.abstract and not is_excused(obj, "abstract"):
            raise EncodeError(f"element {table.element} is abstract")
        return self.names.qualified(str(table.tag)), ""

    def _object(self, obj: Any, table: ClassTable, tag: str, attributes: str = "") -> None:
        plan = table.writing or write_plan(table)
        if self._native is not None:
            data = self._native(self, obj, table, tag, attributes, self._depth, self.names.plans)
            if data is not None:
                self.parts.append(data)
                return
        self.names.plans.add(plan)
        extras = extras_of(obj)
        if plan.attributes or extras is not None:
            attributes += self._attributes(obj, plan, extras or _NOTHING, {"xsi:type"} if attributes else set())
        if plan.text is not None or plan.mixed is not None:
            inner = self._character_content(obj, plan, extras or _NOTHING)
            self.parts.append(f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>")
            return
        if plan.barred is not None and getattr(obj, plan.barred):
            raise EncodeError("the type allows no text between its elements", plan.barred)
        self.parts.append(f"<{tag}{attributes}>")
        before = len(self.parts)
        if plan.reading.grammar is not None or extras is not None:
            self._with_order(obj, plan, extras or _NOTHING)
        else:
            for out, value in zip(plan.outs, plan.get(obj), strict=True):
                if value is not None:
                    self._field(out, value)
                elif out.required:
                    raise EncodeError("required, but not set", out.name)
        if len(self.parts) == before:
            self.parts[-1] = f"<{tag}{attributes}/>"
        else:
            self.parts.append(f"</{tag}>")

    def _field(self, out: Out, value: Any) -> None:
        if out.many:
            check_list(out, value)
            for index, item in enumerate(value):
                try:
                    self._value(out, item)
                except EncodeError as error:
                    raise error.inside(f"{out.name}[{index}]") from None
            return
        if out.kind == STRING and type(value) is str:
            if "&" in value or "<" in value or ">" in value or "\r" in value:
                value = escape_text(value)
            self.parts.append(f"{out.start}{value}{out.end}" if value else f"<{out.tag}/>")
            return
        try:
            self._value(out, value)
        except EncodeError as error:
            raise error.inside(out.name) from None

    def _value(self, out: Out, value: Any, *, excused: bool = False) -> None:
        if isinstance(value, Nil):
            self._nil(out, value, excused=excused)
        elif out.kind == OBJECT:
            self._bound(out, value)
        elif out.kind == KEEP:
            self._raw(out, value)
        elif out.kind == ANY:
            self._free(value, out)
        else:
            text = escape_text(self._format(out.target, value))
            self.parts.append(f"{out.start}{text}{out.end}" if text else f"<{out.tag}/>")

    def _nil(self, out: Out, value: Nil, *, excused: bool) -> None:
        if not out.tag or not (out.field.nillable or excused):
            raise EncodeError("nil where the schema does not allow it")
        if not is_text(value.text) or value.text.strip() not in _YES:
            raise EncodeError("Nil.text: xsi:nil is written true or 1")
        self.names.namespaces.add(XSI)
        attributes = f' xsi:nil="{escape_attribute(value.text)}"' + self.attributes(value.attributes, {"xsi:nil"})
        self.parts.append(f"<{out.tag}{attributes}/>")

    def _bound(self, out: Out, value: Any) -> None:
        table = getattr(type(value), "__xml__", None)
        target: ClassTable = out.target
        if table is target and not table.abstract:
            self._object(value, table, out.tag)
            return
        if table is None:
            raise EncodeError(needed(target.cls, type(value)))
        tag, attributes = self._place(out, value, table, target)
        self._object(value, table, tag, attributes)

    def piece(self, out: Out, value: Any, depth: int) -> bytes | None:
        """Return the element of a value inside so many objects, for the native core; None if the value cannot be
        encoded."""
        outer, self.parts, around, self._depth = self.parts, [], self._depth, depth
        try:
            self._value(out, value)
            return _joined(self.parts)
        except EncodeError:
            return None
        finally:
            self.parts, self._depth = outer, around

    def leave_to_python(self) -> None:
        """Write everything from now on without the native core: a second pass in Python finds the place of an error."""
        self._native = None

    def _place(self, out: Out, value: XmlObject, table: ClassTable, target: ClassTable) -> tuple[str, str]:
        """Return tag and xsi:type of a value whose class is not the declared one."""
        if out.field.refers and table.tag != out.field.tag and substitutes(table, out.field.tag):
            return self._own_tag(value, table)
        declared = target.declared
        actual = table.declared
        if not declared.admits(actual):
            raise EncodeError(needed(target.cls, table.cls))
        if (table.abstract or actual.abstract) and not is_excused(value, "abstract"):
            raise EncodeError(f"{table.cls.__name__} is abstract: give an instance of a class derived from it")
        extras = extras_of(value)
        named = extras.element if extras is not None else ""
        tag = self.names.qualified(named) if named and out.field.refers else out.tag
        if actual is declared:
            return tag, ""
        if not actual.type_name:
            raise EncodeError(f"{table.cls.__name__} has no type name and cannot stand for {target.cls.__name__}")
        return tag, self._type(actual)

    def _type(self, table: ClassTable) -> str:
        self.names.namespaces.add(XSI)
        return f' xsi:type="{self.names.qualified(str(table.type_qname))}"'

    def _raw(self, out: Out, value: Any) -> None:
        if not isinstance(value, RawXml):
            raise EncodeError(f"RawXml is needed, not {type(value).__name__}")
        if value.tag != out.field.tag and not out.field.head:
            raise EncodeError(f"RawXml of {out.field.tag} is needed, not of {value.tag}")
        self.parts.append(value.xml.decode("utf-8"))

    def _free(self, value: Any, out: Out | None = None) -> None:
        if not isinstance(value, (RawXml, XmlObject)):
            raise EncodeError(f"RawXml or an element's object is needed, not {type(value).__name__}")
        tag = value.tag if isinstance(value, RawXml) else value.__xml__.tag or (extras_of(value) or _NOTHING).element
        if out is not None and tag and not out.target.admits(split_clark(tag)[0]):
            raise EncodeError(f"{tag} may not stand here: only elements of {out.target.namespaces}")
        if isinstance(value, RawXml):
            self.parts.append(value.xml.decode("utf-8"))
            return
        table = value.__xml__
        tag, attributes = self._own_tag(value, table)
        self._object(value, table, tag, attributes)

    def _format(self, kind: SimpleType, value: Any) -> str:
        try:
            if not kind.qualified:
                return kind.format(value)
            text = self._qualified(value)
            if problem := kind.breach(value, text):
                raise ValueError(problem)
            return text
        except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
            raise EncodeError(f"no {kind.name}: {error}") from None

    def _qualified(self, value: Any) -> str:
        return " ".join(self.names.qualified(name) for name in (value if isinstance(value, (list, tuple)) else [value]))

    def _character_content(self, obj: Any, plan: WritePlan, extras: Extras) -> str:
        if plan.text is None:
            return self._mixed_content(getattr(obj, str(plan.mixed)), str(plan.mixed))
        value = getattr(obj, plan.text.name)
        if value is None and not (extras.texts or plan.text.name in extras.excused):
            raise EncodeError("required, but not set", plan.text.name)
        leaf = extras.leaves.get((plan.text.name, 0))
        as_read = value is None or (leaf is not None and leaf.holds(value))
        if value is None:
            text = extras.texts.get(None, "")
        else:
            text = leaf.text if leaf is not None and as_read else self._at(plan.text, value)
        kept = [item.xml.xml.decode("utf-8") + (escape_text(item.tail) if as_read else "") for item in extras.elements]
        return escape_text(text) + "".join(kept)

    def _at(self, out: Out, value: Any) -> str:
        try:
            return self._format(out.target, value)
        except EncodeError as error:
            raise error.inside(out.name) from None

    def _mixed_content(self, content: Any, name: str) -> str:
        if not isinstance(content, (list, tuple)):
            raise EncodeError("a list is needed", name)
        outer, self.parts = self.parts, []
        try:
            for index, part in enumerate(content):
                try:
                    self.parts.append(escape_text(part)) if isinstance(part, str) else self._free(part)
                except EncodeError as error:
                    raise error.inside(f"{name}[{index}]") from None
            return "".join(part if isinstance(part, str) else part.decode() for part in self.parts)
        finally:
            self.parts = outer

    def _attributes(self, obj: Any, plan: WritePlan, extras: Extras, written: set[str]) -> str:
        text = ""
        for out in plan.attributes:
            value = getattr(obj, out.name)
            if value is None:
                if out.required and not (out.field.tag in extras.attributes or out.name in extras.excused):
                    raise EncodeError("required, but not set", out.name)
                continue
            if not out.field.max:
                raise EncodeError("an attribute that the type prohibits", out.name)
            leaf = extras.leaves.get((out.name, 0))
            value = leaf.text if leaf is not None and leaf.holds(value) else self._at(out, value)
            text += f' {out.tag}="{escape_attribute(value)}"'
            written.add(out.tag)
        return text + self._beside(extras.attributes, written) if extras.attributes else text

    def attributes(self, attributes: Mapping[str, str], written: AbstractSet[str] = frozenset()) -> str:
        """Return attributes as text, with a blank before each; add their namespaces to `names`.

        Args:
            attributes: texts by Clark name; the value of an xsi:type is a Clark name.
            written: names with prefix of other attributes of the element.

        Raises:
            EncodeError: a name or a value that no parser would accept, or a name that the element already has.
        """
        if not isinstance(attributes, Mapping):
            raise EncodeError(f"attributes: a mapping is needed, not {type(attributes).__name__}")
        named: dict[str, str] = {}
        for tag, value in attributes.items():
            name = self.names.qualified(tag)
            if name == "xmlns" or name in named or name in written:
                raise EncodeError(f"attribute {name} may not be given here, or is there already")
            if not is_text(value):
                raise EncodeError(f"attribute {name}: text is needed that XML allows")
            named[name] = self.names.qualified(value) if tag == XSI_TYPE and value.startswith("{") else value
        return "".join([f' {name}="{escape_attribute(value)}"' for name, value in named.items()])

    def _beside(self, attributes: Mapping[str, str], written: AbstractSet[str] = frozenset()) -> str:
        """Return attributes of an element that has a value, as `attributes` does."""
        made = self.attributes(attributes, written)
        if attributes.get(XSI_NIL, "").strip() in _YES:
            raise EncodeError("xsi:nil says that there is nothing here: give Nil as the value")
        return made

    def _with_order(self, obj: Any, plan: WritePlan, extras: Extras) -> None:
        """Write an object whose class has a content model, or that was read with extras."""
        values = dict(zip((out.name for out in plan.outs), plan.get(obj), strict=True))
        for out in plan.outs:
            value = values[out.name]
            if value is None:
                if out.required and out.name not in extras.excused:
                    raise EncodeError("required, but not set", out.name)
            elif out.many:
                check_list(out, value, excused=out.name in extras.excused)
        lists = plan.reading.given(values)
        grammar = plan.reading.grammar
        if grammar is None:
            order = [name for name in plan.by_name for _ in lists.get(name, ())]
        else:
            problem = grammar.problem({name: len(value) for name, value in lists.items()})
            if problem is not None and problem not in extras.excused:
                raise EncodeError(problem)
            order = arranged(grammar, extras, lists, excused=problem is not None)
        self._in_order(order, values, plan, extras)

    def _in_order(self, order: list[str], values: dict[str, Any], plan: WritePlan, extras: Extras) -> None:
        """Write values one by one, with the elements and texts that were kept between them."""
        used: dict[str, int] = {}
        between = Between(extras)
        self.parts += between.after(None)
        for name in order:
            index = used.get(name, 0)
            used[name] = index + 1
            out = plan.by_name[name]
            value = values[name][index] if out.many else values[name]
            try:
                leaf = extras.leaves.get((name, index))
                if leaf is None or isinstance(value, Nil) or not leaf.holds(value):
                    self._value(out, value, excused=name in extras.excused)
                else:
                    self._leaf(out, leaf)
            except EncodeError as error:
                raise error.inside(f"{name}[{index}]" if out.many else name) from None
            self.parts += between.after((name, index))
        self.parts += between.rest()

    def _leaf(self, out: Out, leaf: Leaf) -> None:
        attributes = self._beside(dict(leaf.attributes)) if leaf.attributes else ""
        text = leaf.text
        if isinstance(out.target, SimpleType) and out.target.qualified:
            text = self._qualified(leaf.value)
        text = escape_text(text)
        self.parts.append(f"<{out.tag}{attributes}>{text}</{out.tag}>" if text else f"<{out.tag}{attributes}/>")


def _joined(parts: Sequence[str | bytes]) -> bytes | None:
    """Return all pieces in UTF-8; None if a text has a character that XML does not allow."""
    found: list[bytes] = []
    for kind, run in groupby(parts, type):
        if kind is bytes:
            found += run  # type: ignore[arg-type]
            continue
        try:
            data = "".join(run).encode()  # type: ignore[arg-type]
        except UnicodeEncodeError:
            return None
        if has_forbidden(data):
            return None
        found.append(data)
    return b"".join(found)


def encode_object(obj: Any) -> bytes:
    """Return a document with an object as its root element, in UTF-8 with an XML declaration. Raises EncodeError: the
    object cannot be written as valid XML; the error has the path."""
    writer = Writer()
    writer.root(obj)
    content = writer.content()
    end = 0
    names = b""
    if not isinstance(obj, RawXml) and (tag := _TAG.match(content)) is not None:
        end = tag.end()
        names = writer.names.declarations().encode()
    return b"".join((DECLARATION, content[:end], names, memoryview(content)[end:]))


XmlObject._document = staticmethod(encode_object)
