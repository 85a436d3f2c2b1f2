"""What is wrong with a request, in words that name the place and the bound."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

from app.text import Fault, pointer

# By pydantic's error type; the names in braces are its context. What the caller sent is never repeated.
_SENTENCES: Mapping[str, str] = {
    "missing": "This is required.",
    "extra_forbidden": "This is not a known field.",
    "string_type": "Must be a string.",
    "string_too_short": "Must be {min_length} or more characters long.",
    "string_too_long": "Must have at most {max_length} characters.",
    "string_pattern_mismatch": "Must match the pattern {pattern}.",
    "string_unicode": "Must be valid Unicode text.",
    "too_short": "Must hold at least {min_length} item(s).",
    "too_long": "Must hold at most {max_length} items.",
    "greater_than": "Must be greater than {gt}.",
    "greater_than_equal": "Must be at least {ge}.",
    "less_than": "Must be less than {lt}.",
    "less_than_equal": "Must be at most {le}.",
    "finite_number": "Must be a finite number.",
    "int_type": "Must be a whole number.",
    "int_parsing": "Must be a whole number.",
    "int_from_float": "Must be a whole number.",
    "int_parsing_size": "Must be a whole number of a size that fits the bounds.",
    "float_type": "Must be a number.",
    "float_parsing": "Must be a number.",
    "bool_type": "Must be true or false.",
    "bool_parsing": "Must be true or false.",
    "list_type": "Must be a list.",
    "dict_type": "Must be a JSON object.",
    "model_type": "Must be a JSON object.",
    "model_attributes_type": "Must be a JSON object.",
    "uuid_type": "Must be a UUID such as 019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11.",
    "uuid_parsing": "Must be a UUID such as 019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11.",
    "uuid_version": "Must be a UUID of version {expected_version}.",
    "enum": "Must be {expected}.",
    "literal_error": "Must be {expected}.",
    "json_invalid": "The body is not JSON: {error}.",
    "recursion_loop": "Must not be nested this deep.",
    "datetime_parsing": "Must be an RFC 3339 time such as 2026-01-05T09:00:00Z.",
    "datetime_from_date_parsing": "Must be an RFC 3339 time such as 2026-01-05T09:00:00Z.",
    "datetime_object_invalid": "Must be an RFC 3339 time such as 2026-01-05T09:00:00Z.",
    "datetime_type": "Must be an RFC 3339 time such as 2026-01-05T09:00:00Z.",
    "timezone_aware": "Must say its offset from UTC, such as 2026-01-05T09:00:00Z.",
}


def faults_of(exc: RequestValidationError) -> list[Fault]:
    """What FastAPI found wrong with a request, as places and sentences without a word of what was sent."""
    return [Fault(_where(error, exc.body), _kind(error), _sentence(error)) for error in exc.errors()]


def _kind(error: Mapping[str, Any]) -> str:
    # Behind a validator of ours, pydantic measures a string as it does any collection.
    kind = str(error["type"])
    return f"string_{kind}" if kind in {"too_long", "too_short"} and isinstance(error["input"], str) else kind


def _sentence(error: Mapping[str, Any]) -> str:
    sentence = _SENTENCES.get(_kind(error))
    if sentence is None:
        # Only types of our own, or `ValueError`s of our own validators, come here; they are written for people.
        return str(error["msg"]).removeprefix("Value error, ")
    return sentence.format_map(error.get("ctx", {}))


def _where(error: Mapping[str, Any], body: object) -> str:
    part, *steps = error["loc"]
    if error["type"] == "json_invalid":
        return ""
    if part == "body":
        return pointer(_steps_in(body, steps, of_missing=error["type"] == "missing"))
    if part == "header":
        return "header/" + "-".join(word.capitalize() for word in str(steps[0]).split("-"))
    return f"{part}{pointer(steps)}"


def _steps_in(body: object, steps: Sequence[str | int], *, of_missing: bool) -> list[str | int]:
    # Pydantic also names the branches of unions, which are no part of the body.
    path: list[str | int] = []
    for step in steps:
        if step in _steps_from(body):
            body = body[step]  # type: ignore[index]  # It is a dict or a list that has this step.
        elif not (of_missing and step is steps[-1]):
            continue
        path.append(step)
    return path


def _steps_from(body: object) -> Container[str | int]:
    if isinstance(body, list):
        return range(len(body))
    return body if isinstance(body, dict) else ()
