"""A standalone cluster on loopback, whose workers and executors a test may kill."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
PATIENCE = 90.0
_AT_ANY_PORT = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


class Daemon:
    """A process of the cluster and what it logs, line by line."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self.lines: list[str] = []
        self.folder = folder
        self._unread: queue.Queue[str | None] = queue.Queue()
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._unread.put(line)
        self._unread.put(None)

    def says(self, pattern: str) -> str:
        """Wait for a line of the log; its first group."""
        while True:
            line = self._unread.get(timeout=PATIENCE)
            assert line is not None, "".join(self.lines[-20:])
            match = re.search(pattern, line)
            if match:
                return match.group(1)

    def kill_children(self) -> None:
        """Kill what this process has started, as the system does when memory is short."""
        for file in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            for child in file.read_text().split():
                os.kill(int(child), signal.SIGKILL)

    def kill(self) -> None:
        """Kill this very process."""
        self.process.kill()

    def stop(self) -> None:
        """End this very process, and wait for it."""
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(timeout=PATIENCE)
            assert self.process.stdout is not None
            self.process.stdout.close()


@dataclass
class Cluster:
    """A master and its workers, each with one core; `environment` is that of daemons and of whoever submits."""

    folder: Path
    environment: dict[str, str]
    url: str = ""
    workers: list[Daemon] = field(default_factory=list)
    started: int = 0

    def start(self, workers: int) -> None:
        self.master = Daemon("master.Master", self.folder / "master", self.environment, *_AT_ANY_PORT)
        self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            self.add_worker()
        for _ in range(workers):
            self.master.says(r"Registering worker (\S+) with 1 cores")

    def add_worker(self) -> None:
        self.started += 1
        place = self.folder / f"worker{self.started}"
        limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(place))
        self.workers.append(Daemon("worker.Worker", place, self.environment, *_AT_ANY_PORT, *limits, self.url))

    def replace_worker(self) -> None:
        """Kill a worker; another one takes its place."""
        victim = self.workers.pop(0)
        victim.kill()
        victim.stop()
        self.add_worker()
        self.master.says(r"Registering worker (\S+) with 1 cores")

    def stop(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.stop()

    def run(self, command: Sequence[str], folder: Path, **environment: str) -> str:
        """Run a driver to its end; what it printed."""
        env = {**self.environment, **environment}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=8 * PATIENCE)
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout

    def workers_used(self) -> set[str]:
        """The workers on which the master has launched executors."""
        found = (re.search(r"Launching executor \S+ on worker (\S+)", line) for line in self.master.lines)
        return {match.group(1) for match in found if match}


@contextmanager
def running(
    folder: Path, settings: Mapping[str, str], java: str, python: str, workers: int, **environment: str
) -> Iterator[Cluster]:
    """A cluster with settings of Spark, options of Java and an interpreter for whoever submits."""
    given = {**settings, "spark.executor.extraJavaOptions": java, "spark.ui.enabled": "false"}
    defaults = "".join(f"{name} {value}\n" for name, value in given.items())
    (folder / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}
    own = {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "SPARK_DAEMON_JAVA_OPTS": java,
        "SPARK_SUBMIT_OPTS": java,
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    cluster = Cluster(folder, {**kept, **own, **environment})
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
