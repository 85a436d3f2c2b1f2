"""A scripted server that speaks the OpenAI protocol over a real socket, well or in any of the known bad ways.

    with OpenAIServer() as server:
        server.embeddings = "429"                      # every call, until something else is set
        server.embeddings = ["500", "slow:0.5", "ok"]  # one after the other, the last one for ever
        server.chat = mix(["ok", "fenced", "500"], seed=7)
        server.replies = [{"digests": []}]             # what a well-behaved model would say, in turn

`slow:SECONDS` answers late, `timeout` not as long as the server runs. A number is an HTTP status (`429:5` has
a Retry-After of 5 seconds), `quota` the 429 of an account without credit. All names: `SCRIPTS`.
"""

import json
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from socket import SHUT_RDWR, socket
from types import TracebackType
from typing import Any, Self

from tests.openai_answers import chat_completion, embedding_list

Json = Any
Script = str | Sequence[str] | Iterator[str]
Replies = Sequence[Json] | Callable[[dict[str, Json]], Json]


BOTH = {"ok", "slow", "timeout", "hang_up", "html", "quota"}
SCRIPTS = {
    "embeddings": BOTH | {"wrong_count", "wrong_dims", "wrong_index", "shuffled", "nan", "text"},
    "chat": BOTH
    | {"fenced", "prose", "think", "trailing_comma", "list", "empty", "null", "truncated", "wrong_ids"}
    | {"unknown_action", "no_json_schema", "schema_crash"},
}


def mix(scripts: Sequence[str], seed: int) -> Iterator[str]:
    """Scripts drawn at random for ever, the same ones for the same seed."""
    draw = random.Random(seed)
    while True:
        yield draw.choice(scripts)


@dataclass(frozen=True, slots=True)
class Call:
    """A request that the server received, and the script that answered it."""

    endpoint: str
    body: dict[str, Json]
    authorization: str | None
    script: str


class OpenAIServer:
    """Listens on a free port of 127.0.0.1 from `with` to the end of the block.

    Vectors are sums of one random vector per word, so that texts which share words are near each other.
    They differ with `seed` and with the model asked for: two models give two unrelated spaces.
    """

    def __init__(self, dimensions: int = 64, seed: int = 0) -> None:
        self.dimensions = dimensions
        self.seed = seed
        self.calls: list[Call] = []
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._scripts: dict[str, Iterator[str]] = {"embeddings": repeat("ok"), "chat": repeat("ok")}
        self._replies: Callable[[dict[str, Json]], Json] = lambda body: {}
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def embeddings(self) -> Iterator[str]:
        return self._scripts["embeddings"]

    @embeddings.setter
    def embeddings(self, script: Script) -> None:
        self._scripts["embeddings"] = _known("embeddings", script)

    @property
    def chat(self) -> Iterator[str]:
        return self._scripts["chat"]

    @chat.setter
    def chat(self, script: Script) -> None:
        self._scripts["chat"] = _known("chat", script)

    @property
    def replies(self) -> Callable[[dict[str, Json]], Json]:
        return self._replies

    @replies.setter
    def replies(self, replies: Replies) -> None:
        """JSON values or texts, in turn and the last for ever, or a function of the request's body."""
        if callable(replies):
            self._replies = replies
        else:
            turns = _endless(replies)
            self._replies = lambda body: next(turns)

    def calls_to(self, endpoint: str) -> list[Call]:
        """The calls to `embeddings` or `chat` so far."""
        with self._lock:
            return [call for call in self.calls if call.endpoint == endpoint]

    def receive(self, endpoint: str, body: dict[str, Json], authorization: str | None) -> str:
        """Notes a call and says by which script to answer it."""
        with self._lock:
            script = next(self._scripts[endpoint])
            self.calls.append(Call(endpoint, body, authorization, script))
        return script

    def answer(self, endpoint: str, script: str, body: dict[str, Json]) -> Json:
        """The JSON of a 200."""
        if endpoint == "embeddings":
            return embedding_list(script, body, body.get("dimensions") or self.dimensions, self.seed)
        with self._lock:
            reply = self._replies(body)
        return chat_completion(script, body, reply)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.hang_up_all()
        self._http.server_close()


def _known(endpoint: str, scripts: Script) -> Iterator[str]:
    """The scripts one by one; a name that is misspelt would else be served as `ok`."""

    def checked(script: str) -> str:
        name = script.partition(":")[0]
        if not name.isdigit() and name not in SCRIPTS[endpoint]:
            raise ValueError(f"no script of this name for {endpoint}: {name}")
        return script

    if isinstance(scripts, str | Sequence):
        scripts = checked(scripts) if isinstance(scripts, str) else [checked(script) for script in scripts]
    return map(checked, _endless(scripts))


def _endless(turns: Json) -> Iterator[Json]:
    if isinstance(turns, str):
        return repeat(turns)
    if isinstance(turns, Sequence):
        return chain(turns[:-1], repeat(turns[-1]))
    return iter(turns)


class _Http(ThreadingHTTPServer):
    # Leaving the block waits for every handler, so that no thread or socket outlives a test.
    daemon_threads = False

    def __init__(self, script: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.open: set[socket] = set()

    def hang_up_all(self) -> None:
        for connection in list(self.open):
            hang_up(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A caller that gave up is no error of the server's.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def hang_up(connection: socket) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        # The caller was faster.
        return


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Tests read the calls instead."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint = {"/v1/embeddings": "embeddings", "/v1/chat/completions": "chat"}.get(self.path)
        if endpoint is None:
            self.reply(404, b'{"error": {"message": "no such path"}}')
            return
        script = self.server.script.receive(endpoint, body, self.headers["Authorization"])
        self.perform(endpoint, script, body)

    def perform(self, endpoint: str, script: str, body: dict[str, Json]) -> None:
        name, _, argument = script.partition(":")
        if name in ("slow", "timeout"):
            self.server.script.stopping.wait(float(argument) if argument else None)
            name = "ok"
        refused = body.get("response_format", {}).get("type") == "json_schema"
        if name == "no_json_schema" and refused:
            name = "400"
        if name == "hang_up":
            self.close_connection = True
            hang_up(self.connection)
        elif name == "schema_crash" and refused:
            self.reply(500, b'{"error": {"message": "validation error at body.response_format.type"}}')
        elif name.isdigit() or name == "quota":
            self.refuse(name, argument)
        elif name == "html":
            self.reply(200, b"<html><body>Sign in to continue</body></html>", "text/html")
        else:
            self.reply(200, json.dumps(self.server.script.answer(endpoint, name, body)).encode())

    def refuse(self, name: str, retry_after: str) -> None:
        status = 429 if name == "quota" else int(name)
        code = "insufficient_quota" if name == "quota" else f"status_{status}"
        error = {"error": {"message": "refused by script", "type": code, "code": code}}
        self.reply(status, json.dumps(error).encode(), retry_after=retry_after)

    def reply(self, status: int, content: bytes, kind: str = "application/json", retry_after: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(content)
