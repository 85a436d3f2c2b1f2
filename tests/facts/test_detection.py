"""What a new statement says about a held one: replaced, contradicted, narrowed, or nothing."""

import pytest

from app.facts.detection import Finding, compare, key_terms, normalise


def found(new: str, held: str) -> Finding:
    finding = compare(new, held)

    assert finding is not None, f"{new!r} says nothing about {held!r}"
    return finding


@pytest.mark.parametrize(
    ("held", "new", "removed", "added"),
    [
        ("Release is on June 14", "Release is on June 15", "June 14", "June 15"),
        ("Read cap is 300 calls a minute.", "Read cap is 900 calls a minute.", "300", "900"),
        ("The kiln is rented by the Krause family", "The kiln is rented by the Yilmaz family", "Krause", "Yilmaz"),
        ("Rui works in the Porto office", "Rui now works in the Braga office", "Porto", "Braga"),
        ("Bed 12 is occupied", "Bed 12 is vacant", "occupied", "vacant"),
        ("Mira speaks the language of Basque", "Mira speaks the language of Breton", "Basque", "Breton"),
        ("We use Slack for standups", "We use Zulip for standups", "Slack", "Zulip"),
        ("Export format: CSV", "Export format: Parquet", "CSV", "Parquet"),
    ],
)
def test_another_value_of_a_single_valued_state_retires_the_held_one(
    held: str, new: str, removed: str, added: str
) -> None:
    finding = found(new, held)

    assert (finding.kind, finding.retires) == ("value", True)
    assert (finding.removed, finding.added) == ((removed,), (added,))


def test_a_holder_of_an_office_is_replaced_in_either_word_order() -> None:
    finding = found("Jonas is the on-call lead", "The on-call lead is Marta")

    assert (finding.retires, finding.removed, finding.added) == (True, ("Marta",), ("Jonas",))


def test_a_change_verb_gives_the_new_value_of_the_same_subject() -> None:
    finding = found("Team standup moved to 9:00", "Team standup is at 9:30")

    assert (finding.kind, finding.retires, finding.added) == ("value", True, ("9:00",))


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Mina speaks Dutch", "Mina speaks Farsi"),
        ("The exporter supports Avro", "The exporter supports Parquet"),
        ("Guests may use the sauna", "Guests may use the pool"),
        ("Elif is a member of the risk board", "Elif is a member of the audit board"),
        ("Ida is a nurse", "Ida is a beekeeper"),
        ("Rui has a forklift licence", "Rui has a motorcycle licence"),
        ("The fund holds bonds", "The fund also holds gold"),
        ("The importer reads CSV and JSON", "The importer reads CSV, JSON and XML"),
    ],
)
def test_one_of_many_values_stands_beside_another(held: str, new: str) -> None:
    assert compare(new, held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Ran the migration on host 1", "Ran the migration on host 2"),
        ("Dr Lund examined the left knee", "Dr Lund examined the right knee"),
        ("Order 88 was delayed on Tuesday", "Order 88 was delayed on Friday"),
        ("Depot manager was Bram.", "Depot manager is Ilse."),
        ("The team was evaluating a move to Oslo", "The move to Oslo is under way"),
        ("Dana reports to Felix", "Dana still reports to Felix"),
        ("Is the kiln free on Sunday?", "The kiln is reserved on Sunday"),
    ],
)
def test_events_developments_continuations_and_questions_are_quiet(held: str, new: str) -> None:
    assert compare(new, held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Team A deploys on Monday", "Team B deploys on Friday"),
        ("C++ guide is 3 pages", "C guide is 4 pages"),
        ("Python 3.1 support", "Python 3.2 support"),
        ("Python 3.1 is supported", "Python 3.2 is supported"),
        ("Team A deploy day", "Team B deploy day"),
        ("api runs on port 8100", "api-gateway runs on port 9100"),
        ("Ana is allergic to walnuts", "Anatole is allergic to shellfish"),
        ("Priya Nair leads the Lisbon office", "Priya Menon leads the Oslo office"),
        ("Café opens at 8:00", "Cafe opens at 9:00"),
        ("Width of the left panel is 320", "Width of the right panel is 480"),
        ("日本の税率", "日本の首都"),
    ],
)
def test_different_subjects_are_never_taken_for_one(held: str, new: str) -> None:
    assert compare(new, held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Uploads are limited to ten files for trials", "Uploads are limited to fifty files for partners"),
        ("The pool is open until 20:00 on weekdays", "The pool is open until 18:00 on weekends"),
        ("Tracing is enabled in staging", "Tracing is enabled in production"),
    ],
)
def test_statements_about_different_scopes_stand_side_by_side(held: str, new: str) -> None:
    assert compare(new, held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Disk quota is 500 GB", "Disk quota is 0.5 TB"),
        ("The roast rests for 90 minutes", "The roast rests for 1.5 hours"),
        ("Entry costs $20", "Entry costs 20 dollars"),
        ("Five people staff the kiosk", "5 people staff the kiosk"),
        ("Doors open at 2 pm", "Doors open at 14:00"),
        ("The fee is 1,500,000 euro", "The fee is 1.5 million euro"),
        ("Backups run every day", "Backups run daily"),
    ],
)
def test_the_same_amount_in_other_words_is_quiet(held: str, new: str) -> None:
    assert compare(new, held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("The probe interval is 5 s", "The probe interval is 5 ms"),
        ("The fee is 20 euro", "The fee is 20 dollars"),
        ("The pump runs at 50 ml per hour", "The pump runs at 50 ml per minute"),
    ],
)
def test_the_same_number_in_another_unit_is_a_unit_conflict(held: str, new: str) -> None:
    finding = found(new, held)

    assert (finding.kind, finding.retires) == ("unit", False)


def test_a_number_that_counts_the_subject_is_a_conflict() -> None:
    finding = found("Five people staff the kiosk", "Three people staff the kiosk")

    assert (finding.kind, finding.retires) == ("value", False)


POLAR = [
    ("Guests may use the office wifi", "Guests may not use the office wifi"),
    ("Guests can use the office wifi", "Guests can't use the office wifi"),
    ("The job does run at night", "The job doesn't run at night"),
    ("The gate will open at night", "The gate won’t open at night"),
    ("The push gate blocks tags", "The push gate doesn't block tags"),
    ("The agent writes to disk every hour", "The agent never writes to disk"),
    ("All deploys need approval", "No deploys need approval"),
    ("Everybody has access", "Nobody has access"),
    ("Mira loves trail running", "Mira can't stand trail running"),
    ("The firm accepts criminal cases", "The firm refuses criminal cases"),
    ("The loan is secured", "The loan is unsecured"),
    ("Orders ship with insurance", "Orders ship without insurance"),
]


@pytest.mark.parametrize(("one", "other"), [*POLAR, *((other, one) for one, other in POLAR)])
def test_a_denial_is_a_polarity_conflict_whichever_was_written_first(one: str, other: str) -> None:
    finding = found(other, one)

    assert (finding.kind, finding.retires) == ("polarity", False)


def test_no_longer_retires_what_it_ends() -> None:
    finding = found("Push gate no longer blocks the default branch", "Push gate blocks the default branch")

    assert (finding.kind, finding.retires) == ("reversal", True)


def test_an_affirmation_does_not_retire_the_statement_that_it_ended() -> None:
    finding = found("Push gate blocks the default branch", "Push gate no longer blocks the default branch")

    assert (finding.kind, finding.retires) == ("polarity", False)


def test_no_longer_for_a_part_does_not_retire_the_whole() -> None:
    finding = found("Badges no longer open the lab for contractors", "Badges open the lab")

    assert finding.retires is False


def test_an_ability_is_not_a_denial() -> None:
    assert compare("Gate block", "Gate can block") is None


def test_a_denial_inside_another_statement_is_quiet() -> None:
    held = "Snapshots are taken from the replica"

    assert compare("Do not resize disks while snapshots are taken from the replica", held) is None


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Database choice: Postgres for everything",
         "We are moving persistence to SQLite. The Postgres-for-everything plan is abandoned."),
        ("Deploys are frozen on Fridays", "The Friday deploy freeze is rescinded"),
        ("Partners must countersign all settlements", "The partner countersignature rule for settlements is repealed"),
        ("The night train to Split runs daily", "The night train to Split has been discontinued"),
        ("We use Ledgerly for payroll", "Ledgerly was replaced by Paylight for payroll"),
        ("We use Jenkins for nightly builds", "We switched from Jenkins to Buildkite for nightly builds"),
        ("The chess club uses the library basement", "The chess club has abandoned the library basement"),
        ("Ana Reyes takes warfarin", "Ana Reyes has stopped taking warfarin"),
        ("The lab sends samples to Medilux", "We moved away from Medilux completely; the lab uses BioNord"),
        ("Nora works at Hillside School", "Nora has left Hillside School"),
    ],
)  # fmt: skip
def test_a_statement_that_declares_the_held_one_over_retires_it(held: str, new: str) -> None:
    finding = found(new, held)

    assert (finding.kind, finding.retires) == ("reversal", True)


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("The importer reads CSV", "no longer needed import"),
        ("The start page lists open jobs", "The obsolete jobs widget was deleted from the profile page"),
        ("The old gateway was replaced by the new gateway in March", "The new gateway logs every request"),
        ("The pricing page shows three plans", "The legacy plan was abandoned by most customers"),
        ("Alerts go to the chat channel", "Alerts are grouped by service instead of being sent one by one"),
        ("Deploys are frozen on Fridays", "The Friday deploy freeze has not been lifted"),
        ("Deploys are frozen on Fridays", "The Friday deploy freeze will be lifted"),
        ("Deploys are frozen on Fridays", "We may lift the Friday deploy freeze"),
    ],
)
def test_a_cue_word_about_something_else_or_not_yet_true_is_quiet(held: str, new: str) -> None:
    assert compare(new, held) is None


def test_a_change_that_leaves_details_unsaid_is_a_partial_conflict() -> None:
    finding = found("Standup moved to 9:00", "Standup is at 9:30 in the Oak room, chaired by Priya")

    assert (finding.kind, finding.retires) == ("partial", False)
    assert "in the Oak room" in finding.detail


def test_a_shorter_restatement_with_another_value_does_not_bury_the_details() -> None:
    finding = found("Standup is at 9:00", "Standup is at 9:30 in the Oak room, chaired by Priya")

    assert (finding.kind, finding.retires) == ("partial", False)


def test_an_added_exception_is_a_partial_conflict() -> None:
    finding = found("Merges need two reviews except for typo fixes", "Merges need two reviews")

    assert (finding.kind, finding.retires, finding.added) == ("partial", False, ("except for typo fixes",))


def test_a_title_for_a_part_is_only_suggested() -> None:
    finding = found("Deploy target for staging", "Deploy target")

    assert (finding.kind, finding.retires) == ("partial", False)


def test_a_broader_restatement_is_quiet() -> None:
    held = "Refunds need manager sign-off, except for orders under 20 euro"

    assert compare("Refunds need manager sign-off", held) is None


def test_titles_of_one_word_or_one_label_are_too_coarse() -> None:
    assert compare("Auth token rotation", "Auth") is None
    assert compare("Resolved failure: Exit code 2", "Resolved failure: Exit code 1") is None


def test_one_clause_does_not_retire_a_statement_of_several() -> None:
    finding = found("Standup is at 9:00", "Standup is at 9:30. The facilitator is Priya.")

    assert (finding.kind, finding.retires) == ("partial", False)


def test_other_words_for_the_same_thing_with_another_date_are_a_conflict() -> None:
    finding = found("Starting in April, pay goes out on the 25th", "Salaries are paid on the 28th")

    assert (finding.kind, finding.retires) == ("value", False)


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ("Die Frist beträgt 30 Tage", "Die Frist beträgt 60 Tage"),
        ("Le délai est de 30 jours", "Le délai est de 60 jours"),
        ("El límite es 10 GB", "El límite es 20 GB"),
        ("Thời hạn là 30 ngày", "Thời hạn là 60 ngày"),
        ("日本の税率は10%", "日本の税率は8%"),
        ("日本の首都は東京", "日本の首都は京都"),
    ],
)
def test_another_language_gets_a_conflict_and_never_a_retirement(held: str, new: str) -> None:
    finding = found(new, held)

    assert (finding.kind, finding.retires) == ("value", False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Deploys are frozen", "  DEPLOYS  are\tfrozen. "),
        ("Stra\u00dfe 5", "STRASSE 5"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("\uff21\uff22\uff23", "abc"),
        ("税率は10%。", "税率は10%"),
    ],
)
def test_texts_that_differ_in_form_only_have_one_identity(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(("one", "other"), [("Café", "Cafe"), ("C++", "C"), ("v3.8.1", "v3.8.2"), ("☕", "🍵")])
def test_texts_that_differ_in_what_they_say_keep_their_identity(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_key_terms_keep_digits_letters_and_other_scripts() -> None:
    assert "#3.1" in key_terms("Python 3.1 support")
    assert {"日", "本"} <= set(key_terms("日本の税率"))
    assert key_terms("Team A") != key_terms("Team B")


def test_synonyms_share_a_key_term() -> None:
    assert set(key_terms("Invoices are emailed")) & set(key_terms("the bills go out"))


def test_a_statement_of_function_words_still_has_key_terms() -> None:
    assert key_terms("It is on") != ()
