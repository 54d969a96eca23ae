"""The auction site: what browsers ask of it, as JSON; one of several equal processes, run by uvicorn behind nginx."""

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
from market import Market
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

# Rows of a page, and of a history.
PAGE = 10
CONNECTIONS = 8
# Seconds for which the database's connections are waited for at the end.
PATIENCE = 10
PNG = b"\x89PNG\r\n\x1a\n"
LONGEST_TEXT = 2000
MOST_CENTS = 10**12


@contextlib.asynccontextmanager
async def lifespan(site: Starlette) -> AsyncIterator[None]:
    """Database and broker, for as long as the process serves."""
    seconds = [float(os.environ[f"AUCTION_{name}_SECONDS"]) for name in ("POLL", "ITEM")]
    database = await asyncpg.create_pool(os.environ["AUCTION_DATABASE"], min_size=2, max_size=CONNECTIONS)
    site.state.database, site.state.market = database, Market(database, *seconds)
    try:
        async with site.state.market.open(os.environ["AUCTION_BROKER"]):
            yield
    finally:
        # Where something keeps a connection they end all the same.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await database.close()


def refuse(status: int, reason: str) -> HTTPException:
    """What ends an operation that cannot be done."""
    return HTTPException(status, reason)


async def refused(_: Request, error: HTTPException) -> Response:
    """The answer to what was refused."""
    return JSONResponse({"refused": error.detail}, error.status_code)


def known(work: Callable[[Request, int], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """An operation for those who are logged in, which gets the person's number."""

    async def answer(request: Request) -> Response:
        found = "SELECT person FROM sessions WHERE token = $1"
        person = await request.app.state.database.fetchval(found, request.cookies.get("session", "").replace("\0", ""))
        if person is None:
            raise refuse(401, "log in first")
        return await work(request, person)

    return answer


async def sent(request: Request, **kinds: type) -> list:
    """The fields of the object that was sent, in this order."""
    try:
        found = await request.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or any(type(found.get(name)) is not kind for name, kind in kinds.items()):
        raise refuse(422, f"an object with {', '.join(kinds)} should be sent")
    values = [found[name] for name in kinds]
    for name, value in zip(kinds, values, strict=True):
        if isinstance(value, int) and not 0 < value <= MOST_CENTS:
            raise refuse(422, f"{name} should be from 1 to {MOST_CENTS}")
        if isinstance(value, str) and (not value.strip() or len(value) > LONGEST_TEXT or "\0" in value):
            raise refuse(422, f"{name} should be text of at most {LONGEST_TEXT} letters")
    return values


def number(request: Request, name: str) -> int:
    """A number of the path; what is too large for any is nobody's."""
    return min(request.path_params[name], 2**31 - 1)


async def rows(request: Request, sql: str, *values: object) -> Response:
    """The rows of a query."""
    found = await request.app.state.database.fetch(sql, *values)
    return JSONResponse([dict(row) for row in found])


async def row(request: Request, sql: str, *values: object) -> Response:
    """The row of a query, which there should be."""
    found = await request.app.state.database.fetchrow(sql, *values)
    if found is None:
        raise refuse(404, "there is no such thing")
    return JSONResponse(dict(found))


# People.


async def login(request: Request) -> Response:
    """Login."""
    name, password = await sent(request, name=str, password=str)
    database = request.app.state.database
    person = await database.fetchrow("SELECT id, name, salt, secret FROM people WHERE name = $1", name)
    # Quick: a hash that is slow by intention would be most of what is measured.
    given = hashlib.sha256(((person["salt"] if person else "") + password).encode()).hexdigest()
    if person is None or not hmac.compare_digest(given, person["secret"]):
        raise refuse(403, "name and password do not go together")
    token = secrets.token_hex(16)
    await database.execute("INSERT INTO sessions (token, person) VALUES ($1, $2)", token, person["id"])
    answer = JSONResponse({"person": person["id"], "name": person["name"]})
    answer.set_cookie("session", token, httponly=True, samesite="lax")
    return answer


async def logout(request: Request, person: int) -> Response:
    """Logout: the session ends, and whoever is in an auction leaves it."""
    async with request.app.state.database.acquire() as connection, connection.transaction():
        await connection.execute("DELETE FROM sessions WHERE token = $1", request.cookies["session"])
        await connection.execute("UPDATE attendances SET went = now() WHERE person = $1 AND went IS NULL", person)
    answer = JSONResponse({"person": person})
    answer.delete_cookie("session")
    return answer


PROFILE = "name, email, address, balance"


async def profile(request: Request, person: int) -> Response:
    """GetUserProfile."""
    return await row(request, f"SELECT {PROFILE} FROM people WHERE id = $1", person)


async def update_profile(request: Request, person: int) -> Response:
    """UpdateUserProfile."""
    email, address = await sent(request, email=str, address=str)
    update = f"UPDATE people SET email = $2, address = $3 WHERE id = $1 RETURNING {PROFILE}"
    return await row(request, update, person, email, address)


async def purchases(request: Request, person: int) -> Response:
    """GetPurchaseHistory: the last ones first."""
    sql = """SELECT p.auction, p.item, i.title, p.amount, p.made::text
             FROM purchases AS p JOIN items AS i ON i.id = p.item WHERE p.buyer = $1 ORDER BY p.id DESC LIMIT $2"""
    return await rows(request, sql, person, PAGE)


async def bids(request: Request, person: int) -> Response:
    """GetBidHistory: the last ones first, each with what was decided."""
    sql = """SELECT b.id::text AS bid, b.auction, b.item, i.title, b.amount, b.verdict, b.placed::text
             FROM bids AS b JOIN items AS i ON i.id = b.item WHERE b.person = $1 ORDER BY b.number DESC LIMIT $2"""
    return await rows(request, sql, person, PAGE)


async def attendances(request: Request, person: int) -> Response:
    """GetAttendanceHistory: the last ones first."""
    sql = """SELECT t.auction, a.name, t.came::text, t.went::text
             FROM attendances AS t JOIN auctions AS a ON a.id = t.auction
             WHERE t.person = $1 ORDER BY t.id DESC LIMIT $2"""
    return await rows(request, sql, person, PAGE)


# Auctions.


async def auctions(request: Request, _: int) -> Response:
    """GetActiveAuctions: a page of them, from 0."""
    page = request.query_params.get("page", "0")
    if not page.isdecimal() or len(page) > 6:
        raise refuse(422, "page should be a number")
    sql = """SELECT a.id AS auction, a.name, a.category, s.title, s.price, s.bids FROM auctions AS a
             JOIN state AS s ON s.auction = a.id ORDER BY a.id LIMIT $1 OFFSET $2"""
    return await rows(request, sql, PAGE, PAGE * int(page))


async def auction(request: Request, _: int) -> Response:
    """GetAuctionDetail: an auction with its items, in the order in which they are offered."""
    database, wanted = request.app.state.database, number(request, "auction")
    found = await database.fetchrow("SELECT id AS auction, name, category FROM auctions WHERE id = $1", wanted)
    if found is None:
        raise refuse(404, "there is no such auction")
    items = await database.fetch(
        "SELECT id AS item, title, starting FROM items WHERE auction = $1 ORDER BY turn, id", wanted
    )
    return JSONResponse({**found, "items": [dict(item) for item in items]})


async def join(request: Request, person: int) -> Response:
    """JoinAuction; who is there already stays."""
    state = await current(request)
    sql = """INSERT INTO attendances (auction, person, came) VALUES ($1, $2, now())
             ON CONFLICT (auction, person) WHERE went IS NULL DO NOTHING"""
    await request.app.state.database.execute(sql, state["auction"], person)
    return JSONResponse({"auction": state["auction"]}, 201)


async def leave(request: Request, person: int) -> Response:
    """LeaveAuction."""
    wanted = number(request, "auction")
    sql = "UPDATE attendances SET went = now() WHERE auction = $1 AND person = $2 AND went IS NULL"
    if await request.app.state.database.execute(sql, wanted, person) == "UPDATE 0":
        raise refuse(409, "you are not in that auction")
    return JSONResponse({"auction": wanted})


async def current(request: Request) -> dict:
    """How the auction of the path stands, which must be open."""
    state = await request.app.state.market.state(number(request, "auction"))
    if state is None:
        raise refuse(404, "there is no such auction, or it is over")
    return state


async def current_item(request: Request, _: int) -> Response:
    """GetCurrentItem: what is offered, and the highest bid."""
    return JSONResponse(await current(request))


async def next_bid(request: Request, _: int) -> Response:
    """GetNextBid: how the auction stands once something has happened after what the browser knows of.

    It waits for that; where nothing happens the answer is empty.
    """
    after = request.query_params.get("after", "")
    if not after.isdecimal() or len(after) > 15:
        raise refuse(422, "after should be a number")
    try:
        state = await request.app.state.market.next(number(request, "auction"), int(after))
    except LookupError:
        raise refuse(404, "there is no such auction, or it is over") from None
    return Response(status_code=204) if state is None else JSONResponse(state)


async def place_bid(request: Request, person: int) -> Response:
    """PlaceBid: the bid is taken; what is decided about it is told as news."""
    item, amount = await sent(request, item=int, amount=int)
    state = await current(request)
    if not await request.app.state.database.fetchval("SELECT count(*) FROM items WHERE id = $1", min(item, 2**31 - 1)):
        raise refuse(404, "there is no such item")
    bid = await request.app.state.market.place(state["auction"], item, person, amount)
    return JSONResponse({"bid": bid}, 202)


# Items.


async def item(request: Request, _: int) -> Response:
    """GetItemDetail."""
    sql = """SELECT i.id AS item, i.title, i.description, i.starting, p.name AS owner, i.auction,
                    EXISTS (SELECT FROM images AS g WHERE g.item = i.id) AS image
             FROM items AS i JOIN people AS p ON p.id = i.owner WHERE i.id = $1"""
    return await row(request, sql, number(request, "item"))


async def add_item(request: Request, person: int) -> Response:
    """AddItem: it is its owner's, and offered nowhere yet."""
    title, description, starting = await sent(request, title=str, description=str, starting=int)
    sql = "INSERT INTO items (title, description, starting, owner) VALUES ($1, $2, $3, $4) RETURNING id"
    added = await request.app.state.database.fetchval(sql, title, description, starting, person)
    return JSONResponse({"item": added}, 201)


async def image(request: Request, _: int) -> Response:
    """GetImageForItem."""
    sql = "SELECT p.content FROM images AS g JOIN pictures AS p ON p.id = g.picture WHERE g.item = $1"
    content = await request.app.state.database.fetchval(sql, number(request, "item"))
    if content is None:
        raise refuse(404, "there is no such image")
    return Response(content, media_type="image/png")


async def add_image(request: Request, person: int) -> Response:
    """AddImageForItem, of one's own; it takes the place of another."""
    wanted, content = number(request, "item"), await request.body()
    if not content.startswith(PNG):
        raise refuse(422, "a PNG should be sent")
    async with request.app.state.database.acquire() as connection, connection.transaction():
        if await connection.fetchval("SELECT owner FROM items WHERE id = $1", wanted) != person:
            raise refuse(403, "that item is not yours")
        picture = await connection.fetchval("INSERT INTO pictures (content) VALUES ($1) RETURNING id", content)
        upsert = """INSERT INTO images (item, picture) VALUES ($1, $2)
                    ON CONFLICT (item) DO UPDATE SET picture = excluded.picture"""
        await connection.execute(upsert, wanted, picture)
    return JSONResponse({"item": wanted}, 201)


async def books(request: Request) -> Response:
    """What there is of everything, and how much of it breaks what must hold."""
    found = await request.app.state.database.fetchval("SELECT books()::text")
    return Response(found, media_type="application/json")


def _route(path: str, **methods: Callable[[Request, int], Awaitable[Response]]) -> list[Route]:
    return [Route(f"/api{path}", known(work), methods=[method]) for method, work in methods.items()]


application = Starlette(
    lifespan=lifespan,
    exception_handlers={HTTPException: refused},
    routes=[
        Route("/api/books", books),
        Route("/api/login", login, methods=["POST"]),
        *_route("/logout", POST=logout),
        *_route("/profile", GET=profile, PUT=update_profile),
        *_route("/purchases", GET=purchases),
        *_route("/bids", GET=bids),
        *_route("/attendances", GET=attendances),
        *_route("/auctions", GET=auctions),
        *_route("/auctions/{auction:int}", GET=auction),
        *_route("/auctions/{auction:int}/attendance", POST=join, DELETE=leave),
        *_route("/auctions/{auction:int}/item", GET=current_item),
        *_route("/auctions/{auction:int}/next", GET=next_bid),
        *_route("/auctions/{auction:int}/bids", POST=place_bid),
        *_route("/items", POST=add_item),
        *_route("/items/{item:int}", GET=item),
        *_route("/items/{item:int}/image", GET=image, PUT=add_image),
    ],
)
