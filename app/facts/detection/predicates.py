"""Which token of a clause is its main verb."""

from app.facts.detection import lexicon
from app.facts.detection.tokens import Token
from app.facts.detection.verbs import NOUN_LIKE


def is_aux(token: Token) -> bool:
    """A form of be or have, or a modal: a verb wherever it stands. German "am" is none."""
    return token.key in {"be", "have"} or (token.low in lexicon.MODALS and token.kind == "word")


def _base_form_fits(tokens: list[Token] | tuple[Token, ...], index: int) -> bool:
    """A plural, a pronoun or a modal stands before: "backups run", "tests for the API run", "may use"."""
    if not index:
        return False
    before = tokens[index - 1]
    if before.low in lexicon.PRONOUNS | lexicon.MODALS | {"to", "people", "children", "men", "women"}:
        return True
    if before.kind in {"word", "name"} and before.low.endswith("s"):
        return True
    qualified = any(token.low in lexicon.PREPOSITIONS for token in tokens[1 : index - 1])
    return qualified and tokens[0].low.endswith("s") and before.kind in {"word", "name"}


def _s_form_fits(before: Token | None, token: Token, after: Token | None) -> bool:
    if before is None or before.low in lexicon.PREPOSITIONS or token.det or before.kind == "number":
        return False
    if after is None or not (after.form or is_aux(after)):
        return True
    # "Release notes go out", "service orders depends on": the later form is the verb.
    return after.form not in {"base", "s"} and not is_aux(after) and token.base not in NOUN_LIKE


def is_verb(tokens: list[Token] | tuple[Token, ...], index: int) -> bool:
    """Whether the token can be a verb where it stands; "the runs" and "of orders" are nouns."""
    token = tokens[index]
    if is_aux(token):
        return True
    if not token.form or token.det:
        return False
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    match token.form:
        case "base":
            return _base_form_fits(tokens, index) and not (after is not None and is_aux(after))
        case "s":
            return _s_form_fits(before, token, after)
        case "ing":
            return before is not None and before.key == "be"
        case _:
            return not _is_attributive(tokens, index)


def _is_attributive(tokens: list[Token] | tuple[Token, ...], index: int) -> bool:
    """A participle before a noun whose verb is still to come: "the minimum supported version is"."""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if after is None or not index or tokens[index - 1].key in {"be", "have"}:
        return False
    opens_noun = after.kind in {"word", "name"} and not after.det and after.low not in lexicon.PREPOSITIONS
    return opens_noun and any(is_aux(token) for token in tokens[index + 2 :])


def main_verb(tokens: list[Token]) -> int:
    """The index of the first verb that is not inside a relative clause of the subject; -1 if there is none."""
    skip = False
    index = 0
    while index < len(tokens):
        if index and tokens[index].low in lexicon.RELATIVES and tokens[index].kind == "word":
            skip = True
        elif is_verb(tokens, index) or (skip and tokens[index].form not in {"", "base"}):
            if not skip:
                return index
            skip = False
            while index + 1 < len(tokens) and is_verb(tokens, index + 1) and not is_aux(tokens[index + 1]):
                index += 1
        index += 1
    return _by_ending(tokens)


def _by_ending(tokens: list[Token]) -> int:
    """A verb that the lexicon does not have: "-s" or "-ed" before a preposition, a number or a name."""
    for index in range(1, len(tokens) - 1):
        token, after = tokens[index], tokens[index + 1]
        opens = after.low in lexicon.PREPOSITIONS or after.kind not in {"word", "colon"} or bool(after.det)
        if token.kind == "word" and not token.det and opens and token.low.endswith(("s", "ed")) and len(token.low) > 3:
            return index
    return 0 if len(tokens) > 1 and tokens[0].form in {"base", "s"} and tokens[0].low != "die" else -1
