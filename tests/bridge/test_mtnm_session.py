"""Sessions with an element manager: logins, pings, losses, restarts; on stubs that JacORB's compiler made."""

from __future__ import annotations

import datetime as dt
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any as Anything

import pytest

from mtosi_jms.bridge import LOSS_CLEARED, LOSS_OCCURRED, EventLoss
from mtosi_jms.bridge.endpoints import FlowStyle
from mtosi_jms.bridge.events import StructuredEvent
from mtosi_jms.broker import BrokerProcess
from mtosi_jms.errors import (
    ConfigError,
    IllegalStateError,
    LoginRefusedError,
    NamingError,
    ProcessingFailureError,
    TransportError,
)
from mtosi_jms.transport import Backoff

from ..waiting import until
from .bridges import SOON
from .ems import PASSWORD, USER, Ems

SOON_AGAIN = Backoff(0.05, 0.2, 0.0)
Start = Callable[..., Ems]


def awaited(losses: list[EventLoss], count: int) -> list[EventLoss]:
    """The losses that were told, once there are so many."""
    until(lambda: len(losses) >= count)
    return losses


@pytest.fixture
def start(ems_command: list[str], jacorb: BrokerProcess, channel_ior: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts an element manager whose events go to JacORB's channel."""
    running: list[Ems] = []

    def begin(**options: Anything) -> Ems:
        options.setdefault("channel", channel_ior)
        running.append(Ems(ems_command, tmp_path / "ems.ior", **options))
        return running[-1]

    yield begin
    for one in running:
        one.kill()


@pytest.fixture
def session(orb: Anything) -> Iterator[Callable[..., Anything]]:
    from mtosi_jms.bridge.mtnm_session import MtnmSession

    made: list[MtnmSession] = []

    def log_in(ems: Ems | str, **options: Anything) -> MtnmSession:
        address = str(ems.ior) if isinstance(ems, Ems) else ems
        options = {"backoff": SOON_AGAIN, **options}
        made.append(MtnmSession(orb, address, options.pop("user", USER), options.pop("password", PASSWORD), **options))
        return made[-1]

    yield log_in
    for one in made:
        one.close()


def test_a_session_has_the_event_channel(start: Start, session: Callable[..., Anything], jacorb: object) -> None:
    ems = start()
    made = session(ems)
    assert made.is_alive
    assert PASSWORD not in repr(made) + made.name
    assert USER in repr(made)
    channel = made.event_channel()
    source, sink = channel.event_source(FlowStyle.PULL), channel.event_sink()
    source.connect()
    sink.connect()
    sink.push([StructuredEvent("tmf_mtnm", "NT_ALARM")])
    assert [one.type_name for one in source.pull(timeout=30)] == ["NT_ALARM"]
    channel.close()
    made.close()
    made.close()
    ems.await_line("ended")
    with pytest.raises(IllegalStateError):
        made.event_channel()
    assert "logged in" in ems.told


def test_the_element_manager_calls_the_session(start: Start, session: Callable[..., Anything]) -> None:
    ems, told = start(), list[EventLoss]()
    session(ems, on_loss=told.append)
    ems.do("ping")
    ems.do("about")
    assert "true true" in ems.told
    ems.do("lose 20140725140203.0+0800 4711")
    ems.do("alarms noon 4712")
    ems.do("clear 20140725150000.0Z")
    found = awaited(told, 3)
    when = dt.datetime(2014, 7, 25, 14, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=8)))
    assert found == [
        EventLoss(
            source="EMS", over=False, reason="the element manager lost events", time=when, notification_id="4711"
        ),
        EventLoss(source="EMS", over=False, reason="the element manager lost alarms", notification_id="4712"),
        EventLoss(
            source="EMS",
            over=True,
            reason="the element manager loses no more events",
            time=dt.datetime(2014, 7, 25, 15, tzinfo=dt.UTC),
        ),
    ]


def test_a_refused_login_does_not_tell_the_password(
    start: Start, session: Callable[..., Anything], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    ems = start()
    for user, password in ((USER, "wrong-word"), ("nobody", PASSWORD)):
        with pytest.raises(LoginRefusedError) as caught:
            session(ems, user=user, password=password)
        assert str(caught.value) == (
            f"{ems.ior}: getEmsSession is refused to {user!r}: EXCPT_ACCESS_DENIED: no user {user} with ***"
        )
        shown = "".join([*capfd.readouterr(), caplog.text, repr(caught.value), *map(repr, _chain(caught.value))])
        assert password not in shown


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_an_element_manager_that_ends_the_session(start: Start, session: Callable[..., Anything]) -> None:
    ems, told = start(), list[EventLoss]()
    session(ems, on_loss=told.append)
    ems.do("end")
    ems.await_line("logged in", 2)
    reasons = [(one.what, one.source, one.reason) for one in awaited(told, 2)]
    reason = "the element manager ended the session"
    assert reasons == [(LOSS_OCCURRED, "session", reason), (LOSS_CLEARED, "session", reason)]


def test_a_session_that_the_element_manager_forgot(start: Start, session: Callable[..., Anything]) -> None:
    ems, told = start(), list[EventLoss]()
    session(ems, on_loss=told.append, ping=0.05)
    ems.await_line("pinged", 2)
    ems.do("lose 20140725140203.0+0800 1")
    ems.do("quiet")
    ems.await_line("logged in", 2)
    found = awaited(told, 4)
    assert [(one.source, one.over) for one in found] == [
        ("EMS", False),
        ("session", False),
        ("EMS", True),
        ("session", True),
    ]
    assert "OBJECT_NOT_EXIST" in found[1].reason


def test_an_element_manager_that_is_killed_and_begins_again(start: Start, session: Callable[..., Anything]) -> None:
    ems, told = start(), list[EventLoss]()
    made = session(ems, on_loss=told.append, ping=0.05)
    ems.await_line("pinged")
    ems.kill()
    (lost,) = awaited(told, 1)
    assert (lost.source, lost.over, made.is_alive) == ("session", False, False)
    with pytest.raises(TransportError, match="there is no session now"):
        made.event_channel()
    again = start()
    again.await_line("logged in")
    assert awaited(told, 2)[1].over
    assert made.is_alive
    made.event_channel().close()


def test_a_new_session_with_another_channel(
    start: Start, session: Callable[..., Anything], jacorb_address: str, tmp_path: Path
) -> None:
    """The factory stands for another channel: it has another reference."""
    ems, told = start(), list[EventLoss]()
    made = session(ems, on_loss=told.append, ping=0.05)
    first = made.event_channel()
    source = first.event_source(FlowStyle.PULL)
    source.connect()
    ems.kill()
    awaited(told, 1)
    other = tmp_path / "other"
    other.write_text(jacorb_address)
    start(channel=other)
    awaited(told, 2)
    assert not source.is_connected()
    with pytest.raises(IllegalStateError):
        first.event_source()
    second = made.event_channel()
    assert second.is_alive()
    second.close()


def test_the_code_of_the_page(start: Start, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    ems = start()
    monkeypatch.setenv("EMS", str(ems.ior))
    monkeypatch.setenv("EMS_PASSWORD", PASSWORD)
    page = (root / "docs" / "mtnm.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python session\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(block, "mtnm.md session", "exec"), {})
    ems.await_line("ended")


def test_errors_of_the_element_manager(start: Start, session: Callable[..., Anything], jacorb_address: str) -> None:
    made = session(start(channel=None))
    with pytest.raises(ProcessingFailureError, match="no channel here") as caught:
        made.event_channel()
    assert caught.value.exception_type == "EXCPT_NOT_IMPLEMENTED"
    with pytest.raises(ConfigError, match="BAD_OPERATION"):
        session(jacorb_address)
    with pytest.raises(ConfigError, match="ping must be"):
        session(jacorb_address, ping=0)
    with pytest.raises(ConfigError, match="No such file"):
        session("/no/such/file")


def test_the_factory_is_found_by_its_name(start: Start, session: Callable[..., Anything], naming: int) -> None:
    name = r"TMF_MTNM.Class/Vendor.Vendor/Vendor\/1.EmsInstance/2\.0.Version/Vendor\/1.EmsSessionFactory_I"
    service = f"corbaloc::127.0.0.1:{naming}/NameService"
    start(naming=(name, service))
    for address in (service, f"corbaloc::127.0.0.1:{naming}", f"corbaname::127.0.0.1:{naming}"):
        made = session(address, name=name)
        assert (made.is_alive, made.name) == (True, f"{address}#{name}")
    with pytest.raises(NamingError, match="does not know it"):
        session(service, name="TMF_MTNM.Class/Other.Vendor")
    with pytest.raises(ConfigError, match="another name is given"):
        session(f"corbaname::127.0.0.1:{naming}#a", name="b")


def test_the_process_of_a_session_ends_in_order(start: Start, orb: object, tmp_path: Path) -> None:
    """A session that nobody closed does not keep its process."""
    ems = start()
    code = (
        "import sys; from mtosi_jms.bridge.corba import Orb; from mtosi_jms.bridge.mtnm_session import MtnmSession; "
        "session = MtnmSession(Orb(), *sys.argv[1:], ping=0.01); print(session.is_alive)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ems.ior), USER, PASSWORD],
        capture_output=True,
        text=True,
        timeout=SOON,
        env={**os.environ},
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
