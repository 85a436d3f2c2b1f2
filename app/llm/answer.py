"""Reading what a model answered: the completion around it, and the JSON object inside it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.llm.failure import LlmFailure

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
# Some templates open the tag inside the prompt, so that the answer only closes it.
_THOUGHT = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_START = re.compile(r"[{\[]")
_CHARACTERS_PER_TOKEN = 4
_MOST_STARTS = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. Tokens are the endpoint's count, or an estimate where it gives none."""

    text: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def estimate_tokens(text: str) -> int:
    """About as many tokens as a text has."""
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def read_completion(content: bytes, asked: str) -> tuple[Reply, str | None]:
    """The reply in the body of a 200, and why the model stopped. Raises LlmFailure where there is none."""
    try:
        body = json.loads(content)
        choice = body["choices"][0]
        text = _joined(choice["message"].get("content"))
        finish = choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        raise LlmFailure("unreadable", "the body is no chat completion") from None
    usage = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    reply = Reply(
        text,
        _counted(usage.get("prompt_tokens"), asked),
        _counted(usage.get("completion_tokens"), text),
    )
    return reply, finish if isinstance(finish, str) else None


def _joined(content: Any) -> str:
    """The text of a message: a string, none, or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _counted(given: Any, text: str) -> int:
    return given if isinstance(given, int) and given >= 0 else estimate_tokens(text)


def read_object(text: str, member: str) -> dict[str, Any]:
    """The one JSON object of an answer that has `member`, out of fences, prose and thinking.

    Nothing is mended and nothing is guessed: a trailing comma, a list in the place of the object, an empty answer
    or two different objects raise LlmFailure, since to read them as "nothing to do" would lose what was asked.
    """
    spoken = _THOUGHT.sub("", _THINKING.sub("", text)).strip()
    if not spoken:
        raise LlmFailure("unreadable", "the answer is empty")
    found = [value for value in _values(spoken) if isinstance(value, dict) and member in value]
    if not found:
        raise LlmFailure("unreadable", f"the answer holds no JSON object with `{member}`")
    if any(value != found[0] for value in found):
        raise LlmFailure("unreadable", "the answer holds several different JSON objects")
    return found[0]


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON values of a text, in order."""
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_MOST_STARTS):
        start = _START.search(text, position)
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (json.JSONDecodeError, RecursionError):
            position = start.end()
        else:
            yield value
