"""A factory of bridges that a Java client handles, through the stubs of the specification's IDL."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.bridge import BridgeFactory
from mtosi_jms.testing import MemoryChannel
from mtosi_jms.transport import connect

SAID = """\
made 0 of 1
status 1
ALARMS
0
status 0
BridgeAlreadyStarted
status 1
BridgeInactive
InvalidExternalEndPoints 0
BridgeNotFound
left 0
"""


@pytest.mark.obligation(
    "000-B9", "000-B10", "000-B11", "000-B12", "000-B16", "000-B17", "000-B19", "000-B20", "000-B21", "000-B23",
    "000-X15", "ENC7",
)  # fmt: skip
def test_a_java_client_handles_bridges(orb: Any, java: Any, jacorb_jars: list[Path], tmp_path: Path) -> None:
    command = java.compiled(Path(__file__).with_name("BridgeClient.java"), jacorb_jars)
    classes = ("ORBClass=org.jacorb.orb.ORB", "ORBSingletonClass=org.jacorb.orb.ORBSingleton")
    defined = [f"-Dorg.omg.CORBA.{one}" for one in classes]
    factory = BridgeFactory({0: MemoryChannel()}, {"": lambda: connect("memory:")})
    try:
        ior = orb.offer(factory)
        done = subprocess.run(
            [command[0], *defined, *command[1:], ior], capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
    finally:
        factory.close()
    assert (done.stdout, done.returncode) == (SAID, 0), done.stderr
