"""Django's settings, all derived from the HERALD_* settings (eventing/core/config.py). There is no other source."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from eventing.core.config import Config
from eventing.core.errors import ConfigError
from eventing.telemetry.folder import process_name
from portal.database import database_settings
from portal.installation import ROOT, from_source
from portal.logs.log_lines import formatter
from portal.machine_size import machine_size

HERALD = Config.from_env(os.environ, small_machine=machine_size().is_small)
BASE_DIR = ROOT
DOCUMENTS = ROOT if from_source() else ROOT / "portal" / "documents"
"""Folder with the documents of the release, by their paths in the source tree (deploy/wheels.py)."""


def _secret_key() -> str:
    """The given key, else the one in the data folder, made (mode 0600) at first start."""
    if HERALD.secret_key:
        return HERALD.secret_key
    try:
        return _kept_secret_key(HERALD.data_path / "secret_key")
    except OSError as error:
        raise ConfigError(
            f"The data folder {HERALD.data_path} cannot be used ({(error.strerror or str(error)).lower()}); make it writable, "
            "or set HERALD_DATA_DIR to a folder of yours."
        ) from None


def _kept_secret_key(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(secrets.token_urlsafe(48))
    try:
        os.link(fresh, path)  # the first of several starting processes wins, and all read the winner's
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return path.read_text()


SECRET_KEY = _secret_key()
DEBUG = HERALD.dev
# A bearer token, not the host name, decides what a request may do; a proxy or another port must not break it. Nothing is
# made of the name that a client sends: login links and the OIDC address are HERALD_PUBLIC_URL's (tests/portal/test_security.py).
ALLOWED_HOSTS = ["*"]
CSRF_TRUSTED_ORIGINS = [HERALD.base_url]

INSTALLED_APPS = [
    "portal",  # first, so that its runserver serves the ASGI application
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "eventing",
    "admin_rp",
    "workers",
]
MIDDLEWARE = [
    "portal.auditing.recording",
    "portal.auditing.AuditRefusals",
    "portal.middleware.SecurityHeaders",  # outermost: errors of the others get the headers too
    "portal.middleware.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.middleware.SessionLife",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
APPEND_SLASH = False  # a name ends in a slash and an action does not: the slash has a meaning here
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"] if from_source() else [],  # the wheel has them in portal/templates
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.console.context.domain",
            ]
        },
    }
]
DATABASES = {"default": database_settings(HERALD, process_name())}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "CommonPasswordValidator", "NumericPasswordValidator")
] + [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}}]
LOGIN_URL = "portal:login"
LOGIN_REDIRECT_URL = "portal:overview"
LOGOUT_REDIRECT_URL = "portal:login"
SESSION_COOKIE_NAME = f"herald_session_{HERALD.port}"  # two domains on one host do not log each other out
CSRF_COOKIE_NAME = f"herald_csrf_{HERALD.port}"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HERALD.base_url.startswith("https:")
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = (
    HERALD.console_session_s
)  # from the last use; portal/accounts/services/sessions.py ends them in any case
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    *(["portal.console.oidc.backend.Backend"] if HERALD.oidc_issuer else []),
]

STATIC_URL = "/static/"
STATICFILES_DIRS = (
    [("js", BASE_DIR / "client" / "js")] if from_source() else []
)  # the wheel has these in portal/static/js
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "portal.bundle.ConsoleFiles"},
}
WHITENOISE_USE_FINDERS = True  # served from where they lie: no collectstatic step to forget
WHITENOISE_IMMUTABLE_FILE_TEST = r"/portal/dist/[\w.]+-[A-Z0-9]{8}\.(js|css)$"  # names with a hash: portal/bundle.py

USE_TZ = True
TIME_ZONE = "UTC"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "eventing.access.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["eventing.access.api.authentication.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["eventing.rest.renderers.ShapeRenderer"],
    "DEFAULT_PARSER_CLASSES": ["eventing.rest.parsers.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "eventing.rest.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Herald",
    "DESCRIPTION": "Federated event notification: rendezvous points, events, subscriptions.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["eventing.openapi.add_gateway_paths"],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request": {"()": "portal.logs.request_log.RequestId"},
        "cancellations": {"()": "portal.logs.request_log.NoCancellations"},
    },
    "formatters": {"line": {"()": formatter(HERALD.log_format)}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]}},
    "root": {"handlers": ["stderr"], "level": HERALD.log_level.upper()},
    # uvicorn logs the path of each WebSocket, and its query may hold a token. What a stranger's request gets wrong (its Host,
    # its fields, its trace) is answered and in the access records; a stranger could fill the log.
    "loggers": {
        "asyncio": {"filters": ["cancellations"]},
        "django.request": {"level": "ERROR"},
        "django.security": {"level": "CRITICAL"},
        "opentelemetry.trace": {"level": "ERROR"},
        "uvicorn": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "psycopg.pool": {"level": "ERROR"},  # a line for each connection that is refused; callers log that once
    },
}
