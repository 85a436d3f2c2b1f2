"""What the scripted server puts into a 200: vectors and chat completions, good or spoilt as a script says."""

import hashlib
import json
import random
import re
import uuid
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Any
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def embedding_list(script: str, body: dict[str, Json], dimensions: int, seed: int) -> Json:
    """The answer of `/v1/embeddings`."""
    texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
    size = dimensions + 1 if script == "wrong_dims" else dimensions
    space = f"{seed}/{body['model']}"
    rows: list[Json] = [
        {"object": "embedding", "index": index, "embedding": text_vector(text, size, space).tolist()}
        for index, text in enumerate(texts)
    ]
    if script == "wrong_count":
        rows.pop()
    elif script == "wrong_index":
        rows[-1]["index"] = len(rows)
    elif script == "shuffled":
        rows.reverse()
    elif script == "nan":
        rows[-1]["embedding"][0] = float("nan")
    elif script == "text":
        rows[-1]["embedding"] = ["0.5"] * size
    usage = {"prompt_tokens": sum(map(tokens, texts)), "total_tokens": sum(map(tokens, texts))}
    return {"object": "list", "model": body["model"], "data": rows, "usage": usage}


def text_vector(text: str, dimensions: int, space: str) -> NDArray[np.float64]:
    """A unit vector: the sum of the vectors of the text's words, or of the text as a whole if it has none."""
    words = re.findall(r"\w+", text.casefold()) or [text]
    total = np.sum([word_vector(word, dimensions, space) for word in words], axis=0)
    return np.asarray(total / np.linalg.norm(total))


@lru_cache(maxsize=50_000)
def word_vector(word: str, dimensions: int, space: str) -> NDArray[np.float64]:
    digest = hashlib.sha256(f"{space}/{word}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8])).standard_normal(dimensions)


def chat_completion(script: str, body: dict[str, Json], reply: Json) -> Json:
    """The answer of `/v1/chat/completions`. A reply that is no text is sent as JSON."""
    content = spoil(script, reply)
    prompt = sum(tokens(str(message.get("content"))) for message in body["messages"])
    completion = tokens(content or "")
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "length" if script == "truncated" else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }


def spoil(script: str, reply: Json) -> str | None:
    """The content of the message that the script makes of a good reply."""
    if script == "wrong_ids":
        reply = json.loads(UUID.sub(lambda found: other_uuid(found.group()), json.dumps(reply)))
    elif script == "unknown_action":
        reply = with_unknown_action(reply)
    elif script == "list":
        reply = [reply]
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    spoilt: dict[str, str | None] = {
        "fenced": f"```json\n{text}\n```",
        "prose": f"Sure! Here is what I found:\n\n{text}\n\nLet me know if you need anything else.",
        "think": f'<think>First I might say {{"digests": "none"}}, but no.</think>\n{text}',
        "trailing_comma": re.sub(r"([}\]])$", r",\1", text),
        "truncated": text[: len(text) // 2],
        "empty": "",
        "null": None,
    }
    return spoilt.get(script, text)


def other_uuid(known: str) -> str:
    """Another id in place of a known one, the same each time."""
    return str(uuid.UUID(int=random.Random(known.lower()).getrandbits(128), version=4))


def with_unknown_action(reply: Json) -> Json:
    """The reply with every `action` replaced by one that nobody offered, and with one more on top."""

    def replaced(value: Json) -> Json:
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if isinstance(value, dict):
            return {key: "delete_all" if key == "action" else replaced(item) for key, item in value.items()}
        return value

    return {**replaced(reply), "action": "delete_all"} if isinstance(reply, dict) else replaced(reply)


def tokens(text: str) -> int:
    """As good a count as the tests need."""
    return len(text) // 4 + 1
