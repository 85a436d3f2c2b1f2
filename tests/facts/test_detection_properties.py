"""What holds of the comparison for every text."""

from hypothesis import example, given
from hypothesis import strategies as st

from app.facts.detection import compare, dropped_values, key_terms, normalise
from app.facts.detection.frames import parse
from app.facts.detection.tokens import MAX_TOKENS

WORDS = st.sampled_from(
    "the a Team A B standup is at 9:30 9:00 500 GB 0.5 TB not no longer never can't moved to by for in Oak Priya "
    "$99 three 1st June , ; . ? : – except also still ran 日本 は 税率 café ☕ C++ api-gateway 3.1 °C per %".split()
)
STATEMENTS = st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=80)


@given(STATEMENTS, STATEMENTS)
def test_no_text_makes_the_comparison_fail(new: str, held: str) -> None:
    finding = compare(new, held)

    assert finding is None or finding.detail.strip()
    assert all(isinstance(term, str) and term for term in key_terms(new))
    assert isinstance(dropped_values(new, held), tuple)


@given(STATEMENTS)
@example("Guests may not use the wifi, which is no longer free; it was replaced by nothing")
def test_a_text_says_nothing_about_itself(text: str) -> None:
    assert compare(text, text) is None
    assert compare(text + " ", text) is None
    assert dropped_values(text, text) == ()


@given(STATEMENTS)
@example("ΐ")
@example("İstanbul. !")
@example("… 。 .")
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(min_size=200, max_size=400), st.integers(min_value=50, max_value=100))
def test_only_so_much_of_a_long_text_is_compared(text: str, times: int) -> None:
    long = (text * times)[:20_000]

    statement = parse(long)

    assert sum(len(clause.tokens) for clause in statement.clauses) <= 2 * MAX_TOKENS
    assert compare(long, "Standup is at 9:30") is None or compare(long, long) is None


def test_texts_of_full_length_of_one_sign_are_read() -> None:
    for sign in ("a", "1", "é", "日", "-", "a-", "1.", "'s ", "\u0301", "９", "💥", "\ud7ff"):
        text = (sign * 20_000)[:20_000]

        assert compare(text, "Standup is at 9:30") is None
