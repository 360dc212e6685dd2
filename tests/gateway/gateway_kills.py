"""What the kill tests of the gateway count, and what they kill: the broker, and the gateway's process."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

import mtosi_jms as mtosi
from mtosi_jms import simulator
from mtosi_jms.broker import BrokerProcess, free_ports

from ..processes import Program, command

ELEMENTS = 60
BATCH = 8
CALL_TIMEOUT = 5
"""Seconds that the gateway waits for an answer."""
PATIENCE = 60.0
"""Seconds in which every call ends, whatever was killed."""
NAME = re.compile(r"nam:value>(NE-\d+)<")
URI = re.compile(r"<hdr:iteratorReferenceURI>([^<]*)<")
_ASK = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"
 xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/nam/v1" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><s:Header>
 <h:header><h:activityName>OP</h:activityName><h:communicationPattern>PATTERN</h:communicationPattern>
 <h:communicationStyle>RPC</h:communicationStyle>MORE</h:header></s:Header><s:Body><m:OPRequest>WHAT</m:OPRequest>
 </s:Body></s:Envelope>"""
_ONE = (
    "<m:meRef><n:rdn><n:type>MD</n:type><n:value>EMS1</n:value></n:rdn>"
    "<n:rdn><n:type>ME</n:type><n:value>{}</n:value></n:rdn></m:meRef>"
)


def asked(operation: str, pattern: str = "SimpleResponse", more: str = "", what: str = "") -> str:
    """A request."""
    text = _ASK.replace("OP", operation).replace("PATTERN", pattern)
    return text.replace("MORE", more).replace("WHAT", what)


class Wrong(AssertionError):
    """An answer to something else, or a list with a gap."""


class Client(threading.Thread):
    """Calls one after the other, and tries again: one element, and all of them through an iterator. `number`: where
    among the elements it begins. `url`: of the gateway. `tell`: called when a call has ended, with how: `answer`,
    `list`, `fault` or `error`."""

    def __init__(self, number: int, url: str, tell: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._tell = tell
        self._numbers = itertools.cycle([*range(number, ELEMENTS + 1), *range(1, number)])
        self.over = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            for count in itertools.count():
                if self.over.is_set():
                    return
                self._tell(self._tried(self._list if count % 3 == 2 else self._one))
        except BaseException as error:  # noqa: BLE001 - whoever joins looks at it
            self.failure = error
            self._tell("failure")

    def _tried(self, call: Callable[[httpx.Client], str]) -> str:
        try:
            with httpx.Client(timeout=PATIENCE, trust_env=False, headers={"Content-Type": "text/xml"}) as http:
                ended = call(http)
        except httpx.TimeoutException as late:
            raise Wrong(f"neither an answer nor an error within {PATIENCE:g} s") from late
        except httpx.HTTPError:
            ended = "error"
        if ended in ("fault", "error"):
            self.over.wait(0.05)
        return ended

    def _post(self, http: httpx.Client, text: str) -> str | None:
        """The answer; None: a fault."""
        answer = http.post(self._url, content=text)
        if answer.status_code == 200:
            return answer.text
        if answer.status_code not in (500, 503, 504) or "Fault>" not in answer.text:
            raise Wrong(f"{answer.status_code} {answer.text:.300}")
        return None

    def _one(self, http: httpx.Client) -> str:
        wanted = f"NE-{next(self._numbers)}"
        text = self._post(http, asked("getManagedElement", what=_ONE.format(wanted)))
        if text is None:
            return "fault"
        if set(NAME.findall(text)) != {wanted}:
            raise Wrong(f"{wanted} was asked for, {NAME.findall(text)} came")
        return "answer"

    def _list(self, http: httpx.Client) -> str:
        size = f"<h:requestedBatchSize>{BATCH}</h:requestedBatchSize>"
        text = self._post(http, asked("getAllManagedElements", "MultipleBatchResponse", size))
        names: list[str] = []
        while text is not None:
            names += dict.fromkeys(NAME.findall(text))
            uri = URI.search(text)
            if uri is None:
                if names != [f"NE-{number}" for number in range(1, ELEMENTS + 1)]:
                    raise Wrong(f"a list of {len(names)} elements, {names[:3]} to {names[-3:]}")
                return "list"
            more = f"<h:iteratorReferenceURI>{uri[1]}</h:iteratorReferenceURI>"
            text = self._post(http, asked("getManagedElementsIterator", "MultipleBatchResponse", size + more))
        return "fault"


class Stage:
    """A broker, a supplier, a gateway in a process of its own, and clients. `start_broker`: starts the broker; again,
    where it is told its endpoints. `clients`: how many."""

    def __init__(self, start_broker: Callable[..., BrokerProcess], clients: int) -> None:
        self.counts: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._start_broker = start_broker
        self._broker = start_broker()
        self._url = self._broker.endpoints.url("stomp")
        self._port = free_ports(1)[0]
        self._connection = mtosi.connect(self._url)
        services: Any = [simulator.ManagedElementEms(simulator.Network(elements=ELEMENTS, seed=1))]
        self._supplier = mtosi.Supplier(self._connection, "queue:EMS.OS", services).start(4)
        self._gateway = self._started()
        address = f"http://127.0.0.1:{self._port}/"
        self._clients = [Client(1 + number * 7 % ELEMENTS, address, self._tell) for number in range(clients)]
        for client in self._clients:
            client.start()

    def _started(self) -> Program:
        listen = ("--listen", f"127.0.0.1:{self._port}", "--timeout", str(CALL_TIMEOUT))
        made = command("gateway", "--to", "queue:EMS.OS", "--url", self._url, *listen)
        made.await_line("ready:")
        return made

    def _tell(self, ended: str) -> None:
        with self._changed:
            self.counts[ended] += 1
            self._changed.notify_all()

    def play(self, victim: str, answers: int) -> None:
        """A round: waits for so many answers, kills something while calls are under way, and waits for more answers."""
        self._await(answers)
        getattr(self, f"_kill_{victim}")()
        self._await(len(self._clients))
        self.rounds[victim] += 1

    def _await(self, answers: int) -> None:
        """Returns when so many more calls, lists among them, are answered."""
        begun = self.counts.copy()

        def more() -> bool:
            if any(client.failure for client in self._clients):
                return True
            return self.counts["answer"] >= begun["answer"] + answers and self.counts["list"] > begun["list"]

        with self._changed:
            came = self._changed.wait_for(more, 2 * PATIENCE)
        for client in self._clients:
            if client.failure is not None:
                raise client.failure
        assert came, f"no more answers; {self.figures()}; {self._gateway.told[-5:]}"

    def _kill_gateway(self) -> None:
        self._gateway.kill()
        self._gateway = self._started()

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._broker = self._start_broker(endpoints=self._broker.endpoints)

    def figures(self) -> dict[str, object]:
        """What the calls have come to."""
        return {"rounds": dict(self.rounds), **self.counts}

    def write(self, path: Path, **facts: object) -> None:
        """Writes and prints the figures."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**facts, **self.figures()}, indent=1) + "\n", encoding="utf-8")
        print(json.dumps({**facts, **self.figures()}))

    def told(self) -> Iterator[str]:
        """What the gateway has said on standard error."""
        return iter(self._gateway.told)

    def close(self) -> None:
        """Ends all of them."""
        for client in self._clients:
            client.over.set()
        for client in self._clients:
            client.join(PATIENCE)
        self._gateway.kill()
        self._supplier.stop()
        self._connection.close()
        self._broker.kill()
