"""What a write has loaded and locked, kept up to date while its items are decided in order."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from app.auth import Scopes
from app.facts.fact import Draft, Fact

_TICK = timedelta(microseconds=1)
# As many facts of the same write are compared with each new one.
_NEAREST = 30


class Working:
    """The facts around the addresses of one write. Later items of a batch see what earlier ones did."""

    def __init__(self) -> None:
        self.facts: dict[UUID, Fact] = {}
        self._at_subject: defaultdict[tuple[str, str], list[UUID]] = defaultdict(list)
        self._with_text: defaultdict[tuple[str, str | None, bytes], list[UUID]] = defaultdict(list)
        self._neighbours: defaultdict[int, list[UUID]] = defaultdict(list)
        self._new_by_term: defaultdict[tuple[str, str], list[UUID]] = defaultdict(list)
        self._latest: datetime | None = None

    def hold(self, facts: Iterable[Fact]) -> None:
        """Take facts in, each once."""
        for fact in facts:
            if fact.id not in self.facts:
                self.facts[fact.id] = fact
                self._with_text[(fact.scope, fact.subject, fact.content_hash)].append(fact.id)
                if fact.subject is not None:
                    self._at_subject[(fact.scope, fact.subject)].append(fact.id)

    def hold_neighbours(self, found: Iterable[tuple[int, Fact]]) -> None:
        """Take in what the database found for each draft, best first."""
        for position, fact in found:
            self.hold([fact])
            self._neighbours[position].append(fact.id)

    def add(self, fact: Fact, terms: Iterable[str]) -> None:
        """Take in a fact that this write creates."""
        self.hold([fact])
        for term in terms:
            self._new_by_term[(fact.scope, term)].append(fact.id)

    def next_instant(self, now: datetime, draft: Draft) -> datetime:
        """A moment for a new fact: now, but after every earlier item and after what is held at its address.

        Neither a burst within one microsecond nor a clock that was set back makes a newer fact look older.
        """
        held = [fact.recorded_at for fact in self._at(draft)]
        held.extend(self.facts[id_].recorded_at for id_ in draft.replaces if id_ in self.facts)
        if self._latest is not None:
            held.append(self._latest)
        self._latest = max([now, *(moment + _TICK for moment in held)])
        return self._latest

    def _at(self, draft: Draft) -> list[Fact]:
        return self._with_same_text(draft) + self._at_same_subject(draft)

    def _with_same_text(self, draft: Draft) -> list[Fact]:
        texts = ((draft.scope, subject, draft.content_hash) for subject in draft.addresses)
        return [self.facts[id_] for text in texts for id_ in self._with_text[text]]

    def _at_same_subject(self, draft: Draft) -> list[Fact]:
        places = ((draft.scope, subject) for subject in draft.addresses if subject is not None)
        return [self.facts[id_] for place in places for id_ in self._at_subject[place]]

    def same_text(self, draft: Draft, now: datetime) -> Fact | None:
        """The fact that says the same at the same address and still stands; an event only at the same moment."""
        for fact in self._with_same_text(draft):
            if fact.can_retire and _same_window(draft, fact, now):
                return fact
        return None

    def stale_with_same_text(self, draft: Draft) -> list[Fact]:
        """Stale digests in the draft's words at its address: nothing that holds, but there."""
        return [fact for fact in self._with_same_text(draft) if fact.status == "stale"]

    def current_states(self, draft: Draft) -> list[Fact]:
        """The current states at the draft's address, oldest first."""
        held = self._at_same_subject(draft)
        return sorted((f for f in held if f.kind == "state" and f.is_current), key=lambda f: (f.recorded_at, f.id))

    def retired_with_same_text(self, draft: Draft) -> list[Fact]:
        """The latest retired fact with the draft's text at its address, if there is one."""
        retired = [fact for fact in self._with_same_text(draft) if fact.superseded_by is not None]
        return sorted(retired, key=lambda f: (f.retired_at or f.recorded_at, f.id))[-1:]

    def neighbours(self, draft: Draft) -> list[Fact]:
        """Current facts that share most of the draft's rare words: stored ones, then those of this write."""
        coming = Counter(id_ for term in draft.selective for id_ in self._new_by_term[(draft.scope, term)])
        nearest = [id_ for id_, _ in coming.most_common(_NEAREST)]
        ids = dict.fromkeys([*self._neighbours[draft.position], *nearest])
        return [self.facts[id_] for id_ in ids if self.facts[id_].is_current]

    def head_of(self, fact: Fact, reads: Scopes) -> UUID | None:
        """The current fact at the end of a retired fact's chain; None where there is none that may be read."""
        head = self.head_fact(fact)
        return head.id if head is not None and head.is_current and reads.admit(head.scope) else None

    def head_fact(self, fact: Fact) -> Fact | None:
        """What stands at the end of the chain, current or not."""
        seen = fact
        while seen.superseded_by is not None:
            following = self.facts.get(seen.superseded_by)
            if following is None:
                return self.facts.get(seen.head_id) if seen.head_id else None
            seen = following
        return seen


def _same_window(draft: Draft, fact: Fact, now: datetime) -> bool:
    """Whether repeating the text means the same standing statement, and not another occurrence or period."""
    if draft.kind == "event" or fact.kind == "event":
        given = draft.valid_from or draft.observed_at
        return draft.kind == fact.kind and given is not None and given in (fact.valid_from, fact.observed_at)
    if fact.is_current:
        ends_with_it = draft.valid_to == fact.valid_to or draft.valid_to is None
        return ends_with_it and (draft.valid_from is None or draft.valid_from <= now)
    return draft.valid_from == fact.valid_from and draft.valid_to == fact.valid_to
