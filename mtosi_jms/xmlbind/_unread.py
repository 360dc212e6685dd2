"""Objects whose values are made when one of them is looked at first.

The fields of such an object are empty slots. Reading one makes Python ask the class for `__getattr__`, which makes them
all; from then on the object is as any other. So whatever goes through attributes sees full objects: comparing,
printing, copying, pickling, encoding. What has yet to be made is held by the slot of `extras`, which nothing else
needs before, and which the class guards. Setting a field asks nobody; what was set stays when the others are made. Nor
does deleting one: Python refuses it while the slot is empty.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, fields
from gc import get_referents
from itertools import repeat
from types import MemberDescriptorType, MethodType
from typing import Any, Final

from mtosi_jms.xmlbind._table import XmlObject

_SLOT: Final[Any] = XmlObject.__dict__["extras"]
_BARE: Final = 2
"""What an unread object refers to: its class, and what has yet to be made."""

_filling: Final = threading.RLock()
if hasattr(os, "register_at_fork"):  # in a child nobody would release what another thread holds
    os.register_at_fork(before=_filling.acquire, after_in_parent=_filling.release, after_in_child=_filling.release)
_held: Final = _SLOT.__get__
_get: Final = object.__getattribute__


def _look(obj: Any, name: str) -> Any:
    """What a class of unread objects has as `__getattr__`.

    If an object is unread, its values are made; what two threads see are the same ones.
    """
    with _filling:
        try:
            held = _held(obj)
        except AttributeError:
            held = None  # it was deleted
        if held.__class__ is MethodType:
            held(obj)
    return _get(obj, name)


def _extras(obj: Any) -> Any:
    held = _held(obj)
    if held.__class__ is MethodType:
        _look(obj, "__class__")
        return _held(obj)
    return held


def _set_extras(obj: Any, value: Any) -> None:
    if len(get_referents(obj)) > 1:  # else it is about to be made
        _look(obj, "__class__")
    _SLOT.__set__(obj, value)


def _delete_extras(obj: Any) -> None:
    _look(obj, "__class__")
    _SLOT.__delete__(obj)


_guard: Final = property(_extras, _set_extras, _delete_extras, _SLOT.__doc__)


def may_be_unread(cls: Any) -> bool:
    """Whether objects of a class can be filled when they are looked at; the class is then made ready for it.

    Only a class that has such objects is: Python 3.11 reads attributes more slowly where there is a `__getattr__`.

    Args:
        cls: a generated class.
    """
    plain = cls.__new__ is object.__new__ and cls.__getattribute__ is object.__getattribute__
    if not plain or cls.__setattr__ is not object.__setattr__ or cls.__dictoffset__:
        return False
    if any(type(getattr(cls, field.name)) is not MemberDescriptorType for field in _fields(cls)):
        return False
    with _filling:
        hook = getattr(cls, "__getattr__", None)
        if hook is None and cls.extras is _SLOT:
            cls.__getattr__ = _look
            cls.extras = _guard
        elif hook is not _look or cls.extras is not _guard:
            return False
    return len(get_referents(unread(cls, print, [""])[0])) == _BARE


def unread(cls: Any, make: Callable[[Any, Any], None], sources: Sequence[Any]) -> list[Any]:
    """Unread objects of a class.

    Args:
        cls: a class that may have them.
        make: called with a source and the object that is made of it; ends with what `publication` gives.
        sources: what each of the objects is made of.
    """
    objects = list(map(object.__new__, repeat(cls, len(sources))))
    deque(map(_SLOT.__set__, objects, map(MethodType, repeat(make), sources)), maxlen=0)
    return objects


def _fields(cls: Any) -> list[Field[Any]]:
    return [field for field in fields(cls) if field.name != "extras"]


def publication(cls: Any, values: Mapping[str, str]) -> tuple[list[str], dict[str, Any]]:
    """The end of a function that makes an unread object `o`: all its fields at once, and nothing pending from then on.

    Fields that were set before any was read keep what they were set to.

    Args:
        cls: a class that may have unread objects.
        values: what each field gets, as expressions without a call.

    Returns:
        The lines, and the values of names in them.
    """
    given = {field.name: values[field.name] for field in _fields(cls)}
    lines = [
        # Between this look and the last assignment nothing is called: no other thread can run and set a field.
        "held = referents[o]",
        f"if held[{_BARE}:]:",
        f" settle(o, [{', '.join(given.values())}])",
        "else:",
        *(f" o.{name} = {value}" for name, value in given.items()),
        " done(o, None)",
    ]
    return lines, {"referents": _Referents(), "settle": _settler(cls), "done": _SLOT.__set__}


class _Referents:
    """What an object refers to, by subscription: that is no call."""

    __getitem__ = get_referents


def _settler(cls: Any) -> Callable[[Any, list[Any]], None]:
    """What gives an object the values of the fields that have none."""
    slots = [getattr(cls, field.name) for field in _fields(cls)]

    def settle(obj: Any, values: list[Any]) -> None:
        for slot, value in zip(slots, values, strict=True):
            try:
                slot.__get__(obj)
            except AttributeError:
                slot.__set__(obj, value)
        # Unless a finalizer that ran in this thread meanwhile has looked at it.
        with suppress(AttributeError):
            if _held(obj).__class__ is MethodType:
                _SLOT.__set__(obj, None)

    return settle
