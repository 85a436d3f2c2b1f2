"""How the process that serves ends."""

import asyncio

from app import serving


async def _stubborn() -> None:
    while True:
        try:
            await asyncio.sleep(3_600)
        except asyncio.CancelledError:
            continue


def test_a_task_that_will_not_be_cancelled_does_not_keep_the_process() -> None:
    left: list[asyncio.Task[None]] = []

    async def main() -> None:
        left.append(asyncio.create_task(_stubborn()))
        await asyncio.sleep(0)

    serving.run(main())

    assert not left[0].done()
    # It stays pending for good, which asyncio would complain about when it is collected.
    left[0]._log_destroy_pending = False  # type: ignore[attr-defined]
