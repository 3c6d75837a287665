"""The ASGI application: the hot path (eventing/gateway) in front of Django. Runs under uvicorn, with the fast transport, and
under daphne."""

import gc
import logging
import os
from typing import Any, cast

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

from portal.measured import measure_as

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
supervised = "HERALD_PROCESS" in os.environ
measure_as("gateway")
django_application = get_asgi_application()  # sets Django up: our own modules may be imported only after it

from eventing.conf import config  # noqa: E402
from eventing.core.config import unknown_setting, unknown_settings  # noqa: E402
from eventing.gateway.answers import RequestIds  # noqa: E402
from eventing.gateway.observation.tracing import Traced  # noqa: E402
from eventing.gateway.router import GatewayRouter, refuse_websocket, serve_lifespan, serve_websocket  # noqa: E402
from eventing.telemetry import tracing  # noqa: E402
from eventing.telemetry.folder import process_name  # noqa: E402
from portal.console.websocket import ConsoleWebSocket  # noqa: E402

# Channels routes ASGI applications by Django's own paths, which the stubs know for views only.
websocket_urls: list[Any] = [
    path("ws", cast(Any, serve_websocket)),
    path("console/ws", cast(Any, ConsoleWebSocket())),
    re_path("", cast(Any, refuse_websocket)),
]
application: Any = RequestIds(
    ProtocolTypeRouter(
        {
            "http": GatewayRouter(cast(Any, django_application)),
            "websocket": URLRouter(websocket_urls),
            "lifespan": serve_lifespan,
        }
    )
)
if not supervised:  # the supervisor of `make run` has reported them
    for name in unknown_settings(os.environ):
        logging.getLogger(__name__).warning("%s", unknown_setting(name))
if tracing.start(config(), process_name()):
    application = Traced(application)
gc.enable()  # another server than portal.gateway does not call `loaded`
