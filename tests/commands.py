"""Runs `palimpsest` as a person does, in a process of its own, with no setting but those given."""

import os
import re
import signal
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.settings import Settings, variable_of

COMMAND = str(Path(sysconfig.get_path("scripts")) / "palimpsest")
_VARIABLES = {variable_of(name, field) for name, field in Settings.model_fields.items()}
_PATIENCE_S = 60


def environment(**given: str) -> dict[str, str]:
    """This process' environment, without what configures the service, and with what is given."""
    kept = {name: value for name, value in os.environ.items() if name.upper() not in _VARIABLES}
    return kept | {"COLUMNS": "200"} | given


def run(*arguments: str, at: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the folder `at` to its end."""
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=at,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )


@dataclass(slots=True)
class Serving:
    """A `palimpsest serve` that has said where it is."""

    process: "subprocess.Popen[str]"
    line: str
    log: Path

    @property
    def url(self) -> str:
        found = re.search(r"API (http://\S+)/v1", self.line)
        assert found is not None, self.line
        return found[1]

    def said(self, words: str) -> str:
        """The next line with these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if words in line:
                return line
        raise AssertionError(f"it ended without saying {words!r}: {self.log.read_text()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=_PATIENCE_S)


@contextmanager
def serving(*options: str, at: Path, **variables: str) -> Iterator[Serving]:
    """`palimpsest serve` with further options on a free port, from the line that says where until the end."""
    log = at / f"serve-{os.urandom(4).hex()}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [COMMAND, "serve", "--port", "0", *options],
            cwd=at,
            env=environment(LOG_LEVEL="warning", **variables),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, log.read_text()
            yield Serving(process, line, log)
        finally:
            if process.poll() is None:
                process.terminate()


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every process whose working directory is in the folder, as that of an embedded server is."""
    return [
        process
        for process in psutil.process_iter(["cwd"])
        if process.info["cwd"] is not None and Path(process.info["cwd"]).is_relative_to(folder)
    ]
