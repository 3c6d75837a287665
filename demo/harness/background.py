"""An event loop on a thread of its own, beside a test or the demo: for proxies, readers, monitors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
CALL_S = 60.0  # a call into the loop that takes longer hangs


class Background:
    """Runs coroutines for any thread; `stop` ends the loop, its tasks and its thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="federation-tests", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], within_s: float = CALL_S) -> T:
        """Run `work` there and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(within_s)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start `work` there as a task."""

        async def start() -> asyncio.Task[None]:
            return asyncio.create_task(work)

        return self.run(start())

    def stop(self) -> None:
        """Cancel what still runs, and end."""

        async def cancel() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()
