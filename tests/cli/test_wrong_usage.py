"""Command lines at fault: an exit code, one line that says what is wrong and what was meant, and no traceback."""

from __future__ import annotations

import pytest

import mtosi_codegen.cli
from mtosi_jms import cli

REQUEST = "request getManagedElement --url memory: --to queue:X"
SUBSCRIBE = "subscribe --url memory: --topic topic:T --timeout 0"
TABLE = [
    ("", 2, "validate"),
    ("no-such", 2, "usage: mtosi-jms"),
    ("--no-such", 2, "usage: mtosi-jms"),
    ("validate", 2, "usage: mtosi-jms"),
    ("validate --no-such x", 2, "usage: mtosi-jms"),
    ("ingst", 2, "there is no command 'ingst'; did you mean ingest?"),
    ("--quiet frobnicate", 2, "there are alarms, bridge"),
    ("help ingst", 2, "did you mean ingest?"),
    ("map", 2, "FILE"),
    ("map x.xml --profile table4", 2, "invalid choice: 'table4'"),
    ("map x.xml --optional timstamp", 2, "no optional header field 'timstamp'; did you mean timestamp?"),
    ("map x.xml --optional correlationId", 2, "no optional header field 'correlationId'"),
    ("map x.xml --filter EventType,vendor", 2, "no filterable attribute 'vendor'"),
    ("inspect", 2, "FILE"),
    ("inspect x.xml --show -1", 2, "--show"),
    ("inspect x.xml --show few", 2, "must be a whole number, at least 0"),
    ("ingest landing --cores 999999999999", 2, "at most 1024"),
    ("ingest landing --object BOGUS", 2, "BOGUS"),
    ("demo --elements 0", 2, "--elements: must be a whole number, at least 1"),
    ("demo --elements many", 2, "--elements: must be a whole number, at least 1"),
    ("demo --batch-size -5", 2, "--batch-size: must be a whole number, at least 1"),
    ("serve", 2, "--http"),
    ("serve --destinaton queue:X", 2, "there is no option --destinaton; did you mean --destination?"),
    ("serve --url memory: --destination queue:X --services ManagedElmentRetrieval", 2, "did you mean ManagedElementRe"),
    ("serve --url memory: --destination queue:X --services InventoryRetrival", 2, "did you mean ResourceInventoryRe"),
    ("serve --url memory: --destination queue:X --elements 5 --inventory x", 2, "not allowed with argument"),
    ("serve --url memory: --destination queue:X --grace soon", 2, "a number of seconds"),
    ("serve --url memory: --destination q --release 1.1 --services ManagedElementRetrieval", 2, "1.1 has no service"),
    ("serve --http 127.0.0.1:0 --tls-certificate no-such-file", 1, "no-such-file"),
    ("serve --http 127.0.0.1:0 --tls-key no-such-file", 1, "needs a certificate"),
    ("serve --http 192.0.2.7:1 --without-login", 1, "cannot listen"),
    ("gateway --url memory:", 2, "one of the arguments --to --forward is required"),
    ("gateway --url memory: --forward http://a", 2, "go together"),
    ("gateway --url memory: --to queue:a --listen here", 2, "HOST:PORT"),
    ("gateway --url memory: --to queue:a --category-topic x", 2, "CATEGORY=NAME"),
    ("gateway --url memory: --destination queue:a --forward ftp://a", 1, "http: or https:"),
    ("gateway --url memory: --to queue:a --logins no-such-file", 1, "no-such-file"),
    (
        "request getManagedElment --url memory: --to queue:X",
        2,
        "did you mean ManagedElementRetrieval.getManagedElement",
    ),
    (
        "request ManagedElementRetreival.getManagedElement --url memory: --to queue:X",
        2,
        "did you mean ManagedElementRe",
    ),
    ("request AlarmRetrieval.getManagedElement --url memory: --to queue:X", 2, "ManagedElementRetrieval.getManagedEl"),
    ("request zzz --url memory: --to queue:X", 2, "the services are AlarmRetrieval, "),
    ("request notify --url memory: --to q", 2, "give NotificationBroker.notify or NotificationConsumer.notify"),
    ("request getManagedElment --release 1.1 --url memory: --to q", 2, "did you mean ManagedElementMgr.getManagedElem"),
    ("request getAllPTPs --release 1.1 --url memory: --to q", 2, "no operation 'getAllPTPs' in the stubs of MTOSI 1.1"),
    ("request getAllManagedElementNames --url memory: --to q", 2, "there is no operation 'getAllManagedElementNames'"),
    (f"{REQUEST} --set meReff=MD=X", 2, "no field 'meReff'; did you mean meRef?"),
    (f"{REQUEST} --set meRef", 2, "must be path=value"),
    (f"{REQUEST} --set meRef=X", 2, "is not a name of the form"),
    (f"{REQUEST} --set meRef.rdn=X", 2, "no value can be given here"),
    (f"{REQUEST} --set meRef=MD=A --set meRef=MD=B", 2, "assigned twice"),
    (f"{REQUEST} --set meRef.rdn[0].type=MD", 2, "me_ref.rdn: value is needed"),
    (f"{REQUEST} --stubs no_such_package", 2, "put the folder that contains it on PYTHONPATH, such as PYTHONPATH=src"),
    (f"{REQUEST} --stubs ..stubs", 2, "stubs package '..stubs' cannot be imported"),
    ("request getManagedElement --url carrier://u:s3cret@h:1 --to queue:X", 1, "scheme 'carrier' is not supported"),
    ("request getManagedElement --url nothing --to queue:X", 1, "a URL without a scheme is not supported"),
    ("publish x.xml --url memory: --topic topic:T --filter objektName", 2, "did you mean objectName?"),
    (f"{SUBSCRIBE} --selector MTOSI_objectType=", 2, "error: selector: "),
    (f"{SUBSCRIBE} --durable d --topic queue:Q", 1, "a durable subscription is to an administered topic"),
    (f"{SUBSCRIBE} --topic jms/Nowhere", 1, "'jms/Nowhere': no destination is known by this name"),
    (f"{SUBSCRIBE} --count none", 2, "must be a whole number, at least 1"),
    (f"{SUBSCRIBE} --stubs no_such_package", 2, "no_such_package"),
    ("replay landing --url memory: --to queue:AGAIN --selector n>", 2, "selector: "),
    ("replay landing --url memory: --to queue:AGAIN --rate 0", 2, "must be a number above 0"),
    ("queue browse queue:X --lmit 3", 2, "there is no option --lmit; did you mean --limit?"),
    ("queue brows queue:X", 2, "did you mean browse?"),
    ("channel subscribe --cont 3", 2, "there is no option --cont; did you mean --count?"),
    ("queue count queue:X --url amqp://h:1", 1, "a URL that begins with jvm:"),
    ("queue count queue:X --url tcp://h:1", 1, "a URL that begins with jvm:"),
    ("queue count queue:X --url stmop://h:1", 1, "did you mean stomp:?"),
    ("codegen generat x", 2, "did you mean generate?"),
    ("codegen inspect --bindngs all x", 2, "did you mean --bindings?"),
]


@pytest.mark.parametrize(("line", "code", "text"), TABLE, ids=[line for line, _, _ in TABLE])
def test_what_is_wrong_is_told(
    line: str, code: int, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTOSI_JMS_URL", raising=False)
    words = line.split()
    is_codegen = words[:1] == ["codegen"]
    assert (mtosi_codegen.cli if is_codegen else cli).main(words[is_codegen:]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert text in err
    assert err.count("error: ") == (1 if line else 0)
    assert "Traceback" not in err
    assert "s3cret" not in err
