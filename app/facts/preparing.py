"""From the wire to a draft: everything about a write that needs no database, done before its transaction."""

from collections.abc import Sequence

import structlog
from psycopg.errors import CheckViolation

from app.analyzer import analyze, tsvector_literal
from app.auth import Caller
from app.embedding import EmbedderUnavailable, Profile
from app.facts.addresses import content_hash
from app.facts.detection import normalise
from app.facts.fact import Draft
from app.facts.schemas import AmendIn, FactFields, RememberIn, SupersedeIn
from app.facts.storing import register_profile
from app.state import Service


def _draft(fields: FactFields, content: str, scope: str, caller: Caller) -> Draft:
    terms = analyze(content)
    tier = fields.source.tier or "observed"
    return Draft(
        scope=scope,
        agent=fields.agent,
        kind=fields.kind or ("state" if fields.subject is not None else "note"),
        kind_declared=fields.kind is not None,
        subject=fields.subject,
        content=content,
        content_hash=content_hash(normalise(content)),
        source_tier=caller.capped(tier),
        tier_capped=caller.capped(tier) != tier and fields.source.tier is not None,
        source_ref=fields.source.ref,
        source_quote=fields.source.quote,
        confidence=fields.confidence,
        tags=list(dict.fromkeys(fields.tags or [])),
        metadata=fields.metadata or {},
        valid_from=fields.valid_from,
        valid_to=fields.valid_to,
        observed_at=fields.observed_at,
        terms=terms.counts,
        term_length=terms.length,
        terms_literal=tsvector_literal(terms),
    )


def statement(body: RememberIn, caller: Caller) -> Draft:
    """The draft of a statement to remember. Raises ScopeForbidden where the caller may not write there."""
    caller.must_write(body.scope)
    draft = _draft(body, body.content, body.scope, caller)
    draft.replaces = tuple(body.supersedes)
    draft.reason, draft.evidence, draft.force = body.reason, body.evidence, body.force
    return draft


def replacement(body: SupersedeIn | AmendIn, content: str, caller: Caller) -> Draft:
    """The draft of a fact's replacement; its scope, and what it leaves out, come from that fact later."""
    draft = _draft(body, content, "", caller)
    draft.reason, draft.evidence, draft.force = body.reason, body.evidence, body.force
    return draft


async def embed(service: Service, drafts: Sequence[Draft]) -> None:
    """Give the drafts their vectors. Where the embedder does not answer they stay pending, found by their words."""
    if not drafts:
        return
    try:
        vectors = await service.embedder.embed_documents([draft.content for draft in drafts])
    except EmbedderUnavailable as problem:
        service.unavailable["vector"] = problem.cause
        structlog.get_logger("app").warning("embedding_postponed", cause=problem.cause, facts=len(drafts))
        return
    profile = service.embedder.profile
    if profile is None:
        return
    try:
        await know_profile(service, profile)
    except CheckViolation:
        # Its vectors are too long for any index, so they would be of no use; the words find the facts all the same.
        service.unavailable["vector"] = f"{profile.dimensions} dimensions are too many for an index"
        return
    service.unavailable.pop("vector", None)
    for draft, vector in zip(drafts, vectors, strict=True):
        # A row of zeros says that the text has no vector; that is an answer, and not one to wait for.
        draft.embedding = vector if vector.any() else None
        draft.embedding_profile = profile.name


async def know_profile(service: Service, profile: Profile) -> None:
    """Make sure that the profile has its indexes before its first vector is stored. Raises CheckViolation."""
    if profile.name not in service.registered_profiles:
        async with service.database.reading() as conn:
            await register_profile(conn, profile.name, profile.dimensions)
        service.registered_profiles.add(profile.name)
