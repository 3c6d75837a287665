"""Settings of the test process itself: Herald's own, on a data folder that is thrown away afterwards.

Nothing of the developer's environment or `var/` is read or touched. HERALD_DATABASE_URL is kept, so that the same tests
run on PostgreSQL (.ci/run does so); Django makes a test database of its own there. HERALD_MIGRATION_DATABASE_URL is kept for a
pooler in front of it.
"""

import atexit
import os
import shutil
import tempfile

_KEPT = {"HERALD_DATABASE_URL", "HERALD_MIGRATION_DATABASE_URL", "HERALD_TEST_PLANE"}
for _name in [name for name in os.environ if name.startswith("HERALD_") and name not in _KEPT]:
    del os.environ[_name]
os.environ["HERALD_DATA_DIR"] = tempfile.mkdtemp(prefix="herald-tests-")
atexit.register(shutil.rmtree, os.environ["HERALD_DATA_DIR"], ignore_errors=True)

from portal.settings import *  # noqa: E402, F403

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # A file, not memory: tests with several threads need what a running domain has, connections of their own.
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(os.environ["HERALD_DATA_DIR"], "test.sqlite3")}  # noqa: F405, PTH118
DATABASES["default"].get("DIRECT", {}).pop("NAME", None)  # noqa: F405 - the test database is migrated
DATABASES["default"]["ABANDONED_S"] = None  # noqa: F405 - a test that is one transaction may pause
