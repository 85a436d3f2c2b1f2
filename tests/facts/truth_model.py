"""What should be true after a sequence of requests, by the design alone: a small model that knows no database."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

TIERS = ("inferred", "observed", "user", "system")
PAST, NOW, FUTURE = 0, 1, 2
Start = tuple[int, int]


class Refused(Exception):
    """The request is not to be carried out."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """A statement: a value at an address, with a number beside it or not; notes and events are only a value."""

    scope: str
    subject: str | None
    kind: str
    value: str
    number: int | None = None
    tier: str = "observed"
    since: str | None = None
    until: str | None = None

    @property
    def text(self) -> str:
        if self.kind != "state":
            return self.value
        return f"The value is {self.value}" + (f" with {self.number} units." if self.number is not None else ".")

    def body(self) -> dict[str, object]:
        given: dict[str, object] = {
            "content": self.text,
            "scope": self.scope,
            "subject": self.subject,
            "kind": self.kind,
            "source": {"tier": self.tier},
            "valid_from": self.since and f"{self.since}-01-01T00:00:00Z",
            "valid_to": self.until and f"{self.until}-01-01T00:00:00Z",
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(kw_only=True)
class Held:
    """A fact as it should stand. `start` orders what was given as past, what began when it was written, the future."""

    said: Said
    start: Start
    by: str | None = None
    ended_as: str | None = None
    seen: int = 1
    pinned: bool = False

    @property
    def status(self) -> str:
        if self.ended_as is not None:
            return self.ended_as
        if self.start[0] == FUTURE:
            return "scheduled"
        return "expired" if self.said.until is not None else "active"

    @property
    def current(self) -> bool:
        return self.status == "active"


@dataclass
class Outcome:
    """What a write should have done; `doubts` are facts that must be reported beside others that may be."""

    name: str
    retired: list[str] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    same: str | None = None


@dataclass
class World:
    """All facts of a namespace by id, and how often each should occur with each action in the audit trail."""

    policy: str = "auto_key"
    facts: dict[str, Held] = field(default_factory=dict)
    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    clock: int = 0

    def _at(self, said: Said) -> Iterable[tuple[str, Held]]:
        for id_, held in self.facts.items():
            if (held.said.scope, held.said.subject) == (said.scope, said.subject):
                yield id_, held

    def states(self, said: Said) -> list[str]:
        return [id_ for id_, held in self._at(said) if held.said.kind == "state" and held.current]

    def start(self, said: Said) -> Start:
        if said.since is None:
            return (NOW, self.clock)
        return (FUTURE if int(said.since) > 2900 else PAST, int(said.since))

    def twin(self, said: Said) -> str | None:
        """The fact that says the same and still stands."""
        for id_, held in self._at(said):
            if held.said.text != said.text or held.by is not None:
                continue
            if "event" in (said.kind, held.said.kind):
                same = said.kind == held.said.kind and said.since is not None and said.since == held.said.since
            elif held.current:
                same = said.until is None and self.start(said)[0] != FUTURE
            else:
                same = (said.since, said.until) == (held.said.since, held.said.until)
            if same:
                return id_
        return None

    def heads_of(self, said: Said) -> set[str]:
        """The current facts that stand, in the end, in the place of what said the same once."""
        heads = set()
        for id_, held in self._at(said):
            if held.said.text == said.text and held.by is not None:
                end = id_
                while (following := self.facts[end].by) is not None and following in self.facts:
                    end = following
                heads.add(end)
        return {id_ for id_ in heads if self.facts[id_].current}

    def plan(self, said: Said, told: Iterable[str] = (), *, force: bool = False) -> Outcome:
        """What remembering this should do. Raises Refused."""
        named = list(dict.fromkeys(told))
        twin = self.twin(said)
        begins = self.start(said)[0]
        if named and begins == FUTURE:
            raise Refused("nothing would hold until then")
        for id_ in named:
            self._may_retire(id_, said.tier, force=force)
            if id_ == twin:
                raise Refused("it says the same")
        if twin is not None:
            return Outcome("superseded" if named else "reaffirmed", retired=named, same=twin)
        outcome = Outcome("created", retired=named)
        if said.kind == "state" and begins != FUTURE and said.until is None and self.policy != "explicit":
            self._apply_policy(said, outcome)
        if outcome.retired:
            outcome.name = "superseded"
        return outcome

    def _may_retire(self, id_: str, tier: str, *, force: bool) -> None:
        held = self.facts.get(id_)
        if held is None or held.by is not None:
            raise Refused("retired already")
        if TIERS.index(tier) < TIERS.index(held.said.tier) and not force:
            raise Refused("lower tier")

    def _apply_policy(self, said: Said, outcome: Outcome) -> None:
        for id_ in self.states(said):
            if id_ in outcome.retired:
                continue
            held = self.facts[id_]
            older = said.since is not None and self.start(said) < held.start
            lower = TIERS.index(said.tier) < TIERS.index(held.said.tier)
            drops = held.said.number is not None and said.number is None
            if self.policy == "suggest" or older or lower or drops:
                outcome.doubts.add(id_)
            else:
                outcome.retired.append(id_)

    def carry_out(self, said: Said, outcome: Outcome, id_: str) -> None:
        """Note what was said; what it retires is for the caller to end."""
        self.clock += 1
        if outcome.same is None:
            self.facts[id_] = Held(said=said, start=self.start(said))
            self.events[id_, "remembered"] += 1
        else:
            self.facts[id_].seen += 1
            self.events[id_, "reaffirmed"] += 1

    def retire(self, id_: str, by: str, how: str = "superseded") -> None:
        held = self.facts[id_]
        held.by, held.ended_as = by, how
        self.events[id_, how] += 1

    # --- By id -------------------------------------------------------------------------------------------------

    def replace(self, id_: str, by: str, *, force: bool) -> None:
        old, new = self.facts[id_], self.facts[by]
        if id_ == by:
            raise Refused("itself")
        if old.by == by:
            return
        if not new.current or old.by is not None:
            raise Refused("retired")
        if not force and new.start < old.start:
            raise Refused("older")
        self._may_retire(id_, new.said.tier, force=force)
        self.retire(id_, by)

    def forget(self, id_: str) -> bool:
        """Whether it was forgotten just now; who ends it is not known yet."""
        held = self.facts[id_]
        if held.ended_as == "forgotten":
            return False
        if held.by is not None:
            raise Refused("replaced")
        return True

    def restore(self, id_: str, *, replace: bool) -> None:
        held = self.facts[id_]
        if held.by is None:
            raise Refused("never retired")
        taken = self.states(held.said) if held.said.kind == "state" else []
        for other, fact in self._at(held.said):
            alike = fact.said.text == held.said.text and "event" not in (fact.said.kind, held.said.kind)
            if alike and fact.current and other not in taken:
                taken.append(other)
        if taken and not replace:
            raise Refused("taken")
        for other in taken:
            self.retire(other, id_)
        held.by = held.ended_as = None
        self.events[id_, "restored"] += 1

    def pin(self, id_: str, *, pinned: bool) -> None:
        held = self.facts[id_]
        if held.by is not None:
            raise Refused("retired")
        if held.pinned != pinned:
            held.pinned = pinned
            self.events[id_, "pinned" if pinned else "unpinned"] += 1
