"""The terms that a text is found by."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analyzer import (
    MAX_QUERY_TERMS,
    MAX_TERM_LENGTH,
    Terms,
    analyze,
    analyze_query,
    query_words,
    tsvector_literal,
)


def finds(query: str, text: str) -> bool:
    """Whether every word of the query is found in the text, whole or in its parts."""
    terms = analyze(text).counts.keys()
    words = query_words(query)
    return bool(words) and all(terms >= set(word.parts) or not terms.isdisjoint(word.wholes) for word in words)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C++", "Build scripts are in C++ and call ./tools/gen_map.sh."),
        ("gen_map", "Build scripts are in C++ and call ./tools/gen_map.sh."),
        ("gen map", "Build scripts are in C++ and call ./tools/gen_map.sh."),
        ("tools/gen_map.sh", "Build scripts are in C++ and call ./tools/gen_map.sh."),
        ("-fdx", "Never run git clean -fdx in /srv/app/releases."),
        ("/srv/app/releases", "Never run git clean -fdx in /srv/app/releases."),
        ("releases", "Never run git clean -fdx in /srv/app/releases."),
        ("tenant key", "resolveTenantKey() throws when the header is absent."),
        ("resolveTenantKey", "resolveTenantKey() throws when the header is absent."),
        ("22.4.1", "Pinned to node 22.4.1 and Go."),
        ("Go", "Pinned to node 22.4.1 and Go."),
        ("GB/s", "rotate keys in infra/prod (GB/s limit)."),
        ("3.8.1", "Released as v3.8.1."),
        ("github", "The code is on GitHub."),
        ("GitHub", "the code is on github"),
        ("ERR1042", "It failed with ERR-1042."),
        ("preauth", "The pre-auth step."),
        ("pre auth", "The pre-auth step."),
        ("ops@example.org", "Write to <ops@example.org>."),
        ("example.org", "See https://example.org/a?b=1."),
        ("9 am", "It opens at 9am."),
        ("1000", "It holds 1,000 crates."),
        ("US", "Shipped from the U.S. only."),
        (".env", "Keys live in .env, not in code."),
        ("std::vector", "It returns std::vector<int>."),
        ("C#", "Written in C#, mostly."),
        ("O'Brien", "obrien signed it"),
    ],
)
def test_a_name_with_joints_is_found_whole_and_in_its_pieces(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("蓝湖", "用户服务器部署在蓝湖机房"),
        ("湖", "用户服务器部署在蓝湖机房"),
        ("折り紙", "昨日は折り紙の練習をした"),
        ("회의", "오늘 회의는 취소되었다"),
        ("サーバー", "新しいサーバーを置いた"),
        ("ปลา", "แมวกินปลา"),
        ("विभाग", "स्वास्थ्य विभाग खुला है"),
        ("здание", "Это старое здание"),
        ("données", "Les données sont ici"),
        ("👍", "ship it 👍🏽"),
        ("🇩🇪", "made in 🇩🇪"),
        ("345", "الغرفة ٣٤٥"),
    ],
)
def test_a_word_of_any_script_is_found(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize("word", ["café", "Löfven", "Dvořák", "Ångström", "naïve", "Łódź", "Straße", "İstanbul"])
def test_accents_and_composition_do_not_hide_a_word(word: str) -> None:
    assert finds(word, unicodedata.normalize("NFD", word))
    assert finds(unicodedata.normalize("NFD", word), word)
    assert finds(word.upper(), word)


def test_a_word_without_its_accent_finds_the_accented_one_and_the_accent_still_counts() -> None:
    assert "cafe" in analyze("Café").counts
    assert analyze_query("Café") == ("café", "cafe")


def test_inflected_forms_meet() -> None:
    assert finds("deploying releases", "We deployed the release.")


def test_polarity_is_kept_in_every_spelling() -> None:
    for text in (
        "it does not start",
        "it doesn't start",
        "it doesn’t start",
        "it cannot start",
        "it won't start",
    ):
        assert "not" in analyze_query(text)

    assert analyze_query("never without no nor") == ("never", "without", "no", "nor")


def test_single_letters_and_digits_are_kept() -> None:
    assert analyze_query("Team A room 4") == ("team", "a", "room", "4")


def test_stop_words_leave_a_query_that_has_other_words() -> None:
    assert analyze_query("who changes the safe combination in a year") == ("chang", "safe", "combin", "year")


def test_a_query_of_stop_words_alone_still_asks_for_them() -> None:
    assert analyze_query("the who") == ("the", "who")
    assert analyze_query("It?") == ("it",)


def test_a_document_keeps_its_stop_words() -> None:
    assert finds("the who", "Will is on call; The Who play on Saturday.")


@pytest.mark.parametrize("query", ["(((", "<->", "%", "!", "\\\\", "…", "   "])
def test_punctuation_alone_asks_for_nothing(query: str) -> None:
    assert analyze_query(query) == ()


@pytest.mark.parametrize(
    ("query", "identifiers"),
    [
        ("error E1042 on build 4.17b", ("e1042", "4.17b", "17b")),
        ("call resolveTenantKey", ("resolvetenantkey",)),
        ("run git clean -fdx", ("-fdx",)),
        ("the C++ guide", ("c++",)),
        ("a long-running job", ()),
        ("the 3 cafés", ()),
        ("where is bay 4?", ("4",)),
        ("in 2021", ("2021",)),
    ],
)
def test_exact_names_are_told_from_words(query: str, identifiers: tuple[str, ...]) -> None:
    assert tuple(name for word in query_words(query) for name in word.identifiers) == identifiers


def test_frequencies_and_length_count_words() -> None:
    terms = analyze("Crate crate crates holds bolts")

    assert terms == Terms({"crate": 3, "hold": 1, "bolt": 1}, 5)


def test_the_literal_labels_frequencies_and_escapes_quotes_and_backslashes() -> None:
    terms = Terms({"one": 1, "two": 2, "four": 4, "many": 9, "o'b\\c": 1}, 17)

    assert tsvector_literal(terms) == r"'one':1 'two':1C 'four':1B 'many':1A 'o''b\\c':1"


def test_long_words_are_cut_and_stay_apart() -> None:
    first, second = analyze("x" * 5_000 + "a").counts, analyze("x" * 5_000 + "b").counts

    assert first.keys() != second.keys()
    assert max(map(len, first)) <= MAX_TERM_LENGTH


def test_a_text_never_exceeds_what_a_tsvector_holds() -> None:
    text = " ".join(f"{number:x}".rjust(60, "軸") for number in range(6_000))

    assert len(tsvector_literal(analyze(text)).encode()) < 1_048_575


def test_a_query_is_capped() -> None:
    assert len(analyze_query(" ".join(f"w{chr(97 + n % 26)}{'x' * n}" for n in range(500)))) == MAX_QUERY_TERMS


@given(st.text(max_size=300))
def test_any_text_gives_sound_terms(text: str) -> None:
    terms = analyze(text)

    assert all(term and len(term) <= MAX_TERM_LENGTH and not term.isspace() for term in terms.counts)
    assert all(count > 0 for count in terms.counts.values())
    assert analyze(text) == terms


@given(st.text(max_size=100))
def test_whatever_a_query_asks_for_its_own_text_has(text: str) -> None:
    assert analyze(text).counts.keys() >= set(analyze_query(text))


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=1, max_size=20))
def test_no_word_of_any_language_is_dropped(word: str) -> None:
    assert analyze(word).counts
