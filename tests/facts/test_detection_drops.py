"""What a replacement would silently lose."""

import pytest

from app.facts.detection import dropped_values


def test_a_change_of_time_drops_the_room_and_the_chair() -> None:
    lost = dropped_values("Standup moved to 9:00", "Standup is at 9:30 in the Oak room, chaired by Priya")

    assert lost == ("Oak", "Priya")


def test_a_restatement_drops_the_phrases_that_it_leaves_out() -> None:
    lost = dropped_values("Standup is at 9:00", "Standup is at 9:30 in the Oak room, chaired by Priya")

    assert lost == ("in the Oak room", "chaired by Priya")


def test_a_dropped_exception_is_named() -> None:
    held = "Refunds need manager sign-off, except for orders under 20 euro"

    assert dropped_values("Refunds need manager sign-off", held) == ("except for orders under 20 euro",)


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("goaltender plays the sport of ice hockey", "goaltender plays the sport of pesäpallo"),
        ("Dashboard theme is dark", "Dashboard theme is light"),
        ("Web lookups go through Brightbox.", "Web lookups go through Larkfeed."),
        ("Web lookups go through Brightbox.", "Larkfeed handles web lookups now."),
        ("VAT on tickets is 7 percent.", "VAT on tickets is 13 percent."),
        ("Standup is at 9:30 in the Oak room", "Standup is at 9:00 in the Elm room"),
        ("Read cap is 300 calls a minute.", "The limit was raised to 900"),
        ("Guests may use the wifi", "Guests may not use the wifi"),
        ("Dana lives in Hamburg", "Dana moved to Berlin"),
        ("value 3", "value 7"),
    ],
)
def test_what_is_repeated_or_replaced_in_its_slot_is_not_dropped(held: str, new: str) -> None:
    assert dropped_values(new, held) == ()


def test_one_new_name_replaces_one_held_name_only() -> None:
    lost = dropped_values("Tickets belong to Cleo", "Routing: Bram first, then Ilse")

    assert len(lost) == 1


def test_nothing_is_dropped_by_the_same_text() -> None:
    text = "Standup is at 9:30 in the Oak room, chaired by Priya"

    assert dropped_values(text, text) == ()
