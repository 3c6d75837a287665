"""The Celery application: `portal.celery:app`. Broker is the domain's Redis, or the server that HERALD_BROKER_URL names, which may
lose everything; there are no results, tasks report in the log.

A task is acknowledged when it is done, so one that a killed worker left is handed out again after the visibility
timeout; every task is safe to run twice and ends well before (workers/tasks.py).
"""

from __future__ import annotations

import logging
import os
from typing import Any

import django
from celery import Celery

from eventing.conf import config
from eventing.core.brokers import BrokerAddress, broker_address
from eventing.core.sentinels import SentinelAccess
from portal.broker import (
    AMQP_OPTIONS,
    HEARTBEAT_S,
    SENTINEL_OPTIONS,
    TRANSPORT_OPTIONS,
    VERIFIED,
    VERIFIED_AMQP,
    transport_set,
)
from workers.schedule import FORWARD, FORWARD_QUEUE, VISIBILITY_TIMEOUT_S

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()


def broker_in_use() -> BrokerAddress:
    """Return the address of the broker: the configured one, else that of the domain's Redis. Raises ConfigError."""
    found = config()
    if found.broker_url:
        return broker_address("HERALD_BROKER_URL", found.broker_url)
    return broker_address("HERALD_REDIS_URL", found.effective_redis_url)


def transport_options(address: BrokerAddress) -> dict[str, Any]:
    """Return kombu's options of connections to a broker."""
    if address.kind == "amqp":
        return AMQP_OPTIONS
    sentinels = {"master_name": address.master, "sentinel_kwargs": _of_sentinels(address.access)}
    prefix = f"herald:{config().domain}:celery:"  # other domains, and the data plane's keys, may be in the same Redis
    return {
        **TRANSPORT_OPTIONS,
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "global_keyprefix": prefix,
        **(sentinels if address.master else {}),
    }


def _of_sentinels(access: SentinelAccess) -> dict[str, Any]:
    """Return redis-py's options of connections to the Sentinels."""
    credentials = {"username": access.user or None, "password": access.password} if access.password else {}
    return {**SENTINEL_OPTIONS, **credentials, "ssl": access.tls}


def tls_options(address: BrokerAddress) -> dict[str, Any] | bool:
    """Return kombu's options of TLS with a broker; False where the connection uses none."""
    return dict(VERIFIED_AMQP if address.kind == "amqp" else VERIFIED) if address.tls else False


def settings() -> dict[str, Any]:
    """Return Celery's settings, derived from the domain's settings."""
    address = broker_in_use()
    return {
        "broker_url": address.url,
        "broker_transport_options": transport_options(address),
        "broker_use_ssl": tls_options(address),
        "broker_heartbeat": HEARTBEAT_S,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # a worker outlives any outage of the broker
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "task_routes": {FORWARD: {"queue": FORWARD_QUEUE}},
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "worker_hijack_root_logger": False,
        "timezone": "UTC",
    }


# Lines for every task sent, received and done, several a second, would bury what matters and grow without bound.
_CHATTY = ("celery.worker.strategy", "celery.app.trace")

transport_set()
app = Celery("herald", amqp="portal.broker:Broker")
app.config_from_object(settings())
app.autodiscover_tasks(["workers"])
if config().log_level != "debug":
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
