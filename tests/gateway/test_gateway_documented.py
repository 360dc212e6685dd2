"""docs/gateway.md: health and readiness are as it shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpServer


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "gateway.md").read_text(encoding="utf-8")


def test_health_and_readiness_are_as_the_page_shows_them(page: str) -> None:
    shown = [json.loads(text) for text in re.findall(r"`GET /\w+` gives [^`]*`(\{.*?\})`", page)]
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([])))) as server:
        told = [httpx.get(f"{server.url}/{path}", trust_env=False, verify=False).json() for path in ("health", "ready")]
    assert [list(one) for one in told] == [list(one) for one in shown]
    assert told[1] == shown[1]


def test_readiness_is_what_the_program_says() -> None:
    with HttpServer(Endpoint(ByDispatcher(Dispatcher([])), is_ready=lambda: False)) as server:
        answers = [httpx.get(f"{server.url}{path}", trust_env=False, verify=False) for path in ("/ready", "/readyz")]
        assert httpx.get(f"{server.url}/healthz", trust_env=False, verify=False).json()["status"] == "up"
    assert [(answer.status_code, answer.json()) for answer in answers] == [(503, {"ready": False})] * 2
