"""Django in one file: an order is saved, and published once its transaction is committed.

    python examples/django/shop.py runserver 8080

Environment: HERALD_URL (default http://127.0.0.1:8000), HERALD_TOKEN, HERALD_RP (default orders), SHOP_DATABASE (default
shop.sqlite3). Where not even a crash between commit and publish may lose an event, keep the event in a table in the same
transaction, and publish from that: the order's number is its id, so publishing again does no harm.
"""

import json
import os
import sys
from functools import cache

import django
from django.conf import settings

if __name__ == "__main__":
    settings.configure(
        SECRET_KEY=os.environ.get("SHOP_SECRET_KEY", "of-an-example-that-signs-nothing"),
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        ROOT_URLCONF=__name__,
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SHOP_DATABASE", "shop.sqlite3")}
        },
    )
    django.setup()

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from herald.sync import Client

RP = os.environ.get("HERALD_RP", "orders")


@cache
def herald() -> Client:
    """One client per process, made when it is first needed: after the server has forked its workers."""
    return Client(
        os.environ.get("HERALD_URL", "http://127.0.0.1:8000"), token=os.environ["HERALD_TOKEN"], source="/shop"
    )


@csrf_exempt
@require_POST
def take(request: HttpRequest) -> JsonResponse:
    order = json.loads(request.body)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
        cursor.execute("INSERT INTO orders VALUES (%s, %s)", [order["number"], order["amount"]])
        transaction.on_commit(lambda: herald().publish(RP, order, type="org.example.order", id=order["number"]))
    return JsonResponse({"taken": order["number"]}, status=201)


urlpatterns = [path("orders", take)]

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
