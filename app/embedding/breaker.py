"""Leaves a failing endpoint alone for a while, so that callers need not wait for it."""

from time import monotonic

import structlog

from app.embedding.contract import EmbedderUnavailable

logger = structlog.get_logger(__name__)


class Breaker:
    """Fails calls at once while the endpoint is known to be down (circuit breaker; Nygard, Release It!).

    It opens on a failure that only a person can mend, on a `Retry-After`, and on three failures in a row.
    When the pause is over one call may try; each pause after a failed try is twice as long.
    """

    FAILURES_IN_A_ROW = 3
    LONGEST_PAUSE_S = 60.0
    MOST_DOUBLINGS = 10

    def __init__(self, pause_s: float, trial_s: float) -> None:
        self._pause_s = pause_s
        self._trial_s = trial_s
        self.last_failure: EmbedderUnavailable | None = None
        self._failures = 0
        self._pauses = 0
        self._open_until = 0.0

    def check(self) -> int:
        """A ticket to hand back with the failure; raises the last one while the endpoint is left alone."""
        if self.last_failure is not None and self._pauses:
            wait = self._open_until - monotonic()
            if wait > 0:
                known = self.last_failure
                raise EmbedderUnavailable(known.cause, retry_after=wait, permanent=known.permanent)
            self._open_until = monotonic() + self._trial_s
        return self._pauses

    def succeeded(self) -> None:
        if self._pauses:
            logger.info("embedding endpoint answers again")
        self.last_failure = None
        self._failures = self._pauses = 0

    def failed(self, failure: EmbedderUnavailable, ticket: int) -> None:
        if failure.cause == "rejected":
            # An endpoint that judges texts is alive.
            self.succeeded()
            self.last_failure = failure
            return
        self.last_failure = failure
        if ticket != self._pauses:
            # A call that was under way when the pause began says nothing new.
            return
        self._failures += 1
        told = failure.retry_after
        hopeless = failure.permanent or told is not None or ticket > 0
        if hopeless or self._failures >= self.FAILURES_IN_A_ROW:
            self._pause(self._pause_s if told is None else told)

    def _pause(self, seconds: float) -> None:
        pause = min(seconds * 2.0 ** min(self._pauses, self.MOST_DOUBLINGS), self.LONGEST_PAUSE_S)
        self._pauses += 1
        self._open_until = monotonic() + pause
