"""What a client of the service does, said briefly, over a real socket."""

import asyncio
from typing import Any, Self
from urllib.parse import quote

import httpx

from app.access.schemas import KeyIn
from app.access.service import create_key
from app.db import connect
from app.embedded import Cluster


def make_key(database: Cluster, namespace: str, **wanted: Any) -> str:
    """The text of a new key, made as the command line makes it."""

    async def make() -> str:
        async with connect(database.api_dsn, size=1, timeout_s=10, statement_timeout_ms=10_000, name="test-keys") as db:
            made = await db.run(lambda conn: create_key(conn, namespace, KeyIn(**({"name": "tester"} | wanted)), "cli"))
            return made.text

    return asyncio.run(make())


# A well-formed id that no fact has.
NEVER = "019ad9a0-53f1-7b8e-a2f4-0c2d9f6f4b11"


class Memory:
    """A client with one key. Its methods return the body, after checking the status."""

    def __init__(self, base_url: str, key: str | None, namespace: str = "default") -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(base_url=base_url, headers=headers, timeout=30)
        self.namespace = namespace

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def post(self, path: str, body: Any = None, *, status: int | None = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._checked(self.http.post(path, json=body, headers=named), status)

    def get(self, path: str, *, status: int = 200, **params: Any) -> Any:
        return self._checked(self.http.get(path, params=params), status)

    @staticmethod
    def _checked(answer: httpx.Response, status: int | None) -> Any:
        if status is not None:
            assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
        else:
            assert answer.is_success, f"{answer.status_code}: {answer.text}"
        return answer.json()

    def remember(self, content: str, *, status: int | None = None, **fields: Any) -> Any:
        return self.post("/v1/facts", {"content": content} | fields, status=status)

    def fact(self, content: str, **fields: Any) -> Any:
        """The fact that remembering this makes."""
        return self.remember(content, **fields)["fact"]

    def supersede(self, fact_id: str, *, status: int | None = None, **body: Any) -> Any:
        return self.post(f"/v1/facts/{fact_id}/supersede", {"reason": "It changed."} | body, status=status)

    def forget(self, fact_id: str, *, status: int | None = None, reason: str = "It ended.") -> Any:
        return self.post(f"/v1/facts/{fact_id}/forget", {"reason": reason}, status=status)

    def amend(self, fact_id: str, content: str, *, status: int | None = None, **body: Any) -> Any:
        given = {"content": content, "reason": "It was narrowed."} | body
        return self.post(f"/v1/facts/{fact_id}/amend", given, status=status)

    def restore(self, fact_id: str, *, status: int | None = None, **body: Any) -> Any:
        return self.post(f"/v1/facts/{fact_id}/restore", {"reason": "It holds after all."} | body, status=status)

    def batch(self, *facts: Any, atomic: bool = True, status: int | None = None) -> Any:
        """Remember statements in one request; a string is a statement of its own."""
        items = [{"content": fact} if isinstance(fact, str) else fact for fact in facts]
        return self.post("/v1/facts/batch", {"facts": items, "atomic": atomic}, status=status)

    def link(self, kind: str, source_id: str, target_id: str, *, status: int | None = None, **body: Any) -> Any:
        given = {"kind": kind, "source_id": source_id, "target_id": target_id} | body
        return self.post("/v1/links", given, status=status)

    def demote(self, link_id: str, *, status: int | None = None, reason: str = "It asserts too much.") -> Any:
        return self.post(f"/v1/links/{link_id}/demote", {"reason": reason}, status=status)

    def resolve(self, link_id: str, keep: str, *, status: int | None = None, **body: Any) -> Any:
        given = {"keep": keep, "reason": "Somebody looked at both."} | body
        return self.post(f"/v1/conflicts/{link_id}/resolve", given, status=status)

    def register(self, subject: str, *, status: int | None = None, **body: Any) -> Any:
        return self._checked(self.http.put(f"/v1/subjects/{quote(subject, safe='/')}", json=body), status)

    def subject(self, subject: str, *, status: int = 200, **params: Any) -> Any:
        return self.get(f"/v1/subjects/{quote(subject, safe='/')}", status=status, **params)

    def conflicts(self, **filters: Any) -> list[Any]:
        return self.all("/v1/conflicts", **filters)

    def standing(self, *ids: str) -> list[str]:
        """How each fact stands: `active`, `superseded` and so on."""
        return [item["status"] for item in self.post("/v1/freshness", {"ids": list(ids)})["items"]]

    def actions(self, fact_id: str) -> list[str]:
        """What the audit trail tells of a fact, oldest first."""
        return [event["action"] for event in self.all("/v1/audit", fact=fact_id)][::-1]

    def history(self, fact_id: str) -> Any:
        return self.get(f"/v1/facts/{fact_id}/history")

    def current(self, **filters: Any) -> list[Any]:
        """All current facts, newest first."""
        return self.all("/v1/facts", **filters)

    def all(self, path: str, **filters: Any) -> list[Any]:
        """Everything of a list, page by page."""
        items: list[Any] = []
        cursor = None
        while True:
            page = self.get(path, **filters, **({"cursor": cursor} if cursor else {}))
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return items

    def texts(self, **filters: Any) -> list[str]:
        """The texts of the current facts, newest first."""
        return [fact["content"] for fact in self.current(**filters)]

    def recall(self, query: str, **body: Any) -> Any:
        return self.post("/v1/recall", {"query": query} | body, status=200)

    def recalled(self, query: str, **body: Any) -> list[str]:
        """The texts that recall returns, best first."""
        return [result["fact"]["content"] for result in self.recall(query, **body)["results"]]

    def policy(self, **rules: Any) -> None:
        answer = self.http.patch(f"/v1/namespaces/{self.namespace}", json=rules)
        assert answer.status_code == 200, answer.text
