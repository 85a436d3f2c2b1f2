"""A long random search for a sequence of requests that leaves something untrue.

    python -m bench.truth --steps 100000

drives the machine of `tests/facts/truth_machine.py` over HTTP against a service of its own and compares everything
in the database with a small model after every request. It stops at the first counter-example, shrunk to the
shortest sequence that shows it.
"""

import argparse
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from app import embedded
from app.embedded import Cluster
from app.main import create_app
from app.schema import migrate
from app.settings import Settings
from app.telemetry import configure_logging
from tests.clients import make_key
from tests.facts.truth_machine import Truth
from tests.serving import running

_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def search(url: str, cluster: Cluster, steps: int) -> int:
    """Run examples until as many requests were compared; how many there were."""
    Truth.url, Truth.database = url, cluster
    rounds = settings(
        max_examples=25,
        stateful_step_count=60,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    started = time.perf_counter()
    while (done := Truth.steps.total()) < steps:
        run_state_machine_as_test(Truth, settings=rounds)
        print(f"{Truth.steps.total()} requests after {time.perf_counter() - started:.0f} s", flush=True)
    return done


def main() -> None:
    """Start a service, search, and print what was asked how often."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000, help="how many requests to compare at least")
    steps = parser.parse_args().steps
    configure_logging(level="ERROR")
    with tempfile.TemporaryDirectory() as folder, embedded.running(Path(folder), _FAST) as cluster:
        migrate(cluster.owner_dsn)
        given = Settings(_env_file=None, database_url=cluster.api_dsn, key_cache_s=0, pool_timeout_s=60)
        # A key from the start, so that the service is not in development mode.
        make_key(cluster, "unused")
        with running(create_app(given)) as url:
            done = search(url, cluster, steps)
    for name, times in sorted(Truth.steps.items()):
        print(f"{name:24} {times:8}")
    print(f"{done} requests compared, no counter-example")


if __name__ == "__main__":
    main()
