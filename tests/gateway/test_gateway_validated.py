"""The switch `validate` at the gateway: bodies that come over HTTP against the schemas (001-S12)."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from mtosi_jms.errors import DecodeError, MtosiFault
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpPeer, HttpServer, Poster
from mtosi_jms.jms import JmsMessage
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.transport import Connection

from .conftest import forwarded

Action = Literal["ignore", "warn", "fail"]
ACTIONS: list[Action] = ["ignore", "warn", "fail"]
TOLD = "with 1 warnings, the first: line 2 /Envelope/Body/"


def spoilt(document: bytes) -> bytes:
    """The envelope with an attribute that no schema allows."""
    assert b"<nam:rdn>" in document
    return document.replace(b"<nam:rdn>", b"<nam:rdn odd='1'>", 1)


def request() -> bytes:
    header = Header(activity_name="getManagedElement", msg_name="getManagedElementRequest")
    return Envelope(header=header, body=GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-1"))).to_bytes()


class Careless(Dispatcher):
    """Answers as others do, with a breach of the schema."""

    def dispatch(self, envelope: Envelope, **options: Any) -> Any:
        for reply in super().dispatch(envelope, **options):
            yield parse(spoilt(reply.to_bytes()), needs_header=False)


@pytest.mark.obligation("001-S12")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_request_over_http(action: Action, services: Any, client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), validate=action)) as server:
        status, answer = client(server.url).ask(spoilt(request()))
        assert client(server.url).ask(request())[0] == 200
    if action == "fail":
        assert (status, answer.fault.fault_code) == (500, "Client")
        assert (
            "the request does not fit the schema: line 2 /Envelope/Body/getManagedElementRequest" in answer.fault.reason
        )
    else:
        assert status == 200
    assert (f"a request over HTTP {TOLD}getManagedElementRequest/meRef/rdn[1]" in caplog.text) is (action == "warn")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_answer_over_http(
    action: Action, services: Any, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        HttpServer(Endpoint(ByDispatcher(Careless(services)))) as server,
        forwarded(connection, server.url, validate=action) as stub,
    ):
        if action == "fail":
            with pytest.raises(MtosiFault, match="did not answer as it should"):
                stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-1"))
            where = "line 2 /Envelope/Body/getManagedElementResponse"
            assert f"getManagedElement over HTTP failed: DecodeError: {where}" in caplog.text
        else:
            assert stub.get_managed_element(me_ref=name("MD=EMS1/ME=NE-1")).me is not None
    assert (f"an answer of getManagedElement over HTTP {TOLD}" in caplog.text) is (action == "warn")


@pytest.mark.parametrize("action", ACTIONS)
def test_a_notification_that_is_posted(action: Action, services: Any, caplog: pytest.LogCaptureFixture) -> None:
    message = JmsMessage(body=spoilt(request()))
    with HttpServer(Endpoint(ByDispatcher(Dispatcher(services)))) as server, HttpPeer(server.url) as peer:
        post = Poster(peer, validate=action)
        if action == "fail":
            with pytest.raises(DecodeError, match="odd"):
                post(message)
        else:
            post(message)
    assert (f"a notification {TOLD}" in caplog.text) is (action == "warn")
