"""The console in a real browser: Chromium, without a window, driven by Playwright; both skip where they are missing.

A reply advances and shows its gap in red, a message is opened, a dead letter redriven, the theme switched, all of it
reachable by keyboard, and nothing is said on the browser's console. axe looks for what keeps people out, where it can
be had.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.console import Bounds, Console, Traffic
from mtosi_jms.gateway import HttpServer
from mtosi_jms.spool import SpoolFolder

from ..browsers import look

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

PATIENCE = 60_000.0
"""Milliseconds."""
RED = re.compile(r"rgb\((2[0-9]{2}), ([0-9]{1,2}), ([0-9]{1,2})\)")
NARROW = {"width": 400, "height": 800}
WIDE = {"width": 1280, "height": 800}


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What pages say on the browser's console, which must be nothing."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def open_page(chromium: Any, said: list[str]) -> Iterator[Any]:
    """Opens pages."""
    contexts = []

    def opened(url: str, **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": WIDE, **options})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def server(traffic: Traffic, outbox: Path) -> Iterator[HttpServer]:
    with HttpServer(Console(traffic, spools=[outbox], allow_actions=True, title="memory:")) as found:
        yield found


def test_a_reply_a_message_a_dead_letter_and_the_theme(
    server: HttpServer, traffic: Traffic, make: Any, open_page: Any, outbox: Path
) -> None:
    page = open_page(server.url, color_scheme="light")
    traffic.record(make("REQUEST"))
    row = page.get_by_role("row").filter(has_text="getAllManagedElements")
    playwright.expect(row).to_contain_text("waits for a reply")
    for number in (1, 2, 5):
        traffic.record(make(batch=number))
        playwright.expect(row).to_contain_text(f"{ {1: 1, 2: 2, 5: 3}[number] } batch")
    playwright.expect(row).to_contain_text("2 missing: 3–4")
    assert RED.match(row.locator("rect.gap").evaluate("piece => getComputedStyle(piece).fill"))
    traffic.record(make(batch=6, last=True))
    playwright.expect(row).to_contain_text("4 of 6 batches")
    row.get_by_role("link").click()
    page.get_by_role("row").filter(has_text="batch 5").get_by_role("link").first.click()
    playwright.expect(page.get_by_role("heading", name="Properties")).to_be_visible()
    page.get_by_role("link", name="JSON", exact=True).click()
    assert "batchSequenceNumber" in page.inner_text("pre")

    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Auto theme").click()
    page.get_by_role("button", name="Light theme").click()
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after, "the choice is kept"

    page.get_by_role("link", name="Dead letters").click()
    page.get_by_role("link", name="1 dead letter").click()
    page.get_by_role("button", name="Mark this page").press("Enter")
    assert page.get_by_role("checkbox", name="Mark dead-1").is_checked()
    page.get_by_role("button", name="Redrive…").press("Enter")
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Redrive 1 dead letter?")
    page.get_by_role("button", name="Redrive 1").press("Enter")
    playwright.expect(page.get_by_role("row").filter(has_text="1 of 1 redriven")).to_contain_text("done")
    with SpoolFolder(outbox) as folder:
        assert [one.state for one in folder.messages()] == ["waits"]


def test_by_keyboard_while_the_page_changes(server: HttpServer, traffic: Traffic, make: Any, open_page: Any) -> None:
    traffic.record(make("REQUEST"))
    page = open_page(server.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    link = page.get_by_role("link", name="getAllManagedElements")
    link.focus()
    traffic.record(make(batch=1))
    playwright.expect(page.get_by_role("row").filter(has_text="1 batch")).to_be_visible()
    assert link.evaluate("link => link === document.activeElement"), "the focus stays where it was"
    page.get_by_role("button", name="Pause").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("button", name="Resume").click()
    page.keyboard.press("Tab")
    link.focus()
    page.keyboard.press("Enter")
    playwright.expect(page.get_by_role("heading", name="Replies")).to_be_visible()
    assert asked


RED_IN_THE_MIDDLE = """() => {
    const canvas = document.getElementById("drawing");
    const pen = new OffscreenCanvas(16, 16).getContext("2d", {willReadFrequently: true});
    pen.drawImage(canvas, 8 - canvas.width / 2, 8 - canvas.height / 2);
    const {data} = pen.getImageData(0, 0, 16, 16);
    return data.some((red, at) => at % 4 === 0 && red > 180 && data[at + 1] < 60 && data[at + 2] < 60);
}"""
"""Whether the middle of the map has an element with a critical alarm."""


def test_a_map_of_the_network_and_its_alarms(
    ring: Any, traffic: Traffic, event: Any, notify: Any, open_page: Any
) -> None:
    """By mouse and by keyboard; the pages below the map, which need no script, tell what was chosen."""
    traffic.record(notify(event("alarm", "MD=EMS1/ME=NE-7/PTP=1", "2026-01-01T00:00:00Z", "CRITICAL")))
    with HttpServer(Console(traffic, topology=ring(40, 2))) as server:
        page = open_page(server.url + "/topology")
        page.wait_for_selector("#map[data-ready]")
        assert page.inner_text("#said") == "40 elements and 80 lines."
        assert page.locator("#layers").inner_text().split() == ["Layers", "link", "open_link"]
        find = page.get_by_label("Element", exact=True)
        find.fill("NE-7")
        find.press("Enter")
        details = page.locator("#element")
        playwright.expect(details).to_contain_text("1 active alarm")
        page.get_by_role("button", name="Only neighbours").click()
        page.wait_for_function(RED_IN_THE_MIDDLE)
        page.get_by_role("button", name="Only neighbours").click()
        details.get_by_role("link", name="MD=EMS1/ME=NE-8").click()
        playwright.expect(details.locator("h2")).to_have_text("MD=EMS1/ME=NE-8")
        page.locator("#drawing").press("ArrowLeft")
        page.go_back()
        playwright.expect(details.locator("h2")).to_have_text("MD=EMS1/ME=NE-7")
        page.wait_for_function(RED_IN_THE_MIDDLE)
        page.locator("#drawing").click(position={"x": 3, "y": 3})
        playwright.expect(details).to_have_count(0)
        page.wait_for_function(RED_IN_THE_MIDDLE)
        page.locator("#drawing").click()
        playwright.expect(details.locator("h2")).to_have_text("MD=EMS1/ME=NE-7")
        page.close()  # before the server: a page that asks tells what it does not get


@pytest.mark.endurance
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nobody_is_kept_out(
    server: HttpServer, traffic: Traffic, make: Any, open_page: Any, axe: str, scheme: str, size: dict[str, int]
) -> None:
    traffic.record(make("REQUEST"))
    for number in (1, 2, 2, 4):
        traffic.record(make(batch=number, last=number == 4))
    traffic.record(make("ERROR", "c-2"))
    events = {"MTOSI_EventType": "AlarmInformation", "MTOSI_perceivedSeverity": "MAJOR"}
    traffic.record(make("NOTIFICATION", properties=events), destination="topic:Fault")
    page = open_page(server.url, color_scheme=scheme, viewport=size, bypass_csp=True)
    paths = (
        "/",
        "/exchange?key=c-1",
        "/messages",
        "/message/2",
        "/destinations",
        "/notifications",
        "/alarms",
        "/health",
        "/message/2?as=table",
        "/message/2?as=xml",
        "/dead-letters",
        "/dead-letters/spool/0",
        "/dead-letters/spool/0/message?key=dead-1",
    )
    wrong = [line for path in paths for line in look(page, axe, server.url + path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.endurance
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_nobody_is_kept_out_of_a_landing(
    landing: Path,
    traffic: Traffic,
    event: Any,
    notify: Any,
    open_page: Any,
    axe: str,
    scheme: str,
    size: dict[str, int],
) -> None:
    pytest.importorskip("pyarrow", reason="the ledger needs the extra tables")
    traffic.record(notify(event("alarm", "MD=EMS1/ME=NE-1", "2026-01-01T00:00:00Z", "MAJOR")))
    with HttpServer(Console(traffic, landings=[landing], title="memory:")) as server:
        page = open_page(server.url, color_scheme=scheme, viewport=size, bypass_csp=True)
        wrong = [
            line
            for path in ("/landing/0", "/topology", "/topology?element=MD%3DEMS1/ME%3DNE-1", "/landing/0/report")
            for line in look(page, axe, server.url + path)
        ]
    assert not wrong, "\n".join(wrong)


AFTER = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""The second frame after an interaction: it has been drawn."""


@pytest.mark.endurance
def test_a_thousand_messages_a_second(make: Any, event: Any, notify: Any, ring: Any, open_page: Any) -> None:
    """It stays responsive, and its memory flat; MTOSI_CONSOLE_SECONDS (600) of them. The map has 5,000 elements and
    20,000 links."""
    seconds = float(os.environ.get("MTOSI_CONSOLE_SECONDS", "600"))
    traffic = Traffic(Bounds())
    end = threading.Event()

    def send() -> None:
        began, number = time.monotonic(), 0
        while not end.wait(0.02):
            while number < (time.monotonic() - began) * 1000:
                number += 1
                turn, batch = divmod(number, 50)
                kind = ("REQUEST" if batch == 0 else "NOTIFICATION" if batch % 5 == 0 else "RESPONSE",)
                if kind[0] == "NOTIFICATION":
                    name = f"MD=EMS1/ME=NE-{number * 7 % 5_000}/PTP={number % 4}"
                    severity = ("CLEARED", "CRITICAL", "MAJOR", "MINOR", "WARNING")[turn % 5]
                    traffic.record(notify(event("alarm", name, "", severity)), destination="topic:FAULT")
                    continue
                message = make(
                    *kind,
                    f"c-{turn}",
                    None if kind[0] != "RESPONSE" else batch - batch // 5,
                    last=batch == 49,
                    body="<a>" + "text " * 400 + "</a>",
                )
                traffic.record(message, destination=f"queue:OS-{turn % 20}")

    sender = threading.Thread(target=send, daemon=True)
    with HttpServer(Console(traffic, topology=ring(5_000, 4))) as server:
        page = open_page(server.url)
        network = open_page(server.url + "/topology")
        network.wait_for_selector("#map[data-ready]")
        box = network.locator("#drawing").bounding_box()
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        interactions = itertools.cycle(
            [
                lambda: network.mouse.wheel(0, -300),
                lambda: network.get_by_role("button", name="Whole map").click(),
                lambda: network.locator("#live td a").nth(7).click(),
                lambda: network.get_by_role("button", name="Only neighbours").click(),
                lambda: network.get_by_label("Element", exact=True).press("7"),
                lambda: network.get_by_label("Element", exact=True).fill(""),
                lambda: network.mouse.click(*middle),
                lambda: network.locator("#drawing").press("ArrowLeft"),
            ]
        )
        sender.start()
        sizes, waits, moves = [], [], []
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            page.wait_for_timeout(1000)
            asked = time.monotonic()
            page.evaluate("fetch('/destinations').then(answer => answer.text())")
            waits.append(time.monotonic() - asked)
            network.mouse.move(*middle)
            asked = time.monotonic()
            next(interactions)()
            network.evaluate(AFTER)
            moves.append(time.monotonic() - asked)
            heap = page.evaluate("performance.memory.usedJSHeapSize")
            sizes.append((resident(), heap, page.locator("*").count()))
        end.set()
        sender.join()
        overview = traffic.overview()
    third = len(sizes) // 3
    middle = [max(one[at] for one in sizes[third : 2 * third]) for at in range(3)]
    last = [max(one[at] for one in sizes[2 * third :]) for at in range(3)]
    passed = time.monotonic() - began
    waits.sort()
    median, most = waits[len(waits) // 2], waits[len(waits) * 95 // 100]
    print(f"{overview.seen:,} messages in {passed:.0f} s, {overview.left_out} left out; ", end="")
    print(f"a page takes {median:.3f} s in the median, {most:.3f} s at most in 95 of 100, {waits[-1]:.2f} s in all")
    moves.sort()
    print(
        f"on the map {moves[len(moves) // 2]:.3f} s in the median, {moves[len(moves) * 95 // 100]:.3f} s in 95 of 100"
    )
    print(f"resident MB, heap bytes, elements at most: {middle} in the middle, {last} at the end")
    assert overview.left_out == 0
    assert overview.seen > 0.8 * 1000 * seconds
    assert moves[len(moves) // 2] < 0.2
    assert median < 1
    assert most < 5
    assert last[0] < middle[0] * 1.1 + 10
    assert last[1] < middle[1] * 1.5 + 10e6
    assert last[2] < middle[2] * 1.2


def resident() -> float:
    """Megabytes of this process."""
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
