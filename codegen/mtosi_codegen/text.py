"""Turns XML names into Python names.

Snake case keeps runs of capitals whole (`meList` me_list, `subscriptionID` subscription_id, `aTNAName` a_tna_name)
and keeps the s of a plural (`partialSNCs` partial_sncs). Dots, dashes and other signs become `_`; keywords get a
trailing `_`. Where two XML names give the same Python name, `fallbacks` gives further forms. The last form is unique
for each XML name, so a Python name never depends on a counter.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator

_PLURAL = re.compile(r"([A-Z]{2,})s(?=[A-Z]|[\W_]|$)")
_ACRONYM_END = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_END = re.compile(r"([a-z0-9])([A-Z])")
_NO_WORD = re.compile(r"\W+")


def snake(name: str) -> str:
    """The snake case of an XML name: a valid identifier, not a keyword, without leading underscore."""
    text = _PLURAL.sub(r"\1S", _NO_WORD.sub("_", name))
    text = _ACRONYM_END.sub(r"\1_\2", text)
    text = _WORD_END.sub(r"\1_\2", text).lower()
    return identifier(re.sub(r"__+", "_", text).strip("_"))


def camel(*names: str) -> str:
    """The joined XML names in CamelCase: letters are kept, and the first letter of each word becomes upper case."""
    words = [word for name in names for word in re.split(r"[\W_]+", name) if word]
    return identifier("".join(word[0].upper() + word[1:] for word in words))


def constant(value: str) -> str:
    """A member name for an enumeration value: the value if it is an identifier, else the value with `_` for signs."""
    text = re.sub(r"__+", "_", _NO_WORD.sub("_", value)).strip("_") if not value.isidentifier() else value
    return identifier(text) if text.strip("_") else escaped(value) if value else "EMPTY"


def identifier(text: str) -> str:
    """A valid identifier, with `_` for signs: not empty, not a keyword, without leading digit or underscore."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(char if f"a{char}".isidentifier() else "_" for char in text).lstrip("_") or "x"
    if not text[0].isidentifier():
        text = f"n{text}"
    return f"{text}_" if keyword.iskeyword(text) or text in {"None", "True", "False"} else text


def escaped(name: str) -> str:
    """A reversible identifier: each sign that is not a letter or digit is replaced by its code."""
    return identifier("".join(char if char.isalnum() and char.isascii() else f"_x{ord(char):x}_" for char in name))


def fallbacks(name: str, preferred: str, *more: str) -> Iterator[str]:
    """Names to try in turn for an XML name; the last ones are unique among XML names."""
    yield preferred
    yield from more
    plain = identifier(_NO_WORD.sub("_", name))
    yield plain
    yield escaped(name)
    while True:
        plain += "_"
        yield plain
