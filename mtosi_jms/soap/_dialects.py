"""The header class of each dialect, made from the data in `mtosi_jms.header`, and the mending of what the field sends.

`Header`, generated from our schema of 2.0, is the class for programs and is that of 2.x. The other classes are derived
from it: they have its fields, in another element, and write their own form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from lxml import etree

from mtosi_jms import xmlbind
from mtosi_jms.header import SLIPS, HeaderDialect, dialect_named, dialects_with
from mtosi_jms.namespaces import clark, split_clark
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import A, ClassTable, E, Field, Issues, Module, Nil, XmlEnum, XmlObject, find_element, simple

RULE: Final = "header"
"""The rule of warnings about a header that departs from its dialect."""
_ROOT, _, _PLACE = __name__.rpartition(".")
_NESTED: Final = ("msgSpecificProperties",)
"""Fields with fields of the header's namespace in them."""
FIELD_NAMES: Final[dict[str, str]] = {field.local: field.name for field in Header.__xml__.fields if field.local}
"""Maps the XML name of each header field to its Python name, in schema order."""
VERBATIM: Final = frozenset({"correlationId"})


@lru_cache(64)
def header_class(dialect: HeaderDialect) -> type[Header]:
    if dialect.tag == Header.__xml__.tag:
        return Header
    namespace, local = split_clark(dialect.tag)
    module = Module(__name__, namespace, prefix="hdr1", root=_ROOT)
    own = [_in_module(field, module) for field in Header.__xml__.fields]
    if dialect.has_itu_time:
        own = [replace(field, type=xmlbind.ITU_TIME) if field.local == "timestamp" else field for field in own]
    own += [E(extra.field, extra.name, xmlbind.STRING) for extra in dialect.more]
    content = [field.name for field in own]
    own += [
        A(field, name, simple(xmlbind.STRING, pattern=pattern) if pattern else xmlbind.STRING)
        for name, field, pattern in dialect.attributes
    ]
    model = None if dialect.is_ordered else ("all", 1, 1, tuple((name, 0, 1) for name in content))
    table = module.element(local, own, model=model, restricts=model is not None)
    added = [field.name for field in own if field.name not in FIELD_NAMES.values()]
    cls: type[Header] = _derived(Header, table, f"the header {dialect.tag} of MTOSI {dialect.release}", added, dialect)
    return cls


def _in_module(field: Field, module: Module) -> Field:
    moved = replace(field, owner=None)
    if not isinstance(field.type, str):
        if (kind := field.simple()) is not None:  # enumerations are found in their own package
            moved.type = kind
        return moved
    table = field.table()
    inner = [_in_module(one, module) for one in table.fields if one.kind == "element"]
    is_open = any(one.kind == "any" for one in table.fields)
    cls = table.cls
    if inner or is_open:
        moved_table = module.complex_type(None, inner, any_attribute=("##any",) if is_open else ())
        cls = _derived(cls, moved_table, cls.__doc__, [], None)
    name = cls.__name__ if cls is table.cls else f"{cls.__name__} of {module.namespace or 'no namespace'}"
    globals()[name] = cls  # where the path of the field leads to
    moved.type = f"{_PLACE}:{name}"
    return moved


def _derived(
    base: type[Any], table: ClassTable, doc: str | None, added: list[str], dialect: HeaderDialect | None
) -> type[Any]:
    """Return a class that adds texts to the fields of another one, and is written as a table says."""
    body = {
        "__module__": __name__,
        "__doc__": doc,
        "__annotations__": dict.fromkeys(added, "str | None"),
        "__xml__": table,
        "__reduce__": _plain_reduce if dialect is None else _reduce,
        **dict.fromkeys(added, None),
    }
    made: type[Any] = dataclass(slots=True, kw_only=True)(type(base.__name__, (base,), body))
    return made


def _values(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _reduce(header: Header) -> tuple[Any, ...]:
    """Pickle a header by the name of its element: its class is made where it is needed."""
    return _restored, (str(header.__xml__.tag), _values(header))


def _restored(tag: str, values: dict[str, Any]) -> Header:
    return as_dialect(header_class(dialect_named(tag)), values)


def _plain_reduce(value: XmlObject) -> tuple[Any, ...]:
    """Pickle a part of a header as that of 2.x, from which `as_dialect` makes it again."""
    return _made, (type(value).__bases__[0], _values(value))


def _made(cls: type[Any], values: dict[str, Any]) -> Any:
    return cls(**values)


def as_dialect(cls: type[Header], values: Mapping[str, Any]) -> Header:
    """Return a header of a class.

    Args:
        values: values of fields by Python name; objects in them may be of another dialect.

    Raises:
        TypeError: the class has no such field.
    """
    table = cls.__xml__
    return cls(
        **{
            name: _moved(table, name, value) if isinstance(value, XmlObject | list) else value
            for name, value in values.items()
        }
    )


def converted(header: Header, cls: type[Header]) -> Header:
    """Return a header in another class, without what that class does not have."""
    if type(header) is cls:
        return header
    known = {field.name for field in fields(cls)} - {"extras"}
    return as_dialect(cls, {name: value for name, value in _values(header).items() if name in known})


def _moved(table: ClassTable, name: str, value: Any) -> Any:
    """Return the value of a field with its objects in the classes of the field's dialect."""
    if isinstance(value, list):
        return [_moved(table, name, one) for one in value]
    if not isinstance(value, XmlObject):
        return value
    field = next((one for one in table.fields if one.name == name), None)
    if field is None or not isinstance(field.type, str):
        return value
    target = field.table()
    if type(value) is target.cls or not (issubclass(target.cls, type(value)) or isinstance(value, target.cls)):
        return value
    return target.cls(**{inner: _moved(target, inner, one) for inner, one in _values(value).items()})


def like(request: Header | None) -> type[Header]:
    """Return the class for the answer to a request: the dialect of its header."""
    return Header if request is None else type(request)


@lru_cache(256)
def stubs_header(package: str, namespace: str, chosen: str) -> type[Header]:
    """Return the class of the headers that go with a message.

    Args:
        package: generated package of the stubs; empty: none.
        namespace: that of the message's element.
        chosen: the profile's `header`, which comes first.
    """
    if chosen:
        return header_class(dialect_named(chosen))
    dialects = dialects_with("").values()
    fitting = [one for one in dialects if namespace.startswith(one.bodies)]
    for dialect in fitting or dialects:
        known = find_element(dialect.tag, package) if package and split_clark(dialect.tag)[0] else None
        if known is not None and known.__module__.startswith(f"{package}."):
            return header_class(dialect)
    return header_class(fitting[0]) if fitting else Header


@lru_cache(64)
def header_classes(vendors: str) -> Mapping[str, type[Header]]:
    """Return the classes of the headers that are read, a vendor's too, by the Clark names of their elements."""
    return MappingProxyType({tag: header_class(one) for tag, one in dialects_with(vendors).items()})


def dialect_of(header: Header | type[Header]) -> HeaderDialect:
    return dialect_named(str(header.__xml__.tag))


def mend(block: etree._Element, dialect: HeaderDialect, issues: Issues) -> None:
    """Put right, in a header element, what the field gets wrong, with a warning for each: fields in another namespace,
    placeholders, slips, unknown versions. Warn of each missing field. Raises DecodeError: in strict mode, at the first
    of them."""
    namespace = split_clark(dialect.tag)[0]
    known = {*FIELD_NAMES, *(extra.name for extra in dialect.more)}
    own = {clark(namespace, local) for local in known}.intersection(child.tag for child in block)
    found: set[str] = set()
    for child in list(block):
        space, local = split_clark(str(child.tag))
        if space != namespace and local in known and clark(namespace, local) not in own:
            issues.add(RULE, f"{local} is in {space or 'no namespace'}, not in {namespace or 'none'}", child)
            for inner in child.iter() if local in _NESTED else (child,):
                inner.tag = clark(namespace, split_clark(str(inner.tag))[1])
        if local in _NESTED:
            _mend_nested(child, dialect, issues)
        text = (child.text or "").strip()
        if text in dialect.placeholders and not len(child):
            issues.add(RULE, f"{local} has the placeholder {text!r}: taken as absent", child)
            block.remove(child)
        elif text in SLIPS.get(local, ()):
            issues.add(RULE, f"{local} {text!r} is read as {SLIPS[local][text]!r}", child)
            child.text = SLIPS[local][text]
            found.add(local)
        elif text or len(child):
            found.add(local)
    _mend_attributes(block, dialect, issues)
    for local in dialect.required:
        if local not in found:
            issues.add(RULE, f"{local} is missing, which MTOSI {dialect.release} requires", block)


def _mend_nested(field: etree._Element, dialect: HeaderDialect, issues: Issues) -> None:
    """Remove the parts of a field that hold a placeholder."""
    for part in list(field):
        if held := [one for one in part.iter() if (one.text or "").strip() in dialect.placeholders]:
            local = split_clark(str(held[0].tag))[1]
            issues.add(RULE, f"{local} has the placeholder {held[0].text!r}: taken as absent", held[0])
            field.remove(part)


def _mend_attributes(block: etree._Element, dialect: HeaderDialect, issues: Issues) -> None:
    known = {one.name: one for one in dialect.attributes}
    for name, value in block.items():
        text = value.strip()
        if text in dialect.placeholders:
            issues.add(RULE, f"attribute {name} has the placeholder {text!r}: taken as absent", block)
            del block.attrib[name]
        elif name in known and not known[name].knows(text):
            issues.add(
                RULE, f"attribute {name} {text[:40]!r} is no version of MTOSI {dialect.release}: left out", block
            )
            del block.attrib[name]
        elif name in known and known[name].pattern and value != text:
            issues.add(RULE, f"attribute {name} {value[:40]!r} has blanks around it: read without", block)
            block.set(name, text)


def warn_of_second(block: etree._Element, issues: Issues) -> None:
    """Warn of a second MTOSI header in an envelope."""
    issues.add("P36", "more than one MTOSI header: the first counts", block)


def warn_of_body(body: etree._Element, dialect: HeaderDialect, issues: Issues) -> None:
    """Warn of a body element that is a message of another release than its header."""
    if not dialect.is_over(str(body.tag)):
        issues.add(RULE, f"the header of MTOSI {dialect.release} is over a body of another release", body)


def is_sound(header: Header, dialect: HeaderDialect) -> bool:
    """Whether `mend` has nothing to do for a header that was read without it."""
    if header.extras is not None:
        return False
    if any(getattr(header, FIELD_NAMES[local]) is not None for local in _NESTED):
        return False
    if any(isinstance(one := getattr(header, extra.field), str) and one != one.strip() for extra in dialect.attributes):
        return False
    blanks = ("", *dialect.placeholders)
    if any(isinstance(one, str) and one.strip() in blanks for one in _values(header).values()):
        return False
    return all(getattr(header, FIELD_NAMES[local]) is not None for local in dialect.required)


def header_text(header: XmlObject, field: str) -> str | None:
    """The text of a header field of a simple type, spelled as in the document, for example `1` or `true`.

    Args:
        field: XML name of the field.

    Returns:
        The text without leading and trailing white space; for correlationId, which the SDK stores and compares exactly
        as received (R3c), with it. None if the field is absent, empty, blank, nil or of a complex type without a text
        value.
    """
    return header_texts(header, (field,)).get(field)


def header_texts(header: XmlObject, fields: Iterable[str] = FIELD_NAMES) -> dict[str, str]:
    """Maps XML names of header fields to their texts, as `header_text` returns them. Omits fields without a text."""
    plain = header.extras is None
    texts: dict[str, str] = {}
    for field in fields:
        value = getattr(header, FIELD_NAMES[field])
        if plain and value is None:
            continue
        is_text = plain and (value.__class__ is str or isinstance(value, XmlEnum))
        text: str | None = value if is_text else _text_of(header, field, value)
        if text and (stripped := text.strip()):
            texts[field] = str(text) if field in VERBATIM else stripped
    return texts


def _text_of(header: XmlObject, field: str, value: Any) -> str | None:
    name = FIELD_NAMES[field]
    leaf = header.extras.leaves.get((name, 0)) if header.extras else None
    if value is None:  # content that does not fit its type is kept as an element
        return next((raw.text for raw in header.unknown_elements() if raw.tag.rpartition("}")[2] == field), None)
    if isinstance(value, Nil):
        return None
    if leaf is not None and leaf.value == value:
        return leaf.text
    if isinstance(value, XmlObject):
        inner = getattr(value, "value", None)
        return None if inner is None else str(inner)
    return _formatted(header, name, value)


def _formatted(header: XmlObject, name: str, value: object) -> str | None:
    """The text of a value that Python code has set; None if the field is of a complex type.

    If the value does not fit the type, returns it as plain text; the binding refuses it later.
    """
    simple = header.__xml__.field(name).simple()
    try:
        return simple.format(value) if simple is not None else None
    except (TypeError, ValueError):
        return f"{value:#x}" if isinstance(value, int) else str(value)  # str() fails past 4300 digits


def correlation_id(header: XmlObject | None) -> str | None:
    """The correlationId exactly as received; None if it is absent, empty or blank (R3b)."""
    return header_text(header, "correlationId") if header is not None else None


def missing_fields(header: Header) -> Iterator[str]:
    """Yield the XML names of the fields that the dialect of a header requires and the header lacks."""
    for local in dialect_of(header).required if type(header) is not Header else ():
        if header_text(header, local) is None:
            yield local
