"""Processes that use the ORB: they end in good order, whatever goes on, and Ctrl-C ends what waits."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

EXITS = """\
import sys
from mtosi_jms.bridge.corba import Orb
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.errors import IllegalStateError
import threading

orb = Orb()
channel = orb.channel(sys.argv[1])
begun = threading.Event()
def consumer(events):
    begun.set()
    if sys.argv[2] == "within":
        threading.Event().wait()
source = channel.event_source()
source.connect(consumer)
sink = channel.event_sink()
sink.connect()
def push():
    try:
        while True:
            sink.push([StructuredEvent()] * 5)
    except IllegalStateError:  # the process ends
        pass
threading.Thread(target=push, daemon=True).start()
begun.wait()
"""

PULLS = """\
import sys
from mtosi_jms.bridge.corba import Orb
from mtosi_jms.bridge.endpoints import FlowStyle

with Orb() as orb:
    source = orb.channel(sys.argv[1]).event_source(FlowStyle.PULL)
    source.connect()
    try:
        print("ready", flush=True)
        source.pull()
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("where", [pytest.param("between", marks=pytest.mark.endurance), "within"])
def test_a_process_may_end_while_events_come(jacorb_address: str, where: str) -> None:
    command = [sys.executable, "-c", EXITS, jacorb_address, where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ctrl_c_ends_a_pull(jacorb_address: str) -> None:
    command = [sys.executable, "-c", PULLS, jacorb_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "interrupted\n", "")
