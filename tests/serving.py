"""Runs an app in this process on a real socket, as `palimpsest serve` would."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from time import sleep

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def running(app: ASGIApp, *, root_path: str = "", host: str = "127.0.0.1") -> Iterator[str]:
    """The base URL of a server that answers with `app` until the block ends."""
    # With the protocol named, asyncio turns Nagle's algorithm off, as it does for sockets of its own; without,
    # every second answer on a connection waits 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((host, 0))
    listener.listen()
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="auto", root_path=root_path)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("The server stopped before it was ready; its log says why.")
            sleep(0.01)
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()
