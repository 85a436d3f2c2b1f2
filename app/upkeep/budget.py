"""What a run may spend on a language model: calls and tokens, by run and by day of its namespace."""

from datetime import UTC, datetime, timedelta

from app.upkeep import attempts
from app.upkeep.jobs import JobRun

_DAY = timedelta(days=1)


class BudgetSpent(Exception):
    """The next call would be beyond a budget; the sentence says which."""


class Budget:
    """Books every call before it is made, so that a kill between the two costs a call and never hides one."""

    def __init__(self, run: JobRun) -> None:
        self._run = run
        settings = run.settings
        self._per_run = settings.llm_calls_per_run, settings.llm_tokens_per_run
        self._per_day = settings.llm_calls_per_day, settings.llm_tokens_per_day

    async def reserve(self) -> None:
        """Book one call. Raises BudgetSpent."""
        self._check("run", (self._run.calls + 1, self._run.tokens + 1), self._per_run)
        calls, tokens = await self._today()
        self._check("day", (calls + 1, tokens + 1), self._per_day)
        await self._run.spend(calls=1, tokens=0)
        # Another run of the namespace may have booked in between.
        self._check("day", await self._today(), self._per_day)

    async def used(self, tokens: int) -> None:
        """Book what the call cost."""
        await self._run.spend(calls=0, tokens=tokens)

    async def _today(self) -> tuple[int, int]:
        async with self._run.database.reading() as conn:
            return await attempts.spent_since(conn, self._run.namespace, datetime.now(UTC) - _DAY)

    @staticmethod
    def _check(span: str, spent: tuple[int, int], most: tuple[int, int]) -> None:
        for unit, used, allowed in zip(("calls", "tokens"), spent, most, strict=True):
            if used > allowed:
                raise BudgetSpent(f"the budget of {allowed} {unit} a {span} is spent")
