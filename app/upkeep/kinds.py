"""The kinds of jobs that there are."""

from collections.abc import Mapping

from app.upkeep import decay, embedding_jobs, pruning
from app.upkeep.consolidation import service as consolidation
from app.upkeep.digests import service as digests
from app.upkeep.jobs import Kind
from app.upkeep.review import service as review

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        decay.KIND,
        pruning.KIND,
        embedding_jobs.EMBED_PENDING,
        embedding_jobs.REEMBED,
        consolidation.KIND,
        digests.KIND,
        review.KIND,
    )
}
