"""The pages: what they show and hide, who may see them, and what forms may do."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from mtosi_jms.console import Bounds, Traffic
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import DurableLanding, SpoolFolder

FORM_KEY = re.compile(r'name="form_key" value="([^"]+)"')
LIVE = {"X-Console": "live"}
SECRET = "geheim-4711"


def fill(traffic: Traffic, make: Any) -> None:
    """An exchange with a gap and a duplicate."""
    traffic.record(make("REQUEST"))
    for number in (1, 2, 2, 4):
        traffic.record(make(batch=number, last=number == 4))


def test_an_exchange_with_a_gap_and_a_duplicate(traffic: Traffic, make: Any, visit: Any) -> None:
    fill(traffic, make)
    browser = visit(title="stomp://user:geheim@broker:61613")
    text = browser.get("/").text
    assert "getAllManagedElements" in text
    assert "3 of 4 batches" in text
    assert "1 missing: 3" in text
    assert '<rect class="gap"' in text
    assert '<rect class="again"' in text
    assert "incomplete" in text
    assert "user:***@broker" in text
    assert "No exchange is like that" in browser.get("/?show=open").text
    assert "1: 3" in browser.get("/exchange?key=c-1").text


def test_pages_of_a_console_that_has_seen_nothing(visit: Any) -> None:
    names = ("", "messages", "destinations", "notifications", "alarms", "health", "dead-letters", "topology")
    for name in (*names, "message/1", "nothing"):
        answer = visit().get(f"/{name}")
        assert answer.status_code == (200 if name in names else 404)
        assert "<h1" in answer.text


def test_what_is_alive_comes_alone_and_only_where_it_has_changed(traffic: Traffic, make: Any, visit: Any) -> None:
    browser = visit()
    first = browser.get("/destinations", headers=LIVE)
    assert "<html" not in first.text
    again = browser.get("/destinations", headers={**LIVE, "If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    fill(traffic, make)
    assert browser.get("/destinations", headers={**LIVE, "If-None-Match": first.headers["etag"]}).status_code == 200


def test_one_message_side_by_side(traffic: Traffic, make: Any, visit: Any) -> None:
    message = make(
        batch=1,
        body="<a><b kind='x'>text &amp; more</b><password>geheim-4711</password></a>",
        more="<h:security>geheim-4711</h:security>",
        properties={"MTOSI_msgType": "RESPONSE", "MTOSI_security": SECRET, "count": 7, "is_new": True},
        reply_to=Queue("BACK"),
    )
    traffic.record(message)
    browser = visit()
    text = browser.get("/message/1").text
    for shown in ("JMSReplyTo", "queue:BACK", "batchSequenceNumber", "count", "Integer", "is_new", "true", "Boolean"):
        assert shown in text
    assert '<span class="tag">b</span> <span class="attributes">kind=&#34;x&#34;</span>' in text
    assert '<span class="value">text &amp; more</span>' in text
    forms = {
        "tree": text,
        "xml": browser.get("/message/1?as=xml").text,
        "json": browser.get("/message/1?as=json").text,
        "table": browser.get("/message/1?as=table").text,
        "file": browser.get("/message/1?download=xml").text,
    }
    assert "&lt;h:activityName&gt;getAllManagedElements&lt;/h:activityName&gt;" in forms["xml"]
    assert "&#34;#text&#34;: &#34;text &amp; more&#34;" in forms["json"]
    assert '<td class="id">/a/b/@kind</td><td class="id">x</td>' in forms["table"]
    assert "<h:activityName>getAllManagedElements</h:activityName>" in forms["file"]
    for form, shown in forms.items():
        assert SECRET not in shown, form
        assert "***" in shown, form


def test_a_body_that_is_no_xml_is_not_shown(traffic: Traffic, visit: Any) -> None:
    traffic.record(JmsMessage(body=f"password={SECRET}".encode(), message_id="ID:1"))
    text = visit().get("/message/1").text
    assert SECRET not in text
    assert "may hold credentials" in text


def test_a_large_body_is_cut(traffic: Traffic, make: Any, visit: Any) -> None:
    traffic.record(make(body=f"<a>{'<b>some text</b>' * 30_000}</a>"))
    for form, says in (("tree", "elements are not shown"), ("xml", "characters are not shown")):
        answer = visit().get(f"/message/1?as={form}")
        assert says in answer.text
        assert len(answer.content) < 2_000_000
    assert len(visit().get("/message/1?download=xml").content) > 400_000


def test_what_peers_say_is_text(traffic: Traffic, make: Any, visit: Any) -> None:
    traffic.record(make("REQUEST", "&lt;script&gt;x", operation="&lt;img src=x&gt;"), destination="queue:<b>")
    traffic.record(make("NOTIFICATION", properties={"MTOSI_EventType": "<i>", "MTOSI_objectName": "<u>"}))
    names = ("", "exchange?key=<script>x", "messages?q=<script>", "destinations", "notifications", "message/1")
    for name in names:
        text = visit().get(f"/{name}").text
        assert re.search(r"<(script>|img|b>|i>|u>)", text) is None


def test_search_by_correlation_and_message_id(traffic: Traffic, make: Any, visit: Any) -> None:
    traffic.record(make("REQUEST", "left-1", message_id="ID:needle"))
    traffic.record(make("REQUEST", "right-2"))
    browser = visit()
    for text in ("left-1", "ID:needle", "left"):
        page = browser.get(f"/messages?q={text}").text
        assert "left-1" in page
        assert "right-2" not in page
    assert 'href="/exchange?key=left-1"' in browser.get("/messages?q=left-1").text
    assert "No message that is kept" in browser.get("/messages?q=nobody").text


def test_messages_are_filtered_sorted_and_paged(traffic: Traffic, make: Any, visit: Any) -> None:
    old = 1_000_000_000_000
    traffic.record(make("REQUEST", "c-1"), at_ms=old)
    for number in range(1, 121):
        traffic.record(make(batch=number, body="<r>" + "x" * number + "</r>"), at_ms=old + number * 1_000)
    traffic.record(make("NOTIFICATION", "c-2", operation="notify"))
    browser = visit()
    for query, told in (
        ("", "1 to 100 of 122 messages"),
        ("?page=2", "101 to 122 of 122"),
        ("?kind=response", "of 120 messages"),
        ("?operation=notify", "1 message"),
        ("?correlation=c-1", "of 121 messages"),
        ("?correlation=c", "No message that is kept"),
        ("?since=2001-09-09T01:47&until=2001-09-09T01:47", "60 messages"),
        ("?since=soon", "is no time"),
    ):
        assert told in browser.get(f"/messages{query}").text, query
    largest = browser.get("/messages?kind=response&sort=size-down").text
    assert largest.index("batch 120<") < largest.index("batch 119<")
    assert 'aria-sort="descending"' in largest
    assert 'href="?kind=response&amp;sort=size"' in largest
    assert "2001-09-09 01:46:40</time>" in browser.get("/messages?kind=request").text, "it was not today"
    exchange = browser.get("/exchange?key=c-1").text
    assert "1 to 100 of 121 messages" in exchange
    assert 'href="/messages?correlation=c-1"' in exchange


def test_every_answer_has_the_headers_of_safety(visit: Any) -> None:
    browser = visit(tokens=frozenset({"token"}))
    for answer in (browser.get("/login"), browser.get("/"), browser.get("/static/console.js")):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    for page in ("/login",):
        assert "style=" not in browser.get(page).text
        assert re.search(r"<script>|\son\w+=", browser.get(page).text) is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8085", 200),
        ("127.0.0.1:8085", 200),
        ("[::1]:8085", 200),
        ("[::1]", 200),
        ("192.0.2.7:8085", 200),
        ("console.example", 200),
        ("CONSOLE.example:1", 200),
        ("evil.example:8085", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
def test_another_sites_name_is_refused(visit: Any, host: str, status: int) -> None:
    browser = visit(host_names=frozenset({"console.example"}))
    assert browser.get("/", headers={"Host": host}).status_code == status


def test_with_tokens_nobody_comes_in_without(traffic: Traffic, make: Any, visit: Any) -> None:
    fill(traffic, make)
    browser = visit(tokens=frozenset({"right", "other"}))
    for path in ("/", "/messages", "/message/1", "/landing/0/report", "/nothing"):
        answer = browser.get(path)
        assert answer.status_code == 401
        assert "getAll" not in answer.text
    nothing = browser.get("/static/nothing.js")
    assert (nothing.status_code, nothing.text) == (404, "There is no such file.\n"), "no page that says what is watched"
    assert browser.get("/", headers={"Accept": "text/html"}).headers["location"] == "/login"
    assert browser.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert browser.get("/", headers={"Cookie": "mtosi-console=wrong"}).status_code == 401
    assert browser.get("/", headers={"Cookie": 'mtosi-console="\xff'.encode("latin-1")}).status_code == 401
    assert browser.get("/", headers={"Authorization": "Bearer other"}).status_code == 200
    assert browser.get("/healthz").json() == {"status": "up"}


def test_logging_in(visit: Any) -> None:
    browser = visit(tokens=frozenset({"right"}))
    key = FORM_KEY.search(browser.get("/login").text)[1]
    wrong = browser.post("/login", data={"form_key": key, "token": "wrong"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    assert browser.post("/login", data={"form_key": "no", "token": "right"}).status_code == 403
    answer = browser.post("/login", data={"form_key": key, "token": "right"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "right" not in cookie
    assert browser.get("/", headers={"Cookie": cookie.partition(";")[0]}).status_code == 200
    assert visit(tokens=frozenset({"right"})).get("/", headers={"Cookie": cookie.partition(";")[0]}).status_code == 401


@pytest.mark.parametrize(
    ("to", "lands"),
    [
        ("/messages?q=a b", "/messages?q=a b"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("http://a", "/"),
        ("", "/"),
    ],
)
def test_a_login_comes_back_to_the_page_that_was_wanted(visit: Any, to: str, lands: str) -> None:
    browser = visit(tokens={"operator": "right"})
    page = browser.get("/login", params={"to": to}).text
    answer = browser.post("/login", data={"form_key": FORM_KEY.search(page)[1], "token": "right", "to": to})
    assert unquote(answer.headers["location"]) == lands


def test_an_open_page_learns_that_it_must_log_in_again(visit: Any) -> None:
    browser = visit(tokens={"operator": "right"})
    asked = browser.get("/messages?q=a", headers={"Accept": "text/html"})
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?to=%2Fmessages%3Fq%3Da")
    assert browser.get("/messages", headers={"Accept": "text/html", "X-Console": "live"}).status_code == 401


def test_logging_out(visit: Any) -> None:
    browser = visit(tokens={"operator": "right"})
    key = FORM_KEY.search(browser.get("/login").text)[1]
    cookie = browser.post("/login", data={"form_key": key, "token": "right"}).headers["set-cookie"].partition(";")[0]
    name = cookie.partition("=")[0]
    assert name.endswith("-8085")  # browsers share cookies between the ports of a host
    page = browser.get("/", headers={"Cookie": cookie}).text
    key = FORM_KEY.search(page)[1]
    assert 'action="/logout"' in page
    assert browser.post("/logout", data={"form_key": "no"}, headers={"Cookie": cookie}).status_code == 403
    out = browser.post("/logout", data={"form_key": key}, headers={"Cookie": cookie})
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert out.headers["set-cookie"].startswith(f'{name}="";')


@pytest.mark.parametrize(
    ("change", "headers"),
    [
        ({"form_key": "guessed"}, {}),
        ({}, {"Origin": "http://evil.example"}),
        ({}, {"Origin": "null"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
        ({"padding": "x" * 100_000}, {}),
    ],
)
def test_forms_of_other_sites_do_nothing(
    outbox: Path, visit: Any, change: dict[str, str], headers: dict[str, str]
) -> None:
    browser = visit(spools=[outbox], allow_actions=True)
    page = browser.get("/dead-letters/spool/0").text
    form = {"form_key": FORM_KEY.search(page)[1], "action": "withdraw", "key": "dead-1", **change}
    for path in ("/dead-letters/spool/0", "/dead-letters"):
        assert browser.post(path, data=form, headers=headers).status_code == 403
    with SpoolFolder(outbox) as folder:
        assert len(folder.messages()) == 1


def test_actions_are_off_unless_they_are_allowed(outbox: Path, visit: Any) -> None:
    browser = visit(spools=[outbox])
    assert "Actions are off" in browser.get("/dead-letters").text
    assert "<button name=" not in browser.get("/dead-letters/spool/0").text
    form = {"action": "withdraw", "key": "dead-1", "form_key": "no"}
    assert browser.post("/dead-letters/spool/0", data=form).status_code == 403
    with SpoolFolder(outbox) as folder:
        assert len(folder.messages()) == 1


def test_ledger_report_and_topology_of_a_landing(landing: Path, visit: Any) -> None:
    pytest.importorskip("pyarrow", reason="the extra tables is not installed")
    browser = visit(landings=[landing])
    ledger = browser.get("/landing/0").text
    assert "0 of 1" in ledger
    assert '<strong class="bad">2</strong>' in ledger
    assert "broken.xml" in ledger
    report = browser.get("/landing/0/report")
    assert "incomplete" in report.text
    assert "script-src" not in report.headers["content-security-policy"], "it has none"
    assert "MD=EMS1/ME=NE-3" in browser.get("/topology").text
    assert browser.get("/landing/1").status_code == 404


def test_a_landing_that_is_gone_says_so(tmp_path: Path, visit: Any) -> None:
    browser = visit(landings=[tmp_path / "gone"], spools=[tmp_path / "gone"])
    for path in ("/landing/0", "/topology", "/dead-letters"):
        assert "gone" in browser.get(path).text


def test_topology_of_tables(network: Any, visit: Any) -> None:
    names = [f"MD=EMS1/ME=NE-{number}" for number in range(1, 5)]
    nodes = [{"id": name, "type": "ME", "known": name != names[3]} for name in names]
    ends = [(names[0], names[1]), (names[0], names[2]), (names[0], names[1])]
    told = {"kind": "link", "relationship": "link"}
    edges = [{"src": f"{src}/PTP=1", "dst": f"{dst}/PTP=1", **told} for src, dst in ends]
    edges.append({"src": names[1], "dst": names[2], "kind": "reference", "relationship": "asap"})
    edges.append({"src": names[2], "dst": f"{names[2]}/EQ=1", "kind": "containment", "relationship": "contains"})
    folder = network(nodes, edges)
    browser = visit(topology=folder)
    assert browser.get("/topology/network").json() == {
        "elements": names[:3],
        "links": [[0, 1, 0, 2], [0, 2, 0, 1], [1, 2, 1, 1]],
        "layers": ["link", "asap"],
        "leftOut": 0,
        "linksLeftOut": 0,
    }
    page = browser.get("/topology").text
    assert "NE-4" not in page, "it is only referred to"
    page = browser.get("/topology", params={"element": names[0]}).text
    assert re.search(r"2 neighbours.*ME=NE-2</a> <span class=\"soft\">2 link</span>", page, re.DOTALL)
    assert "no such element" in browser.get("/topology?element=MD=EMS1").text
    gone = visit(topology=folder / "nodes")
    assert "no topology as" in gone.get("/topology").text
    assert gone.get("/topology/network").status_code == 503


def test_a_large_network_is_listed_whole(network: Any, visit: Any) -> None:
    nodes = [{"id": f"MD=EMS1/ME=NE-{number}", "type": "ME", "known": True} for number in range(10_250)]
    folder = network(nodes, [{"src": "a", "dst": "b", "kind": "link", "relationship": "link"}])
    browser = visit(topology=folder)
    found = browser.get("/topology/network").json()
    assert (len(found["elements"]), found["leftOut"]) == (10_000, 250)
    seen: set[str] = set()
    path = "/topology?q=NE-1024"
    while path:
        page = browser.get(path).text
        seen |= set(re.findall(r">(MD=EMS1/ME=NE-\d+)</a>", page))
        after = re.search(r'href="([^"]*)" rel="next"', page)
        path = f"/topology{html.unescape(after[1])}" if after else ""
    assert len(seen) == 11
    pages = [browser.get(f"/topology?page={number}").text for number in (1, 103, 104, "x")]
    assert [page.count('<tr id="t-') for page in pages] == [100, 50, 50, 100]


def missing_card(text: str) -> str:
    found = re.search(r"<dt>Batches missing</dt><dd>(.*?)</dd>", text)
    assert found is not None
    return found[1]


@pytest.mark.obligation("OPS2")
def test_the_count_of_missing_batches_is_that_of_the_ledger(tmp_path: Path, make: Any, visit: Any) -> None:
    traffic = Traffic(Bounds(exchanges=2))
    with DurableLanding(tmp_path / "landing") as landing:
        for exchange in range(5):
            for number in (1, 3):
                landing.land(make(correlation=f"c-{exchange}", batch=number, last=number == 3))
                traffic.record(make(correlation=f"c-{exchange}", batch=number, last=number == 3), from_first=True)
    alone = visit(traffic).get("/").text
    assert missing_card(alone) == "at least 2"
    assert "<strong>3</strong> exchanges left memory" in alone
    browser = visit(traffic, landings=[tmp_path / "landing"])
    assert missing_card(browser.get("/landing/0").text) == "5"
    assert missing_card(browser.get("/").text) == "5"


@pytest.mark.obligation("OPS2")
def test_what_came_too_fast_is_not_said_to_be_complete(make: Any, visit: Any) -> None:
    traffic = Traffic(Bounds(backlog=2))
    for number in (1, 2, 3):
        traffic.record(make(batch=number, last=number == 3))
    assert missing_card(visit(traffic).get("/").text) == "not counted"


@pytest.mark.obligation("OPS2")
def test_a_batch_of_an_exchange_that_was_forgotten_shows_no_gap(make: Any) -> None:
    traffic = Traffic(Bounds(exchanges=1))
    for correlation, number in (("a", 1), ("a", 2), ("b", 1), ("a", 3)):
        traffic.record(make(correlation=correlation, batch=number), from_first=True)
    (found,) = traffic.exchanges()
    assert (found.missing, found.unseen) == (0, 2)
