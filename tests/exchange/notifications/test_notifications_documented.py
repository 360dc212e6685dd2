"""docs/notifications.md names the properties that filters use."""

from __future__ import annotations

from pathlib import Path

from mtosi_jms.binding.profile import FILTER_ATTRIBUTES


def test_the_page_names_the_properties_of_filters(root: Path) -> None:
    page = (root / "docs" / "notifications.md").read_text(encoding="utf-8")
    table = page[page.index("| property |") : page.index("| the others |")]
    formed = {"EventType", "objectName", "aliasNameList", "perceivedSeverity", "osTime", "sourceTime"}
    formed |= {"isEdgePointRelated", "rootCauseAlarmIndication"}
    assert formed <= FILTER_ATTRIBUTES
    assert all(f"MTOSI_{attribute}" in table for attribute in formed)
