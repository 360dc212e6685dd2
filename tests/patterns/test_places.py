"""What a reply says of its place, by header and properties, in all spellings (R5a, C58)."""

from __future__ import annotations

import pytest

from mtosi_jms.patterns import Place, Standing, read_place, standing_of

NUMBER, END, PATTERN = Place.FIELDS
SEVERAL = {PATTERN: "MultipleBatchResponse"}


@pytest.mark.obligation("BAT3")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((text, 1) for text in ("1", "+1", " 1\n", "1.0", "1.", "001", "+1.000", 1, 1.0)),
        *((text, 0) for text in ("0", "-0", "+0", "0.0", 0)),
        ("4294967295", 4294967295),
        ("0" * 60 + "7", 7),
        *((text, None) for text in ("1.5", "-1", "one", "1e0", "0x1", "4294967296", "9" * 30, "1 2", "٣", True, "+")),
    ],
)
def test_numbers_in_all_spellings(text: object, number: int | None) -> None:
    for sources in ({NUMBER: text, END: "true"},), ({END: "true"}, {NUMBER: text}), ({}, {NUMBER: text, END: True}):
        place = read_place(*sources)
        assert place.number == number
        assert place.end is (number is not None)
        assert standing_of(place.number, place.end) is (Standing.UNPLACED if number is None else Standing.LAST)


@pytest.mark.obligation("BAT3")
@pytest.mark.parametrize(
    ("text", "end"),
    [
        *((text, True) for text in ("true", "1", " TRUE ", "True", True, 1)),
        *((text, False) for text in ("false", "0", "False", False, 0)),
        *((text, None) for text in ("yes", "maybe", "-1")),
    ],
)
def test_end_marks_in_all_spellings(text: object, end: bool | None) -> None:
    assert read_place({NUMBER: "3", END: text}).end is end
    assert read_place({END: text}).end is (False if end is None else end)


@pytest.mark.obligation("BAT1")
@pytest.mark.parametrize(
    ("sources", "standing"),
    [
        (({},), Standing.WHOLE),
        (({NUMBER: " ", END: "", PATTERN: "SimpleResponse"}, {}), Standing.WHOLE),
        ((SEVERAL,), Standing.UNPLACED),
        (({}, SEVERAL), Standing.UNPLACED),
        (({PATTERN: "MultipleResponse"},), Standing.UNPLACED),
        (({**SEVERAL, END: "true"},), Standing.WHOLE),
        (({**SEVERAL, END: "false"},), Standing.UNPLACED),
        ((SEVERAL, {END: False}), Standing.UNPLACED),
        ((SEVERAL, {NUMBER: 1}), Standing.BATCH),
        (({NUMBER: "1"}, {END: True}), Standing.LAST),
    ],
)
def test_what_says_that_it_is_one_of_several_is_never_the_whole_answer(
    sources: tuple[dict[str, object], ...], standing: Standing
) -> None:
    place = read_place(*sources)
    assert standing_of(place.number, place.end) is standing


@pytest.mark.obligation("BAT2")
def test_header_and_properties_must_agree() -> None:
    assert read_place({NUMBER: "1.0", END: "1"}, {NUMBER: 1, END: "TRUE"}) == Place(1, True)
    for other in ({NUMBER: 2}, {END: False}, {NUMBER: "one"}):
        place = read_place({NUMBER: "1", END: "true"}, other)
        assert (place.number, place.end) == (None, False)
        assert "disagree" in place.contradiction
        assert standing_of(place.number, place.end) is Standing.UNPLACED
