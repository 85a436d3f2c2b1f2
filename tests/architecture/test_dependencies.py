"""What a route depends on runs on the event loop: the way through a pool of threads costs more than a statement."""

from collections.abc import Iterator
from inspect import iscoroutinefunction

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from tests.architecture.source import modules


def routes() -> Iterator[APIRoute]:
    routers = (getattr(module, "router", None) for module in modules().values())
    for router in routers:
        if isinstance(router, APIRouter):
            yield from (route for route in router.routes if isinstance(route, APIRoute))


def dependants(parent: Dependant) -> Iterator[Dependant]:
    for child in parent.dependencies:
        yield child
        yield from dependants(child)


def test_every_dependency_is_a_coroutine() -> None:
    calls = {call for route in routes() for one in dependants(route.dependant) if (call := one.call)}

    in_threads = [
        call for call in calls if not iscoroutinefunction(call) and not iscoroutinefunction(type(call).__call__)
    ]

    assert calls
    assert in_threads == []
