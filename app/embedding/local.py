"""The embedder that needs nothing but the wordllama wheel."""

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import wordllama  # type: ignore[import-untyped]  # The package ships no type information.

from app.embedding.contract import Cause, Profile, Vectors, batches, unit_rows


class LocalEmbedder:
    """The static word vectors of wordllama (l2_supercat, 256 dimensions), averaged. It uses no network.

    Of a text, 20,000 characters and of these 8,192 tokens count; an average over so many does not move
    any more, and the bound keeps a text of rare signs, up to four tokens each, from taking 100 MB.
    """

    # Whoever changes how a text is prepared must change this name: the vectors are no longer comparable.
    profile: Profile | None = Profile("wordllama-l2-supercat-256", 256)
    last_failure: Cause | None = None

    MAX_CHARACTERS = 20_000
    MAX_TOKENS = 8_192
    BATCH_TEXTS = 64
    BATCH_CHARACTERS = 8_192
    # Up to this much the work takes a millisecond or two: the event loop can spare that.
    INLINE_TEXTS = 32
    INLINE_CHARACTERS = 4_096

    def __init__(self) -> None:
        # Left to itself the package looks for its tokenizer in the user's cache and then on the network.
        folder = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(dim=256, cache_dir=folder, disable_download=True)
        self._words: Vectors = model.embedding
        self._tokenizer = model.tokenizer
        self._tokenizer.enable_truncation(self.MAX_TOKENS)
        self._tokenizer.no_padding()

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(texts)

    async def aclose(self) -> None:
        """Nothing to release."""

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > self.INLINE_TEXTS or sum(map(len, texts)) > self.INLINE_CHARACTERS:
            return await asyncio.to_thread(self._rows, texts, self._tokens_beside)
        return self._rows(texts, self._tokens)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._tokenizer.encode(text, add_special_tokens=False).ids for text in texts]

    def _tokens_beside(self, texts: Sequence[str]) -> list[list[int]]:
        # It lets other threads run meanwhile and starts some of its own, which a few short texts are not worth.
        return [encoded.ids for encoded in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    def _rows(self, texts: Sequence[str], tokens: Callable[[Sequence[str]], list[list[int]]]) -> Vectors:
        prepared = [self._prepare(text) for text in texts]
        means = [
            self._mean(spoken)
            for batch in batches(prepared, self.BATCH_TEXTS, self.BATCH_CHARACTERS)
            for spoken in tokens(batch)
        ]
        return unit_rows(np.array(means)) if means else np.zeros((0, 256), np.float32)

    def _mean(self, tokens: Sequence[int]) -> Vectors:
        """The mean vector of some tokens; zeros for none."""
        words: Vectors = self._words.take(tokens, axis=0, mode="clip")
        total: Vectors = words.sum(axis=0) / max(len(tokens), 1)
        return total

    def _prepare(self, text: str) -> str:
        # The tokenizer takes line breaks and repeated blanks for words of their own, which they are not.
        return " ".join(unicodedata.normalize("NFKC", text[: self.MAX_CHARACTERS]).split())
