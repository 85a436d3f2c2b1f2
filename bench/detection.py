"""What looking for contradictions adds to a write, in a scope of many facts.

    python -m bench.detection [--facts 20000] [--writes 200]

The same kind of statement is written one by one under `explicit`, which looks at nothing, and under `auto_inferred`,
in turns, into one scope. The bound is that looking costs at most as much as the write itself: a ratio of 2.
"""

import argparse
import statistics
import time

import httpx

from bench.service import service
from bench.writing import sentences

SCOPE = "bench-detection"


def fill(client: httpx.Client, facts: int) -> None:
    client.patch("/v1/namespaces/default", json={"policy": "explicit"}).raise_for_status()
    for start in range(0, facts, 1_000):
        body = {"facts": [{"content": text, "scope": SCOPE} for text in sentences(1_000, start)]}
        client.post("/v1/facts/batch", json=body).raise_for_status()


def write(client: httpx.Client, text: str) -> float:
    started = time.perf_counter()
    client.post("/v1/facts", json={"content": text, "scope": SCOPE}).raise_for_status()
    return (time.perf_counter() - started) * 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of looking for contradictions.")
    parser.add_argument("--facts", type=int, default=20_000)
    parser.add_argument("--writes", type=int, default=200, help="for each policy")
    parser.add_argument("--url", help="a running service; without it one is started")
    options = parser.parse_args()
    with service(options.url) as url, httpx.Client(base_url=url, timeout=300) as client:
        fill(client, options.facts)
        texts = iter(sentences(2 * options.writes, 10_000_000))
        taken: dict[str, list[float]] = {"explicit": [], "auto_inferred": []}
        for number in range(2 * options.writes // 20):
            policy = ("explicit", "auto_inferred")[number % 2]
            client.patch("/v1/namespaces/default", json={"policy": policy}).raise_for_status()
            taken[policy] += [write(client, next(texts)) for _ in range(20)]
    for policy, times in taken.items():
        print(f"{policy:<14} median {statistics.median(times):.2f} ms over {len(times)} writes")
    ratio = statistics.median(taken["auto_inferred"]) / statistics.median(taken["explicit"])
    print(f"ratio {ratio:.2f} (2 would mean that looking costs as much as writing)")


if __name__ == "__main__":
    main()
