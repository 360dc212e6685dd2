"""What is shown in place of credentials."""

from __future__ import annotations

import pytest

from mtosi_jms.masking import is_secret, without, without_login


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("stomp://u:s3cret@h:1", "stomp://u:***@h:1"),
        ("stomp://:s3cret@h", "stomp://:***@h"),
        ("stomp://u@h:1", "stomp://u@h:1"),
        ("stomp://h:61613", "stomp://h:61613"),
        (
            "failover:(stomp://u:s3cret@a:1,stomp+ssl://u:s3cret@b)?prefetch=1",
            "failover:(stomp://u:***@a:1,stomp+ssl://u:***@b)?prefetch=1",
        ),
        ("tcp://h:1?jms.userName=u&jms.password=s3cret", "tcp://h:1?jms.userName=u&jms.password=***"),
        ("http://u:s3cret@h/x?token=s3cret;size=3", "http://u:***@h/x?token=***;size=3"),
        ("the price: 3, at 12:30@noon", "the price: 3, at 12:30@noon"),
        ("memory:", "memory:"),
    ],
)
def test_texts_with_urls(text: str, shown: str) -> None:
    assert without_login(text) == shown


@pytest.mark.parametrize(
    "name", ["security", "MTOSI_security", "jms.password", "Passwd", "apiToken", "my_secret", "credentials"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["senderURI", "user", "MTOSI_objectType", "client_id"])
def test_names_of_no_secrets(name: str) -> None:
    assert not is_secret(name)


def test_a_secret_of_ours_in_a_text_of_others() -> None:
    assert without("login u/s3cret failed: s3cret", "s3cret") == "login u/*** failed: ***"
    assert without("nothing to hide", "") == "nothing to hide"
