"""Whatever is asked in whatever order, what is current is what the design says."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from app.embedded import Cluster
from tests.facts.truth_machine import Truth


def test_any_sequence_of_requests_leaves_the_truth(service_url: str, database: Cluster) -> None:
    class Here(Truth):
        url = service_url

    Here.database = database

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
