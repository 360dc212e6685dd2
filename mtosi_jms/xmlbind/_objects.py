"""Bound objects: the base of generated classes, and their form as plain Python values, which docs/objects.md lists.

The plain form only has the types of JSON: dicts, lists, str, int, float, bool and None. `from_dict` returns an object
that equals the one on which `to_dict` was called, even if that has content that the schema does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from mtosi_jms.errors import ConfigError, DecodeError, EncodeError, MtosiError
from mtosi_jms.masking import shown_in_part
from mtosi_jms.xmlbind._arrange import held, kept_order
from mtosi_jms.xmlbind._names import DistinguishedNameMixin
from mtosi_jms.xmlbind._registry import find_class, find_element_class
from mtosi_jms.xmlbind._simpletypes import STRING, SimpleType, builtin_type, simple_type
from mtosi_jms.xmlbind._table import ClassTable, Field
from mtosi_jms.xmlbind._values import Anchor, Extras, Kept, Leaf, Nil, RawXml


@dataclass(slots=True, kw_only=True, repr=False)
class XmlObject:
    """Base of all generated classes: a value with typed fields, and with extras that the schema does not know."""

    __xml__: ClassVar[ClassTable]
    _document: ClassVar[Callable[[XmlObject], bytes]]
    """Writes an object; the encoder, which imports this module, sets it."""

    extras: Extras | None = field(default=None, repr=False)

    __repr__ = shown_in_part

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # No super(): a dataclass with slots is made twice, and its cell of __class__ still has the first class.
        table = cls.__dict__.get("__xml__")
        if table is not None:
            table.cls = cls

    def unknown_elements(self) -> list[RawXml]:
        """Return the child elements that the schema does not know or whose content does not fit, in document order."""
        return [kept.xml for kept in self.extras.elements] if self.extras else []

    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain Python values; docs/objects.md has a table of their forms. Raises EncodeError: a
        field has a value that XML cannot have, or lists of a repeated group were edited so that it is not clear which
        values stand together; the error has the path of the attribute."""
        try:
            return _plain_fields(self)
        except RecursionError:
            raise EncodeError("nested too deep, or an object that holds itself", type(self).__name__) from None

    def to_json(self, indent: int | None = None) -> str:
        """Return the result of `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_xml(self) -> bytes:
        """Return the object as an XML document, in UTF-8 with an XML declaration. Raises EncodeError: the class is not
        that of an element, or the object cannot be written as valid XML; the error has the path."""
        return XmlObject._document(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the object of plain values, as `to_dict` returns them.

        Raises:
            DecodeError: a value does not fit the class; the error has its path.
            ConfigError: the class is not a generated one.
        """
        table = getattr(cls, "__xml__", None)
        if table is None:
            raise ConfigError(f"{cls.__name__} is not a generated class")
        try:
            made = _object(data, table, cls.__name__)
        except RecursionError:
            raise DecodeError("nested too deep", path=cls.__name__) from None
        if not isinstance(made, cls):
            raise DecodeError(f"an object of {type(made).__name__}", path=cls.__name__)
        return made


def needed(wanted: type, given: type) -> str:
    """Return the text of the error for an object of a wrong class. Two modules may have classes of one name."""
    both = (wanted, given)
    if issubclass(wanted, DistinguishedNameMixin) and issubclass(given, str | tuple):
        return f"{wanted.__name__} is needed, not {given.__name__}: write name(...) of {wanted.__module__}"
    if wanted.__name__ == given.__name__ or (issubclass(given, XmlObject) and given.__module__ != wanted.__module__):
        return " is needed, not ".join(f"{one.__module__}.{one.__qualname__}" for one in both)
    return " is needed, not ".join(one.__name__ for one in both)


def find_element(tag: str, root: str | None = None) -> type[XmlObject] | None:
    """Return the class of a global element, first from the package `root`; None if no registered package has it."""
    found: type[XmlObject] | None = find_element_class(tag, root)
    return found


def find_type(tag: str, root: str | None = None) -> type[Any] | None:
    """Return the class of a named type; None if no registered package has it. Arguments as for `find_element`."""
    found: type[Any] | None = find_class(tag, "__types__", root)
    return found


def find_simple(tag: str, root: str) -> SimpleType | None:
    """Return the simple type of a Clark name, built in or from a generated package; None if there is none."""
    kind = builtin_type(tag) or simple_type(find_type(tag, root))
    found = find_class(tag, "__simple__", root) if kind is None else None
    if found is not None:
        kind, package = found
        kind.bind(package)
    return kind


def _plain_fields(obj: XmlObject) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for item in obj.__xml__.fields:
        value = getattr(obj, item.name)
        if item.many:
            if not isinstance(value, (list, tuple)):
                raise EncodeError(f"a list is needed, not {type(value).__name__}", item.name)
            if value:
                places = (f"{item.name}[{at}]" for at in range(len(value)))
                plain[item.name] = [_plain(part, item, obj, place) for part, place in zip(value, places, strict=True)]
        elif value is not None:
            plain[item.name] = _plain(value, item, obj, item.name)
        elif item.min:
            plain[item.name] = None
    if obj.extras is not None:
        plain["@extras"] = _plain_extras(obj, obj.extras)
    return plain


def _plain(value: Any, item: Field, obj: XmlObject, place: str) -> Any:
    try:
        return _plain_value(value, item, obj.__xml__)
    except EncodeError as error:
        raise error.inside(place) from None


def _plain_value(value: Any, item: Field, table: ClassTable) -> Any:
    if isinstance(value, Nil):
        return {"@nil": value.text, **({"@attributes": dict(value.attributes)} if value.attributes else {})}
    if isinstance(value, RawXml):
        return {"@xml": value.xml.decode("utf-8")}
    if isinstance(value, XmlObject):
        target = item.table() if isinstance(item.type, str) else None
        if isinstance(value, DistinguishedNameMixin) and target is value.__xml__ and _is_text(value):
            return str(value)
        named = {} if target is value.__xml__ else _class_name(value.__xml__, table.module.root)
        return {**named, **_plain_fields(value)}
    if item.kind == "mixed" and isinstance(value, str):
        return str(value)
    kind = item.simple()
    if kind is None:
        raise EncodeError(f"an object or XML is needed, not {type(value).__name__}")
    return _plain_text(kind, value)


def _plain_text(kind: SimpleType, value: Any) -> Any:
    try:
        return kind.to_plain(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
        raise EncodeError(f"no {kind.name}: {error}") from None


def _is_text(name: Any) -> bool:
    """Whether the text form of a name has all of its content."""
    try:
        return bool(type(name).parse(str(name)) == name)
    except (EncodeError, AttributeError, TypeError):
        return False


def _class_name(table: ClassTable, root: str) -> dict[str, str]:
    """Return the entries that name the class of an object, if it is not the class of its field."""
    if table.element is not None:
        named, found = {"@element": str(table.tag)}, find_element(str(table.tag), root)
    elif table.type_name:
        named, found = {"@type": str(table.type_qname)}, find_type(str(table.type_qname), root)
    else:
        raise EncodeError(f"{table.cls.__name__} has no type name and cannot stand for another class")
    return named if found is table.cls else {**named, "@package": table.module.root}


def _plain_extras(obj: XmlObject, extras: Extras) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "elements": [
            {"xml": kept.xml.xml.decode("utf-8"), "after": _plain_anchor(kept.after), "tail": kept.tail}
            for kept in extras.elements
        ],
        "attributes": dict(extras.attributes),
        "leaves": [_plain_leaf(obj, name, at, leaf) for (name, at), leaf in extras.leaves.items()],
        "order": _plain_order(obj, extras),
        "texts": [[_plain_anchor(anchor), text] for anchor, text in extras.texts.items()],
        "excused": sorted(extras.excused),
        "element": extras.element,
    }
    return {name: value for name, value in plain.items() if value}


def _plain_order(obj: XmlObject, extras: Extras) -> list[str]:
    grammar = obj.__xml__.grammar
    return kept_order(grammar, extras, _lists(obj)) if grammar is not None and extras.order else list(extras.order)


def _lists(obj: XmlObject) -> dict[str, Sequence[Any]]:
    """Return the values of each field of the content that has any."""
    content = ((item, getattr(obj, item.name)) for item in obj.__xml__.fields if item.kind in ("element", "any"))
    lists = {item.name: value if item.many else (value,) for item, value in content if value is not None}
    return {name: values for name, values in lists.items() if values}


def _plain_anchor(anchor: Anchor) -> list[Any] | None:
    return None if anchor is None else list(anchor)


def _plain_leaf(obj: XmlObject, name: str, at: int, leaf: Leaf) -> dict[str, Any]:
    plain: dict[str, Any] = {"field": name, "index": at, "text": leaf.text}
    if leaf.attributes:
        plain["attributes"] = [list(pair) for pair in leaf.attributes]
    if (found := _value_at(obj, name, at)) is None or not leaf.holds(found):
        plain["value"] = _plain_text(_simple_of(obj.__xml__, name), leaf.value)
    return plain


def _value_at(obj: XmlObject, name: str, at: int) -> Any:
    """Return the value of a field to which an entry of `Extras.leaves` belongs."""
    value = getattr(obj, name, None)
    if isinstance(value, list) and obj.__xml__.field(name).many:
        return value[at] if at < len(value) else None
    return value


def _simple_of(table: ClassTable, name: str) -> SimpleType:
    return table.field(name).simple() or STRING


def _object(data: Any, table: ClassTable, path: str) -> Any:
    """Return the object of a dict, which may name another class than that of the table."""
    if not isinstance(data, Mapping):
        raise DecodeError(f"a dict is needed, not {type(data).__name__}", path=path)
    table = _class_of(data, table, path)
    known = {item.name: item for item in table.fields}
    values: dict[str, Any] = {}
    for name, plain in data.items():
        if name in known:
            values[name] = _value(plain, known[name], table, f"{path}.{name}")
        elif name not in ("@type", "@element", "@package", "@extras"):
            raise DecodeError(f"{table.cls.__name__} has no field {name!r:.60}", path=path)
    for name, item in known.items():
        if name not in values and item.min and not item.many and not table.drops(item):
            raise DecodeError(f"required, but not there: {name}", path=path)
    dropped = {name: None for name, item in known.items() if not item.many and table.drops(item)}
    made = table.cls(**{**dropped, **values})
    if "@extras" in data:
        made.extras = _extras(data["@extras"], made, f"{path}.@extras")
    return made


def _class_of(data: Mapping[str, Any], table: ClassTable | None, path: str) -> ClassTable:
    for key, find in (("@element", find_element), ("@type", find_type)):
        if key in data:
            try:
                found = find(data[key], data.get("@package") or (table.module.root if table is not None else None))
            except (MtosiError, TypeError) as error:
                raise DecodeError(str(error), path=path) from None
            if found is None or not hasattr(found, "__xml__"):
                raise DecodeError(f"{key} {data[key]!r:.80} is not known", path=path)
            named: ClassTable = found.__xml__
            return named
    if table is None:
        raise DecodeError("a dict with @element, @type or @xml is needed", path=path)
    return table


def _value(plain: Any, item: Field, table: ClassTable, path: str) -> Any:
    if not item.many:
        return None if plain is None else _one(plain, item, table, path)
    if not isinstance(plain, (list, tuple)):
        raise DecodeError(f"a list is needed, not {type(plain).__name__}", path=path)
    return [_one(part, item, table, f"{path}[{at}]") for at, part in enumerate(plain)]


def _one(plain: Any, item: Field, table: ClassTable, path: str) -> Any:
    if isinstance(plain, Mapping):
        if "@nil" in plain:
            return Nil(_texts(plain.get("@attributes", {}), path), _text(plain["@nil"], path))
        if "@xml" in plain:
            return _raw(plain["@xml"], path)
        if item.simple() is not None:
            raise DecodeError("a simple value is needed, not a dict", path=path)
        if isinstance(item.type, str):
            target = item.table()
            made = _object(plain, target, path)
            if not item.refers and not target.declared.admits(made.__xml__.declared):
                raise DecodeError(needed(target.cls, type(made)), path=path)
            return made
        return _object(plain, _class_of(plain, None, path), path)
    kind = item.simple()
    if kind is not None:
        return _simple_value(kind, plain, path)
    if item.kind == "mixed" and isinstance(plain, str):
        return plain
    if (
        isinstance(plain, str)
        and isinstance(item.type, str)
        and issubclass(cls := item.table().cls, DistinguishedNameMixin)
    ):
        try:
            return cls.parse(plain)
        except EncodeError as error:
            raise DecodeError(error.message, path=path) from None
    raise DecodeError(f"a dict is needed, not {type(plain).__name__}", path=path)


def _simple_value(kind: SimpleType, plain: Any, path: str) -> Any:
    try:
        return kind.from_plain(plain)
    except (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError) as error:
        raise DecodeError(f"no {kind.name}: {error}", path=path) from None


def _raw(plain: Any, path: str) -> RawXml:
    try:
        return RawXml(_text(plain, path).encode("utf-8", "surrogatepass"))
    except MtosiError as error:
        raise DecodeError(f"no XML: {error}", path=path) from None


def _text(plain: Any, path: str) -> str:
    if not isinstance(plain, str):
        raise DecodeError(f"text is needed, not {type(plain).__name__}", path=path)
    return plain


def _texts(plain: Any, path: str) -> dict[str, str]:
    if not isinstance(plain, Mapping):
        raise DecodeError(f"a dict of texts is needed, not {type(plain).__name__}", path=path)
    return {_text(name, path): _text(text, path) for name, text in plain.items()}


def _extras(plain: Any, obj: XmlObject, path: str) -> Extras:
    if not isinstance(plain, Mapping):
        raise DecodeError(f"a dict is needed, not {type(plain).__name__}", path=path)
    try:
        order = tuple(_text(name, path) for name in plain.get("order", ()))
        return Extras(
            elements=[
                Kept(_raw(one["xml"], path), _anchor(one.get("after")), _text(one.get("tail", ""), path))
                for one in plain.get("elements", ())
            ],
            attributes=_texts(plain.get("attributes", {}), path),
            leaves=dict(_leaf(one, obj, path) for one in plain.get("leaves", ())),
            order=order,
            held=held(order, _lists(obj)),
            texts={_anchor(anchor): _text(text, path) for anchor, text in plain.get("texts", ())},
            excused=frozenset(_text(reason, path) for reason in plain.get("excused", ())),
            element=_text(plain.get("element", ""), path),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        if isinstance(error, MtosiError):
            raise
        raise DecodeError(f"not what extras are: {error}", path=path) from None


def _anchor(plain: Any) -> Anchor:
    if plain is None:
        return None
    name, at = plain
    return str(name), int(at)


def _leaf(plain: Mapping[str, Any], obj: XmlObject, path: str) -> tuple[tuple[str, int], Leaf]:
    name, at = str(plain["field"]), int(plain["index"])
    kind = _simple_of(obj.__xml__, name)
    value = _simple_value(kind, plain["value"], path) if "value" in plain else _value_at(obj, name, at)
    pairs = tuple((_text(key, path), _text(text, path)) for key, text in plain.get("attributes", ()))
    return (name, at), Leaf(value, _text(plain["text"], path), pairs)
