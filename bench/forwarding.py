"""Forwarding: asked in the words of a decision that was reversed, does recall return what replaced it?

    python -m bench.forwarding [--url URL] [--key KEY]

`forwarding.jsonl` holds reversals of our own in twelve domains (the old fact, the new one in other words, a question
in the old words) and current facts that share words with the questions. All are written into one scope. A question
passes if the new fact is among the first three; no retired text may come back.
"""

import argparse
import json
import uuid
from pathlib import Path
from typing import Any

import httpx

from bench.service import service

DATA = Path(__file__).with_name("forwarding.jsonl")


def load(path: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The reversals, and the current facts around them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [row for row in rows if "old" in row], [row["live"] for row in rows if "live" in row]


def write(client: httpx.Client, scope: str, reversals: list[dict[str, str]], live: list[str]) -> None:
    for text in live:
        client.post("/v1/facts", json={"content": text, "scope": scope}).raise_for_status()
    for reversal in reversals:
        body = {"content": reversal["old"], "scope": scope}
        old = client.post("/v1/facts", json=body).raise_for_status().json()["fact"]["id"]
        body = {"content": reversal["new"], "reason": "It was decided anew."}
        client.post(f"/v1/facts/{old}/supersede", json=body).raise_for_status()


def place(answer: dict[str, Any], text: str) -> int | None:
    """At which place, from 1, the text stands in an answer."""
    texts = [result["fact"]["content"] for result in answer["results"]]
    return texts.index(text) + 1 if text in texts else None


def run(client: httpx.Client, path: Path) -> None:
    reversals, live = load(path)
    scope = f"bench-forwarding-{uuid.uuid4().hex[:6]}"
    write(client, scope, reversals, live)
    retired = {reversal["old"] for reversal in reversals}
    places: list[int | None] = []
    leaks = 0
    for reversal in reversals:
        body = {"query": reversal["question"], "scopes": [scope], "k": 10}
        answer = client.post("/v1/recall", json=body).raise_for_status().json()
        places.append(place(answer, reversal["new"]))
        leaks += any(result["fact"]["content"] in retired for result in answer["results"])
        if places[-1] is None or places[-1] > 3:  # What the measure asks for.
            print(f"  {reversal['id']}: place {places[-1]}: {reversal['question']}")
    for depth in (1, 3, 10):
        share = sum(at is not None and at <= depth for at in places) / len(places)
        print(f"head in the first {depth:>2}: {share:.3f}")
    print(f"retired text returned: {leaks} of {len(reversals)} questions")


def main() -> None:
    parser = argparse.ArgumentParser(description="Forwarding from retired facts to their heads.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--url", help="a running service; without it one is started")
    parser.add_argument("--key", help="an API key, where the service needs one")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    with service(options.url) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        run(client, options.data)


if __name__ == "__main__":
    main()
