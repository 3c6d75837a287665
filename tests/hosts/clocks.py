"""Clocks that are set apart: hosts share the machine's, so a server is given a library that adds an offset to what it reads.

Linux has namespaces only for the clocks that count from the start of the machine, not for the time of day.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t offset(void) {
    static time_t known;
    static int asked;
    if (!asked) { known = atol(getenv("CLOCK_OFFSET_S")); asked = 1; }
    return known;
}
int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
    return failed;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def offset_environment(folder: Path, offset_s: int) -> dict[str, str]:
    """Return the environment of a process whose clock differs by this many seconds; empty where there is no C compiler.

    Args:
        folder: for the library.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not offset_s:
        return {}
    library = folder / "clock_offset.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-w", "-x", "c", "-", "-o", str(library), "-ldl"],
        input=SOURCE,
        text=True,
        check=True,
        timeout=60,
    )
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_S": str(offset_s)}
