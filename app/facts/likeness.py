"""Which subjects look alike: the closest ones to a name, and those that probably mean the same."""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

_WORD = re.compile(r"[^\W_]+")
_NEAREST = 5
_LEAST = 0.4
_SHORTEST_SLIP = 4
_MOST_ALIKE = 50


def nearest(subject: str, vocabulary: Iterable[str]) -> list[str]:
    """The members of the vocabulary that look most like it, best first, five at most.

    Alike is by Dice's coefficient over pairs of adjacent characters, separators left out.
    """
    asked = _bigrams(subject)
    scored = ((_dice(asked, _bigrams(known)), known) for known in vocabulary if known != subject)
    close = sorted((-score, known) for score, known in scored if score >= _LEAST)
    return [known for _, known in close[:_NEAREST]]


def near_misses(vocabulary: Sequence[str]) -> dict[str, list[str]]:
    """By subject, those that probably mean the same; a subject that stands apart is absent.

    They differ in separators, in the order of their words, in a plural, or in one slip of the finger inside a word
    of four letters or more. What differs in a digit or in a short word is another thing: `room.1`, `team.a`.
    """
    groups: defaultdict[Hashable, list[str]] = defaultdict(list)
    for subject in vocabulary:
        for key in _keys(subject):
            groups[key].append(subject)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for group in groups.values():
        for one, other in combinations(group[:_MOST_ALIKE], 2):
            if one != other and _alike(one, other):
                found[one].add(other)
                found[other].add(one)
    return {subject: sorted(found[subject]) for subject in sorted(found)}


def _keys(subject: str) -> set[Hashable]:
    words = _WORD.findall(subject)
    keys: set[Hashable] = {"".join(words), tuple(sorted(map(_singular, words)))}
    for position, word in enumerate(words):
        if len(word) >= _SHORTEST_SLIP - 1:
            rest = (*words[:position], *words[position + 1 :])
            shorter = {word[:cut] + word[cut + 1 :] for cut in range(len(word))}
            keys.update((position, rest, form) for form in shorter | {word})
    return keys


def _alike(one: str, other: str) -> bool:
    first, second = _WORD.findall(one), _WORD.findall(other)
    if "".join(first) == "".join(second) or sorted(map(_singular, first)) == sorted(map(_singular, second)):
        return True
    if len(first) != len(second):
        return False
    differing = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    return len(differing) == 1 and _one_slip(*differing[0])


def _one_slip(one: str, other: str) -> bool:
    """Whether one character was left out, added, changed, or swapped with its neighbour; digits are never slips."""
    if max(len(one), len(other)) < _SHORTEST_SLIP or _digits(one) != _digits(other):
        return False
    short, long = sorted((one, other), key=len)
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    changed = short[start + 1 :] == long[start + 1 :]
    swapped = short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]
    return changed or swapped


def _digits(word: str) -> str:
    return "".join(c for c in word if c.isdigit())


def _singular(word: str) -> str:
    return word[:-1] if len(word) > _SHORTEST_SLIP - 1 and word.endswith("s") and not word.endswith("ss") else word


def _bigrams(subject: str) -> Counter[str]:
    squashed = f" {''.join(_WORD.findall(subject)) or subject} "
    return Counter(squashed[i : i + 2] for i in range(len(squashed) - 1))


def _dice(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / (one.total() + other.total())
