"""The ASGI application: the hot path (eventing/edge) in front of Django. Runs under uvicorn, with the fast transport, and
under daphne."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django_application = get_asgi_application()  # sets Django up: our own modules may be imported only after it

from eventing.edge.router import EdgeRouter, refuse_websocket, serve_lifespan, serve_websocket  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": EdgeRouter(django_application),
        "websocket": URLRouter([path("ws", serve_websocket), re_path("", refuse_websocket)]),
        "lifespan": serve_lifespan,
    }
)
