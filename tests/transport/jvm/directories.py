"""Directories of administered objects: a folder of bindings, and LDAP servers on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import free_ports

HERE = Path(__file__).parent
BASE = "dc=mtosi,dc=test"
ADMINISTRATOR = f"cn=admin,{BASE}"
PASSWORD = "directory-s3cret"
PATIENCE = 60.0
FILES = "com.sun.messaging.mq:fscontext:4.6-b01"
UNBOUNDID = "com.unboundid:unboundid-ldapsdk:7.0.2"
FACTORIES = {
    "activemq": "org.apache.activemq.ActiveMQConnectionFactory",
    "artemis": "org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory",
    "qpid": "org.apache.qpid.jms.JmsConnectionFactory",
}
QUEUES = {
    "activemq": "org.apache.activemq.command.ActiveMQQueue",
    "artemis": "org.apache.activemq.artemis.jms.client.ActiveMQQueue",
    "qpid": "org.apache.qpid.jms.JmsQueue",
}
ENTRIES = f"""\
dn: {BASE}
objectClass: dcObject
objectClass: organization
dc: mtosi
o: mtosi

"""


class Directory:
    """A directory that runs.

    Args:
        environment: what leads JNDI there.
        java: compiles and runs what binds.
        jars: that JNDI needs for it.
    """

    def __init__(self, environment: Mapping[str, str], java: Any, jars: Sequence[Path] = ()) -> None:
        self.environment = dict(environment)
        self.jars = [str(jar) for jar in jars]
        self._java = java

    @property
    def properties(self) -> str:
        """The text of a `jndi.properties` for it."""
        return "".join(f"{name}={value}\n" for name, value in self.environment.items())

    def name(self, last: str) -> str:
        """A name in it."""
        return f"cn={last}" if "ldap" in self.environment["java.naming.factory.initial"] else last

    def bind(self, jars: Sequence[str], *bound: tuple[str, str, str]) -> None:
        """Has a Java program bind objects: class, name, and what its constructor takes."""
        command = self._java.compiled(HERE / "Binder.java", [Path(jar) for jar in [*jars, *self.jars]])
        words = [word for one in bound for word in one]
        done = subprocess.run(
            [*command, *words], input=self.properties, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr


def folder(path: Path, java: Any) -> Directory:
    """A folder of bindings."""
    factory = "com.sun.jndi.fscontext.RefFSContextFactory"
    environment = {"java.naming.factory.initial": factory, "java.naming.provider.url": path.as_uri()}
    return Directory(environment, java, java.jars(FILES))


class Server:
    """An LDAP server on loopback, with entries of LDIF. `kind`: `unboundid`, a server of Java's in memory, or
    `openldap`."""

    def __init__(self, kind: str, home: Path, java: Any, entries: str = "") -> None:
        ldif = home / "entries.ldif"
        ldif.write_text(ENTRIES + entries)
        start = {"unboundid": self._start_unboundid, "openldap": self._start_openldap}[kind]
        self._process, port = start(home, ldif, java)
        self.directory = Directory(
            {
                "java.naming.factory.initial": "com.sun.jndi.ldap.LdapCtxFactory",
                "java.naming.provider.url": f"ldap://127.0.0.1:{port}/{BASE}",
                "java.naming.security.principal": ADMINISTRATOR,
                "java.naming.security.credentials": PASSWORD,
            },
            java,
        )

    def _start_unboundid(self, home: Path, ldif: Path, java: Any) -> tuple[subprocess.Popen[str], int]:
        command = java.compiled(HERE / "Directory.java", java.jars(UNBOUNDID))
        words = [*command, BASE, ADMINISTRATOR, PASSWORD, str(ldif)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    def _start_openldap(self, home: Path, ldif: Path, java: Any) -> tuple[subprocess.Popen[str], int]:
        program = shutil.which("slapd") or shutil.which("slapd", path="/usr/sbin:/usr/local/libexec:/usr/libexec")
        schemas = Path("/etc/ldap/schema")
        if program is None or not schemas.is_dir():
            pytest.skip("no slapd: install Debian's package slapd")
        (home / "data").mkdir()
        modules = Path("/usr/lib/ldap")
        settings = [f"include {schemas}/core.schema", f"include {schemas}/java.schema"]
        settings += [f"modulepath {modules}", "moduleload back_mdb"] if modules.is_dir() else []
        settings += ["database mdb", f"suffix {BASE}", f"rootdn {ADMINISTRATOR}", f"rootpw {PASSWORD}"]
        settings += [f"directory {home / 'data'}", f"pidfile {home / 'pid'}"]
        config = home / "slapd.conf"
        config.write_text(
            "\n".join([*settings[:-2], settings[-2], ""]).replace("database mdb", f"{settings[-1]}\ndatabase mdb")
        )
        done = subprocess.run(
            [program, "-T", "add", "-f", config, "-l", ldif],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        [port] = free_ports(1)
        command = [program, "-d", "0", "-f", str(config), "-h", f"ldap://127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True)
        _until_listening(port, process)
        return process, port

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.communicate()


def _until_listening(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert process.poll() is None, "the directory has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "the directory does not listen"
        else:
            return
