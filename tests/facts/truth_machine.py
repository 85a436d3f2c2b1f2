"""Random requests over HTTP, each compared with the model, and everything in the database after each of them."""

import copy
from collections import Counter
from typing import Any, ClassVar, LiteralString
from uuid import uuid4

import httpx
import psycopg
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from app.embedded import Cluster
from tests.clients import Memory, make_key
from tests.facts.truth_model import TIERS, Refused, Said, World

SCOPES = ("shared", "team/a")
SUBJECTS = ("alpha", "beta")
VALUES = ("alder", "birch", "cedar", "dogwood")
NOTES = ("Cats sleep all day.", "Rain fell on Ghent.", "Tea is brewed at noon.", "Nobody answered the door.")
EVENTS = ("The kettle exploded.", "Ferry 9 sank.")
POLICIES = ("explicit", "suggest", "auto_key", "auto_inferred")

_windows = st.sampled_from([(None, None)] * 6 + [("2020", None), ("2024", None), ("2999", None), ("2020", "2022")])
_tiers = st.sampled_from(TIERS)
_scopes = st.sampled_from(SCOPES)


@st.composite
def statements(draw: st.DrawFn) -> Said:
    """A state most of the time, else a note or an event."""
    since, until = draw(_windows)
    shared: dict[str, Any] = {"scope": draw(_scopes), "tier": draw(_tiers), "since": since, "until": until}
    kind = draw(st.sampled_from(["state", "state", "state", "note", "event"]))
    subject = draw(st.sampled_from(SUBJECTS))
    if kind == "state":
        number = draw(st.sampled_from([None, None, 7, 12]))
        return Said(kind=kind, subject=subject, value=draw(st.sampled_from(VALUES)), number=number, **shared)
    texts = NOTES if kind == "note" else EVENTS
    return Said(kind=kind, subject=draw(st.sampled_from([None, subject])), value=draw(st.sampled_from(texts)), **shared)


picks = st.integers(min_value=0, max_value=40)


class Truth(RuleBasedStateMachine):
    """A namespace of its own for each example. `steps` counts the requests of all examples."""

    url: ClassVar[str]
    database: ClassVar[Cluster]
    steps: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.namespace = f"truth-{uuid4().hex[:16]}"
        roles = ["read", "write", "curate", "admin"]
        key = make_key(self.database, self.namespace, roles=roles, max_tier="system")
        self.memory = Memory(self.url, key, self.namespace)
        # A long search shares its machine with others and may have to wait for its turn.
        self.memory.http.timeout = 300
        self.owner = psycopg.connect(self.database.owner_dsn, autocommit=True)
        self.world = World()
        self.links: list[dict[str, Any]] = []
        self.drawn: Counter[str] = Counter()

    def teardown(self) -> None:
        self.read_everything()
        self.owner.close()
        self.memory.http.close()

    # --- Asking ------------------------------------------------------------------------------------------------

    def ask(self, name: str, path: str, body: Any, method: str = "POST") -> httpx.Response:
        type(self).steps[name] += 1
        answer = self.memory.http.request(method, path, json=body)
        note(f"{name} {path} {body} -> {answer.status_code} {answer.text[:300]}")
        assert answer.status_code < 500, answer.text
        return answer

    def ids(self) -> list[str]:
        return list(self.world.facts)

    def pick(self, number: int) -> str:
        ids = self.ids()
        return ids[number % len(ids)]

    def has_facts(self) -> bool:
        return bool(self.world.facts)

    def compare(self, told: dict[str, Any], said: Said, named: list[str], *, how: str, force: bool = False) -> None:
        """Compare what a write answered with the plan, and carry the plan out."""
        outcome = self.world.plan(said, named, force=force)
        assert told["outcome"] == outcome.name
        assert {gone["id"] for gone in told["superseded"]} == set(outcome.retired)
        doubted = {conflict["fact_id"] for conflict in told["conflicts"]}
        assert outcome.doubts <= doubted
        for id_ in doubted - outcome.doubts - self.world.heads_of(said):
            held = self.world.facts[id_]
            assert held.current
            assert held.said.scope == said.scope
            assert None in (held.said.subject, said.subject) or held.said.subject == said.subject
        id_ = told["fact"]["id"]
        assert (id_ == outcome.same) if outcome.same else (id_ not in self.world.facts)
        assert told["fact"]["content"] == said.text
        self.world.carry_out(said, outcome, id_)
        for gone in outcome.retired:
            self.world.retire(gone, id_, how if gone in named else "superseded")
        self.drawn["contradicts"] += len(doubted)

    # --- Rules -------------------------------------------------------------------------------------------------

    @initialize(policy=st.sampled_from(POLICIES))
    def begin(self, policy: str) -> None:
        self.change_policy(policy)

    def change_policy(self, policy: str) -> None:
        self.memory.policy(policy=policy)
        self.world.policy = policy

    @rule(said=statements(), policy=st.sampled_from([None] * 12 + list(POLICIES)))
    def remember(self, said: Said, policy: str | None) -> None:
        if policy is not None:
            self.change_policy(policy)
        answer = self.ask("remember", "/v1/facts", said.body())

        assert answer.is_success
        self.compare(answer.json(), said, [], how="superseded")

    @precondition(has_facts)
    @rule(said=statements(), olds=st.lists(picks, min_size=1, max_size=3), force=st.booleans())
    def remember_in_the_place_of(self, *, said: Said, olds: list[int], force: bool) -> None:
        named = list(dict.fromkeys(map(self.pick, olds)))
        body = said.body() | {"supersedes": named, "reason": "Told so.", "force": force}
        self.write("remember in the place of", "/v1/facts", body, said, named, "superseded", force=force)

    def write(self, name: str, path: str, body: Any, said: Said, named: list[str], how: str, *, force: bool) -> None:
        answer = self.ask(name, path, body)
        try:
            self.world.plan(said, named, force=force)
        except Refused:
            assert answer.is_client_error
            return
        assert answer.is_success, answer.text
        self.compare(answer.json(), said, named, how=how, force=force)

    @rule(items=st.lists(statements(), min_size=1, max_size=5))
    def remember_a_batch(self, items: list[Said]) -> None:
        answer = self.ask("batch", "/v1/facts/batch", {"facts": [said.body() for said in items]})

        assert answer.is_success
        for told, said in zip(answer.json()["items"], items, strict=True):
            self.compare(told, said, [], how="superseded")

    @precondition(has_facts)
    @rule(items=st.lists(statements(), min_size=1, max_size=3), at=picks, atomic=st.booleans())
    def two_of_a_batch_replace_the_same(self, *, items: list[Said], at: int, atomic: bool) -> None:
        id_ = self.pick(at)
        claim = {"supersedes": [id_], "reason": "Told so.", "force": True}
        bodies = [said.body() | claim for said in items]
        answer = self.ask("contested batch", "/v1/facts/batch", {"facts": bodies, "atomic": atomic})
        before, drawn = copy.deepcopy(self.world), self.drawn.copy()
        told = answer.json().get("items") or [None] * len(items)
        for item, said in zip(told, items, strict=True):
            try:
                self.world.plan(said, [id_], force=True)
            except Refused:
                if atomic:
                    assert answer.is_client_error
                    self.world, self.drawn = before, drawn
                    return
                assert item["outcome"] == "rejected"
                continue
            if item is None:
                # The batch was refused, so what its earlier items would have been named is not known.
                assert atomic
                self.world, self.drawn = before, drawn
                assert len(items) > 1
                return
            self.compare(item, said, [id_], how="superseded", force=True)
        assert answer.is_success

    @precondition(has_facts)
    @rule(at=picks, value=st.sampled_from(VALUES), number=st.sampled_from([None, 7]), tier=_tiers, force=st.booleans())
    def supersede(self, *, at: int, value: str, number: int | None, tier: str, force: bool) -> None:
        id_ = self.pick(at)
        self._replace("supersede", id_, [id_], value, number, tier, force=force)

    @precondition(has_facts)
    @rule(at=picks, folds=st.lists(picks, max_size=2), value=st.sampled_from(VALUES), tier=_tiers, force=st.booleans())
    def amend(self, *, at: int, folds: list[int], value: str, tier: str, force: bool) -> None:
        id_ = self.pick(at)
        named = list(dict.fromkeys([id_, *map(self.pick, folds)]))
        self._replace("amend", id_, named, value, 12, tier, force=force)

    def _replace(
        self, verb: str, id_: str, named: list[str], value: str, number: int | None, tier: str, *, force: bool
    ) -> None:
        old = self.world.facts[id_].said
        kind = "state" if old.subject is not None and old.kind != "event" else old.kind
        text = value if kind == "state" else f"Instead, {value} {number}."
        said = Said(scope=old.scope, subject=old.subject, kind=kind, value=text, number=number, tier=tier)
        body: dict[str, Any] = {"content": said.text, "source": {"tier": tier}, "reason": "Told so.", "force": force}
        if verb == "amend":
            body["folds"] = named[1:]
        how = "amended" if verb == "amend" else "superseded"
        self.write(verb, f"/v1/facts/{id_}/{verb}", body, said, named, how, force=force)

    def change(self, answer: httpx.Response, change: Any) -> bool:
        """Whether the model takes the change; the service must agree."""
        try:
            change()
        except Refused:
            assert answer.is_client_error
            return False
        assert answer.is_success, answer.text
        return True

    @precondition(has_facts)
    @rule(at=picks, by=picks, force=st.booleans())
    def supersede_by(self, *, at: int, by: int, force: bool) -> None:
        id_, new = self.pick(at), self.pick(by)
        body = {"by": new, "reason": "Told so.", "force": force}
        answer = self.ask("supersede by", f"/v1/facts/{id_}/supersede", body)
        self.change(answer, lambda: self.world.replace(id_, new, force=force))

    @precondition(has_facts)
    @rule(at=picks)
    def forget(self, at: int) -> None:
        id_ = self.pick(at)
        answer = self.ask("forget", f"/v1/facts/{id_}/forget", {"reason": "It ended."})
        fresh: list[bool] = []
        if self.change(answer, lambda: fresh.append(self.world.forget(id_))) and fresh[0]:
            self.world.retire(id_, answer.json()["fact"]["superseded_by"], "forgotten")

    @precondition(has_facts)
    @rule(at=picks, replace=st.booleans())
    def restore(self, *, at: int, replace: bool) -> None:
        id_ = self.pick(at)
        answer = self.ask("restore", f"/v1/facts/{id_}/restore", {"reason": "It holds.", "replace": replace})
        self.change(answer, lambda: self.world.restore(id_, replace=replace))

    @precondition(has_facts)
    @rule(at=picks, pinned=st.booleans())
    def pin(self, *, at: int, pinned: bool) -> None:
        id_ = self.pick(at)
        answer = self.ask("pin", f"/v1/facts/{id_}/{'pin' if pinned else 'unpin'}", None)
        self.change(answer, lambda: self.world.pin(id_, pinned=pinned))

    @precondition(has_facts)
    @rule(one=picks, other=picks, kind=st.sampled_from(["contradicts", "relates_to"]))
    def link(self, one: int, other: int, kind: str) -> None:
        source, target = self.pick(one), self.pick(other)
        answer = self.ask("link", "/v1/links", {"kind": kind, "source_id": source, "target_id": target})
        ends = [self.world.facts[id_] for id_ in (source, target)]
        if source == target or (kind == "contradicts" and not all(held.current for held in ends)):
            assert answer.is_client_error
        else:
            assert answer.is_success
            self.drawn[kind] += answer.status_code == 201

    @precondition(lambda self: bool(self.links))
    @rule(number=picks, keep=st.sampled_from(["source_id", "target_id", "both"]))
    def resolve(self, number: int, keep: str) -> None:
        link = self.links[number % len(self.links)]
        kept = link.get(keep, "both")
        answer = self.ask("resolve", f"/v1/conflicts/{link['id']}/resolve", {"keep": kept, "reason": "Seen."})
        source, target = link["source_id"], link["target_id"]
        held = [self.world.facts.get(id_) for id_ in (source, target)]
        settled = link["demoted"] or link["resolved"] or link["kind"] != "contradicts"
        if settled or not all(fact is not None and fact.current for fact in held):
            assert answer.is_client_error
            return
        assert answer.is_success
        if kept == "both":
            self.world.events[source, "resolved"] += 1
        else:
            self.world.retire(target if kept == source else source, kept)

    @precondition(lambda self: bool(self.links))
    @rule(number=picks)
    def demote(self, number: int) -> None:
        link = self.links[number % len(self.links)]
        answer = self.ask("demote", f"/v1/links/{link['id']}/demote", {"reason": "It asserts too much."})
        if link["demoted"]:
            assert answer.status_code == 409
        elif link["kind"] in ("supersedes", "amends"):
            self.change(answer, lambda: self.world.restore(link["target_id"], replace=False))
        else:
            assert answer.is_success
            self.world.events[link["source_id"], "demoted"] += 1

    # --- What must hold ----------------------------------------------------------------------------------------

    def rows(self, query: LiteralString) -> list[tuple[Any, ...]]:
        return self.owner.execute(query, {"ns": self.namespace}).fetchall()

    @invariant()
    def the_database_agrees(self) -> None:
        self._facts_agree()
        self._links_agree()
        self._chains_agree()
        self._trail_agrees()

    def _facts_agree(self) -> None:
        rows = self.rows(
            "SELECT f.id::text, f.content, f.superseded_by::text, f.status, u.observed_count, u.pinned"
            " FROM facts_history f JOIN fact_use u ON (u.namespace, u.fact_id) = (f.namespace, f.id)"
            " WHERE f.namespace = %(ns)s AND f.kind <> 'retraction'"
        )
        expected = {
            (id_, held.said.text, held.by, held.status, held.seen, held.pinned)
            for id_, held in self.world.facts.items()
        }
        assert set(rows) == expected
        active = {id_ for (id_,) in self.rows("SELECT id::text FROM facts_active WHERE namespace = %(ns)s")}
        assert active == {id_ for id_, held in self.world.facts.items() if held.current}

    def _links_agree(self) -> None:
        rows = self.rows(
            "SELECT id::text, kind, source_id::text, target_id::text, demoted_at IS NOT NULL,"
            " resolved_at IS NOT NULL, reason IS NOT NULL FROM links WHERE namespace = %(ns)s ORDER BY id"
        )
        names = ("id", "kind", "source_id", "target_id", "demoted", "resolved", "explained")
        self.links = [dict(zip(names, row, strict=True)) for row in rows]
        retiring = [link for link in self.links if link["kind"] in ("supersedes", "amends") and not link["demoted"]]
        ended = {(held.by, id_) for id_, held in self.world.facts.items() if held.by is not None}
        assert sorted((link["source_id"], link["target_id"]) for link in retiring) == sorted(ended)
        assert all(link["explained"] for link in retiring)
        kinds = Counter(link["kind"] for link in self.links)
        assert kinds["contradicts"] == self.drawn["contradicts"]
        assert kinds["relates_to"] == self.drawn["relates_to"]

    def _chains_agree(self) -> None:
        """Every retired fact's chain is labelled with the end that following its pointers leads to."""
        rows = self.rows(
            "SELECT f.id::text, f.superseded_by::text, c.head_id::text FROM facts_history f LEFT JOIN chains c"
            " ON (c.namespace, c.chain_id) = (f.namespace, f.chain_id) WHERE f.namespace = %(ns)s"
        )
        pointers = {id_: by for id_, by, _ in rows}
        for id_, by, labelled in rows:
            end, walked = id_, {id_}
            while (following := pointers[end]) is not None:
                assert following not in walked, "the chain is closed"
                walked.add(following)
                end = following
            assert labelled == end if by is not None else labelled in (None, end)

    def _trail_agrees(self) -> None:
        rows = self.rows(
            "SELECT fact_id::text, action, count(*) FROM audit_events WHERE namespace = %(ns)s"
            " AND fact_id IS NOT NULL AND action NOT IN ('contested', 'linked') GROUP BY 1, 2"
        )
        assert {(id_, action): times for id_, action, times in rows} == dict(self.world.events)
        told = dict(
            self.rows(
                "SELECT action, count(*) FROM audit_events WHERE namespace = %(ns)s"
                " AND action IN ('contested', 'linked') GROUP BY 1"
            )
        )
        assert told.get("contested", 0) == self.drawn["contradicts"]
        assert told.get("linked", 0) == self.drawn["relates_to"]

    def read_everything(self) -> None:
        """What the API shows is what should be current, and each fact's history leads to its end."""
        current = [id_ for id_, held in self.world.facts.items() if held.current]
        assert {fact["id"] for fact in self.memory.current()} == set(current)
        ids = self.ids()
        if ids:
            assert self.memory.standing(*ids) == [held.status for held in self.world.facts.values()]
        pairs = {
            frozenset((link["source_id"], link["target_id"]))
            for link in self.links
            if link["kind"] == "contradicts" and not link["demoted"] and not link["resolved"]
        }
        shown = {frozenset((pair["fact"]["id"], pair["other"]["id"])) for pair in self.memory.conflicts()}
        assert shown == {pair for pair in pairs if pair <= set(current)}
        for id_ in ids[:3]:
            told = {fact["id"]: fact for fact in self.memory.history(id_)["facts"]}
            assert told[id_]["superseded_by"] == self.world.facts[id_].by
