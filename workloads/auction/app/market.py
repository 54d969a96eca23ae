"""Takes bids through a queue to their decision in the database, and tells all waiting users.

A bidder gets an answer once the bid is in a queue that survives the broker.  Any process of the
application decides the bid, in one transaction, and removes it from the queue only afterwards.  The
new state of the auction goes to all processes; each of them wakes the users who wait there.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator

import aio_pika
import asyncpg

# The most bids that a process decides at the same time.
BIDS_AT_ONCE = 4
# Seconds between two searches for items whose time is over.
SALE_SECONDS = 0.2


class Market:
    """One process's share of all auctions.

    poll_seconds: how long a user waits for news.
    item_seconds: how long after the highest bid the item is sold.
    The state of an auction is a row of the view `state`; each change increments its `seq`.
    """

    def __init__(self, database: asyncpg.Pool, poll_seconds: float, item_seconds: float) -> None:
        """Do nothing until the market is opened, as by `async with market.open(broker)`.

        poll_seconds, item_seconds: as the class describes them.
        """
        self.database, self.poll_seconds, self.item_seconds = database, poll_seconds, item_seconds
        # By auction: the newest state that this process received, and the event of the next one.
        self.states: dict[int, dict] = {}
        self.news: dict[int, asyncio.Event] = {}

    @contextlib.asynccontextmanager
    async def open(self, broker: str) -> AsyncIterator[None]:
        """Decide bids and sell items while the context lasts.  broker: the broker's URL.

        Declares the exchange "news" and the durable queue "bids", which all processes share.
        """
        async with await aio_pika.connect(broker) as connection:
            # Publishing waits until the broker has confirmed.
            self.channel = await connection.channel()
            self.exchange = await self.channel.declare_exchange(
                "news", aio_pika.ExchangeType.FANOUT
            )
            subscription = await self.channel.declare_queue(exclusive=True)
            await subscription.bind(self.exchange)
            await subscription.consume(self._receive_news, no_ack=True)
            decisions = await connection.channel()
            await decisions.set_qos(prefetch_count=BIDS_AT_ONCE)
            bids = await decisions.declare_queue("bids", durable=True)
            await bids.consume(self._decide_bid)
            closing = asyncio.Event()
            sales = asyncio.create_task(self._sell_items(closing))
            try:
                yield
            finally:
                # A sale under way is completed: the database would log a cancelled one as an error.
                closing.set()
                await sales

    async def queue_bid(self, auction: int, item: int, person: int, amount: int) -> str:
        """Put a bid of `amount` cents into the durable queue, and return the bid's id.

        _decide_bid of any process reads the message's keys.  Returns once the broker has confirmed.
        """
        bid = str(uuid.uuid4())
        fields = {"id": bid, "auction": auction, "item": item, "person": person, "amount": amount}
        message = aio_pika.Message(
            json.dumps(fields).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        await self.channel.default_exchange.publish(message, routing_key="bids")
        return bid

    async def fetch_state(self, auction: int) -> dict | None:
        """Return the state of an auction, a row of the view `state` by its columns.

        None if there is no such auction, or if it is over.
        """
        record = await self.database.fetchrow("SELECT * FROM state WHERE auction = $1", auction)
        return None if record is None else dict(record)

    async def wait_for_state(self, auction: int, known_seq: int) -> dict | None:
        """Return an open auction's state once its `seq` exceeds a known one.

        Returns None if nothing happens within poll_seconds.  The auction must be open.
        """
        # The event is taken before the state is read, so that no news in between is missed.
        news = self._get_news_event(auction)
        state = await self.fetch_state(auction)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.poll_seconds):
                while state["seq"] <= known_seq:
                    await news.wait()
                    news, state = self._get_news_event(auction), self.states[auction]
                return state
        return None

    def _get_news_event(self, auction: int) -> asyncio.Event:
        """Return the event that is set when this process receives the auction's next state.

        Each event is set once: _receive_news drops it, and the next call makes another.
        """
        return self.news.setdefault(auction, asyncio.Event())

    async def _receive_news(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        """Keep the state of an auction, if it is newer, and wake the users who wait for it."""
        state = json.loads(message.body)
        auction = state["auction"]
        # States of different processes may come in another order than that of the changes.
        if state["seq"] > self.states.get(auction, {"seq": -1})["seq"]:
            self.states[auction] = state
            self.news.pop(auction, asyncio.Event()).set()

    async def _publish_state(self, state: asyncpg.Record | None) -> None:
        """Send the state of an auction to all processes, whose _receive_news reads it.

        None: nothing changed, and nothing is sent.
        """
        if state is not None:
            message = aio_pika.Message(json.dumps(dict(state)).encode())
            await self.exchange.publish(message, routing_key="")

    async def _decide_bid(self, message: aio_pika.abc.AbstractIncomingMessage) -> None:
        """Decide a bid of the queue, and publish the auction's state if it was accepted.

        After an error the bid goes back into the queue.  The function decide of procedures.sql
        ignores a bid that it has decided before.
        """
        async with message.process(requeue=True):
            bid = json.loads(message.body)
            keys = ("id", "auction", "item", "person", "amount")
            sql = "SELECT * FROM decide($1, $2, $3, $4, $5, $6)"
            values = [*(bid[key] for key in keys), self.item_seconds]
            await self._publish_state(await self.database.fetchrow(sql, *values))

    async def _sell_items(self, closing: asyncio.Event) -> None:
        """Sell the items whose time is over, one after another, until `closing` is set.

        All processes do this: the function sell of procedures.sql lets only one sell an item.
        """
        while not closing.is_set():
            state = await self.database.fetchrow("SELECT * FROM sell()")
            await self._publish_state(state)
            if state is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SALE_SECONDS):
                        await closing.wait()
