"""Whose facts, and which of them: every filter holds before anything is cut."""

from collections.abc import Callable

import pytest

from tests.clients import Memory


def test_only_the_scopes_asked_for_are_searched(memory: Memory) -> None:
    memory.fact("The build server is Quince.", scope="team/a")
    memory.fact("The build server is Medlar.", scope="team/b")

    assert memory.recalled("build server", scopes=["team/b"]) == ["The build server is Medlar."]


def test_where_two_scopes_answer_the_earlier_one_leads(memory: Memory) -> None:
    memory.fact("The build server is Quince.", scope="team/a", subject="build.server")
    memory.fact("The build server is Medlar.", scope="team/b", subject="build.server")

    assert memory.recalled("build server", scopes=["team/a", "team/b"])[0] == "The build server is Quince."
    assert memory.recalled("build server", scopes=["team/b", "team/a"])[0] == "The build server is Medlar."


def test_a_key_recalls_only_from_scopes_that_it_may_read(memory: Memory, client_of: Callable[..., Memory]) -> None:
    memory.fact("The build server is Quince.", scope="team/a")
    memory.fact("The build server is Medlar.", scope="team/b")
    memory.fact("The build server is Sloe.", scope="private")
    reader = client_of(roles=["read"], read_scopes=["team/*"])

    assert set(reader.recalled("build server")) == {"The build server is Quince.", "The build server is Medlar."}
    reader.post("/v1/recall", {"query": "build server", "scopes": ["private"]}, status=403)


def test_another_namespace_is_never_searched(memory: Memory, stranger: Memory) -> None:
    memory.fact("The build server is Quince.")

    assert stranger.recalled("build server Quince") == []


def test_a_tag_matches_whole(memory: Memory) -> None:
    memory.fact("Login uses the first method.", tags=["auth"])
    memory.fact("Login uses the second method.", tags=["authentication"])
    memory.fact("Login uses the third method.", tags=["pre-auth", "AUTH"])

    assert memory.recalled("login method", tags=["auth"]) == ["Login uses the first method."]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"kinds": ["event"]}, {"The pump was repaired."}),
        ({"kinds": ["state", "note"]}, {"The pump is green.", "A pump needs oil."}),
        ({"subject": "Pump.Colour"}, {"The pump is green."}),
        ({"min_tier": "user"}, {"The pump is green."}),
    ],
)
def test_kind_subject_and_tier_narrow_the_search(memory: Memory, filters: dict[str, object], found: set[str]) -> None:
    memory.fact("The pump was repaired.", kind="event")
    memory.fact("The pump is green.", subject="pump.colour", source={"tier": "user"})
    memory.fact("A pump needs oil.")

    assert set(memory.recalled("pump", **filters)) == found


def test_rows_that_a_filter_drops_take_no_places(memory: Memory) -> None:
    drowned = [{"content": f"The vault code of cabinet {n} is secret.", "tags": ["noise"]} for n in range(300)]
    memory.batch(*drowned)
    memory.fact("Cabinets have codes.", tags=["signal"])

    assert memory.recalled("vault code of cabinet", tags=["signal"], k=5) == ["Cabinets have codes."]
