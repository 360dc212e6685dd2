"""The table of features by release in docs/mtosi-1x.md: each `yes` leads to the test that shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

RELEASES: Final = ("1.1", "2.0", "2.1", "4.0")
HEADERS: Final = "soap/test_header_dialects.py::test_any_header_in_any_dialect_is_mapped_by_the_rules"
STUBS: Final = "codegen/test_codegen_releases.py::test_all_services_with_all_operations"
VERIFIED: Final = "codegen/test_proof.py::test_a_release_is_proven"
TWO: Final = "spark/test_two_releases.py::test_two_releases_give_the_same_rows"
ALARMS: Final = "inventory/test_events_release1.py::test_one_alarm_has_one_row_in_both_releases"
ZEEP: Final = "integrations/test_zeep_releases.py::test_all_operations_of_a_release"
DEMO: Final = "cli/test_demo.py::test_the_demo_brings_what_was_asked_for"
NEW: Final = "cli/test_new.py::test_a_project_runs_and_its_tests_pass"
FEATURES: Final[dict[str, dict[str, str]]] = {
    "header, JMS properties, `map`": dict.fromkeys(RELEASES, HEADERS),
    "stubs of all services": {"1.1": STUBS, "2.0": STUBS, "4.0": STUBS},
    "`mtosi-codegen verify` finds no difference": {"1.1": VERIFIED, "2.0": VERIFIED, "4.0": VERIFIED},
    "calls by zeep": {"2.0": ZEEP, "4.0": ZEEP},
    "stubs and schemas in the package": {
        "1.1": "schemas/test_profile_1x.py::test_operations_have_the_names_and_messages_of_the_release",
        "2.0": "schemas/test_profile.py::test_operations_say_the_same",
    },
    "each operation called and answered": {
        "1.1": "exchange/test_mtosi_1x.py::test_every_operation_is_answered_by_its_own_handler",
        "2.0": "exchange/test_on_the_wire.py::test_every_operation_of_every_service",
    },
    "batches by iterator over JMS": {"1.1": "exchange/test_mtosi_1x.py::test_batches_by_iterator"},
    "`Snapshot` kept by notifications": {
        "1.1": "exchange/test_notifications_1x.py::test_a_snapshot_is_kept_by_events",
        "2.0": "exchange/notifications/test_snapshots.py::test_what_the_snapshot_was_taken_with",
    },
    "inventory in tables": {"1.1": TWO, "2.0": TWO},
    "alarms in tables": {"1.1": ALARMS, "2.0": ALARMS},
    "`serve`, `request`": {
        "1.1": "cli/test_release_1x.py::test_each_operation_answers_what_its_schema_allows",
        "2.0": "cli/test_serve.py::test_all_services_answer",
    },
    "`gateway --forward`": {
        "1.1": "gateway/test_forwarding.py::test_elements_names_and_faults",
        "2.0": "gateway/test_forwarding.py::test_iterators_are_followed",
    },
    "`serve --http`": {
        "1.1": "cli/test_gateway.py::test_services_of_mtosi_1_1_over_http",
        "2.0": "cli/test_gateway.py::test_services_over_http_through_a_broker_and_back",
    },
    "`demo`": {"1.1": DEMO, "2.0": DEMO},
    "`new`": {"1.1": NEW, "2.0": NEW},
    "notifications of an MTNM bridge": {
        "2.0": "bridge/test_mtnm_random.py::test_every_notification_is_valid",
        "4.0": "bridge/test_mtnm_random.py::test_every_notification_is_valid_by_the_later_release",
    },
}


def table() -> str:
    rows = [("feature", *RELEASES), ("---",) * (1 + len(RELEASES))]
    for feature, shown in FEATURES.items():
        cells = [f"[yes](../tests/{shown[one].partition('::')[0]})" if one in shown else "–" for one in RELEASES]
        rows.append((feature, *cells))
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def test_the_page_has_the_table(root: Path) -> None:
    assert table() in (root / "docs" / "mtosi-1x.md").read_text(encoding="utf-8"), table()


@pytest.mark.parametrize("place", sorted({place for shown in FEATURES.values() for place in shown.values()}))
def test_each_yes_is_shown_by_a_test(root: Path, place: str) -> None:
    file, _, name = place.partition("::")
    assert re.search(rf"def {name}\(", (root / "tests" / file).read_text(encoding="utf-8"))
