"""The order of what was seen, from numbers alone."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.recall.ranking import ARMS, Measures, Ranked, Ranks, rank
from app.recall.sightings import COLUMNS, Held, Sightings, layout, microseconds

HEAD = UUID(int=256)


def seen_as(*sightings: tuple[Held, UUID, UUID | None], columns: int = len(COLUMNS)) -> Sightings:
    """Sightings of a question without terms: how each was found, its fact, and the retired one it echoes."""
    rows = np.zeros(len(sightings), layout(0))
    rows["columns"] = columns
    rows["held"] = [held for held, _, _ in sightings]
    rows["id"] = [id_.bytes for _, id_, _ in sightings]
    rows["echo_id"] = [echo.bytes if echo else b"" for _, _, echo in sightings]
    return Sightings.unpacked(rows.tobytes(), None, None, None, terms=0)


def ranked(seen: Sightings, relevance: list[float]) -> list[Ranked]:
    """The facts in order where every arm puts every text at the same place."""
    count = len(seen)
    zeros = np.zeros(count)
    measured = Measures(cosine=zeros, words=zeros, exact=zeros, share=zeros, relevance=np.array(relevance))
    return list(rank(seen, measured, Ranks(arms=np.ones((len(ARMS), count)), recency=np.ones(count))))


@pytest.mark.parametrize("best", [0, 1])
def test_of_retired_texts_that_meet_a_question_alike_the_more_relevant_one_leads_to_the_head(best: int) -> None:
    echoes = [(Held.ECHO, HEAD, uuid4()) for _ in range(2)]

    (head,) = ranked(seen_as(*echoes), [0.9, 0.2] if best == 0 else [0.2, 0.9])

    assert (head.id, head.best, sorted(head.echoes)) == (HEAD, best, [0, 1])


def test_a_facts_own_text_comes_before_a_retired_one_of_the_same_place() -> None:
    seen = seen_as((Held.ECHO, HEAD, uuid4()), (Held.WORDED, HEAD, None))

    (head,) = ranked(seen, [0.9, 0.2])

    assert head.best == 1
    assert head.relevance == pytest.approx(0.9 * 0.999)


def test_among_equals_the_higher_id_leads() -> None:
    ids = [UUID(int=n << 8) for n in (3, 1, 2)]

    order = ranked(seen_as(*((Held.NEAR, id_, None) for id_ in ids)), [0.5, 0.5, 0.5])

    assert [one.id for one in order] == sorted(ids, reverse=True)


def test_a_row_that_holds_a_null_is_refused_and_not_misread() -> None:
    with pytest.raises(ValueError, match="holds a null"):
        seen_as((Held.NEAR, HEAD, None), columns=0)


def test_a_moment_far_away_is_told_to_the_microsecond() -> None:
    near, far = (datetime(9999, 12, 29, 23, 59, 59, us, tzinfo=UTC) for us in (999_998, 999_999))

    assert microseconds(far) - microseconds(near) == 1
