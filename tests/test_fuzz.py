"""Whatever a client sends, by the description or against it, nothing fails inside the service."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, Case
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from app.embedded import Cluster
from app.main import create_app
from tests.clients import Memory
from tests.conftest import settings_for

# These answer with a stream that need not end.
STREAMS = ("/v1/changes",)


def operations(database: Cluster) -> list[APIOperation[Any, Any, Any, Any]]:
    described = schemathesis.openapi.from_dict(create_app(settings_for(database)).openapi())
    found = [result.ok() for result in described.get_all_operations() if isinstance(result, Ok)]
    assert len(found) == sum(map(len, described.raw_schema["paths"].values()))
    return [operation for operation in found if operation.path not in STREAMS]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_nothing_that_a_client_sends_fails_inside(memory: Memory, database: Cluster, mode: GenerationMode) -> None:
    cases = st.one_of([operation.as_strategy(mode) for operation in operations(database)])
    headers = {"Authorization": memory.http.headers["Authorization"]}

    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def send(case: Case[Any]) -> None:
        answer = case.call(base_url=str(memory.http.base_url), headers=headers)
        assert answer.status_code < 500, case.as_curl_command()
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == ["application/problem+json"]

    send()
