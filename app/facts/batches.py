"""A batch on the wire: its items are checked one by one, so that a wrong one need not stop the others."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi.exceptions import RequestValidationError
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from app.auth import Caller
from app.errors import AppError
from app.facts import preparing
from app.facts.fact import Draft
from app.facts.schemas import LARGEST_BATCH, RememberIn
from app.problems import invalid
from app.text import Fault
from app.validation import faults_of


@dataclass(frozen=True, slots=True)
class Malformed:
    """An item that is not a statement, with what is wrong about it."""

    item: Any
    errors: list[Any]


def _tolerate(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError as error:
        return Malformed(value, list(error.errors(include_url=False)))


class BatchIn(BaseModel):
    """Statements to remember, in order."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "facts": [
                        {"content": "The staging database runs on PostgreSQL 16.", "subject": "staging.database"},
                        {"content": "Deploys are frozen on Fridays.", "tags": ["deploys"]},
                    ],
                    "atomic": True,
                }
            ]
        },
    )

    facts: Annotated[
        list[Annotated[RememberIn, WrapValidator(_tolerate)]], Field(min_length=1, max_length=LARGEST_BATCH)
    ]
    atomic: bool = Field(default=True, description="Whether one refused item refuses the whole batch.")


def drafts_of(body: BatchIn, caller: Caller) -> list[Draft | AppError]:
    """A draft for each item, or why there is none. In an atomic batch the first refusal is raised."""
    results: list[Draft | AppError] = []
    for index, item in enumerate(body.facts):
        try:
            draft = _draft(item, index, caller)
            draft.position = index
            results.append(draft)
        except AppError as error:
            if body.atomic:
                error.extensions = {**error.extensions, "index": index}
                raise
            results.append(error)
    return results


def _draft(item: RememberIn | Malformed, index: int, caller: Caller) -> Draft:
    if isinstance(item, Malformed):
        located = [{**error, "loc": ("body", *error["loc"])} for error in item.errors]
        found = faults_of(RequestValidationError(located, body=item.item))
        raise invalid([Fault(f"/facts/{index}{fault.pointer}", fault.code, fault.detail) for fault in found])
    return preparing.statement(item, caller)
