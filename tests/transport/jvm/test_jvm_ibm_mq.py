"""IBM's client as far as it goes without a server: its classes are loaded, and JNDI makes its factories and queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from mtosi_jms.broker import free_ports
from mtosi_jms.errors import ConfigError, NamingError, TransportError
from mtosi_jms.jms import NamingContext
from mtosi_jms.transport import connect

from .clients import jars_of
from .directories import Directory, folder

pytest.importorskip("jpype", reason="JPype is not installed")
FACTORY = "com.ibm.mq.jms.MQConnectionFactory"
QUEUE = "com.ibm.mq.jms.MQQueue"


@pytest.fixture
def directory(tmp_path: Path, java: Any) -> Directory:
    """Has a factory whose queue manager does not run, and a queue."""
    made = folder(tmp_path, java)
    [port] = free_ports(1)
    client = "setTransportType=1&setHostName=127.0.0.1&setChannel=MTOSI.APP&setQueueManager=QM1"
    made.bind(jars_of("ibm-mq"), (FACTORY, "CF", f"?{client}&setPort={port}"), (QUEUE, "EmsOS", "EMS.OS"))
    return made


@pytest.mark.endurance  # the client is large
@pytest.mark.obligation("001-I20")
def test_its_factory_is_made_and_connects(directory: Directory) -> None:
    """What it says when nobody listens is IBM's own reason."""
    names = NamingContext.from_properties(directory.properties)
    options: dict[str, Any] = {"names": names, "classpath": ["ibm-mq", *directory.jars], "connect_timeout": 60}
    with pytest.raises(TransportError, match=r"JMSWMQ0018.*QM1"):
        connect("jvm:CF", jndi_names=["EmsOS"], user="app", password="passw0rd-of-mq", **options)
    with pytest.raises(NamingError, match="no queue and no topic"):
        connect("jvm:CF", jndi_names=["CF"], **options)


PLACE: dict[str, Any] = {"host": "127.0.0.1", "channel": "MTOSI.APP", "queue_manager": "QM1"}


@pytest.mark.endurance
@pytest.mark.parametrize("in_url", [False, True])
def test_without_jndi_it_connects_to_host_port_and_channel(in_url: bool) -> None:
    jars_of("ibm-mq")
    [port] = free_ports(1)
    query = f"?{urlencode({**PLACE, 'port': port})}" if in_url else ""
    options = {} if in_url else {**PLACE, "port": port}
    with pytest.raises(TransportError, match=r"QM1 at 127.0.0.1.*MQRC_HOST_NOT_AVAILABLE") as caught:
        connect(f"jvm:ibm-mq{query}", user="app", password="passw0rd-of-mq", connect_timeout=60, **options)
    assert "passw0rd" not in f"{caught.value!r}"


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("jvm:ibm-mq", {"host": "h"}, "channel and queue_manager must be given, too"),
        ("jvm:ibm-mq?channel=C&queue_manager=Q", {}, "host must be given, too"),
        ("jvm:CF", PLACE, "go with jvm:ibm-mq"),
        ("jvm:ibm-mq?jndiURL=file:///x", PLACE, "without JNDI"),
        ("jvm:ibm-mq", {**PLACE, "port": "x"}, "port"),
    ],
)
def test_what_says_too_little_or_too_much_is_refused(url: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        connect(url, **options)
