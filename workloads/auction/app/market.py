"""Bids on their way: queued at the broker, decided in the database, and told to everybody who waits.

A bid that was taken is in a queue that outlives the broker before its bidder hears of it.  Any process of the
application decides about it, in one transaction, and takes it from the queue only then.  What comes of it goes to
all processes, of which each knows who waits at it.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator

import aio_pika
import asyncpg

# Bids that a process decides about at the same time.
AT_ONCE = 4
# Seconds between two looks for items whose time is over.
LOOK = 0.2


class Market:
    """One process's part in all auctions."""

    def __init__(self, database: asyncpg.Pool, poll_seconds: float, item_seconds: float) -> None:
        self.database, self.poll_seconds, self.item_seconds = database, poll_seconds, item_seconds
        # By auction: the last that was heard of it, and who waits for more.
        self.heard: dict[int, dict] = {}
        self.news: dict[int, asyncio.Event] = {}

    @contextlib.asynccontextmanager
    async def open(self, broker: str) -> AsyncIterator[None]:
        """Take part for as long as the context lasts."""
        async with await aio_pika.connect(broker) as connection:
            # Publishing waits until the broker has confirmed.
            self.channel = await connection.channel()
            self.told = await self.channel.declare_exchange("news", aio_pika.ExchangeType.FANOUT)
            ears = await self.channel.declare_queue(exclusive=True)
            await ears.bind(self.told)
            await ears.consume(self._hear, no_ack=True)
            work = await connection.channel()
            await work.set_qos(prefetch_count=AT_ONCE)
            bids = await work.declare_queue("bids", durable=True)
            await bids.consume(self._decide)
            closing = asyncio.Event()
            selling = asyncio.create_task(self._sell(closing))
            try:
                yield
            finally:
                # A sale that is under way is made: the database would call it an error that it was not.
                closing.set()
                await selling

    async def place(self, auction: int, item: int, person: int, amount: int) -> str:
        """Take a bid; it is kept when this returns, and decided soon.  Returns its name."""
        bid = str(uuid.uuid4())
        body = json.dumps(
            {"id": bid, "auction": auction, "item": item, "person": person, "amount": amount}
        )
        message = aio_pika.Message(body.encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self.channel.default_exchange.publish(message, routing_key="bids")
        return bid

    async def state(self, auction: int) -> dict | None:
        """How an auction stands; None where there is none, or where it is over."""
        found = await self.database.fetchrow("SELECT * FROM state WHERE auction = $1", auction)
        return None if found is None else dict(found)

    async def next(self, auction: int, after: int) -> dict | None:
        """How an auction stands once its number is beyond `after`; None where nothing happens for too long."""
        # Listens before it looks, so that nothing can happen in between.
        news = self._news(auction)
        state = await self.state(auction)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.poll_seconds):
                while state["seq"] <= after:
                    await news.wait()
                    news, state = self._news(auction), self.heard[auction]
                return state
        return None

    def _news(self, auction: int) -> asyncio.Event:
        return self.news.setdefault(auction, asyncio.Event())

    async def _hear(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        state = json.loads(message.body)
        auction = state["auction"]
        # Of two that were told at the same time the older one may come last.
        if state["seq"] > self.heard.get(auction, {"seq": -1})["seq"]:
            self.heard[auction] = state
            self.news.pop(auction, asyncio.Event()).set()

    async def _tell(self, state: asyncpg.Record | None) -> None:
        if state is not None:
            await self.told.publish(
                aio_pika.Message(json.dumps(dict(state)).encode()), routing_key=""
            )

    async def _decide(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        """Decide about a bid; where that fails it stays in the queue."""
        async with message.process(requeue=True):
            bid = json.loads(message.body)
            values = (
                bid["id"],
                bid["auction"],
                bid["item"],
                bid["person"],
                bid["amount"],
                self.item_seconds,
            )
            await self._tell(
                await self.database.fetchrow(
                    "SELECT * FROM decide($1, $2, $3, $4, $5, $6)", *values
                )
            )

    async def _sell(self, closing: asyncio.Event) -> None:
        """Sell what is due, one item after another, until the market closes."""
        while not closing.is_set():
            sold = await self.database.fetchrow("SELECT * FROM sell()")
            await self._tell(sold)
            if sold is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await closing.wait()
