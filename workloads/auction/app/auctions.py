"""The auction site: answers browsers in JSON.

One of several equal processes, run by uvicorn behind nginx.  The environment gives
AUCTION_DATABASE and AUCTION_BROKER (URLs), AUCTION_POLL_SECONDS and AUCTION_ITEM_SECONDS.
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
from market import Market
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ROWS_OF_A_PAGE = 10
# The most connections that a process keeps to the database.
CONNECTIONS = 8
# Seconds within which the database's connections must close at the end.
CLOSING_SECONDS = 10
# The first bytes of every PNG.
PNG = b"\x89PNG\r\n\x1a\n"
# Answers a request of the person with this number.
Handler = Callable[[Request, int], Awaitable[Response]]


@contextlib.asynccontextmanager
async def open_site(site: Starlette) -> AsyncIterator[None]:
    """Keep database and market open while the process serves.

    Sets site.state.database, a pool of connections, and site.state.market, which the handlers use.
    Reads the environment's variables AUCTION_…, which site.sh exports.
    """
    poll_seconds = float(os.environ["AUCTION_POLL_SECONDS"])
    item_seconds = float(os.environ["AUCTION_ITEM_SECONDS"])
    url = os.environ["AUCTION_DATABASE"]
    database = await asyncpg.create_pool(url, min_size=2, max_size=CONNECTIONS)
    site.state.database = database
    site.state.market = Market(database, poll_seconds, item_seconds)
    try:
        async with site.state.market.open(os.environ["AUCTION_BROKER"]):
            yield
    finally:
        # A connection that is still in use is cut.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await database.close()


def make_route(method: str, path: str, handle: Handler) -> Route:
    """Return a route for persons who are logged in; others get the status 401.

    path: below /api.  handle: gets the request and the person's number.
    """

    async def answer(request: Request) -> Response:
        """Find the person by the session's cookie, which log_in sets, and call the handler."""
        person = await request.app.state.database.fetchval(
            "SELECT person FROM sessions WHERE token = $1", request.cookies.get("session", "")
        )
        if person is None:
            raise HTTPException(401, "log in first")
        return await handle(request, person)

    return Route(f"/api{path}", answer, methods=[method])


async def read_fields(request: Request, **types: type) -> list:
    """Return the values of fields in the object that was sent, in the order of `types`.

    types: the type of each field, by the field's name.
    Raises HTTPException (422) unless each field is there and has exactly its type: true is no
    integer.
    """
    try:
        body = await request.json()
        values = [body[name] for name in types]
    except (ValueError, LookupError, TypeError):
        values = []
    if [type(value) for value in values] != [*types.values()]:
        raise HTTPException(422, f"an object with {', '.join(types)} should be sent")
    return values


def make_handler(
    sql: str, *names: str, is_list: bool = False, status: int = 200, **types: type
) -> Handler:
    """Return a handler that runs one SQL statement, and answers with its first row or all its rows.

    sql: $1, $2 and so on are the values of `names`, then those of `types`, in their order.
    names: each is `person` (who asks), a parameter of the path, or `skip` (the number of rows
    before the requested page).
    types: the type of each request field that the statement uses (see read_fields); the keywords
    are the names of the fields.
    is_list: whether the answer has all rows.  Otherwise it has the first one, or is 404 if there is
    none.
    status: the HTTP status of an answer with one row.
    The handler answers 422 if the page is not a number.
    """

    async def answer(request: Request, person: int) -> Response:
        """Run the statement with values of the request."""
        page = request.query_params.get("page", "0")
        if not re.fullmatch("[0-9]{1,9}", page):
            raise HTTPException(422, "the page should be a number")
        skip = ROWS_OF_A_PAGE * int(page)
        by_name = {"person": person, **request.path_params, "skip": skip}
        values = [by_name[name] for name in names]
        if types:
            values += await read_fields(request, **types)
        records = await request.app.state.database.fetch(sql, *values)
        if is_list:
            return JSONResponse([dict(record) for record in records])
        if not records:
            raise HTTPException(404, "the database has no such row")
        return JSONResponse(dict(records[0]), status)

    return answer


# Persons.


async def log_in(request: Request) -> Response:
    """Answer Login: begin a session, whose token the browser keeps in the cookie `session`.

    Raises HTTPException (403) for a wrong name or password.
    """
    name, password = await read_fields(request, name=str, password=str)
    database = request.app.state.database
    person = await database.fetchrow(
        "SELECT id, name, salt, secret FROM people WHERE name = $1", name
    )
    # A fast hash: a slow one, right for real accounts, would be most of what is measured.
    salt = person["salt"] if person else ""
    digest = hashlib.sha256((salt + password).encode()).hexdigest()
    if person is None or not hmac.compare_digest(digest, person["secret"]):
        raise HTTPException(403, "name and password do not go together")
    token = secrets.token_hex(16)
    await database.execute(
        "INSERT INTO sessions (token, person) VALUES ($1, $2)", token, person["id"]
    )
    answer = JSONResponse({"person": person["id"], "name": person["name"]})
    answer.set_cookie("session", token, httponly=True, samesite="lax")
    return answer


async def log_out(request: Request, person: int) -> Response:
    """Answer Logout: end the session and all attendance of auctions, in one transaction."""
    token = request.cookies["session"]
    async with request.app.state.database.acquire() as connection, connection.transaction():
        await connection.execute("DELETE FROM sessions WHERE token = $1", token)
        await connection.execute(
            "UPDATE attendances SET went = now() WHERE person = $1 AND went IS NULL", person
        )
    answer = JSONResponse({"person": person})
    answer.delete_cookie("session")
    return answer


# Auctions.


async def show_auction(request: Request, _: int) -> Response:
    """Answer GetAuctionDetail: an auction with its items in the order of their offers.

    Raises HTTPException (404) if there is no such auction.
    """
    database, number = request.app.state.database, request.path_params["auction"]
    auction = await database.fetchrow(
        "SELECT id AS auction, name, category FROM auctions WHERE id = $1", number
    )
    if auction is None:
        raise HTTPException(404, f"there is no auction {number}")
    items = await database.fetch(
        "SELECT id AS item, title, starting FROM items WHERE auction = $1 ORDER BY turn, id", number
    )
    return JSONResponse({**auction, "items": [dict(item) for item in items]})


async def join_auction(request: Request, person: int) -> Response:
    """Answer JoinAuction; a person who attends the auction already goes on attending it."""
    state = await require_open_auction(request)
    sql = """INSERT INTO attendances (auction, person, came) VALUES ($1, $2, now())
             ON CONFLICT (auction, person) WHERE went IS NULL DO NOTHING"""
    await request.app.state.database.execute(sql, state["auction"], person)
    return JSONResponse({"auction": state["auction"]}, 201)


async def require_open_auction(request: Request) -> dict:
    """Return the state of the path's auction, a row of the view `state` (schema.sql).

    Raises HTTPException (404) unless it is open.
    """
    state = await request.app.state.market.fetch_state(request.path_params["auction"])
    if state is None:
        raise HTTPException(404, "there is no such auction, or it is over")
    return state


async def wait_for_bid(request: Request, _: int) -> Response:
    """Answer GetNextBid: the auction's state once it is newer than the browser's.

    The browser sends the `seq` of the state that it knows as `after`.
    The answer is empty (204) if nothing happens for AUCTION_POLL_SECONDS.
    """
    known = int(request.query_params["after"])
    state = await request.app.state.market.wait_for_state(request.path_params["auction"], known)
    return Response(status_code=204) if state is None else JSONResponse(state)


async def place_bid(request: Request, person: int) -> Response:
    """Answer PlaceBid: queue the bid for its decision, and answer with the bid's id (202).

    Whether the bid was accepted comes later, as news of the auction.
    Raises HTTPException for an auction that is not open (404), or for a wrong item or amount (422).
    """
    item, amount = await read_fields(request, item=int, amount=int)
    state = await require_open_auction(request)
    items = await request.app.state.database.fetchval(
        "SELECT count(*) FROM items WHERE id = $1", item
    )
    if not items or amount <= 0:
        raise HTTPException(422, "there is no such item, or the amount is not positive")
    bid = await request.app.state.market.queue_bid(state["auction"], item, person, amount)
    return JSONResponse({"bid": bid}, 202)


# Items.


async def show_image(request: Request, _: int) -> Response:
    """Answer GetImageForItem: the PNG.  Raises HTTPException (404) if the item has none."""
    sql = """SELECT p.content FROM images AS g JOIN pictures AS p ON p.id = g.picture
             WHERE g.item = $1"""
    content = await request.app.state.database.fetchval(sql, request.path_params["item"])
    if content is None:
        raise HTTPException(404, "the item has no image")
    return Response(content, media_type="image/png")


async def add_image(request: Request, person: int) -> Response:
    """Answer AddImageForItem: give an item an image, in place of an earlier one.

    Raises HTTPException for what is no PNG (422), or if another person owns the item (403).
    """
    item, content = request.path_params["item"], await request.body()
    if not content.startswith(PNG):
        raise HTTPException(422, "a PNG should be sent")
    async with request.app.state.database.acquire() as connection, connection.transaction():
        if await connection.fetchval("SELECT owner FROM items WHERE id = $1", item) != person:
            raise HTTPException(403, "the item belongs to another person")
        picture = await connection.fetchval(
            "INSERT INTO pictures (content) VALUES ($1) RETURNING id", content
        )
        upsert = """INSERT INTO images (item, picture) VALUES ($1, $2)
                    ON CONFLICT (item) DO UPDATE SET picture = excluded.picture"""
        await connection.execute(upsert, item, picture)
    return JSONResponse({"item": item}, 201)


async def show_books(request: Request) -> Response:
    """Answer with the books of the database (procedures.sql): counts and faults.

    parse.py reads them, and search.py waits by them for the decision of all bids.
    """
    books = await request.app.state.database.fetchval("SELECT books()::text")
    return Response(books, media_type="application/json")


# The operations that are one statement; histories begin with the newest row.

PROFILE = "name, email, address, balance"
GET_PROFILE = f"SELECT {PROFILE} FROM people WHERE id = $1"
SET_PROFILE = f"UPDATE people SET email = $2, address = $3 WHERE id = $1 RETURNING {PROFILE}"
PURCHASES = """SELECT p.auction, p.item, i.title, p.amount, p.made::text
    FROM purchases AS p JOIN items AS i ON i.id = p.item
    WHERE p.buyer = $1 ORDER BY p.id DESC LIMIT 10"""
BIDS = """SELECT b.id::text AS bid, b.auction, b.item, i.title, b.amount, b.verdict, b.placed::text
    FROM bids AS b JOIN items AS i ON i.id = b.item
    WHERE b.person = $1 ORDER BY b.number DESC LIMIT 10"""
ATTENDANCES = """SELECT t.auction, a.name, t.came::text, t.went::text
    FROM attendances AS t JOIN auctions AS a ON a.id = t.auction
    WHERE t.person = $1 ORDER BY t.id DESC LIMIT 10"""
OPEN_AUCTIONS = """SELECT a.id AS auction, a.name, a.category, s.title, s.price, s.bids
    FROM auctions AS a JOIN state AS s ON s.auction = a.id ORDER BY a.id LIMIT 10 OFFSET $1"""
STATE = "SELECT * FROM state WHERE auction = $1"
LEAVE = """UPDATE attendances SET went = now()
    WHERE auction = $1 AND person = $2 AND went IS NULL RETURNING auction"""
ITEM = """SELECT i.id AS item, i.title, i.description, i.starting, p.name AS owner, i.auction,
        EXISTS (SELECT FROM images AS g WHERE g.item = i.id) AS image
    FROM items AS i JOIN people AS p ON p.id = i.owner WHERE i.id = $1"""
NEW_ITEM = """INSERT INTO items (owner, title, description, starting) VALUES ($1, $2, $3, $4)
    RETURNING id AS item"""

set_profile = make_handler(SET_PROFILE, "person", email=str, address=str)
add_item = make_handler(NEW_ITEM, "person", status=201, title=str, description=str, starting=int)
AUCTION, ITEM_PATH = "/auctions/{auction:int}", "/items/{item:int}"

application = Starlette(
    lifespan=open_site,
    routes=[
        Route("/api/books", show_books),
        Route("/api/login", log_in, methods=["POST"]),
        make_route("POST", "/logout", log_out),
        make_route("GET", "/profile", make_handler(GET_PROFILE, "person")),
        make_route("PUT", "/profile", set_profile),
        make_route("GET", "/purchases", make_handler(PURCHASES, "person", is_list=True)),
        make_route("GET", "/bids", make_handler(BIDS, "person", is_list=True)),
        make_route("GET", "/attendances", make_handler(ATTENDANCES, "person", is_list=True)),
        make_route("GET", "/auctions", make_handler(OPEN_AUCTIONS, "skip", is_list=True)),
        make_route("GET", AUCTION, show_auction),
        make_route("POST", f"{AUCTION}/attendance", join_auction),
        make_route("DELETE", f"{AUCTION}/attendance", make_handler(LEAVE, "auction", "person")),
        make_route("GET", f"{AUCTION}/item", make_handler(STATE, "auction")),
        make_route("GET", f"{AUCTION}/next", wait_for_bid),
        make_route("POST", f"{AUCTION}/bids", place_bid),
        make_route("POST", "/items", add_item),
        make_route("GET", ITEM_PATH, make_handler(ITEM, "item")),
        make_route("GET", f"{ITEM_PATH}/image", show_image),
        make_route("PUT", f"{ITEM_PATH}/image", add_image),
    ],
)
