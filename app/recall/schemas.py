"""The shapes of a recall on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.auth import Tier
from app.facts.schemas import FactOut, Kind, PastFactOut, Scope, Subject, Tag
from app.text import Instant, NonBlank

LARGEST_QUERY = 4_000
LARGEST_BATCH = 32
MOST_RESULTS = 100
USUAL_RESULTS = 8

Include = Literal["retired"]
Format = Literal["json", "context"]


def _whole_number(value: object) -> object:
    if isinstance(value, bool | str | float):
        raise PydanticCustomError("int_type", "Must be a whole number.")
    return value


def _real_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise PydanticCustomError("float_type", "Must be a number between 0 and 1.")
    return value


Query = Annotated[
    NonBlank,
    Field(max_length=LARGEST_QUERY, description="What is asked, in any words."),
]
_Results = Annotated[int, Field(ge=1, le=MOST_RESULTS, description="How many facts to return at most.")]
_Hops = Annotated[
    int,
    Field(
        ge=1,
        le=4,
        description="How many facts may be followed one after the other to reach an answer.",
    ),
]
_Tokens = Annotated[
    int,
    Field(
        ge=1,
        le=100_000,
        description="Stop before the texts exceed this many tokens, at about four bytes each.",
    ),
]
_Share = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Leave out what is less relevant than this, 0 to 1.",
    ),
]


class _Filters(BaseModel):
    """What may be asked for besides the words."""

    model_config = ConfigDict(extra="forbid")

    subject: Subject | None = Field(
        default=None, description="Only facts at this address, whatever its case, or an alias of it."
    )
    min_tier: Tier | None = Field(default=None, description="Only facts from a source trusted at least this much.")
    as_of: Instant | None = Field(
        default=None,
        description="What was true at this instant, facts that were retired since included.",
    )
    known_at: Instant | None = Field(
        default=None,
        description="What the memory held to be true at this instant, whatever it learned later.",
    )
    explain: bool = Field(default=False, description="Show how each result got its place.")
    format: Format = Field(
        default="json",
        description="`context` adds a block of text that can be put into a prompt as it is.",
    )


class RecallIn(_Filters):
    """A question to the memory."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "When is the team standup?", "scopes": ["shared"], "k": 8}]}
    )

    query: Query
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="The scopes to ask, all that the key may read when left out. Their order is precedence: "
        "where several answer the same subject, the earlier one leads.",
    )
    k: Annotated[_Results, BeforeValidator(_whole_number)] = USUAL_RESULTS
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=4)] | None = Field(
        default=None, description="Only facts of these kinds."
    )
    tags: Annotated[list[Tag], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Only facts that carry all of these tags, matched exactly.",
    )
    include: Annotated[list[Include], Field(max_length=1)] = Field(
        default_factory=list,
        description="`retired`: show matching retired facts too, each right below what replaced it.",
    )
    hops: Annotated[_Hops, BeforeValidator(_whole_number)] = 1
    min_relevance: Annotated[_Share, BeforeValidator(_real_number)] | None = None
    max_tokens: Annotated[_Tokens, BeforeValidator(_whole_number)] | None = None


class RecallParams(_Filters):
    """A question to the memory, as query parameters; lists are given by repeating the parameter."""

    q: Query
    scopes: Annotated[list[Scope], Field(max_length=100)] | None = Field(default=None, alias="scope")
    k: _Results = USUAL_RESULTS
    kinds: Annotated[list[Kind], Field(max_length=4)] | None = Field(default=None, alias="kind")
    tags: Annotated[list[Tag], Field(max_length=64)] | None = Field(default=None, alias="tag")
    include: Annotated[list[Include], Field(max_length=1)] = Field(default_factory=list)
    hops: _Hops = 1
    min_relevance: _Share | None = None
    max_tokens: _Tokens | None = None

    def asked(self) -> RecallIn:
        """The same question as a body would put it."""
        given = self.model_dump(exclude_unset=True)
        return RecallIn(query=given.pop("q"), **given)


class BatchRecallIn(BaseModel):
    """Several questions at once."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "queries": [
                        {"query": "When is the team standup?"},
                        {"query": "Who chairs it?", "k": 3},
                    ]
                }
            ]
        },
    )

    queries: Annotated[list[RecallIn], Field(min_length=1, max_length=LARGEST_BATCH)]


class ReplacedOut(BaseModel):
    """A retired fact that a result stands for; its text is in the history."""

    id: UUID
    retired_at: Instant
    reason: str | None


class RanksOut(BaseModel):
    """The place in each arm, 1 the best, null where that arm did not find it; equal scores share a place.

    A fact that a retired one led to stands where that one's text would: half a place behind the last current fact
    that meets the question as well. The place by recency is 1 + the whole days since the fact was observed.
    """

    vector: float | None
    words: float | None
    exact: float | None
    relevance: float
    recency: float


class ScoresOut(BaseModel):
    """What each arm measured: cosine, BM25, the weight of exact names, the covered share of the question."""

    vector: float | None
    words: float
    exact: float
    share: float


class TermOut(BaseModel):
    """A term of the question and what it is worth in these scopes (inverse document frequency)."""

    term: str
    weight: float


class ResultOut(BaseModel):
    """A fact that answers, and what stands behind it."""

    fact: PastFactOut | FactOut = Field(
        description="The fact. A retired one, shown only on request, also says when and why it ended."
    )
    score: float = Field(description="Orders the results of one recall; means nothing across recalls.")
    relevance: float = Field(description="How likely this answers the question, 0 to 1, whatever else is stored.")
    ranks: RanksOut | None = Field(description="With `explain`: the place in each arm.")
    scores: ScoresOut | None = Field(description="With `explain`: what each arm measured.")
    forwarded_by: UUID | None = Field(description="The retired fact whose words led here, where that was so.")
    replaces: list[ReplacedOut] = Field(description="The retired facts that this one stands for.")
    conflicts_with: list[UUID] = Field(description="Current facts that contradict this one: nobody has decided yet.")
    via: list[UUID] = Field(description="The facts that were followed to reach this one, first to last.")


class SuppressedOut(BaseModel):
    """Facts that meet the question and were held back, by reason."""

    retired: int = Field(description="Retired facts that meet it; what replaced them, if anything, is a candidate.")
    scheduled: int = Field(description="Facts that share words with it and are not valid yet.")
    expired: int = Field(description="Facts that share words with it and are no longer valid.")
    below_min_relevance: int = Field(description="Candidates below `min_relevance`.")
    beyond_max_tokens: int = Field(description="Results that did not fit into `max_tokens`.")


class AppliedOut(BaseModel):
    """What was asked in the end, defaults included."""

    scopes: list[str] | None = Field(description="Null: every scope that the key may read.")
    k: int
    hops: int
    subject: str | None
    kinds: list[Kind] | None
    tags: list[str] | None
    min_tier: Tier | None
    min_relevance: float | None
    as_of: Instant | None
    known_at: Instant | None
    weights: dict[str, float] | None = Field(
        description="With `explain`: score = sum of weight / (60 + place) over the arms; `echo` multiplies "
        "the score of a fact that a retired one led to. A fact that was moved, by the order of scopes or below one "
        "that is newer or more trusted, has the score of the place that it came to."
    )
    terms: list[TermOut] | None = Field(description="With `explain`: the terms asked for.")


class RecallOut(BaseModel):
    """What the memory holds to be true about a question, best first."""

    results: list[ResultOut]
    context: str | None = Field(description="With `format: context`: the results as text for a prompt.")
    suppressed: SuppressedOut
    degraded: list[str] = Field(
        description="What this answer had to do without: `vector`, `words`, `hops`; `deadline` where time ran out."
    )
    applied: AppliedOut


class BatchRecallOut(BaseModel):
    """One answer for each question, in order."""

    answers: list[RecallOut]
