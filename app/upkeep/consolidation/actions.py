"""What a model may propose, read strictly and one by one: a wrong one never spoils or hides the others."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.llm import LlmFailure, read_object
from app.text import NonBlank

MOST_ACTIONS = 200
SHORTEST_DIGEST = 8
LONGEST_DIGEST = 1_000

Handle = Annotated[NonBlank, Field(max_length=100)]
Quote = Annotated[NonBlank, Field(max_length=2_000)]
Words = Annotated[NonBlank, Field(max_length=500)]


class _Action(BaseModel):
    """An action on the wire. Texts are texts: a number in the place of one is an error, not a guess."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)
    handles: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def form(cls) -> dict[str, Any]:
        """Its JSON Schema in the subset that endpoints enforce: every member required, none besides."""
        properties = {}
        for name, field in cls.model_fields.items():
            properties[name] = field.json_schema_extra or {"type": "string"}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


_NULLABLE: dict[str, Any] = {"type": ["string", "null"]}


class Digest(_Action):
    """One text in the place of several."""

    action: Literal["digest"] = Field(json_schema_extra={"type": "string", "enum": ["digest"]})
    sources: list[Handle] = Field(
        min_length=1, max_length=100, json_schema_extra={"type": "array", "items": {"type": "string"}}
    )
    text: Annotated[NonBlank, Field(min_length=SHORTEST_DIGEST, max_length=20_000)]


class Contradiction(_Action):
    """Two facts that cannot both hold; `ended` is the handle of the one that no longer does."""

    action: Literal["contradiction"] = Field(json_schema_extra={"type": "string", "enum": ["contradiction"]})
    first: Handle
    second: Handle
    reason: Words
    first_quote: Quote
    second_quote: Quote
    ended: Handle | None = Field(default=None, json_schema_extra=_NULLABLE)
    evidence: Quote | None = Field(default=None, json_schema_extra=_NULLABLE)


class Classification(_Action):
    """What kind of statement a note is, and at which subject it belongs."""

    action: Literal["classify"] = Field(json_schema_extra={"type": "string", "enum": ["classify"]})
    fact: Handle
    kind: Literal["state", "event", "note"] = Field(
        json_schema_extra={"type": "string", "enum": ["state", "event", "note"]}
    )
    subject: Annotated[NonBlank, Field(max_length=200)] | None = Field(default=None, json_schema_extra=_NULLABLE)


Action = Digest | Contradiction | Classification
ACTIONS: tuple[type[Digest] | type[Contradiction] | type[Classification], ...] = (
    Digest,
    Contradiction,
    Classification,
)
_BY_NAME: dict[str, type[Digest] | type[Contradiction] | type[Classification]] = {
    "digest": Digest,
    "contradiction": Contradiction,
    "classify": Classification,
}


@dataclass(frozen=True, slots=True)
class Malformed:
    """An action that cannot be read, and why."""

    reason: str


def read_actions(text: str) -> list[Action | Malformed]:
    """The actions of an answer, in order. Raises LlmFailure where the answer as a whole cannot be read.

    That includes an answer of which no action can be read: it did not say that there is nothing to do.
    """
    listed = read_object(text, "actions")["actions"]
    if not isinstance(listed, list):
        raise LlmFailure("unreadable", "`actions` is not a list")
    found = [_read(item) for item in listed[:MOST_ACTIONS]]
    if len(listed) > MOST_ACTIONS:
        found.append(Malformed(f"more than {MOST_ACTIONS} actions"))
    if found and all(isinstance(item, Malformed) for item in found):
        raise LlmFailure("unreadable", "none of the actions can be read")
    return found


def _read(item: Any) -> Action | Malformed:
    if not isinstance(item, dict):
        return Malformed("an action is not an object")
    kind = _BY_NAME.get(str(item.get("action")))
    if kind is None:
        return Malformed("an action of this name was not offered")
    try:
        return kind.model_validate(item)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return Malformed(f"{kind.__name__.lower()}.{'.'.join(map(str, first['loc']))}: {first['type']}")
