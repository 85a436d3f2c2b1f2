"""Who may end what: the tier of the source, the cap of the key, and force."""

from collections.abc import Callable

import pytest

from app.auth import TIERS
from tests.clients import Memory


# C28
@pytest.mark.parametrize("high", TIERS)
@pytest.mark.parametrize("low", TIERS)
def test_a_rule_retires_only_what_is_trusted_no_more(memory: Memory, high: str, low: str) -> None:
    held = memory.fact("Sol eats no fish.", subject="diet", kind="state", source={"tier": high})["id"]

    answer = memory.remember("Sol eats no meat.", subject="diet", kind="state", source={"tier": low})

    if TIERS.index(low) <= TIERS.index(high):
        assert [retired["id"] for retired in answer["superseded"]] == [held]
    else:
        assert [(c["fact_id"], c["kind"]) for c in answer["conflicts"]] == [(held, "lower_tier")]
        assert memory.standing(held) == ["active"]


# C28
def test_a_guess_does_not_override_what_the_user_said(memory: Memory) -> None:
    said = memory.fact("Sol is vegan.", subject="diet", source={"tier": "user"})["id"]
    guess = memory.remember("Sol eats fish on Fridays.", subject="diet", source={"tier": "inferred"})["fact"]

    refused = memory.supersede(said, by=guess["id"], status=409)
    for _ in range(5):
        memory.recall("Sol diet")

    assert refused["code"] == "lower_tier"
    assert memory.standing(said) == ["active"]
    assert memory.get(f"/v1/facts/{guess['id']}")["source"]["tier"] == "inferred"


def test_force_with_a_reason_overrides_and_is_audited(memory: Memory) -> None:
    said = memory.fact("Sol is vegan.", subject="diet", source={"tier": "user"})["id"]

    refused = memory.supersede(said, content="Sol is vegetarian.", source={"tier": "inferred"}, status=409)
    memory.supersede(said, content="Sol is vegetarian.", source={"tier": "inferred"}, force=True)

    assert refused["code"] == "lower_tier"
    (event,) = memory.all("/v1/audit", fact=said, action="superseded")
    assert event["detail"]["forced"] is True
    assert event["actor"] == "key:tester"


def test_what_needed_no_force_is_not_marked_as_forced(memory: Memory) -> None:
    said = memory.fact("Sol is vegan.", subject="diet")["id"]

    memory.supersede(said, content="Sol is vegetarian.", force=True)

    (event,) = memory.all("/v1/audit", fact=said, action="superseded")
    assert "forced" not in event["detail"]


def test_a_batch_item_needs_force_as_a_single_write_does(memory: Memory) -> None:
    said = memory.fact("Sol is vegan.", source={"tier": "user"})["id"]
    item = {"content": "Sol is vegetarian.", "source": {"tier": "inferred"}, "supersedes": [said], "reason": "Guess."}

    refused = memory.batch("Other.", item, status=409)
    memory.batch(item | {"force": True}, status=200)

    assert (refused["code"], refused["index"]) == ("lower_tier", 1)
    assert memory.standing(said) == ["superseded"]


@pytest.mark.parametrize(
    ("asked", "cap", "given"),
    [("system", "user", "user"), ("user", "inferred", "inferred"), ("inferred", "user", "inferred")],
)
def test_a_key_caps_the_tier_that_a_body_claims(
    client_of: Callable[..., Memory], asked: str, cap: str, given: str
) -> None:
    memory = client_of(max_tier=cap)

    answer = memory.remember("Held.", source={"tier": asked})

    assert answer["fact"]["source"]["tier"] == given
    capped = [warning["code"] for warning in answer["warnings"]] == ["tier_capped"]
    assert capped == (asked != given)


def test_a_tier_that_is_left_out_is_observed_at_most(client_of: Callable[..., Memory], memory: Memory) -> None:
    assert memory.fact("One.")["source"]["tier"] == "observed"
    answer = client_of(max_tier="inferred").remember("Two.")

    assert answer["fact"]["source"]["tier"] == "inferred"
    assert answer["warnings"] == []


def test_reaffirming_does_not_lift_the_stored_tier(memory: Memory) -> None:
    fact = memory.fact("Held.", source={"tier": "inferred"})["id"]

    memory.remember("Held.", source={"tier": "user"})

    assert memory.get(f"/v1/facts/{fact}")["source"]["tier"] == "inferred"
    assert memory.history(fact)["observations"][0]["source"]["tier"] == "user"


@pytest.mark.parametrize("confidence", [1.2, -0.1, 90, "0.5", True])
def test_a_confidence_out_of_bounds_is_refused_and_not_clamped(memory: Memory, confidence: object) -> None:
    problem = memory.remember("Held.", confidence=confidence, status=422)

    assert problem["errors"][0]["pointer"] == "/confidence"
    assert memory.texts() == []


def test_a_confidence_that_is_no_number_is_refused(memory: Memory) -> None:
    answer = memory.http.post(
        "/v1/facts",
        content=b'{"content": "Held.", "confidence": NaN}',
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 422
    assert memory.texts() == []
