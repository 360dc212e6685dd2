"""What the worst input costs at each door, each measured in a process of its own: the figures of docs/security.md.

`python benchmarks/spending.py` prints the table.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from typing import Final, NamedTuple


class Cost(NamedTuple):
    """What an input cost.

    Attributes:
        seconds: of processor time.
        megabytes: by which the peak of memory grew.
    """

    seconds: float
    megabytes: float


_SPENT: Final = """
import os, resource, sys, time
from mtosi_jms.errors import MtosiError
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def spent(read):
    before, start = peak(), time.process_time()
    try:
        read()
    except MtosiError:
        pass
    print(time.process_time() - start, peak() - before)
NODES = 4_999_990
def crowd(count, around='<a>%s</a>'): return (around % ('<b/>' * count)).encode()
SOAP = 'http://schemas.xmlsoap.org/soap/envelope/'
ENVELOPE = f'<e:Envelope xmlns:e="{SOAP}"><e:Body><a xmlns="urn:a">%s</a></e:Body></e:Envelope>'
"""
_HTTP: Final = """
import asyncio, http.server, threading
import httpx
from mtosi_jms.exchange import Dispatcher
from mtosi_jms.gateway import ByDispatcher, Endpoint, HttpPeer, HttpServer
def post(url, data): httpx.post(url, content=data, headers={'Content-Type': 'text/xml'}, timeout=600)
def served(data):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers['Content-Length']))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(data)
        def log_message(self, *_): pass
    found = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    return f'http://127.0.0.1:{found.server_port}/'
"""
_GATEWAY: Final = _HTTP + "server = HttpServer(Endpoint(ByDispatcher(Dispatcher([])))).start()\n"
_CONSOLE: Final = _HTTP + "from mtosi_jms.console import Console, Traffic\n"
_EVENT: Final = """
import json
from mtosi_jms.bridge.event_json import event_from_json
event = {'domain_name': 'd', 'type_name': 't', 'event_name': 'e'}
text = json.dumps({**event, 'filterable_data': {f'p{n}': n for n in range(100_000)}})
"""
_MONITOR: Final = """
import contextlib, socket
from mtosi_jms.telemetry import Monitor
def ask(url):
    with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', int(url.rpartition(':')[2]))) as raw:
        raw.sendall(b'GET / HTTP/1.1\\r\\nX: ' + b'x' * 1_000_000)
        raw.recv(1)
"""
_PARSE: Final = "from mtosi_jms.xmlbind import parse_xml\n"
_SELECTOR: Final = "from mtosi_jms.jms.selector import parse\n"
_FILE: Final = """
from pathlib import Path
def file(name, data):
    Path(name).write_bytes(data)
    return Path(name)
"""
INPUTS: Final = {
    "JMS: a message of 5,000,000 elements": "from mtosi_jms.soap import parse\n"
    "data = crowd(NODES, ENVELOPE)\nspent(lambda: parse(data))",
    "JMS: 62 MB of empty elements": _PARSE + "data = crowd(15_500_000)\nspent(lambda: parse_xml(data))",
    "JMS: a document of 257 MiB": _PARSE
    + "data = b'<a>' + b' ' * (257 << 20) + b'</a>'\nspent(lambda: parse_xml(data))",
    "JMS: 100,000 levels of elements": _PARSE + "data = b'<a>' * 100_000\nspent(lambda: parse_xml(data))",
    "JMS: a selector of 2 million characters": _SELECTOR + "spent(lambda: parse('a=1 AND ' * 250_000 + 'b=2'))",
    "JMS: a selector of 50,000 parentheses": _SELECTOR + "spent(lambda: parse('(' * 50_000))",
    "gateway, serve --http: a request of 200,000 elements": _GATEWAY
    + "data = crowd(199_990, ENVELOPE)\nspent(lambda: post(server.url, data))",
    "gateway, serve --http: a request of 62 MB of empty elements": _GATEWAY
    + "data = crowd(15_500_000)\nspent(lambda: post(server.url, data))",
    "HTTP peer: an answer of 2,000,000 elements": _HTTP
    + "from mtosi_jms.soap import parse\npeer = HttpPeer(served(crowd(1_999_990, ENVELOPE)))\n"
    "spent(lambda: parse(peer.post(b'<a/>', 'any')[1]))",
    "HTTP peer: an answer of 62 MB of empty elements": _HTTP
    + "peer = HttpPeer(served(crowd(15_500_000)))\nspent(lambda: peer.post(b'<a/>', 'any'))",
    "console: a form of 64 KiB": _CONSOLE + "server = HttpServer(Console(Traffic())).start()\n"
    "spent(lambda: post(server.url + '/login', b'a=' + b'%41' * 21_000))",
    "--monitor: a header of 1 MB": _MONITOR + "with Monitor() as monitor:\n    spent(lambda: ask(monitor.url))",
    "landing: a file of 5,000,000 elements": _FILE
    + "from mtosi_jms.soap import read\npath = file('a.xml', crowd(NODES, ENVELOPE))\nspent(lambda: read(path))",
    "landing: an entry of 256 MiB": _FILE + "from mtosi_jms.spool import open_entry\n"
    "path = file('a.xml', b' ' * (256 << 20))\nspent(open_entry(path).message)",
    "WSDL: a file of 5,000,000 elements": _FILE
    + "from mtosi_codegen.findings import Findings\nfrom mtosi_codegen.load import load\n"
    "path = file('a.wsdl', crowd(NODES))\nspent(lambda: load([path], Findings()))",
    "spool: a message of 64 MiB stored": "from mtosi_jms.jms import JmsMessage, Queue\n"
    "from mtosi_jms.spool import Outbox\nbox = Outbox('box')\nmessage = JmsMessage(body=b' ' * (64 << 20))\n"
    "spent(lambda: box.put(message, Queue('A')))",
    "IBM MQ: a message of 64 MiB with 10,000 properties": "from mtosi_jms.jms import JmsMessage\n"
    "from mtosi_jms.mq import read_mq, write_mq\n"
    "made = JmsMessage(body=b' ' * (64 << 20), properties={f'p{n}': n for n in range(10_000)})\n"
    "data = write_mq(made)\nspent(lambda: read_mq(data))",
    "CORBA channel: an event of 100,000 values as JSON": _EVENT + "spent(lambda: event_from_json(json.loads(text)))",
    "logs: a million question marks, masked": "from mtosi_jms.masking import without_login\n"
    "spent(lambda: without_login('?' * 1_000_000))",
}
"""What is measured, by door and input."""


def cost_of(name: str) -> Cost:
    """Measure one of `INPUTS`.

    Raises:
        CalledProcessError: it cannot be measured.
    """
    command = [sys.executable, "-c", _SPENT + INPUTS[name] + "\nsys.stdout.flush()\nos._exit(0)"]
    with tempfile.TemporaryDirectory() as folder:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    seconds, megabytes = map(float, answer.stdout.split())
    return Cost(seconds, megabytes)


def main() -> None:
    """Print the table."""
    print("| where: input | time | memory |\n|---|---|---|")
    for name in INPUTS:
        cost = cost_of(name)
        print(f"| {name} | {cost.seconds:.2f} s | {cost.megabytes:,.0f} MB |", flush=True)


if __name__ == "__main__":
    main()
