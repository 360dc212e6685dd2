"""Objects whose `__init__` raised: tools that show local variables call their `repr`."""

from __future__ import annotations

import importlib
import inspect
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.errors import MtosiError
from mtosi_jms.transport import PROVIDERS

pytestmark = pytest.mark.obligation("CON5")
SECRET = "S3cr3t-Mark"


def shown_by_us() -> Iterator[type]:
    """The classes of the package with a `__repr__` that is written in it, of optional libraries if they are there."""
    home = Path(mtosi.__path__[0])
    written = [path for path in home.rglob("*.py") if "def __repr__" in path.read_text("utf-8")]
    names = [".".join((home.name, *path.relative_to(home).with_suffix("").parts)) for path in written]
    for name in [*names, *PROVIDERS.values()]:
        with suppress(ImportError, MtosiError):
            importlib.import_module(name.removesuffix(".__init__"))
    modules = [module for name, module in sys.modules.copy().items() if name.startswith(f"{home.name}.")]
    classes = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    for one in sorted(classes, key=lambda one: (one.__module__, one.__qualname__)):
        show = inspect.unwrap(one.__repr__)
        if isinstance(show, FunctionType) and Path(show.__code__.co_filename).is_relative_to(home):
            yield one


def test_each_class_shows_what_is_half_made() -> None:
    shown = 0
    for one in shown_by_us():
        try:
            made: Any = object.__new__(one)
        except TypeError:  # an int, a text: complete as soon as it is there
            continue
        assert repr(made)
        shown += 1
    assert shown > 30


def nobody(scheme: str) -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    if scheme == "stomp":
        return f"stomp://me:{SECRET}@127.0.0.1:{port}"
    return f"jvm:CF?jndiInitialContextFactory=no.Such&jndiURL=tcp://me:{SECRET}@127.0.0.1:{port}"


@pytest.mark.parametrize("scheme", ["stomp", "jvm"])
def test_a_tracker_shows_why_a_connection_failed(scheme: str) -> None:
    if scheme == "jvm":
        pytest.importorskip("jpype")
    with pytest.raises(MtosiError) as caught:
        mtosi.connect(nobody(scheme), connect_timeout=3)
    shown, trace = [], caught.value.__traceback__
    while trace is not None:
        ours = [one for one in trace.tb_frame.f_locals.values() if type(one).__module__.startswith("mtosi_jms")]
        shown += [repr(one) for one in ours]
        trace = trace.tb_next
    assert "not complete" in "".join(shown)
    assert SECRET not in "".join(shown)
    "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
