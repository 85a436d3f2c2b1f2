"""Which subjects look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.facts.likeness import near_misses, nearest

NAMES = st.text("ab1._", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("team.standup.time", "team_standup_time"),
        ("team.standup.time", "team.standuptime"),
        ("team.standup.time", "standup.team.time"),
        ("team.standup.time", "team.standups.time"),
        ("team.standup.time", "team.stadnup.time"),
        ("team.standup.time", "team.standup.tme"),
        ("team.standup.time", "team.standup.tine"),
        ("depot", "depott"),
        ("日本.税率", "日本/税率"),
    ],
)
def test_these_probably_mean_the_same(one: str, other: str) -> None:
    assert near_misses([one, other]) == {one: [other], other: [one]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("room.1", "room.2"),
        ("team.a.day", "team.b.day"),
        ("printer.10", "printer.100"),
        ("depot.manager", "depot.address"),
        ("standup.time", "standup.room"),
        ("cat", "cot"),
        ("日本.税率", "日本.首都"),
        ("theme", "theme.dark"),
    ],
)
def test_these_are_two_things(one: str, other: str) -> None:
    assert near_misses([one, other]) == {}


@given(st.lists(NAMES, max_size=12))
def test_a_near_miss_is_mutual_and_never_itself(vocabulary: list[str]) -> None:
    found = near_misses(vocabulary)

    for subject, misses in found.items():
        assert subject not in misses
        assert all(subject in found[miss] for miss in misses)


@given(NAMES, st.lists(NAMES, max_size=12))
def test_the_nearest_are_five_others_at_most(subject: str, vocabulary: list[str]) -> None:
    found = nearest(subject, vocabulary)

    assert len(found) <= 5
    assert subject not in found
    assert set(found) <= set(vocabulary)


def test_the_nearest_come_best_first() -> None:
    vocabulary = ["depot", "team.standup.room", "team.standup.time"]

    assert nearest("team.standup.tiem", vocabulary)[0] == "team.standup.time"
