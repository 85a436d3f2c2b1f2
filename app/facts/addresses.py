"""The address of a statement: where its one current answer stands, and which lock guards it."""

import hashlib
import unicodedata

# Locks are striped, so that a batch of any size needs few of them and the server's lock table never fills.
_STRIPES = 512


def normalise_subject(subject: str) -> str:
    """NFKC, case folded, trimmed and without invisible characters; empty where nothing visible is left. Idempotent."""
    folded = unicodedata.normalize("NFKC", subject).casefold()
    visible = (c for c in folded if unicodedata.category(c) not in {"Cf", "Cc"} or c in "\t\n")
    # Composed last: an invisible character may have kept a letter and its accent apart.
    return " ".join(unicodedata.normalize("NFKC", "".join(visible)).split())


def content_hash(normalised: str) -> bytes:
    """What makes two texts the same text (32 bytes)."""
    return hashlib.sha256(normalised.encode()).digest()


def lock_key(namespace: str, scope: str, place: str) -> int:
    """The advisory lock that serialises the writes to one place of a scope (a signed 64-bit number)."""
    base = int.from_bytes(hashlib.blake2b(namespace.encode(), digest_size=8).digest(), "big", signed=True)
    stripe = hashlib.blake2b(f"{scope}\0{place}".encode(), digest_size=4).digest()
    return (base & ~(_STRIPES - 1)) | (int.from_bytes(stripe, "big") % _STRIPES)
