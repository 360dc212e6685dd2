"""A Java JMS client in a process of its own, told what to do line by line: see JmsPeer.java."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from mtosi_jms.broker import BrokerProcess

PATIENCE = 60.0
"""Seconds after which an answer that has not come is taken to hang."""

FACTORY = {
    "activemq": "org.apache.activemq.ActiveMQConnectionFactory",
    "artemis": "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
}
"""The connection factories of the brokers' own clients."""

_UNIT = re.compile(r"\\u([0-9a-f]{4})")


def at_broker(kind: str, broker: BrokerProcess) -> list[str]:
    """Arguments of a Java program: class of the connection factory, URL, user. The password goes over stdin."""
    return [FACTORY[kind], f"tcp://127.0.0.1:{broker.endpoints.ports['openwire']}", broker.endpoints.user]


class JavaError(Exception):
    """What the Java program could not do."""


class Peer:
    """One Java client, logged in.

    Args:
        command: runs its class.
        factory: class of the connection factory.
        url: the broker's.
        user: login.
        password: of the login; it goes over standard input.
        folder: for the texts of messages, and for what the program complains of.
    """

    def __init__(self, command: Sequence[str], factory: str, url: str, user: str, password: str, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._complaints = (folder / "stderr").open("ab")
        self._process = subprocess.Popen(
            [*command, factory, url, user],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="ascii",
        )
        self._write(password)
        self._answer()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def ask(self, *words: str) -> list[list[str]]:
        """Have one thing done.

        Raises:
            JavaError: it failed.
        """
        self._write("\t".join(map(_escaped, words)))
        told = self._answer()
        for line in told:
            if line[0] == "error":
                raise JavaError(": ".join(line[1:]))
        return told

    def begin(self, *words: str) -> None:
        """The same without waiting for its answer, for a process that is to be killed meanwhile."""
        self._write("\t".join(map(_escaped, words)))

    def file(self, text: str | bytes) -> str:
        """A text where the program finds it."""
        self._files += 1
        path = self._folder / f"text-{self._files}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def receive(self, consumer: str, seconds: float = PATIENCE) -> dict[str, str] | None:
        """What the program sees of the next message; None where none comes in time. Properties stand in it under their
        names, as `Class value`."""
        told = self.ask("receive", consumer, str(int(seconds * 1000)))
        if told == [["none"]]:
            return None
        properties = {line[1]: " ".join(line[2:]) for line in told if line[0] == "property"}
        return properties | {line[0]: " ".join(line[1:]) for line in told if line[0] != "property"}

    def send(self, where: str, text: str | bytes, *settings: str, kind: str = "text", reply_to: str = "") -> str:
        """Send a message; its JMSMessageID."""
        ((_, identifier),) = self.ask("send", where, reply_to, kind, self.file(text), *settings)
        return identifier

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._complaints):
            if stream is not None:
                stream.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _answer(self) -> list[list[str]]:
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE + 30, self._process.kill)
        watch.start()
        try:
            lines: list[list[str]] = []
            for line in self._process.stdout:
                if line == ".\n":
                    return lines
                lines.append([_unescaped(word) for word in line.rstrip("\n").split("\t")])
        finally:
            watch.cancel()
        raise JavaError(f"the program ended: {(self._folder / 'stderr').read_text()[-2000:]}")


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if 32 <= code < 127 and code != 92 else f"\\u{code:04x}" for code in codes)


def _unescaped(text: str) -> str:
    read = _UNIT.sub(lambda found: chr(int(found[1], 16)), text)
    return read.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
