"""Consolidation: a language model proposes digests, contradictions and subjects, and rules decide what becomes of it.

The model sees current facts of one scope under short handles, and whatever it answers is only a list of proposals.
The gate admits those that name facts which were shown in this very call and are still current, do not mix scopes,
entities or subjects, and claim nothing that the facts themselves do not say. A digest stands beside its sources; it
retires nothing, is marked as a digest, and never becomes a source.
"""
