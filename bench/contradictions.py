"""How well the service tells a replaced fact from a contradicted one and from one that stands beside the new one.

Every labelled pair is written, the earlier statement first, to a scope of its own that holds nothing else, without
subjects. With `--url` the pairs go over HTTP to a running service, under the policies `auto_inferred` and `suggest`;
with `--offline` the comparison alone is asked.

    python -m bench.contradictions --pairs bench/contradictions.own.jsonl --split report --offline
    python -m bench.contradictions --pairs PATH --url http://127.0.0.1:8000 [--namespace default] [--key KEY]
"""

import argparse
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx

from app.facts.detection import compare

Outcome = Literal["retired", "conflict", "quiet"]
POLICIES = ("auto_inferred", "suggest")


@dataclass(frozen=True, slots=True)
class Pair:
    earlier: str
    later: str
    label: str
    kind: str


@dataclass(frozen=True, slots=True)
class Judged:
    pair: Pair
    outcome: Outcome


def read_pairs(path: Path, split: str | None) -> list[Pair]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Pair(row["earlier"], row["later"], row["label"], row["kind"])
        for row in rows
        if split is None or row.get("split") == split
    ]


def judge_offline(pair: Pair, policy: str) -> Outcome:
    """What the comparison alone answers: under `suggest` nothing is retired, every finding is a conflict."""
    finding = compare(pair.later, pair.earlier)
    if finding is None:
        return "quiet"
    return "retired" if finding.retires and policy == "auto_inferred" else "conflict"


class Service:
    """A running service, asked over its HTTP contract."""

    def __init__(self, url: str, namespace: str, key: str | None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.client = httpx.Client(base_url=url, headers=headers, timeout=30.0)
        self.namespace = namespace
        self.run = uuid.uuid4().hex[:12]
        self.written = 0

    @contextmanager
    def under(self, policy: str) -> Iterator[None]:
        """The namespace's policy for the time of a run; put back afterwards."""
        before = self._namespace("GET", None)["policy"]
        self._namespace("PATCH", {"policy": policy})
        try:
            yield
        finally:
            self._namespace("PATCH", {"policy": before})

    def _namespace(self, method: str, body: dict[str, str] | None) -> dict[str, Any]:
        reply = self.client.request(method, f"/v1/namespaces/{self.namespace}", json=body)
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def _remember(self, content: str, scope: str) -> dict[str, Any]:
        reply = self.client.post("/v1/facts", json={"content": content, "scope": scope})
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def judge(self, pair: Pair, policy: str) -> Outcome:
        self.written += 1
        scope = f"bench-contradictions-{self.run}-{policy}-{self.written}"
        held = self._remember(pair.earlier, scope)["fact"]["id"]
        answer = self._remember(pair.later, scope)
        if held in {item["id"] for item in answer["superseded"]}:
            return "retired"
        return "conflict" if held in {item["fact_id"] for item in answer["conflicts"]} else "quiet"


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def measure(judged: list[Judged]) -> dict[str, float]:
    """The figures of one policy; shares are of the pairs with the label that the name ends with."""

    def count(outcome: Outcome, *labels: str) -> int:
        return sum(item.outcome == outcome and item.pair.label in labels for item in judged)

    def total(label: str) -> int:
        return sum(item.pair.label == label for item in judged)

    retired = count("retired", "supersedes", "conflict", "none")
    right = count("retired", "supersedes")
    shown = count("conflict", "supersedes", "conflict", "none")
    return {
        "pairs": len(judged),
        "retirements": retired,
        "retirement precision": share(right, retired),
        "retirement recall": share(right, total("supersedes")),
        "retirements on none": count("retired", "none"),
        "conflict shown on supersedes": share(count("conflict", "supersedes"), total("supersedes")),
        "conflict shown on conflict": share(count("conflict", "conflict"), total("conflict")),
        "conflict shown on none": share(count("conflict", "none"), total("none")),
        "conflict precision": share(shown - count("conflict", "none"), shown),
    }


def print_report(policy: str, judged: list[Judged], *, misses: bool) -> None:
    print(f"\n{policy}")
    for name, figure in measure(judged).items():
        print(f"  {name:30} {figure:.3f}" if isinstance(figure, float) else f"  {name:30} {figure}")
    expected = {"supersedes": "retired" if policy == "auto_inferred" else "conflict", "conflict": "conflict"}
    for item in judged if misses else []:
        if item.outcome != expected.get(item.pair.label, "quiet"):
            print(f"    {item.pair.label} -> {item.outcome}: {item.pair.earlier!r} / {item.pair.later!r}")


def run(pairs: list[Pair], judge: Callable[[Pair, str], Outcome], policy: str) -> list[Judged]:
    return [Judged(pair, judge(pair, policy)) for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--split", help="only the pairs with this value of `split`")
    parser.add_argument("--url")
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--key")
    parser.add_argument("--misses", action="store_true", help="list the pairs that were answered otherwise")
    arguments = parser.parse_args()
    if arguments.offline == bool(arguments.url):
        parser.error("give either --offline or --url")
    pairs = read_pairs(arguments.pairs, arguments.split)
    service = Service(arguments.url, arguments.namespace, arguments.key) if arguments.url else None
    for policy in POLICIES:
        if service is None:
            judged = run(pairs, judge_offline, policy)
        else:
            with service.under(policy):
                judged = run(pairs, service.judge, policy)
        print_report(policy, judged, misses=arguments.misses)


if __name__ == "__main__":
    main()
