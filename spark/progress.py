"""Progress of a job on the terminal: its steps, and within them the tasks of Spark's stages."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from pyspark import SparkContext

EVERY_S = 0.5


class ProgressReporter:
    """Reports the progress of a job on `stream`.

    Args:
        form: `text` for people (one line that is rewritten on a terminal), `json` for programs: one object per line,
            {"job", "stage", "done", "total"}; `total` is 0 while it is not known; `none`.
        stream: the output; standard error if None, so that standard output stays free for results.
    """

    def __init__(self, form: str = "text", stream: TextIO | None = None) -> None:
        self._form = form
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._last: tuple[str, str, int, int] | None = None
        self._began = time.monotonic()
        self._open_line = False

    def say(self, job: str, stage: str, done: int, total: int) -> None:
        """Report the progress, unless it equals the last."""
        with self._lock:
            now = (job, stage, done, total)
            if now == self._last or self._form == "none":
                return
            fresh = self._last is None or self._last[:2] != now[:2]
            self._last = now
            if self._form == "json":
                self._stream.write(json.dumps({"job": job, "stage": stage, "done": done, "total": total}) + "\n")
            else:
                self._text(f"{time.monotonic() - self._began:6.1f} s  {job}: {stage}", done, total, fresh)
            self._stream.flush()

    def _text(self, what: str, done: int, total: int, fresh: bool) -> None:
        terminal = self._stream.isatty()
        if not fresh and not terminal and done != total:
            return  # a log needs the begin and the end of a stage only
        if self._open_line and fresh:
            self._stream.write("\n")
        count = f" {done}/{total}" if total else ""
        self._stream.write(f"\r{what}{count}\x1b[K" if terminal else f"{what}{count}\n")
        self._open_line = terminal

    def close(self) -> None:
        """End the line that is being rewritten."""
        with self._lock:
            if self._open_line:
                self._stream.write("\n")
                self._stream.flush()
                self._open_line = False

    @contextmanager
    def stage(self, context: SparkContext, job: str, stage: str) -> Iterator[None]:
        """Report, while the block runs, how many tasks of the Spark jobs in it are done."""
        group = f"{job}/{stage}/{time.monotonic_ns()}"
        context.setJobGroup(group, f"{job}: {stage}", interruptOnCancel=True)
        self.say(job, stage, 0, 0)
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(context, group, job, stage, ended), daemon=True)
        if self._form != "none":
            watcher.start()
        try:
            yield
            ended.set()
            if watcher.is_alive():
                watcher.join()
            _, total = _tasks(context, group)
            self.say(job, stage, total or 1, total or 1)
        finally:
            ended.set()

    def _watch(self, context: SparkContext, group: str, job: str, stage: str, ended: threading.Event) -> None:
        while not ended.wait(EVERY_S):
            try:
                done, total = _tasks(context, group)
            except Exception:  # noqa: BLE001 - the session is being stopped; progress is not worth a failure
                return
            if total and not ended.is_set():
                self.say(job, stage, done, total)


def _tasks(context: SparkContext, group: str) -> tuple[int, int]:
    """Return how many tasks of a group's stages are done, and how many there are so far."""
    tracker = context.statusTracker()
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return done, total
