"""Does `relevance` tell an answer from no answer? Measured on questions that it was not fitted on.

    python -m bench.relevance [--url URL] [--key KEY]

`questions.jsonl` holds facts with questions that they answer, and questions that none of them answers. Every second
question of both kinds is kept back. The other half gives the coefficients of a logistic model of the cosine and the
covered share of the question (the true answer of each question against the best wrong text); what is printed for each
floor is the kept half: the questions whose answer lies above it, and those without an answer where something does.
"""

import argparse
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from bench.service import service

DATA = Path(__file__).with_name("questions.jsonl")
FLOORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_STEPS, _RIDGE = 200, 1e-3


@dataclass(frozen=True, slots=True)
class Seen:
    """A text that came back for a question: what was measured, and whether it is the answer."""

    cosine: float
    share: float
    relevance: float
    right: bool


def ask(client: httpx.Client, scope: str, question: str, answer: str | None) -> tuple[list[Seen], bool]:
    """What came back, and whether the answer came first."""
    body = {"query": question, "scopes": [scope], "k": 100, "explain": True}
    results = client.post("/v1/recall", json=body).raise_for_status().json()["results"]
    seen = [_seen(result, answer) for result in results]
    return seen, bool(seen) and seen[0].right


def _seen(result: dict[str, Any], answer: str | None) -> Seen:
    scores = result["scores"]
    right = result["fact"]["content"] == answer
    return Seen(scores["vector"] or 0.0, scores["share"], result["relevance"], right)


def fit(rows: list[Seen]) -> NDArray[np.float64]:
    """Bias and the coefficients of cosine and share, by Newton's method with a small ridge."""
    features = np.array([[1.0, max(row.cosine, 0.0), row.share] for row in rows])
    right = np.array([float(row.right) for row in rows])
    found = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-features @ found))
        slope = features.T @ (likely - right) / len(rows) + _RIDGE * found
        curve = (features * (likely * (1 - likely))[:, None]).T @ features / len(rows)
        found = found - np.linalg.solve(curve + _RIDGE * np.eye(len(found)), slope)
    return found


def telling(answers: list[list[Seen]]) -> list[Seen]:
    """Of each question, the answer and the best wrong text: those are what a floor must part."""
    rows: list[Seen] = []
    for seen in answers:
        wrong = [one for one in seen if not one.right]
        rows += [one for one in seen if one.right]
        rows += [max(wrong, key=lambda one: one.relevance)] if wrong else []
    return rows


def run(client: httpx.Client, path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    scope = f"bench-relevance-{uuid.uuid4().hex[:6]}"
    held = [row for row in rows if "fact" in row]
    facts = [{"content": row["fact"], "scope": scope} for row in held]
    client.post("/v1/facts/batch", json={"facts": facts}).raise_for_status()
    asked = [(question, row["fact"]) for row in held for question in row["questions"]]
    known = [ask(client, scope, question, fact) for question, fact in asked]
    unknown = [ask(client, scope, row["unanswerable"], None)[0] for row in rows if "unanswerable" in row]
    bias, cosine, share = fit(telling([seen for seen, _ in known[::2]] + unknown[::2]))
    print(f"fitted on one half: {bias:.2f} + {cosine:.2f} cosine + {share:.2f} share")
    print(f"answer first: {sum(first for _, first in known)} of {len(known)}")
    print("on the other half, floor: answers kept, questions without an answer that keep something")
    for floor in FLOORS:
        kept = np.mean([any(one.right and one.relevance >= floor for one in seen) for seen, _ in known[1::2]])
        fooled = np.mean([any(one.relevance >= floor for one in seen) for seen in unknown[1::2]])
        print(f"  {floor:.1f}   {kept:.2f}   {fooled:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Calibration of relevance.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--url", help="a running service; without it one is started")
    parser.add_argument("--key", help="an API key, where the service needs one")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    with service(options.url) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        run(client, options.data)


if __name__ == "__main__":
    main()
