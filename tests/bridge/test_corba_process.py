"""Processes that use the ORB: they end in good order, whatever goes on, and Ctrl-C ends what waits."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.bridge.events import StructuredEvent

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


def test_what_is_taken_too_late_is_given_again_and_not_handed_out(jacorb_jars: object, jacorb_address: str) -> None:
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    taken: list[str] = []
    enough = threading.Event()

    def consumer(events: Sequence[StructuredEvent]) -> None:
        taken.append(events[0].event_name)
        if len(taken) == 1:
            threading.Event().wait(0.5)  # five times what it has
        else:
            enough.set()

    with Orb(OrbOptions(answer_timeout=0.1)) as orb:
        channel: Any = orb.channel(jacorb_address)
        source = channel.event_source(FlowStyle.PUSH)
        source.connect(consumer)
        sink = channel.event_sink()
        sink.connect()
        sink.push([StructuredEvent(event_name="first"), StructuredEvent(event_name="second")])
        assert enough.wait(60)
    assert taken == ["first", "second"]
