"""Whether a new statement stands beside a held one, replaces it, narrows it or contradicts it: lexical rules only."""

from app.facts.detection.comparison import compare, dropped_values, key_terms
from app.facts.detection.finding import Finding
from app.facts.detection.tokens import normalise

__all__ = ["Finding", "compare", "dropped_values", "key_terms", "normalise"]
