"""Every sample is read, mapped and written anew: equal in canonical form, or the difference is a stated warning."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

MALFORMED = {"notify-EventLossCleared.xml", "notify-EventLossOccured.xml"}
"""An undeclared prefix; they stay as the release has them."""
TYPES = {
    "MTOSI_requestedBatchSize": "int",
    "MTOSI_batchSequenceNumber": "int",
    "MTOSI_batchSequenceEndOfReply": "bool",
}

Seen = dict[str, dict[str, Any]]


def test_samples_are_written_as_they_were_read(seen: Seen) -> None:
    for sample, facts in seen.items():
        if sample.rpartition("/")[2] in MALFORMED:
            assert facts["kind"] == "MalformedXmlError", sample
            assert "m2" in facts["message"], sample
            continue
        assert facts["kind"] in ("envelope", "document"), sample
        assert facts["leaves_equal"], f"{sample}: no text is lost, none is changed"
        assert facts["stated"], sample
        if "order" not in facts["rules"]:  # no other warning changes what is written
            assert facts["equal"], sample
        elif not facts["equal"]:
            wrong = f"{sample}: what is put into order is what a warning named, and nothing else differs"
            assert facts["equal_but_order"], wrong
        # Elements of a repeated group stay in the order in which they came, with the warning.
        again = [rule for rule in facts["rules"] if rule != "order" or facts["equal"]]
        assert facts["rules_again"] == again, sample
        assert facts["stable"], f"{sample}: written once, it stays as it is"


@pytest.mark.obligation("P37", "R15a", "R15c", "R15d")
def test_envelopes_are_mapped_and_go_out_as_they_came(seen: Seen) -> None:
    for sample, facts in seen.items():
        if facts["kind"] != "envelope":
            assert "mapped" not in facts, sample
            continue
        assert facts["untouched"], sample
        types = {name: kind for name, kind in facts["mapped"].items() if name != "warnings"}
        assert types == {name: TYPES.get(name, "str") for name in types}, sample


def test_how_many_there_are_of_each_kind(seen: Seen) -> None:
    kinds = Counter(facts["kind"] for facts in seen.values())
    assert kinds["MalformedXmlError"] == len(MALFORMED)
    assert kinds["envelope"] > 100
    assert kinds["document"] > 10
    assert sum(kinds.values()) == kinds["envelope"] + kinds["document"] + len(MALFORMED)
    assert any(facts["equal"] and not facts["rules"] for facts in seen.values() if facts["kind"] == "envelope")


def test_faults_are_typed(seen: Seen) -> None:
    faults = {name.rpartition("/")[2][:3]: facts["fault"] for name, facts in seen.items() if facts.get("fault")}
    assert faults == {
        "1-3": "InvalidInputFault",
        "3-3": "UnsupportedPackingFormatFault",
        "6-5": "InternalErrorFault",
        "6-6": "InternalErrorFault",
        "7-5": "TooManyOpenIteratorsFault",
        "7-6": "InvalidInputFault",
    }


def test_the_release_knows_every_official_sample(seen_with_release: Seen) -> None:
    unknown = {
        name
        for name, facts in seen_with_release.items()
        if name.startswith("official-2.0") and facts["kind"] in ("envelope", "document")
        if not facts["body"].startswith("release20.")
    }
    assert unknown == set()


def test_the_release_knows_every_request_of_the_field(seen_with_release: Seen) -> None:
    requests = {name: facts["body"] for name, facts in seen_with_release.items() if name.startswith("field/requests")}
    unknown = {name for name, module in requests.items() if not module.startswith("release20.")}
    assert requests
    assert unknown == set()
