"""FastAPI: orders are published where they are taken, and read by the same program for its list.

    pip install fastapi uvicorn
    uvicorn app:app --app-dir examples/fastapi

Environment: HERALD_URL (default http://127.0.0.1:8000), HERALD_TOKEN, HERALD_RP (default orders).
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from herald import Client, ConnectionLost, Gap, Problem
from pydantic import BaseModel

RP = os.environ.get("HERALD_RP", "orders")


class Order(BaseModel):
    number: str
    amount: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    url, token = os.environ.get("HERALD_URL", "http://127.0.0.1:8000"), os.environ["HERALD_TOKEN"]
    app.state.orders = deque[Any](maxlen=100)
    async with Client(url, token=token, source="/shop") as client:  # one client for the whole program
        app.state.herald = client
        reading = asyncio.create_task(follow(client, app.state.orders))
        yield
        reading.cancel()


async def follow(client: Client, orders: deque[Any]) -> None:
    async for item in client.subscribe(RP, from_="earliest"):
        if not isinstance(item, Gap):
            orders.append(item.data)


app = FastAPI(lifespan=lifespan)


@app.post("/orders", status_code=201)
async def take(order: Order) -> dict[str, int]:
    """Answer once the event is stored. The order's number is the event's id: an order that is sent twice is stored once."""
    try:
        confirmation = await app.state.herald.publish(
            RP, order.model_dump(), type="org.example.order", id=order.number, timeout_s=10
        )
    except (Problem, ConnectionLost) as error:
        raise HTTPException(503, str(error)) from error
    return {"offset": confirmation.offset}


@app.get("/orders")
async def orders() -> list[Any]:
    return list(app.state.orders)
