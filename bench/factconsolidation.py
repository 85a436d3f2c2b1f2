"""FactConsolidation (MemoryAgentBench, arXiv 2507.05257) over HTTP: facts that change, and which value is recalled.

    python -m bench.factconsolidation --data PATH [--url URL] [--arm off|subject|inferred] [--hops 4]

The facts are written in their serial order, one request each, then every question is asked once. Three arms: `off`
writes without subjects under the policy `explicit`, the control that shows what an append-only memory does;
`subject` gives each fact the address in the data file; `inferred` gives none, under `auto_inferred`.

The groups in the data file (one entity, one relation) are used for scoring only. A group is retired when its last
fact is current and no earlier one is. A false retirement is a fact that is the last of its group and yet retired.
A leak is a question for which an earlier fact of the question's own group comes back.
"""

import argparse
import json
import statistics
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.service import service

ARMS = {"off": "explicit", "subject": "auto_key", "inferred": "auto_inferred"}
K = 10


@dataclass(frozen=True, slots=True)
class Score:
    """What one arm reached with one set of questions."""

    top_1: float
    any_5: float
    any_10: float
    leaks: int
    stale_anywhere: int
    p50_ms: float
    p95_ms: float


def write(client: httpx.Client, facts: list[dict[str, Any]], scope: str, arm: str) -> float:
    """Write the facts in order; the seconds that it took."""
    client.patch("/v1/namespaces/default", json={"policy": ARMS[arm]}).raise_for_status()
    started = time.perf_counter()
    for fact in facts:
        body: dict[str, Any] = {"content": fact["text"], "scope": scope}
        if arm == "subject":
            body["subject"] = fact["subject"]
        client.post("/v1/facts", json=body).raise_for_status()
    return time.perf_counter() - started


def current_texts(client: httpx.Client, scope: str) -> set[str]:
    texts: set[str] = set()
    cursor = None
    while True:
        params: dict[str, Any] = {"scope": scope, "limit": 200} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/facts", params=params).raise_for_status().json()
        texts.update(item["content"] for item in page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return texts


def groups_of(facts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """By address, the texts in the order in which they were stated, each once."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for fact in facts:
        if fact["text"] in groups[fact["subject"]]:
            groups[fact["subject"]].remove(fact["text"])
        groups[fact["subject"]].append(fact["text"])
    return groups


def group_of_question(question: dict[str, Any], groups: dict[str, list[str]]) -> list[str]:
    """The group that answers the question: its current fact holds the answer, its entity stands in the question."""
    asked = question["question"].casefold()
    fitting = [
        (len(subject.partition(" / ")[0]), subject)
        for subject, texts in groups.items()
        if subject.partition(" / ")[0] in asked and holds(texts[-1], question["answers"])
    ]
    return groups[max(fitting)[1]] if fitting else []


def holds(text: str, answers: list[str]) -> bool:
    return any(answer.casefold() in text.casefold() for answer in answers)


def ask(
    client: httpx.Client, questions: list[dict[str, Any]], scope: str, groups: dict[str, list[str]], hops: int
) -> Score:
    stale = {text for texts in groups.values() for text in texts[:-1]}
    found = {1: 0, 5: 0, 10: 0}
    leaks = stale_anywhere = 0
    times: list[float] = []
    for question in questions:
        body: dict[str, Any] = {"query": question["question"], "scopes": [scope], "k": K, "hops": hops}
        started = time.perf_counter()
        answer = client.post("/v1/recall", json=body).raise_for_status().json()
        times.append((time.perf_counter() - started) * 1000)
        texts = [result["fact"]["content"] for result in answer["results"]]
        for depth in found:
            found[depth] += any(holds(text, question["answers"]) for text in texts[:depth])
        own = group_of_question(question, groups)
        leaks += any(text in own[:-1] for text in texts)
        stale_anywhere += any(text in stale for text in texts)
    cuts = statistics.quantiles(times, n=20)
    share = {depth: hits / len(questions) for depth, hits in found.items()}
    return Score(share[1], share[5], share[10], leaks, stale_anywhere, cuts[9], cuts[18])


def run(client: httpx.Client, data: dict[str, Any], arm: str, hops: int) -> None:
    facts, scope = data["facts"], f"bench-{arm}-{uuid.uuid4().hex[:6]}"
    groups = groups_of(facts)
    seconds = write(client, facts, scope, arm)
    current = current_texts(client, scope)
    changing = [texts for texts in groups.values() if len(texts) > 1]
    retired = sum(texts[-1] in current and not current.intersection(texts[:-1]) for texts in changing)
    false = sum(texts[-1] not in current for texts in groups.values())
    print(
        f"\narm {arm}: {len(facts)} facts written in {seconds:.1f} s, {len(current)} current; "
        f"{len(changing)} groups should retire, {retired} did, {false} false retirements"
    )
    print("  questions        top-1  any@5 any@10  leaks  stale  p50 ms  p95 ms")
    for name, questions, depth in (
        ("single-hop", data["single_hop"], 1),
        (f"multi-hop x{hops}", data["multi_hop"], hops),
    ):
        s = ask(client, questions, scope, groups, depth)
        print(
            f"  {name:<15} {s.top_1:>6.2f} {s.any_5:>6.2f} {s.any_10:>6.2f} {s.leaks:>6} {s.stale_anywhere:>6}"
            f" {s.p50_ms:>7.1f} {s.p95_ms:>7.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="FactConsolidation over HTTP.")
    parser.add_argument("--data", type=Path, required=True, help="the benchmark's JSON file")
    parser.add_argument("--url", help="a running service; without it one is started")
    parser.add_argument("--key", help="an API key, where the service needs one")
    parser.add_argument("--arm", choices=sorted(ARMS), action="append", help="several may be given; all by default")
    parser.add_argument("--hops", type=int, default=4)
    options = parser.parse_args()
    data = json.loads(options.data.read_text())
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    with service(options.url) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        for arm in options.arm or ARMS:
            run(client, data, arm, options.hops)


if __name__ == "__main__":
    main()
