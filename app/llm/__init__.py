"""The language model behind consolidation: any OpenAI-compatible chat endpoint, and what its answers are worth."""

from app.llm.answer import Reply, read_object
from app.llm.client import AnswerForm, LanguageModel, Meter, build_llm
from app.llm.failure import Cause, LlmFailure, Remedy

__all__ = ["AnswerForm", "Cause", "LanguageModel", "LlmFailure", "Meter", "Remedy", "Reply", "build_llm", "read_object"]
