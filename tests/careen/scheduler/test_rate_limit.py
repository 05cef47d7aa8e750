from __future__ import annotations

import asyncio

from careen.scheduler.wire.limit import RateLimit


async def test_a_burst_passes_at_once_and_the_rest_at_the_limit() -> None:
    loop = asyncio.get_running_loop()
    passed: list[float] = []
    limit = RateLimit(qps=50.0, burst=3, monotonic=loop.time)
    for _ in range(6):
        limit.pass_on(lambda: passed.append(loop.time()))
    assert len(passed) == 3
    while limit.waiting:
        await asyncio.sleep(0.01)
    assert len(passed) == 6
    assert passed[-1] - passed[0] >= 3 / 50.0 * 0.9


async def test_without_a_limit_nothing_waits() -> None:
    passed: list[int] = []
    limit = RateLimit(qps=0.0, burst=1, monotonic=asyncio.get_running_loop().time)
    for number in range(100):
        limit.pass_on(lambda number=number: passed.append(number))  # type: ignore[misc]
    assert passed == list(range(100))
