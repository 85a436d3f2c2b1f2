"""The same-statement rule: the same subject and relation, and another value in one slot."""

from typing import Literal

from app.facts.detection import lexicon, units
from app.facts.detection.finding import Finding, conflict
from app.facts.detection.frames import Clause
from app.facts.detection.segments import TYPED, Segment, is_scope, kind_of, segments
from app.facts.detection.single_valued import Slot, judge, names_attribute
from app.facts.detection.tokens import Token

SAME_STATEMENT = "same-statement/1"
LABELLED_VALUE = "labelled-value/1"
SAME_TEXT = "same-text/1"
_TOPIC_MARKS = frozenset("はが是为為在")
_COPULAS = frozenset(
    "ist sind beträgt kostet lautet heißt est sont coûte vaut es son está están cuesta è sono costa é são custa är "
    "er jest są kosztuje is zijn kost".split()
)

#: Where these are left out and another phrase stands in their place, the new statement holds elsewhere.
_BOUNDING = frozenset({"for", "within", "across", "during", "under"})

Quiet = Literal["quiet"]


def common_prefix(new: Clause, held: Clause) -> int:
    length = 0
    for first, second in zip(new.keys, held.keys, strict=False):
        if first != second:
            break
        length += 1
    return length


def common_suffix(new: Clause, held: Clause, prefix: int) -> int:
    longest = min(len(new.keys), len(held.keys)) - prefix
    length = 0
    while length < longest and new.keys[-1 - length] == held.keys[-1 - length]:
        length += 1
    return length


def _widened(new: Clause, held: Clause, prefix: int, suffix: int) -> tuple[int, int]:
    """A name that both values share a part of ("Tern Labs", "Tern Works") belongs to the value whole."""

    def is_part(token: Token, beside: Token) -> bool:
        return token.kind == "name" and beside.kind == "name" and not beside.comma

    while (
        prefix > new.verb + 1
        and is_part(new.tokens[prefix - 1], new.tokens[prefix])
        and is_part(held.tokens[prefix - 1], held.tokens[prefix])
    ):
        prefix -= 1
    while suffix and all(
        is_part(clause.tokens[-suffix], clause.tokens[-suffix - 1]) and not clause.tokens[-suffix].comma
        for clause in (new, held)
    ):
        suffix -= 1
    return prefix, suffix


def compare_values(new: Clause, held: Clause) -> Finding | Quiet | None:
    """A finding; "quiet" if the frames are one and both values may stand; None if the frames differ."""
    prefix = common_prefix(new, held)
    suffix = common_suffix(new, held, prefix)
    new_end, held_end = len(new.keys) - suffix, len(held.keys) - suffix
    if prefix in {new_end, held_end}:
        return None
    if prefix == 0:
        return _counted_subject(new, held, prefix, new_end, held_end)
    colon = new.keys[:prefix].index(":") if ":" in new.keys[:prefix] else -1
    if colon >= 0:
        return _labelled(new, held, colon, prefix, suffix)
    if new.verb < 0:
        return _unparsed(new, held, prefix, suffix)
    if new.verb >= prefix:
        return _counted_subject(new, held, prefix, new_end, held_end)
    if new.verb != held.verb or _tense(new) != _tense(held):
        return None
    if not _is_english(new):
        return _unparsed(new, held, prefix, suffix)
    prefix, suffix = _widened(new, held, prefix, suffix)
    return _same_frame(new, held, prefix, suffix)


def _is_english(clause: Clause) -> bool:
    """Whether the verb is one that the lexicon has, or is shown to be one by the preposition behind it."""
    verb = clause.tokens[clause.verb]
    if verb.form or verb.low in lexicon.MODALS:
        return True
    following = clause.tokens[clause.verb + 1] if clause.verb + 1 < len(clause.tokens) else None
    return following is not None and following.low in lexicon.PREPOSITIONS


def _tense(clause: Clause) -> bool:
    token = clause.tokens[clause.verb]
    return token.form in {"past", "ed"} or token.low == "been"


def _same_frame(new: Clause, held: Clause, prefix: int, suffix: int) -> Finding | Quiet | None:
    new_end, held_end = len(new.keys) - suffix, len(held.keys) - suffix
    new_parts, held_parts = segments(new, prefix, new_end), segments(held, prefix, held_end)
    slot = Slot(new, held, prefix, new_parts[0], held_parts[0], new.tokens[new_end:])
    if new.additive or held.additive or (new.denies and held.denies) or _lists_more(slot):
        return "quiet"
    if new.denies != held.denies:
        return None
    if any(token.low in lexicon.UNFINISHED for token in held.tokens[held.verb : held_end]):
        return "quiet"
    removed, added = held.words(prefix, held_end), new.words(prefix, new_end)
    unit = _unit(slot)
    if unit == "unit":
        return conflict("unit", _differs(removed, added), (removed,), (added,), SAME_STATEMENT)
    verdict = judge(slot)
    if "quiet" in (unit, verdict) or _scopes_differ(new, held, new_parts[1:], held_parts[1:]):
        return "quiet"
    lost = lost_segments(new, held, new_parts[1:], held_parts[1:])
    narrowed = [part for part in new_parts[1:] if is_scope(new, part) and not _has_opener(held_parts, part)]
    if lost and any(part.opener in _BOUNDING and not _has_opener(new_parts, part) for part in held_parts[1:]):
        return "quiet" if len(new_parts) > 1 else _partial((removed,), (added,), lost)
    if lost or narrowed:
        return _partial((removed,), (added,), lost)
    # "Runs on v3.8.1": without its subject nobody knows that both speak of one thing.
    subjectless = new.verb == 0 and new.tokens[0].form == "s"
    retires = verdict == "replace" and not new.still and not subjectless
    return Finding(
        "value",
        retires=retires,
        detail=_differs(removed, added),
        removed=(removed,),
        added=(added,),
        rule=SAME_STATEMENT,
    )


def _differs(removed: str, added: str) -> str:
    return f'The same statement with another value: "{removed}" in the held fact, "{added}" in the new one.'


def _partial(removed: tuple[str, ...], added: tuple[str, ...], lost: list[str]) -> Finding:
    if not lost:
        detail = f'The new value "{added[0]}" is stated for a narrower case than the held one.'
        return conflict("partial", detail, removed, added, SAME_STATEMENT)
    detail = f'The new statement changes "{removed[0]}" but says nothing about "{", ".join(lost)}".'
    return conflict("partial", detail, tuple(lost), added, SAME_STATEMENT)


def _has_opener(parts: list[Segment], part: Segment) -> bool:
    return any(other.opener == part.opener for other in parts)


def _keys(clause: Clause, part: Segment) -> tuple[str, ...]:
    return clause.keys[part.start : part.end]


def _scopes_differ(new: Clause, held: Clause, new_parts: list[Segment], held_parts: list[Segment]) -> bool:
    """Whether both say where they hold, and it is not the same place: "for webhooks", "for emails"."""
    for part in new_parts:
        for other in held_parts:
            same = _keys(new, part) == _keys(held, other)
            if part.opener == other.opener and not same and (is_scope(new, part) or is_scope(held, other)):
                return True
    return False


def lost_segments(new: Clause, held: Clause, new_parts: list[Segment], held_parts: list[Segment]) -> list[str]:
    """The phrases of the held clause that the new one neither repeats nor fills with something else."""
    lost = []
    for part in held_parts:
        repeated = set(_keys(held, part)) <= set(new.keys)
        if not repeated and not _has_opener(new_parts, part):
            lost.append(held.words(part.start, part.end))
    return lost


def _items(tokens: tuple[Token, ...]) -> frozenset[tuple[str, ...]]:
    items: list[list[str]] = [[]]
    for token in tokens:
        if token.comma or token.low in {"and", "or"}:
            items.append([])
        if token.low not in {"and", "or"}:
            items[-1].append(token.key)
    return frozenset(tuple(item) for item in items if item)


def _lists_more(slot: Slot) -> bool:
    """Whether the new value lists all that the held one lists, and more."""
    return _items(slot.held_tokens) < _items(slot.new_tokens)


def _unit(slot: Slot) -> Literal["unit", "quiet"] | None:
    """ "unit" if the number is the same and the unit is not, or if the measures cannot be compared."""
    new, held = slot.new_tokens, slot.held_tokens
    if new[0].low in units.PERIODS and held[0].low in units.PERIODS and slot.new.keys[slot.start - 1] == "per":
        return "unit"
    first, second = new[0], held[0]
    if first.kind == second.kind == "amount":
        same_measure = first.size[1] == second.size[1] or {first.size[1], second.size[1]} == {"time", "months"}
        return None if same_measure and first.size[0] != second.size[0] else "unit"
    if {first.kind, second.kind} == {"amount", "number"} and first.size[0] == second.size[0]:
        return "unit"
    if first.kind == second.kind == "number" and len(new) > 1 and len(held) > 1 and _counts_other(new[1], held[1]):
        return "quiet"
    return None


def _counts_other(new: Token, held: Token) -> bool:
    """ "3 replicas" and "5 shards" are two counts, not one that changed."""
    nouns = new.kind == held.kind == "word" and not {new.low, held.low} & (lexicon.PREPOSITIONS | {"per"})
    return nouns and new.key != held.key


def _counted_subject(new: Clause, held: Clause, prefix: int, new_end: int, held_end: int) -> Finding | None:
    """ "Three people staff the kiosk": the number counts the subject."""
    if new_end != prefix + 1 or held_end != prefix + 1 or new.denies or held.denies:
        return None
    first, second = new.tokens[prefix], held.tokens[prefix]
    following = new.tokens[prefix + 1] if prefix + 1 < new.verb else None
    counted = first.kind == second.kind and first.kind in {"number", "amount"} and first.size[1] == second.size[1]
    if not counted or new.verb < 0 or new.additive or _tense(new):
        return None
    counted_noun = following is not None and following.low.endswith(("s", "ren", "men"))
    plural = first.size[1] == "people" or counted_noun
    if not plural or _is_year(first) or (prefix and new.tokens[prefix - 1].kind == "name"):
        return None
    removed, added = held.words(prefix, held_end), new.words(prefix, new_end)
    return conflict("value", _differs(removed, added), (removed,), (added,), SAME_STATEMENT)


def _is_year(token: Token) -> bool:
    return token.kind == "number" and 1900 <= token.size[0] <= 2100


def _labelled(new: Clause, held: Clause, colon: int, prefix: int, suffix: int) -> Finding | Quiet | None:
    """ "Database choice: Postgres": the label names the attribute, what follows is its value."""
    if new.additive or held.additive or new.denies or held.denies:
        return "quiet"
    new_end, held_end = len(new.keys) - suffix, len(held.keys) - suffix
    new_parts, held_parts = segments(new, prefix, new_end), segments(held, prefix, held_end)
    removed, added = held.words(prefix, held_end), new.words(prefix, new_end)
    kinds = kind_of(new.tokens[prefix:new_end]), kind_of(held.tokens[prefix:held_end])
    attribute = names_attribute(new.tokens[:colon]) and prefix == colon + 1
    if not attribute and not (colon > 1 and set(kinds) <= TYPED and prefix == colon + 1):
        return "quiet"
    lost = lost_segments(new, held, new_parts[1:], held_parts[1:])
    if lost:
        return _partial((removed,), (added,), lost)
    return Finding("value", attribute and not new.still, _differs(removed, added), (removed,), (added,), LABELLED_VALUE)


def _unparsed(new: Clause, held: Clause, prefix: int, suffix: int) -> Finding | None:
    """Text without a known English verb: never more than a conflict, and only on clear signs of a value."""
    new_end, held_end = len(new.keys) - suffix, len(held.keys) - suffix
    shared = prefix + suffix
    kinds = kind_of(new.tokens[prefix:new_end]), kind_of(held.tokens[prefix:held_end])
    typed = kinds[0] == kinds[1] and kinds[0] in TYPED and prefix >= 2 and shared >= 3
    before = set(new.keys[:prefix])
    copular = prefix >= 2 and bool(_COPULAS & {new.keys[prefix - 1]}) and new.verb < 0
    topical = prefix >= 3 and bool(_TOPIC_MARKS & before)
    if not (typed or copular or topical) or new.denies or held.denies:
        return None
    removed, added = held.words(prefix, held_end), new.words(prefix, new_end)
    return conflict("value", _differs(removed, added), (removed,), (added,), SAME_TEXT)
