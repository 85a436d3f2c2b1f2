"""A service to measure: one that runs already, or one that is started for the time of the measurement."""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

_PATIENCE_S = 60


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def service(url: str | None, data_dir: Path | None = None) -> Iterator[str]:
    """The base URL of a running service; one is started on a fresh data directory where none is given."""
    if url is not None:
        yield url.rstrip("/")
        return
    with tempfile.TemporaryDirectory(prefix="palimpsest-bench-") as folder:
        port = _free_port()
        where = data_dir or Path(folder)
        command = [sys.executable, "-m", "app", "serve", "--data-dir", str(where), "--port", str(port)]
        with (Path(folder) / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            base_url = f"http://127.0.0.1:{port}"
            _wait(base_url, process, Path(folder) / "log")
            yield base_url
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait(base_url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"The service stopped at once:\n{log.read_text()}")
        try:
            if httpx.get(f"{base_url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("The service did not become ready in time.")
