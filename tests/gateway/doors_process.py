"""The doors over HTTP in a process of their own; with `probe` and URLs, a client that measures /healthz."""

from __future__ import annotations

import http.client
import json
import logging
import sys
import threading
import time
from typing import Any

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.console import Console, Traffic
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, ByRequestor, Endpoint, HttpOptions, HttpServer, Store
from mtosi_jms.telemetry import Metrics, Monitor

OPTIONS = HttpOptions(
    largest=2**22, elements=20_000, in_flight=2**24, connections=50, read_timeout=2.0, answer_timeout=5.0
)


def serve() -> None:
    """A gateway and its supplier, an endpoint, a console and a monitor; all end with standard input."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    services: Any = [simulator.ManagedElementEms(simulator.Network(elements=20, seed=1))]
    console = Console(Traffic())
    console.options = OPTIONS
    with (
        mtosi.connect("memory:doors") as connection,
        mtosi.Supplier(connection, "queue:EMS.OS", services).start(4),
        mtosi.Requestor(connection, sender_uri="jms/Gateway", temporary_reply=True) as requestor,
        HttpServer(Endpoint(ByRequestor(requestor, "queue:EMS.OS", Store(2**20)), OPTIONS)) as gateway,
        HttpServer(Endpoint(ByDispatcher(Dispatcher(services)), OPTIONS)) as endpoint,
        HttpServer(console) as pages,
        Monitor(metrics=Metrics().prometheus) as monitor,
    ):
        urls = {"gateway": gateway.url, "endpoint": endpoint.url, "console": pages.url, "monitor": monitor.url}
        print(json.dumps(urls), flush=True)
        sys.stdin.read()


def probe(urls: list[str]) -> None:
    """For each line of standard input, the longest time of /healthz in milliseconds since the line before."""
    longest, over = 0.0, threading.Event()

    def ask() -> None:
        nonlocal longest
        while not over.is_set():
            for url in urls:
                begun = time.monotonic()
                asked = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
                asked.request("GET", "/healthz")
                status = asked.getresponse().status
                asked.close()
                longest = max(longest, time.monotonic() - begun if status == 200 else 1_000.0)
            over.wait(0.05)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in sys.stdin:
            print(round(longest * 1000), flush=True)
            longest = 0.0
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe(sys.argv[2:])
    else:
        serve()
