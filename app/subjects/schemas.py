"""Subjects on the wire."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.facts.schemas import FactOut, Subject
from app.text import NonBlank

MOST_ALIASES = 50


class SubjectIn(BaseModel):
    """What a registered subject is about, and its other names. What is left out is emptied."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"description": "When the team's daily stand-up is.", "aliases": ["standup.time"]}]
        },
    )

    description: Annotated[NonBlank, Field(max_length=2_000)] | None = Field(
        default=None, description="What its values mean, for people and for agents that choose a subject."
    )
    aliases: Annotated[list[Subject], Field(max_length=MOST_ALIASES)] = Field(
        default_factory=list, description="Other names; whoever writes or reads there means this subject."
    )


class SubjectOut(BaseModel):
    """A subject that has current facts or is registered."""

    subject: str
    registered: bool
    description: str | None
    aliases: list[str]
    alias_of: str | None = Field(
        description="The subject that this name stands for since; its facts here are older than that."
    )
    facts: int = Field(description="Current facts at this subject, of every kind, that the key may read.")
    near_misses: list[str] = Field(description="Subjects that probably mean the same.")


class SubjectDetailOut(SubjectOut):
    """A subject with its current value, and others where scopes or doubts keep more than one."""

    current: list[FactOut] = Field(
        description="The current states: in the order of the scopes asked for, then newest first; 200 at most."
    )
