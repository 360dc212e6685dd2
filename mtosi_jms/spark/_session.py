"""A Spark session on this machine, and the checks of PySpark and Java.

The session uses loopback addresses, has no web UI and prints errors only. All its files are in one folder, which is
removed when the session stops.

Java uses only its quick compiler (`-XX:TieredStopAtLevel=1`): a job of a minute then takes half the processor time, a
job of an hour a quarter more if most of its work is in Java. Java then keeps at most 48 MB of compiled code by itself,
which Spark fills in minutes, and compiles again and again; it gets the 240 MB that it has with both compilers. Options
of the caller come after these and override them.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from mtosi_jms.closing import with_the_process
from mtosi_jms.errors import ConfigError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

JAVA_MINIMUM: Final = 17
SPARK_MINIMUM: Final = (4, 0)
"""The first PySpark with a Python data source API whose readers give Arrow batches."""
STATE_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that the ledger of a stream needs; Spark's default store does not support it."""

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.filter.errors.type = ThresholdFilter
appender.err.filter.errors.level = error
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = spark %p %c{1}: %m%n%ex{short}
"""


@contextmanager
def local_session(
    name: str = "mtosi-jms", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Provide a Spark session on this machine with the sources `mtosi` and `mtosi-jms` registered.

    At the end of the block the session is stopped, its Java process ends and its files are removed. Standard error of
    Spark and its workers goes to one of these files; if Java does not start, the error has the last line of it.

    Args:
        settings: further settings of Spark; `spark.driver.extraJavaOptions` is added to the options of the session.

    Raises:
        MissingExtraError: PySpark is not installed.
        ConfigError: there is no suitable Java or it does not start, PySpark is too old, or this process already has an
            active Spark.
    """
    import pyspark
    from pyspark import SparkContext

    check_version(pyspark.__version__)
    check_java()
    if SparkContext._active_spark_context is not None:
        raise ConfigError("Spark is active in this process: hand its session over instead of asking for another")
    folder = Path(tempfile.mkdtemp(prefix="mtosi-spark-"))
    try:
        with (
            with_the_process(lambda: shutil.rmtree(folder, ignore_errors=True)),
            warnings.catch_warnings(),
            _quiet_interrupts(),
            _java(name, cores, folder, settings or {}) as (conf, gateway),
        ):
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            from py4j.protocol import Py4JError  # type: ignore[import-untyped]
            from pyspark.errors.exceptions.captured import CapturedException
            from pyspark.sql import SparkSession

            from mtosi_jms.spark._message_stream import MessageStreamSource
            from mtosi_jms.spark._source import InventorySource

            with _own_interrupts(SparkContext):
                spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
            spark.dataSource.register(InventorySource)
            spark.dataSource.register(MessageStreamSource)
            try:
                yield spark
            except (CapturedException, Py4JError) as error:
                raise _detached(error) from None
            finally:
                spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_interrupts(context: type[SparkContext]) -> Iterator[None]:
    """Keep the handler of SIGINT. A SparkContext sets one that calls Java from inside a call of Java, which fails."""
    module: Any = sys.modules[context.__module__]
    module.signal = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda number, handler: None)
    try:
        yield
    finally:
        module.signal = signal


@contextmanager
def _quiet_interrupts() -> Iterator[None]:
    """Keep the tracebacks that py4j logs for a KeyboardInterrupt out of the log: the exception itself follows.

    The connection of the interrupted call is closed here. py4j would leave it a command that Java reads when the call
    ends, and that closes the connections of later calls.
    """
    loggers = [logging.getLogger(name) for name in (None, "py4j.clientserver")]
    for logger in loggers:
        logger.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_no_interrupt)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    if error is None:
        return True
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "send_command" and "connection" in frame.f_locals:
            frame.f_locals["connection"].close()
    return False


def _detached(error: Exception) -> Exception:
    """Return an error of the same public class with the text in it; Spark's errors ask Java for it, which is ending."""
    from py4j.protocol import Py4JError
    from pyspark import errors

    public = (base for base in type(error).__mro__ if getattr(errors, base.__name__, None) is base)
    public_class: type[Exception] = next(public, Py4JError)
    return public_class(str(error)).with_traceback(error.__traceback__)


@contextmanager
def _java(name: str, cores: int | None, folder: Path, settings: Mapping[str, str]) -> Iterator[tuple[SparkConf, Any]]:
    """Start a Java process that puts its files into a folder, and end it with the block.

    The only function with private names of PySpark: `SparkSession.builder` would leave its Java running after `stop`,
    give it to the next session with the settings and the folder of this one, and let it write to standard error.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    # By default Spark's workers run the `python3` on PATH, whatever it is.
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    log_file = folder / "log4j2.properties"
    log_file.write_text(_LOGGING, encoding="utf-8")
    conf = SparkConf(loadDefaults=False).setMaster(f"local[{cores or '*'}]").setAppName(name)
    own = _settings(folder, log_file)
    java = f"{own[_JAVA_OPTIONS]} {settings.get(_JAVA_OPTIONS, '')}".rstrip()
    conf.setAll(list({**own, **settings, _JAVA_OPTIONS: java}.items()))
    conf.set("spark.sql.shuffle.partitions", str(cores or os.cpu_count() or 1))
    errors = folder / "stderr.log"
    with errors.open("wb") as stream, _environment(PYTHONPATH=_python_path(), **_utf8_locale()):
        try:
            gateway = launch_gateway(conf=conf, popen_kwargs={"stderr": stream})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            words = _last_output(errors) or str(error)
            raise ConfigError(f"Java does not start: {words}{_half_downloaded(words)}") from error
        except KeyboardInterrupt as error:
            _kill_started(error)
            raise
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    try:
        with nullcontext() if process is None else with_the_process(process.kill):
            yield conf, gateway
    finally:
        # Else PySpark hands this Java process, which ends here, to the next session.
        SparkContext._gateway = SparkContext._jvm = None
        _end(gateway)


def _kill_started(error: KeyboardInterrupt) -> None:
    """Kill the Java process that PySpark had started and not yet returned: only its frame has it."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            process.kill()
            process.wait()


def _half_downloaded(words: str) -> str:
    """Return advice if Maven has left a .pom without a .jar: Spark believes that such a package is complete."""
    found = re.search(r"download failed: ([^#;!\s]+)#([^#;!\s]+);([^#;!\s]+)!", words)
    if not found:
        return ""
    folder = Path("~/.m2/repository", *found[1].split("."), found[2], found[3])
    return f"; if {folder} has a .pom and no .jar, remove it, or name the jars yourself: --conf spark.jars=..."


def _last_output(errors: Path) -> str:
    lines = errors.read_text(errors="replace").splitlines()
    return next((line for line in reversed(lines) if line.strip() and not line[0].isspace()), "")


def _python_path() -> str:
    """Return the PYTHONPATH with which another process can import what this one can, such as a generated package."""
    installed = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    own = [entry or str(Path.cwd()) for entry in sys.path if entry not in installed and Path(entry).is_dir()]
    return os.pathsep.join(dict.fromkeys(own))


def _utf8_locale() -> dict[str, str]:
    """Return the environment variables that make Java use UTF-8 for file names, as Python does."""
    spoken = next(filter(None, (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    return {} if "utf" in spoken.lower() else {"LC_ALL": "C.UTF-8"}


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end(gateway: Any) -> None:
    """End the Java process by closing its standard input; kill it if that does not end it."""
    gateway.shutdown()
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _settings(folder: Path, log_file: Path) -> dict[str, str]:
    java = (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
        f"-Dlog4j2.configurationFile={log_file.as_uri()} -Djava.io.tmpdir={folder} -Dderby.system.home={folder}"
    )
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        _JAVA_OPTIONS: java,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        # Spark's default, INT96, has no time zone, and is deprecated in Parquet.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Else each step of a DataFrame looks up where it was called, which takes a fifth of a small load.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        # By default Spark compiles code for at most 100 fields; objects with their nested fields have more.
        "spark.sql.codegen.maxFields": "2000",
        STATE_STORE: ROCKSDB,
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.daemon.module": "mtosi_jms.spark._workers",
    }


def pyspark_version() -> str:
    """Return the version of PySpark without importing it; empty if it is unknown.

    It is read from a file of PySpark, because not every PySpark is installed as a distribution: that of a cluster is in
    its `SPARK_HOME`, as a folder or as an archive.
    """
    spec = importlib.util.find_spec("pyspark")
    read = getattr(spec.loader, "get_data", None) if spec is not None else None
    if spec is None or spec.origin is None or read is None:
        return ""
    try:
        text = read(str(Path(spec.origin).with_name("version.py"))).decode("utf-8", "replace")
    except OSError:
        return ""
    found = re.search(r"""^__version__[^=]*=\s*["']([^"']+)["']""", text, re.MULTILINE)
    return found.group(1) if found else ""


def check_version(version: str) -> None:
    """Raise ConfigError if a PySpark is too old. A version that does not begin with numbers is accepted."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found.group(1)), int(found.group(2))) < SPARK_MINIMUM:
        least = ".".join(map(str, SPARK_MINIMUM))
        needed = f"mtosi_jms.spark requires PySpark {least} or later"
        raise ConfigError(f"PySpark {version} is too old: {needed}, pip install 'pyspark>={least}'")


def check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    get = f"install Java {JAVA_MINIMUM} or later (Debian: apt-get install openjdk-17-jre-headless), or mend JAVA_HOME"
    if java is None or not Path(java).exists():
        where = f"in JAVA_HOME, {home}" if home else "on PATH"
        raise ConfigError(f"Spark requires Java {JAVA_MINIMUM} or later, and there is none {where}: {get}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if found and int(found.group(1)) < JAVA_MINIMUM:
        raise ConfigError(f"Spark requires Java {JAVA_MINIMUM} or later, and {java} is {found.group(1)}: {get}")
