"""The Java virtual machine of this process, for `jvm:` and other packages: started once, jars loaded when they are
needed, each set by its own class loader, as providers may have incompatible ones. JPype is imported only here."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from mtosi_jms.errors import ConfigError, IllegalStateError, MissingExtraError
from mtosi_jms.jars import find_client, is_client

__all__ = ["attach", "blocking", "context_loader", "find_class", "is_ending", "loader", "start"]

_DISTRUSTED: Final = (
    "com.sun.jndi.ldap.object.trustURLCodebase",
    "com.sun.jndi.rmi.object.trustURLCodebase",
    "com.sun.jndi.ldap.object.trustSerialData",
)
"""Properties that are set to false: no class is loaded from a place that a directory names, and no object is
deserialised from it."""
_OPTIONS: Final = (
    "-Xrs",  # leaves signals to Python
    "-XX:+UseSerialGC",  # a client needs little garbage collection; more threads would compete with Python's
    "-Djava.awt.headless=true",
    *(f"-D{name}=false" for name in _DISTRUSTED),
)
_CLASSES: Final = str(Path(__file__).resolve().parent / "java")
"""Folder of the class `Crossing`."""
_LAST_WAIT: Final = 2.0
"""Seconds for which the end of the process waits for threads to return from Java."""
_starting: Final = threading.Lock()
_begun: Future[Any] | None = None
"""The future of the start of the machine."""
_returned: Final = threading.Condition()
_inside: Final[set[int]] = set()
_ending = False
_loaders: Final[dict[tuple[str, ...], Any]] = {}
_attached: Final = threading.local()
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = jpype is not None  # no call of JPype, which may hang in the child


jpype: Any = None
"""The module `jpype`, once the machine runs."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def start() -> Any:
    """Starts the machine unless it runs already, and returns the module `jpype`. Raises MissingExtraError: JPype is not
    installed; ConfigError: there is no Java, or it does not start; IllegalStateError: the process was forked from one
    where it runs."""
    global _begun
    check_process()
    with _starting:
        if _begun is None or (_begun.done() and _begun.exception()):
            _begun = Future()
            # In a thread: Ctrl-C in the main thread would leave a machine that neither runs nor can be started.
            threading.Thread(target=_begin, args=(_begun,), name="starts-java", daemon=True).start()
        begun = _begun
    return begun.result()


def _begin(begun: Future[Any]) -> None:
    global jpype
    try:
        jpype = _started()
        attach()
    except BaseException as error:  # noqa: BLE001 - who waits raises it
        begun.set_exception(error)
    else:
        begun.set_result(jpype)


def _started() -> Any:
    try:
        module = importlib.import_module("jpype")
    except ImportError as error:
        raise MissingExtraError("JPype", "jvm") from error
    if module.isJVMStarted():
        _distrust(module)
        return module
    config: Any = importlib.import_module("jpype.config")
    config.destroy_jvm = False  # else the exit of the process waits for threads of providers
    try:
        module.startJVM(*_OPTIONS, convertStrings=False)
    except module.JVMNotFoundException as error:
        home = os.environ.get("JAVA_HOME")
        where = f" in JAVA_HOME, {home}" if home else ""
        get = "install Java 17 or later, and let JAVA_HOME name its folder"
        raise ConfigError(f"there is no Java{where}: {get}") from error
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"Java does not start: {error}; it needs Java 17 or later, see JAVA_HOME") from error
    atexit.register(_end)
    return module


def _distrust(module: Any) -> None:
    """Sets the same properties in a machine that the application started, unless it has set them."""
    system = module.JClass("java.lang.System")
    for name in _DISTRUSTED:
        if system.getProperty(name) is None:
            system.setProperty(name, "false")


def _end() -> None:
    """Waits for threads in Java at the end of the process, because one that returned later would crash it."""
    global _ending
    with _returned:
        _ending = True
        _returned.wait_for(lambda: not _inside, _LAST_WAIT)
    with contextlib.suppress(Exception):
        jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance().stop()


def is_ending() -> bool:
    """Whether the process is ending, so that Java must not be called any more."""
    return _ending


class blocking:  # noqa: N801 - used like a function
    """A block around a call to Java that may take long. Raises IllegalStateError: the process ends, or see
    `check_process`."""

    __slots__ = ("_nested",)

    def __enter__(self) -> Self:
        attach()
        mark = threading.get_ident()
        self._nested = mark in _inside
        _inside.add(mark)
        if _ending:  # checked after `_inside.add`, because `_end` waits for the threads in `_inside`
            self._leave()
            raise IllegalStateError("the process ends")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if not self._nested:
            _inside.discard(threading.get_ident())
            if _ending:
                with _returned:
                    _returned.notify_all()


def check_process() -> None:
    """Raises IllegalStateError in a forked child, which has no machine and where a call would hang."""
    if _forked:
        raise IllegalStateError(
            "this process was forked from one that uses a jvm: connection: Java runs in the parent alone; start the "
            "process with multiprocessing's spawn, or connect after the fork"
        )


class _Attachment:
    """Ends with its thread, and then detaches the Java thread that JPype made for it."""

    __slots__ = ("_process", "thread")

    def __init__(self) -> None:
        self._process = os.getpid()
        self.thread = jpype.JClass("java.lang.Thread").currentThread()

    def __del__(self) -> None:
        # A forked child drops the threads of its parent before any function of ours runs there.
        if os.getpid() != self._process or threading.current_thread() is threading.main_thread():
            return
        with contextlib.suppress(Exception):
            self.thread = None  # releasing it later would attach the thread again
            if jpype.isJVMStarted():
                jpype.JClass("java.lang.Thread").detach()


def attach() -> None:
    """Attaches the calling thread before it calls Java, so that its Java thread ends with it. Raises IllegalStateError:
    see `check_process`."""
    check_process()
    if not hasattr(_attached, "until_the_end"):
        _attached.until_the_end = _Attachment()


def loader(jars: Sequence[Path]) -> Any:
    """Return the class loader for a set of jars, always the same one. Raises ConfigError: a jar is missing."""
    if missing := [path for path in jars if not path.exists()]:
        raise ConfigError(f"classpath: {missing[0]}: no such file or folder")
    key = tuple(str(path.resolve()) for path in jars)
    with _starting:
        if key not in _loaders:
            file, url = jpype.JClass("java.io.File"), jpype.JClass("java.net.URL")
            parent = jpype.JClass("java.lang.ClassLoader")
            # Without jars, use the class path of a machine that the application started.
            above = parent.getPlatformClassLoader() if key else parent.getSystemClassLoader()
            urls = jpype.JArray(url)([file(path).toURI().toURL() for path in (*key, _CLASSES)])
            _loaders[key] = jpype.JClass("java.net.URLClassLoader")(urls, above)
        return _loaders[key]


@contextlib.contextmanager
def context_loader(chosen: Any) -> Iterator[None]:
    """Sets the class loader that JNDI and providers use, for the calling thread and the block."""
    thread = current_thread()
    before = thread.getContextClassLoader()
    thread.setContextClassLoader(chosen)
    try:
        yield
    finally:
        thread.setContextClassLoader(before)


def find_class(name: str, chosen: Any) -> Any:
    """Return a class by its name; None if the loader has none. Raises Java's LinkageError if it cannot be linked."""
    try:
        return jpype.JClass(jpype.JClass("java.lang.Class").forName(name, False, chosen))
    except jpype.JClass("java.lang.ClassNotFoundException"):
        return None


def current_thread() -> Any:
    attach()
    return _attached.until_the_end.thread


def jars_of(classpath: Sequence[str]) -> list[Path]:
    """Return the jars of a class path, of folders at any depth. Raises ConfigError: a client that was not fetched."""
    found: list[Path] = []
    for text in classpath:
        if is_client(text):
            found += find_client(text)
            continue
        one = Path(text)
        jars = sorted(one.rglob("*.jar")) if one.is_dir() else []
        found += jars or [one]
    return found
