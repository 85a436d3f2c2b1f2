"""The figures that the comparison must reach on labelled pairs and on replaced facts."""

import json
import os
from itertools import combinations
from pathlib import Path

import pytest

from app.facts.detection import compare, key_terms
from bench.contradictions import judge_offline, measure, read_pairs, run

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PALIMPSEST_SHARED", ROOT.parent / "shared"))
OWN = ROOT / "bench" / "contradictions.own.jsonl"
LABELLED = SHARED / "data" / "contradiction-pairs.jsonl"
REPLACED = SHARED / "data" / "factconsolidation-6k.json"

needs_labelled = pytest.mark.skipif(not LABELLED.exists(), reason=f"{LABELLED} is not there")
needs_replaced = pytest.mark.skipif(not REPLACED.exists(), reason=f"{REPLACED} is not there")


def check(figures: dict[str, float]) -> None:
    assert figures["retirement precision"] >= 0.95
    assert figures["retirement recall"] >= 0.80
    assert figures["conflict shown on conflict"] >= 0.80
    assert figures["conflict shown on none"] <= 0.05


def test_pairs_that_no_rule_was_developed_on_are_told_apart() -> None:
    pairs = read_pairs(OWN, "report")

    check(measure(run(pairs, judge_offline, "auto_inferred")))


def test_suggesting_retires_nothing_and_shows_what_retiring_would() -> None:
    pairs = read_pairs(OWN, "report")

    figures = measure(run(pairs, judge_offline, "suggest"))

    assert figures["retirements"] == 0
    assert figures["conflict shown on supersedes"] >= 0.80


@needs_labelled
def test_the_labelled_pairs_are_told_apart() -> None:
    figures = measure(run(read_pairs(LABELLED, None), judge_offline, "auto_inferred"))

    check(figures)
    assert figures["retirements on none"] == 0


@pytest.mark.parametrize("path", [OWN, pytest.param(LABELLED, marks=needs_labelled)], ids=["own", "labelled"])
def test_pairs_with_a_finding_share_a_key_term(path: Path) -> None:
    found = [pair for pair in read_pairs(path, None) if compare(pair.later, pair.earlier)]

    apart = [pair for pair in found if not set(key_terms(pair.later)) & set(key_terms(pair.earlier))]

    assert apart == []


@needs_replaced
def test_replaced_facts_are_retired_and_no_other_fact_is() -> None:
    facts = json.loads(REPLACED.read_text(encoding="utf-8"))["facts"]

    retired = [
        earlier["subject"] == later["subject"]
        for earlier, later in combinations(facts, 2)
        if (finding := compare(later["text"], earlier["text"])) is not None and finding.retires
    ]

    assert retired.count(False) == 0
    assert retired.count(True) >= 150
