"""The pages of a monitor, what the commands say there, and the text that Prometheus reads."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the extra prometheus is not installed")

from prometheus_client import parser

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.errors import MissingExtraError, TransportError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.spool import Inbox, Outbox
from mtosi_jms.telemetry import METRICS, Count, Gauge, Metrics, Monitor, Role

from ..waiting import PATIENCE, until

DOCUMENT = (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1">'
    "<s:Header><h:header><h:msgName>notify</h:msgName></h:header></s:Header><s:Body/></s:Envelope>"
)
MESSAGING = (
    "`messaging_system`, `messaging_operation_name`, `messaging_destination_name`, `error_type`, `server_address`, "
    "`server_port`"
)


def get(url: str) -> tuple[int, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=PATIENCE) as answer:
            status, data = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, data = error.code, error.read()
    return status, json.loads(data) if data.startswith(b"{") else data.decode()


def test_pages() -> None:
    reason: list[str] = []
    with Monitor(why_not_ready=lambda: reason[0] if reason else None, metrics=Metrics().prometheus) as monitor:
        assert monitor.url.startswith("http://127.0.0.1:")
        assert get(f"{monitor.url}/healthz") == (200, {"status": "up"})
        assert get(f"{monitor.url}/readyz?verbose") == (200, {"ready": True})
        reason.append("the provider is lost")
        assert get(f"{monitor.url}/readyz") == (503, {"ready": False, "reason": "the provider is lost"})
        assert "# TYPE mtosi_batches_total counter" in get(f"{monitor.url}/metrics")[1]
        assert get(f"{monitor.url}/etc/passwd")[0] == 404
        with pytest.raises(TransportError, match="cannot listen"):
            Monitor(port=int(monitor.url.rpartition(":")[2]))


def test_peers_make_only_so_many_series() -> None:
    metrics = Metrics()
    for number in range(1_000):
        metrics.ended(Role.REQUESTOR, "getInventory", Queue("Q"), f"kind{number}", 0.1, 0)
    series = metrics.histograms("messaging.client.operation.duration")
    assert len(series) <= 201
    assert sum(sum(counts) for _, counts, _ in series) == 1_000


def test_a_check_that_fails_is_a_page_that_fails() -> None:
    def fail() -> str:
        raise RuntimeError("no")

    with Monitor(why_not_ready=fail) as monitor:
        assert get(f"{monitor.url}/readyz") == (500, {"error": "the page failed"})
        assert get(f"{monitor.url}/metrics")[0] == 404


@pytest.fixture
def measured(tmp_path: Path) -> Metrics:
    """Metrics with a series in each of them."""
    metrics = Metrics()
    metrics.began(Role.REQUESTOR)
    metrics.began(Role.REQUESTOR)
    metrics.ended(Role.REQUESTOR, "getInventory", Queue("Q"), "", 0.2, 3)
    for what in Count:
        metrics.count(what, Queue('odd "name"\\'))
    for gauge in Gauge:
        metrics.watch(gauge, str(tmp_path), lambda: 4.5)
    metrics.at(lambda: ("broker", 61613)).publish(JmsMessage(), Queue("Q")).end("ID:1")
    metrics.served("BREW", 418, 0.1)
    with metrics.process(JmsMessage(redelivered=True), Queue("Q"), timed=True):
        pass
    return metrics


def test_prometheus_reads_the_text(measured: Metrics) -> None:
    text = measured.prometheus().decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    assert set(families) >= {metric.prometheus.removesuffix("_total") for metric in METRICS}
    assert "process_resident_memory_bytes" in families
    [build] = families["mtosi_jms_build_info"].samples
    assert build.labels["version"]
    for metric in METRICS:
        family = families[metric.prometheus.removesuffix("_total")]
        assert family.type == metric.kind
        assert family.samples, metric.name
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        assert labels <= {label.replace(".", "_") for label in metric.labels}, metric.name
    took = [
        one
        for one in families["messaging_client_operation_duration_seconds"].samples
        if one.labels["messaging_operation_name"] == "request"
    ]
    assert [one.value for one in took if one.name.endswith("_count")] == [1]
    buckets = {one.labels["le"]: one.value for one in took if "le" in one.labels}
    [sent] = families["messaging_client_sent_messages"].samples
    assert (sent.labels["server_address"], sent.labels["server_port"]) == ("broker", "61613")
    [page] = [one for one in families["http_server_request_duration_seconds"].samples if one.name.endswith("_count")]
    assert page.labels == {"http_request_method": "_OTHER", "http_response_status_code": "418"}
    assert (buckets["0.1"], buckets["0.25"], buckets["+Inf"]) == (0, 1, 1)
    [gaps] = families["mtosi_gaps"].samples
    assert gaps.labels == {"messaging_destination_name": 'queue:odd "name"\\'}


def test_the_dashboard_asks_for_metrics_that_there_are(root: Path) -> None:
    dashboard = json.loads((root / "docs" / "grafana.json").read_text(encoding="utf-8"))
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
    for metric in METRICS:
        assert metric.prometheus in asked, f"{metric.name}: no panel shows it"
    assert all("$instance" in target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ()))
    assert [one["name"] for one in dashboard["templating"]["list"]] == ["datasource", "job", "instance"]
    words = set(re.findall(r"\b(?:mtosi|messaging_client|messaging_process|http_server)_\w+(?=[\[{_])", asked))
    known = {metric.prometheus + end for metric in METRICS for end in ("", "_bucket", "_count", "_sum")}
    assert words <= known | {"mtosi_jms_build_info"}


def test_the_page_has_all_metrics(root: Path) -> None:
    page = (root / "docs" / "telemetry.md").read_text(encoding="utf-8")
    assert f"*messaging* stands for {MESSAGING}." in page
    for metric in METRICS:
        named = ", ".join(f"`{label.replace('.', '_')}`" for label in metric.labels) or "none"
        labels = named.replace(MESSAGING, "*messaging*")
        line = f"| `{metric.prometheus}` | {metric.kind} | {labels} | {metric.told} |"
        assert line in page, line


def test_outbox_and_inbox_are_watched_until_they_are_closed(tmp_path: Path) -> None:
    metrics, now = Metrics(), [1_000.0]
    with mtosi.connect("memory:monitor-1", telemetry=metrics) as connection:
        outbox = Outbox(tmp_path / "out", clock=lambda: now[0])
        inbox = Inbox(tmp_path / "in")
        with (
            outbox,
            inbox,
            mtosi.Publisher(connection, {"Fault": "topic:T"}, sender_uri="queue:OS", outbox=outbox),
            mtosi.Subscriber(connection, "topic:T", inbox=inbox),
        ):
            outbox.put(JmsMessage(), Queue("Q"))
            now[0] += 90
            inbox.land(JmsMessage(message_id="ID:1"))
            inbox.move_to_dead(inbox.take().key, "for the test")  # type: ignore[union-attr]
            inbox.land(JmsMessage(message_id="ID:2"))
            assert value(metrics, "mtosi_outbox_depth") == {str(tmp_path / "out"): 1}
            assert value(metrics, "mtosi_outbox_age_seconds") == {str(tmp_path / "out"): 90}
            assert value(metrics, "mtosi_inbox_size") == {str(tmp_path / "in"): 1}
            assert value(metrics, "mtosi_dead") == {str(tmp_path / "out"): 0, str(tmp_path / "in"): 1}
        assert value(metrics, "mtosi_outbox_depth") == {}


def value(metrics: Metrics, name: str) -> dict[str, float]:
    lines = [line for line in metrics.prometheus().decode().splitlines() if line.startswith(f"{name}{{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}


def test_a_command_is_ready_once_it_listens_and_says_what_it_has_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    landed = tmp_path / "landing"
    landed.mkdir()
    (landed / "1.xml").write_text(DOCUMENT)
    assert (
        main(
            [
                "replay",
                str(landed),
                "--url",
                "memory:monitor-replay",
                "--to",
                "queue:Q",
                "--monitor",
                "127.0.0.1:0",
                "--wire",
            ]
        )
        == 0
    )
    told = capfd.readouterr().err
    assert "monitor: http://127.0.0.1:" in told
    assert "DEBUG mtosi_jms.messages: sent to queue:Q: JMSMessageID=ID:" in told
    assert "<h:msgName>notify</h:msgName>" in told


def test_without_the_library_there_are_probes_and_no_metrics(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mtosi_jms.telemetry.prometheus", None)
    monkeypatch.delitem(sys.modules, "mtosi_jms.telemetry.prometheus")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingExtraError, match=r"mtosi-jms\[prometheus\]"):
        assert Metrics().prometheus
    (tmp_path / "1.xml").write_text(DOCUMENT)
    arguments = ["replay", str(tmp_path), "--url", "memory:monitor-bare", "--to", "queue:Q", "--monitor", "127.0.0.1:0"]
    assert main(arguments) == 0
    told = capfd.readouterr().err
    assert "the monitor has no /metrics: prometheus-client is not installed" in told
    assert re.search(r"monitor: \S+/readyz, /healthz$", told, re.MULTILINE)


@pytest.mark.broker
def test_a_lost_broker_is_seen(activemq: Any, make_proxy: Any) -> None:
    metrics, where = Metrics(), activemq.endpoints
    proxy = make_proxy(where.ports["stomp"])
    url = f"stomp://{where.user}:{where.password}@127.0.0.1:{proxy.port}"
    with (
        mtosi.connect(url, telemetry=metrics) as connection,
        Monitor(why_not_ready=lambda: None if connection.is_up else "the provider is lost") as monitor,
    ):
        assert get(f"{monitor.url}/readyz")[0] == 200
        proxy.refuse()
        proxy.cut()
        until(lambda: get(f"{monitor.url}/readyz")[0] == 503)
        proxy.refuse(False)
        until(lambda: get(f"{monitor.url}/readyz")[0] == 200)
    assert "mtosi_reconnects_total 1.0\n" in metrics.prometheus().decode()
    assert not connection.is_up
