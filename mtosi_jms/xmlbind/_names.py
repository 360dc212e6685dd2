"""Names of managed objects, and their text form: `MD=EMS1/ME=NE-7`.

In the text `/`, `=` and `%` of a part are written `%2F`, `%3D` and `%25`. People write the places of ports and holders
as they are: in `ME=NE-7/PTP=/rack=1/shelf=1` the value of PTP is `/rack=1/shelf=1`. That is read so if the type is one
of MTOSI's and what follows begins with a small letter. Whatever else could be read in two ways is refused.

A name of MTOSI 1.x has a field for each type instead of a list of parts, and the same text form: `mdNm` is MD, and a
vendor's path in `propNm` is PROP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import total_ordering
from string import ascii_lowercase
from typing import Any, ClassVar, Final, Self

from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import split_clark
from mtosi_jms.xmlbind._table import ClassTable, Field

_TYPES: Final = frozenset({
    "AID", "ASAP", "CC", "CFS", "CTP", "EH", "EPG", "EPGP", "EQ", "FD", "FDFR", "FTP", "GTP", "MD", "ME", "MFD",
    "MFDFR", "MLSN", "OS", "PG", "PGP", "PMP", "PROP", "PTP", "RFS", "SAP", "SNC", "SSC", "TCAPP", "TCPROFILE",
    "TL", "TMD", "TPPOOL", "VO",
})  # fmt: skip
"""The types of MTOSI's naming: a part with one of them is never inside the value of another."""

_SUFFIX: Final = "Nm"
_OUTERMOST_FIRST: Final = (
    *("OS", "MD", "MLSN", "ME", "EH", "EQ", "PTP", "FTP", "CTP", "TPPOOL"),
    *("PGP", "EPGP", "SNC", "TMD", "TL", "AID", "PROP"),
)
"""The types of the names of MTOSI 1.x. The schema has MLSN behind TPPOOL, which it contains."""
_RANKS: Final = {kind: rank for rank, kind in enumerate(_OUTERMOST_FIRST)}

_ESCAPES: Final = {"%": "%25", "/": "%2F", "=": "%3D"}
_NOTHING: Final = "%00"
"""An empty value, where a plain one would join the next part to it."""
_UNESCAPES: Final = {_NOTHING: "", **{code.lower(): char for char, code in _ESCAPES.items()}}
_ADVICE: Final = (
    "in a value write / as %2F and = as %3D, or make the name from pairs: "
    'name(("MD", "EMS1"), ("ME", "NE-7"), ("PTP", "/rack=1/shelf=1"))'
)


@total_ordering
class DistinguishedNameMixin:
    """An MTOSI name. Its text form is `MD=EMS1/ME=NE-7`; the module docstring has the rules.

    Names are ordered by their parts, and can be keys of a dict as long as they are not changed.
    """

    __slots__ = ()

    __xml__: ClassVar[ClassTable]
    rdn: list[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__hash__ = DistinguishedNameMixin.__hash__  # type: ignore[method-assign]  # a dataclass would remove it

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the name of a text form. Raises EncodeError: not a text, a part without type or `=`, a `%` that does
        not begin an escape, or a `/` that may be inside a value or not."""
        if not isinstance(text, str):
            raise EncodeError(f"a name is text, not {type(text).__name__}")
        return cls._of((_unescape(kind), _unescape(value)) for kind, value in _parts(text))

    @classmethod
    def from_parts(cls, text: str | tuple[str, str], *pairs: tuple[str, str]) -> Self:
        """Return the name of a text form, or of pairs of type and value, in which nothing is escaped. Raises
        EncodeError: as for `parse`; a pair that is not two texts, or has no type."""
        if isinstance(text, str) and not pairs:
            return cls.parse(text)
        given: tuple[Any, ...] = (text, *pairs)
        for pair in given:
            fits = isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
            if not fits or not pair[0]:
                raise EncodeError(f"{pair!r:.80}: a part of a name is a pair of texts, type and value")
        return cls._of(given)

    @classmethod
    def _of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        part = cls.__xml__.field("rdn").table().cls
        return cls(rdn=[part(type=kind, value=value) for kind, value in pairs])  # type: ignore[call-arg]

    def __str__(self) -> str:
        parts = [(escape_name_part(kind), escape_name_part(value)) for kind, value in self._parts()]
        following = [kind for kind, _ in [*parts[1:], ("ME", "")]]  # longer than a name without parts
        return "/".join(
            f"{kind}={value or (_NOTHING if after not in _TYPES else '')}"
            for (kind, value), after in zip(parts, following, strict=False)
        )

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: object) -> bool:
        return self._parts() < other._parts() if isinstance(other, DistinguishedNameMixin) else NotImplemented

    def _parts(self) -> list[tuple[str, str]]:
        return [(str(part.type or ""), str(part.value or "")) for part in self.rdn]


class NamingAttributesMixin(DistinguishedNameMixin):
    """A name of MTOSI 1.x: `MD=EMS1/ME=NE-7` is `mdNm` EMS1 and `meNm` NE-7. A vendor's own field `abcNm` is ABC."""

    __slots__ = ()

    @classmethod
    def _of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        fields = {field.local.removesuffix(_SUFFIX).upper(): field.name for field in _elements(cls.__xml__)}
        values: dict[str, str] = {}
        for kind, value in pairs:
            if kind not in fields:
                raise EncodeError(f"a name of MTOSI 1.x has no {kind}; it has {', '.join(fields)}")
            if fields[kind] in values:
                raise EncodeError(
                    f"a name of MTOSI 1.x has {kind} once: write its places as one value, /rack=1/shelf=1"
                )
            values[fields[kind]] = value
        return cls(**values)

    def _parts(self) -> list[tuple[str, str]]:
        known = [(field.local, getattr(self, field.name)) for field in _elements(self.__xml__)]
        extras = self.unknown_elements() if self.extras is not None else ()  # type: ignore[attr-defined]
        further = [(split_clark(one.tag)[1], one.element().text or "") for one in extras]
        return attribute_parts([*known, *further])


def _elements(table: ClassTable) -> list[Field]:
    return [field for field in table.fields if field.kind == "element"]


def attribute_parts(fields: Iterable[tuple[str, str | None]]) -> list[tuple[str, str]]:
    """Return the parts of a name of MTOSI 1.x, outermost first, from local names and texts of its elements: type and
    value. A vendor's fields come last; one without text, or that does not end with `Nm`, is no part."""
    parts = [
        (local.removesuffix(_SUFFIX).upper(), text)
        for local, text in fields
        if text is not None and local.endswith(_SUFFIX)
    ]
    return sorted(parts, key=lambda part: _RANKS.get(part[0], len(_RANKS)))


def escape_name_part(text: str | None) -> str:
    """Return a part of the text form of a name, with `/`, `=` and `%` escaped."""
    return "".join(_ESCAPES.get(char, char) for char in text or "")


def _unescape(text: str) -> str:
    pieces = re.split(r"(%.{0,2})", text, flags=re.DOTALL)
    try:
        return "".join(_UNESCAPES[piece.lower()] if piece.startswith("%") else piece for piece in pieces)
    except KeyError as error:
        raise EncodeError(f"{text!r}: {error.args[0]!r} is not an escape of a name; use %25, %2F and %3D") from None


def _parts(text: str) -> list[list[str]]:
    parts: list[list[str]] = []
    for piece in text.split("/"):
        kind, equals, value = piece.partition("=")
        if not kind or not equals:
            raise EncodeError(f"{text!r} is not a name of the form TYPE=value/TYPE=value; {_ADVICE}")
        own, held = parts[-1] if parts else ("", "none")
        is_path = not held or held.startswith("/")
        if kind in _TYPES or not (is_path or "=" in held):
            parts.append([kind, value])
        elif is_path and own in _TYPES and kind[0] in ascii_lowercase:
            parts[-1][1] = f"{held}/{piece}"
        else:
            raise EncodeError(f"{text!r}: {piece!r} may be a part of the name, or of the value of {own}; {_ADVICE}")
    return parts
