"""Every regular expression of the packages takes time in proportion to the length of a text, whatever a peer sends."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import mtosi_codegen
import mtosi_jms
from mtosi_jms.errors import MtosiError
from mtosi_jms.masking import MASK
from mtosi_jms.telemetry import masked_envelope

SHORTEST, LONGEST = 12, 8_000
"""Lengths of the texts; each is twice as long as the one before."""
SLOW = 0.01
"""Seconds of processor time under which growth cannot be told from noise; what is linear never takes as long."""


def patterns() -> Iterator[tuple[re.Pattern[Any], str]]:
    """The patterns of the packages, and how texts are compared with them.

    A pattern is a constant of its module, alone or in a table, or stands where it is used.
    """
    for package in (mtosi_jms, mtosi_codegen):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.startswith(("mtosi_jms.stubs.", "mtosi_jms.stubs11.")) or found.name.endswith("__main__"):
                continue
            try:
                module = importlib.import_module(found.name)
            except (ImportError, MtosiError):
                continue  # an extra that is not installed
            if not str(module.__file__).endswith(".py"):
                continue  # the native core
            source = inspect.getsource(module)
            for name, value in vars(module).items():
                held = [*_patterns(value, set())]
                if not held or not re.search(rf"^{name}\b.*=", source, re.MULTILINE):
                    continue  # it has none, or is another module's
                uses = re.findall(rf"\b{name}\.(\w+)\(", source)
                for one in held:
                    yield one, _way(uses)
            for node in ast.walk(ast.parse(source)) if re.search(r"\bre\.\w", source) else ():
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="re"), attr=use), args=[ast.Constant(value=text), *_]
                    ) if use not in ("compile", "escape"):
                        yield re.compile(text), _way([use])


def _way(uses: Sequence[str]) -> str:
    """The most that is asked of a pattern: to be found anywhere, to match the whole text, to match its beginning."""
    return "finditer" if not uses or set(uses) - {"fullmatch", "match"} else min(uses)


def _patterns(value: object, seen: set[int]) -> Iterator[re.Pattern[Any]]:
    """Those in a value; what tests have left in a module may hold itself."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict | tuple | list | frozenset) and id(value) not in seen:
        seen.add(id(value))
        for one in [*(value.values() if isinstance(value, dict) else value)]:
            yield from _patterns(one, seen)


def _sample(item: Any) -> str:
    """A text that a part of a pattern matches."""
    kind, value = item
    if kind is code.LITERAL:
        return chr(value)
    if kind is code.NOT_LITERAL:
        return "x" if value != ord("x") else "y"
    if kind is code.ANY:
        return "x"
    if kind is code.IN:
        return _of_class(value)
    if kind is code.BRANCH:
        return _samples(value[1][0])
    if kind is code.SUBPATTERN:
        return _samples(value[3])
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return _samples(value[2]) * max(1, value[0])
    if kind is code.ATOMIC_GROUP:
        return _samples(value)
    return ""


def _samples(items: Any) -> str:
    return "".join(map(_sample, items))


OTHERS = "x1 _-.:/<>\"'=?&;#@%\\\n("


def _of_class(options: Any) -> str:
    source = re.compile(_class_text(options))
    return next((one for one in OTHERS if source.fullmatch(one)), chr(0x100))


def _class_text(options: Any) -> str:
    names = {
        code.CATEGORY_DIGIT: r"\d", code.CATEGORY_NOT_DIGIT: r"\D", code.CATEGORY_SPACE: r"\s",
        code.CATEGORY_NOT_SPACE: r"\S", code.CATEGORY_WORD: r"\w", code.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    text = ""
    for kind, value in options:
        if kind is code.NEGATE:
            text += "^"
        elif kind is code.LITERAL:
            text += re.escape(chr(value))
        elif kind is code.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        elif kind is code.CATEGORY:
            text += names[value]
    return f"[{text}]"


def _pieces(items: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Each part that repeats without a bound: a text that leads to it, and one that it matches."""
    for item in items:
        kind, value = item
        inner = ()
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT):
            if value[1] is code.MAXREPEAT:
                yield before, _samples(value[2])
            inner = (value[2],)
        elif kind is code.SUBPATTERN:
            inner = (value[3],)
        elif kind is code.BRANCH:
            inner = tuple(value[1])
        elif kind in (code.ASSERT, code.ASSERT_NOT):
            inner = (value[1],)
        for one in inner:
            yield from _pieces(one, before)
        before += _sample(item)


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str]]:
    """Beginnings and texts that repeat: what each open-ended part matches, alone and with all that leads to it."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    units = {("", one) for one in OTHERS}
    for before, unit in _pieces(tree):
        units |= {(before, unit), ("", before + unit), ("", before), (before, " "), ("", unit)}
    whole = _samples(tree)
    units |= {("", whole), ("", whole[:-1])}
    yield from sorted((before, unit) for before, unit in units if unit)


def seconds(pattern: re.Pattern[Any], way: str, before: str, unit: str, length: int) -> float:
    """Processor seconds of looking for the pattern in a text of about this length, the least of three."""
    text: Any = before + unit * max(1, length // len(unit)) + "\x00"
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    least = float("inf")
    for _ in range(3):
        start = time.process_time()
        found = getattr(pattern, way)(text)
        if way == "finditer":
            deque(found, maxlen=0)
        least = min(least, time.process_time() - start)
        if not SLOW / 4 < least < 50 * SLOW:
            break
    return least


def check(pattern: re.Pattern[Any], way: str) -> None:
    """The texts double until they take long: in proportion that is twice as long, with the square four times."""
    for before, unit in attacks(pattern):
        last, length = 0.0, SHORTEST
        while length <= LONGEST:
            now = seconds(pattern, way, before, unit, length)
            assert now < SLOW or now < 3 * last, f"{pattern.pattern!r} with {before!r} and {unit!r} again and again"
            last, length = now, 2 * length


@pytest.mark.obligation("SEC1")
def test_patterns_take_time_in_proportion() -> None:
    """One test of all: to find them imports every module, which no worker should do while it collects."""
    found = {(one.pattern, one.flags, way): (one, way) for one, way in patterns()}
    assert len(found) > 100
    for one, way in found.values():
        check(one, way)


@pytest.mark.parametrize("source", [r"\s+$", "(x|xx)*y", "[a-z]+@", r"=\s*([^;]+?)\s*;"])
def test_a_pattern_that_is_not_linear_is_found(source: str) -> None:
    with pytest.raises(AssertionError, match="again and again"):
        check(re.compile(source), "finditer")


@pytest.mark.parametrize(
    "text",
    [
        "<password>hidden</password2>hidden</password>", "<a:password x='1'>hidden", "<password <password >hidden",
        "<snmpCommunity>hidden</snmpCommunity>", '<a b="c" apiKey = "hidden">', "<x><pwd>hidden</pwd></x>",
        "http://a?privateKey=hidden", "http://a??pwd=hidden&x=?",
    ],
)  # fmt: skip
def test_credentials_are_masked_in_one_pass(text: str) -> None:
    assert "hidden" not in masked_envelope(text.encode())
    assert MASK in masked_envelope(text.encode())


@pytest.mark.obligation("C55")
def test_names_of_credentials_can_be_added() -> None:
    code = "from mtosi_jms.masking import without_login as w; print(w('x:?thePin=1&snmpRead=2&a=3'))"
    environment = {**os.environ, "MTOSI_JMS_SECRET_NAMES": "pin, snmpread,"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "x:?thePin=***&snmpRead=***&a=3"
