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

PAGE = 10
CONNECTIONS = 8
# Seconds for which the database's connections are waited for at the end.
PATIENCE = 10
PNG = b"\x89PNG\r\n\x1a\n"


@contextlib.asynccontextmanager
async def lifespan(site: Starlette) -> AsyncIterator[None]:
    """Database and broker, for as long as the process serves."""
    seconds = [float(os.environ[f"AUCTION_{name}_SECONDS"]) for name in ("POLL", "ITEM")]
    database = await asyncpg.create_pool(
        os.environ["AUCTION_DATABASE"], min_size=2, max_size=CONNECTIONS
    )
    site.state.database, site.state.market = database, Market(database, *seconds)
    try:
        async with site.state.market.open(os.environ["AUCTION_BROKER"]):
            yield
    finally:
        # Where something keeps a connection they end all the same.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await database.close()


Work = Callable[[Request, int], Awaitable[Response]]


def route(method: str, path: str, work: Work) -> Route:
    """An operation for those who are logged in, which gets the person's number."""

    async def answer(request: Request) -> Response:
        found = "SELECT person FROM sessions WHERE token = $1"
        person = await request.app.state.database.fetchval(
            found, request.cookies.get("session", "")
        )
        if person is None:
            raise HTTPException(401, "log in first")
        return await work(request, person)

    return Route(f"/api{path}", answer, methods=[method])


async def sent(request: Request, **kinds: type) -> list:
    """The fields of the object that was sent, in this order."""
    try:
        found = await request.json()
        values = [found[name] for name in kinds]
    except (ValueError, LookupError, TypeError):
        values = []
    if [type(value) for value in values] != [*kinds.values()]:
        raise HTTPException(422, f"an object with {', '.join(kinds)} should be sent")
    return values


def statement(sql: str, *names: str, rows: bool = False, status: int = 200, **kinds: type) -> Work:
    """An operation that is one statement, answered with its row, which there must be, or all its rows.

    names: of its first values, among `person`, numbers of the path, and `skip`; fields that are sent (kinds) follow.
    """

    async def answer(request: Request, person: int) -> Response:
        given = {
            "person": person,
            **request.path_params,
            "skip": PAGE * int(request.query_params.get("page", "0")),
        }
        values = [given[name] for name in names] + (await sent(request, **kinds) if kinds else [])
        found = await request.app.state.database.fetch(sql, *values)
        if rows:
            return JSONResponse([dict(row) for row in found])
        if not found:
            raise HTTPException(404, "there is no such thing")
        return JSONResponse(dict(found[0]), status)

    return answer


# People.


async def login(request: Request) -> Response:
    """Login."""
    name, password = await sent(request, name=str, password=str)
    database = request.app.state.database
    person = await database.fetchrow(
        "SELECT id, name, salt, secret FROM people WHERE name = $1", name
    )
    # Quick: a hash that is slow by intention would be most of what is measured.
    given = hashlib.sha256(((person["salt"] if person else "") + password).encode()).hexdigest()
    if person is None or not hmac.compare_digest(given, person["secret"]):
        raise HTTPException(403, "name and password do not go together")
    token = secrets.token_hex(16)
    await database.execute(
        "INSERT INTO sessions (token, person) VALUES ($1, $2)", token, person["id"]
    )
    answer = JSONResponse({"person": person["id"], "name": person["name"]})
    answer.set_cookie("session", token, httponly=True, samesite="lax")
    return answer


async def logout(request: Request, person: int) -> Response:
    """Logout: the session ends, and whoever is in an auction leaves it."""
    async with request.app.state.database.acquire() as connection, connection.transaction():
        await connection.execute(
            "DELETE FROM sessions WHERE token = $1", request.cookies["session"]
        )
        await connection.execute(
            "UPDATE attendances SET went = now() WHERE person = $1 AND went IS NULL", person
        )
    answer = JSONResponse({"person": person})
    answer.delete_cookie("session")
    return answer


# Auctions.


async def auction(request: Request, _: int) -> Response:
    """GetAuctionDetail: an auction with its items, in the order in which they are offered."""
    database, wanted = request.app.state.database, request.path_params["auction"]
    found = await database.fetchrow(
        "SELECT id AS auction, name, category FROM auctions WHERE id = $1", wanted
    )
    if found is None:
        raise HTTPException(404, "there is no such auction")
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


async def current(request: Request) -> dict:
    """How the auction of the path stands, which must be open."""
    state = await request.app.state.market.state(request.path_params["auction"])
    if state is None:
        raise HTTPException(404, "there is no such auction, or it is over")
    return state


async def next_bid(request: Request, _: int) -> Response:
    """GetNextBid: how the auction stands once something has happened after what the browser knows of.

    It waits for that; where nothing happens the answer is empty.
    """
    after = int(request.query_params["after"])
    state = await request.app.state.market.next(request.path_params["auction"], after)
    return Response(status_code=204) if state is None else JSONResponse(state)


async def place_bid(request: Request, person: int) -> Response:
    """PlaceBid: the bid is taken; what is decided about it is told as news."""
    item, amount = await sent(request, item=int, amount=int)
    state = await current(request)
    known = await request.app.state.database.fetchval(
        "SELECT count(*) FROM items WHERE id = $1", item
    )
    if not known or amount <= 0:
        raise HTTPException(422, "there is no such item, or no such amount")
    bid = await request.app.state.market.place(state["auction"], item, person, amount)
    return JSONResponse({"bid": bid}, 202)


# Items.


async def image(request: Request, _: int) -> Response:
    """GetImageForItem."""
    sql = (
        "SELECT p.content FROM images AS g JOIN pictures AS p ON p.id = g.picture WHERE g.item = $1"
    )
    content = await request.app.state.database.fetchval(sql, request.path_params["item"])
    if content is None:
        raise HTTPException(404, "there is no such image")
    return Response(content, media_type="image/png")


async def add_image(request: Request, person: int) -> Response:
    """AddImageForItem, of one's own; it takes the place of another."""
    wanted, content = request.path_params["item"], await request.body()
    if not content.startswith(PNG):
        raise HTTPException(422, "a PNG should be sent")
    async with request.app.state.database.acquire() as connection, connection.transaction():
        if await connection.fetchval("SELECT owner FROM items WHERE id = $1", wanted) != person:
            raise HTTPException(403, "that item is not yours")
        picture = await connection.fetchval(
            "INSERT INTO pictures (content) VALUES ($1) RETURNING id", content
        )
        upsert = """INSERT INTO images (item, picture) VALUES ($1, $2)
                    ON CONFLICT (item) DO UPDATE SET picture = excluded.picture"""
        await connection.execute(upsert, wanted, picture)
    return JSONResponse({"item": wanted}, 201)


async def books(request: Request) -> Response:
    """What there is of everything, and how much of it breaks what must hold."""
    found = await request.app.state.database.fetchval("SELECT books()::text")
    return Response(found, media_type="application/json")


# The operations that are one statement; of histories the last ones come first.

PROFILE = "name, email, address, balance"
PURCHASES = """SELECT p.auction, p.item, i.title, p.amount, p.made::text
    FROM purchases AS p JOIN items AS i ON i.id = p.item WHERE p.buyer = $1 ORDER BY p.id DESC LIMIT 10"""
BIDS = """SELECT b.id::text AS bid, b.auction, b.item, i.title, b.amount, b.verdict, b.placed::text
    FROM bids AS b JOIN items AS i ON i.id = b.item WHERE b.person = $1 ORDER BY b.number DESC LIMIT 10"""
ATTENDANCES = """SELECT t.auction, a.name, t.came::text, t.went::text
    FROM attendances AS t JOIN auctions AS a ON a.id = t.auction WHERE t.person = $1 ORDER BY t.id DESC LIMIT 10"""
ACTIVE = """SELECT a.id AS auction, a.name, a.category, s.title, s.price, s.bids FROM auctions AS a
    JOIN state AS s ON s.auction = a.id ORDER BY a.id LIMIT 10 OFFSET $1"""
ITEM = """SELECT i.id AS item, i.title, i.description, i.starting, p.name AS owner, i.auction,
        EXISTS (SELECT FROM images AS g WHERE g.item = i.id) AS image
    FROM items AS i JOIN people AS p ON p.id = i.owner WHERE i.id = $1"""
NEW_ITEM = "INSERT INTO items (owner, title, description, starting) VALUES ($1, $2, $3, $4) RETURNING id AS item"
LEAVE = "UPDATE attendances SET went = now() WHERE auction = $1 AND person = $2 AND went IS NULL RETURNING auction"

profile = statement(f"SELECT {PROFILE} FROM people WHERE id = $1", "person")
new_profile = statement(
    f"UPDATE people SET email = $2, address = $3 WHERE id = $1 RETURNING {PROFILE}",
    "person",
    email=str,
    address=str,
)
new_item = statement(NEW_ITEM, "person", status=201, title=str, description=str, starting=int)
AN_AUCTION, AN_ITEM = "/auctions/{auction:int}", "/items/{item:int}"

application = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/api/books", books),
        Route("/api/login", login, methods=["POST"]),
        route("POST", "/logout", logout),
        route("GET", "/profile", profile),
        route("PUT", "/profile", new_profile),
        route("GET", "/purchases", statement(PURCHASES, "person", rows=True)),
        route("GET", "/bids", statement(BIDS, "person", rows=True)),
        route("GET", "/attendances", statement(ATTENDANCES, "person", rows=True)),
        route("GET", "/auctions", statement(ACTIVE, "skip", rows=True)),
        route("GET", AN_AUCTION, auction),
        route("POST", f"{AN_AUCTION}/attendance", join),
        route("DELETE", f"{AN_AUCTION}/attendance", statement(LEAVE, "auction", "person")),
        route(
            "GET",
            f"{AN_AUCTION}/item",
            statement("SELECT * FROM state WHERE auction = $1", "auction"),
        ),
        route("GET", f"{AN_AUCTION}/next", next_bid),
        route("POST", f"{AN_AUCTION}/bids", place_bid),
        route("POST", "/items", new_item),
        route("GET", AN_ITEM, statement(ITEM, "item")),
        route("GET", f"{AN_ITEM}/image", image),
        route("PUT", f"{AN_ITEM}/image", add_image),
    ],
)
