"""Turns texts into unit vectors, with the model in the wordllama wheel or an OpenAI-compatible endpoint."""

from app.embedding.contract import Cause, Embedder, EmbedderUnavailable, EmbeddingSettings, Profile, Vectors
from app.embedding.local import LocalEmbedder
from app.embedding.remote import RemoteEmbedder

__all__ = [
    "Cause",
    "Embedder",
    "EmbedderUnavailable",
    "EmbeddingSettings",
    "LocalEmbedder",
    "Profile",
    "RemoteEmbedder",
    "Vectors",
    "build_embedder",
]


def build_embedder(settings: EmbeddingSettings) -> Embedder:
    """The endpoint if `EMBEDDING_URL` names one, else the local model. ValueError if half configured."""
    if settings.embedding_url and settings.embedding_model:
        return RemoteEmbedder(settings, settings.embedding_url, settings.embedding_model)
    if settings.embedding_url or settings.embedding_model:
        raise ValueError("EMBEDDING_URL and EMBEDDING_MODEL must be set together")
    return LocalEmbedder()
