"""Texts, times and metadata are refused before the database would refuse them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from app.text import (
    EARLIEST,
    LARGEST_INTEGER,
    LATEST,
    CleanStr,
    Instant,
    MalformedJson,
    Metadata,
    NonBlank,
    is_blank,
    pointer,
    read_json,
)


def code_of(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return caught.value.errors()[0]["type"]


@pytest.mark.parametrize("text", ["", " ", "naïve\n", "\U0001f600", "שלום", "e\u0301"])
def test_a_clean_string_is_kept_as_it_is(text: str) -> None:
    assert TypeAdapter(CleanStr).validate_python(text) == text


@pytest.mark.parametrize(
    ("text", "code"), [("a\0b", "nul_character"), ("é\0", "nul_character"), ("a\ud83d", "lone_surrogate")]
)
def test_a_string_that_postgres_cannot_hold_is_refused(text: str, code: str) -> None:
    assert code_of(CleanStr, text) == code
    assert code_of(NonBlank, text) == code


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "\t\n",
        "\u200b",
        "\ufeff",
        "\u2060\u200d",
        "\u00ad",
        "\u3164",
        "\u2800",
        "\x07",
        "\u202e",
        "\ufe0f",
    ],
)
def test_a_text_that_leaves_no_mark_is_blank(text: str) -> None:
    assert code_of(NonBlank, text) == "blank"


@pytest.mark.parametrize("text", [".", "0", "\u200bа", "中", "\U0001f600", "\u0301"])
def test_a_text_that_leaves_a_mark_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_the_bounds_of_a_text_are_in_the_schema() -> None:
    schema = TypeAdapter(Annotated[NonBlank, Field(max_length=20_000)]).json_schema()

    assert schema["minLength"] == 1
    assert schema["maxLength"] == 20_000


def test_a_time_is_turned_to_utc() -> None:
    moment = TypeAdapter(Instant).validate_python("2026-01-05T10:30:00.123456+01:30")

    assert moment == datetime(2026, 1, 5, 9, 0, 0, 123456, tzinfo=UTC)
    assert moment.utcoffset() == timedelta(0)


@pytest.mark.parametrize("text", ["2026-01-05T09:00:00", "2026-01-05", "2026-01-05 09:00"])
def test_a_time_without_an_offset_is_refused(text: str) -> None:
    assert code_of(Instant, text) == "offset_required"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1767603600",
        1767603600,
        1767603600.5,
        True,
        None,
        [],
        "2026-01-05T09:00:00 01:00",
        "2026-01-05T09:00:00+01:00\n",
        "٢٠٢٦-01-05T09:00:00Z",
        "2026-W01-1T09:00:00Z",
        "20260105T090000Z",
        "+12026-01-05T09:00:00Z",
    ],
)
def test_what_is_no_rfc_3339_time_is_refused(text: object) -> None:
    assert code_of(Instant, text) == "time_invalid"


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-05T09:00:00Z",
        "2026-02-30T09:00:00Z",
        "2026-01-05T25:00:00Z",
        "2026-01-05T09:00:00+99:00",
        "0000-01-05T09:00:00Z",
    ],
)
def test_a_time_that_no_clock_shows_is_refused(text: str) -> None:
    assert code_of(Instant, text).startswith("datetime_")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"])
def test_a_time_at_the_edge_of_the_calendar_is_refused(text: str) -> None:
    assert code_of(Instant, text) == "time_out_of_range"


@given(st.datetimes(timezones=st.timezones() | st.just(timezone(timedelta(hours=-23, minutes=-59)))))
def test_every_time_that_is_taken_can_be_shown_at_any_offset(moment: datetime) -> None:
    try:
        taken = TypeAdapter(Instant).validate_python(moment)
    except ValidationError:
        return

    assert EARLIEST <= taken <= LATEST
    for hours in (-14, 14):
        taken.astimezone(timezone(timedelta(hours=hours))).isoformat()


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "metadata",
    [{}, {"a": [1, 2.5, None, True, "x"]}, {"n": LARGEST_INTEGER}, {"a": "x" * 16_376}, nested(16)],
)
def test_metadata_within_the_bounds_is_kept(metadata: dict[str, Any]) -> None:
    assert TypeAdapter(Metadata).validate_python(metadata) == metadata


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ({"a": "x" * 16_377}, "metadata_too_large"),
        ({"a": "é" * 8_189}, "metadata_too_large"),
        (nested(17), "too_deep"),
        (nested(5000), "too_deep"),
        ({"a": [float("nan")]}, "not_finite"),
        ({"a": float("inf")}, "not_finite"),
        ({"n": LARGEST_INTEGER + 1}, "integer_out_of_range"),
        ({"n": -(10**400)}, "integer_out_of_range"),
        ({"a": "\0"}, "nul_character"),
        ({"\0": 1}, "nul_character"),
        ({"a": {"b": ["\udfff"]}}, "lone_surrogate"),
        ([], "dict_type"),
    ],
)
def test_metadata_beyond_the_bounds_is_refused(metadata: object, code: str) -> None:
    assert code_of(Metadata, metadata) == code


def test_a_fault_in_metadata_says_where() -> None:
    with pytest.raises(ValidationError, match="/a/b~1c/0: Must be a finite number"):
        TypeAdapter(Metadata).validate_python({"a": {"b/c": [float("inf")]}})


def test_faults_come_in_the_order_of_the_text() -> None:
    with pytest.raises(MalformedJson) as caught:
        read_json(rb'{"a": "\u0000", "b": [NaN, "\ud800"]}')

    assert [fault.pointer for fault in caught.value.faults] == ["/a", "/b/0", "/b/1"]


def test_an_object_that_repeats_many_keys_is_read_in_reasonable_steps() -> None:
    body = "{" + ",".join(f'"{n % 50_000}": 0' for n in range(100_000)) + "}"

    with pytest.raises(MalformedJson) as caught:
        read_json(body.encode())

    assert {fault.code for fault in caught.value.faults} == {"duplicate_key"}


def test_a_pointer_is_printable_whatever_its_keys_hold() -> None:
    written = pointer(["\ud800", "a\0", "x" * 1000])

    assert written.encode()
    assert "\0" not in written
    assert len(written) < 120


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=8,
)


@given(st.binary())
def test_reading_any_bytes_ends_in_a_value_or_a_refusal(body: bytes) -> None:
    try:
        read_json(body)
    except MalformedJson as error:
        assert error.faults  # noqa: PT017, since most of the texts are refused, but not all.


@settings(max_examples=40)
@given(st.dictionaries(st.text(st.characters()), json_values, max_size=3))
def test_metadata_that_is_kept_survives_utf_8(metadata: dict[str, Any]) -> None:
    try:
        kept = TypeAdapter(Metadata).validate_python(metadata)
    except ValidationError:
        return

    assert TypeAdapter(Metadata).dump_json(kept).decode()
