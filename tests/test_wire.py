"""Shapes that go out are made without validation, so every one of their members must be there."""

from pydantic import BaseModel

from app.facts.schemas import FactOut, PastFactOut, SourceOut
from app.recall.schemas import ResultOut
from app.wire import made
from tests.clients import Memory

MEMBERS = {"tier": "user", "ref": "ticket 7", "quote": None}


def test_a_made_shape_is_the_one_that_pydantic_would_construct() -> None:
    one, other = made(SourceOut, **MEMBERS), SourceOut.model_construct(**MEMBERS)  # type: ignore[arg-type]

    assert one == other
    assert one.model_dump_json() == other.model_dump_json()
    assert one.model_copy(update={"ref": None}).ref is None


def members(shape: type[BaseModel]) -> set[str]:
    return set(shape.model_fields)


def test_a_fact_goes_out_with_every_member(memory: Memory) -> None:
    old = memory.remember("The kiln fires at 1,180 degrees.")["fact"]
    new = memory.supersede(old["id"], content="The kiln fires at 1,220 degrees.")["fact"]

    past, current = memory.history(new["id"])["facts"]

    assert set(new) == members(FactOut)
    assert set(new["source"]) == members(SourceOut)
    assert set(past) == set(current) == members(PastFactOut)


def test_a_result_goes_out_with_every_member(memory: Memory) -> None:
    memory.remember("The glaze room is locked at six.")

    for hops in (1, 2):
        (first, *_) = memory.recall("When is the glaze room locked?", hops=hops)["results"]
        assert set(first) == members(ResultOut)
