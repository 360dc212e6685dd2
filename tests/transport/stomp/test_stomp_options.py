"""URLs and options of STOMP connections; no text, error or `repr` holds a credential."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.transport import connect
from mtosi_jms.transport.settings import VARIABLES
from mtosi_jms.transport.stomp import Address, StompOptions, parse_url


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("stomp://a", [Address("a", 61613)]),
        ("STOMP://a:1/", [Address("a", 1)]),
        ("stomp+ssl://a", [Address("a", 61612, True)]),
        ("stomp://[::1]:5", [Address("::1", 5)]),
        ("failover:(stomp://a:1,stomp+ssl://b:2)", [Address("a", 1), Address("b", 2, True)]),
        ("failover:stomp://a:1", [Address("a", 1)]),
        ("failover:(stomp://a:1)?prefetch=3", [Address("a", 1)]),
    ],
)
def test_addresses(url: str, addresses: list[Address]) -> None:
    assert list(parse_url(url, {})[0]) == addresses


@pytest.mark.parametrize(
    "url",
    [
        "stomp:",
        "stomp://",
        "stomp://a/queue",
        "stomp://a:secret",
        "stomp://u:secret@a:99999",
        "failover:(stomp://u:secret@a,tcp://b)",
        "failover:(stomp://u:secret@a,stomp://u:other@b)",
        "failover:()",
        "stomp://u:secret@a?password=secret",
        "stomp://u:secret@a?nonsense=1",
        "stomp://u:secret@a?prefetch=many",
        "stomp://u:secret@a?reconnect=maybe",
    ],
)
def test_what_is_at_fault_is_told_without_the_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("stomp://a", {"heartbeat": 3}, "stomp: takes no option heartbeat; did you mean heart_beat?"),
        ("stomp://a", {"heart_beat": "3"}, "heart_beat: it must be a number of seconds greater than 0, not '3'"),
        ("stomp://a?heart_beat=often", {}, "heart_beat: it must be a number of seconds greater than 0, not 'often'"),
        ("stomp://a?reconnect=maybe", {}, "reconnect: it must be True or False, not 'maybe'"),
        ("stomp://a", {"password": 5}, "password: it must be text, not int"),
        ("stomp://a?key_password=x", {}, "key_password: it must not stand in the query of a URL"),
    ],
)
def test_an_error_says_what_to_write(url: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(url, **options)
    assert words in str(caught.value)


def test_the_query_has_options_as_well() -> None:
    _, options = parse_url(
        "failover:(stomp://a?prefetch=3)?reconnect=false&heart_beat=2.5&client_id=c", {"prefetch": 4}
    )
    assert (options.prefetch, options.reconnect, options.heart_beat, options.client_id) == (4, False, 2.5, "c")


def test_the_login_comes_from_the_nearest_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The call, then the URL, then the environment, where a file may hold the password."""
    file = tmp_path / "password"
    file.write_text("of-file\nsecond line\n")
    monkeypatch.setenv("MTOSI_JMS_PASSWORD_FILE", str(file))

    def login(url: str, **options: Any) -> tuple[str, str]:
        found = parse_url(url, options)[1]
        return found.user, found.password

    assert login("stomp://a") == ("", "of-file")
    monkeypatch.setenv("MTOSI_JMS_USER", "env")
    monkeypatch.setenv("MTOSI_JMS_PASSWORD", "of-env")
    assert login("stomp://a") == ("env", "of-env")
    assert login("stomp://url:of%40url@a") == ("url", "of@url")
    assert login("stomp://url:of-url@a", user="call", password="of-call") == ("call", "of-call")
    assert login("stomp://a", password_file=file) == ("env", "of-file")
    assert login("stomp://url:of-url@a", password_file=file) == ("url", "of-file")


def test_nothing_shows_the_password() -> None:
    addresses, options = parse_url("stomp://u:s3cret@a", {"key_password": "s3cret"})
    assert "s3cret" not in f"{addresses} {options!r}"


@pytest.mark.obligation("SEC28")
def test_certificates_are_checked_unless_the_caller_knows_better(tmp_path: Path) -> None:
    context = StompOptions().tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    with pytest.raises(ConfigError, match="nowhere"):
        StompOptions(ca_file="nowhere.pem").tls()
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"wrong\.pem"):
        StompOptions(cert_file=str(wrong)).tls()
