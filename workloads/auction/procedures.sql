-- What changes auctions, each in one call and so in one transaction, and what must hold of them.
-- Locks are taken in one order everywhere: the auction, then people by their numbers.

-- Decides about a bid.  Gives how the auction stands then where the bid was accepted; no row where it was not, or
-- where it was decided before: a message may come twice.
-- A bid is paid for at once; who is outbid gets the money back.
CREATE FUNCTION decide(
    given_id uuid, given_auction integer, given_item integer, bidder integer, offered bigint, seconds double precision
) RETURNS SETOF state LANGUAGE plpgsql AS $$
DECLARE
    a auctions;
    offer items;
    said text;
BEGIN
    SELECT * INTO a FROM auctions WHERE id = given_auction FOR UPDATE;
    IF EXISTS (SELECT FROM bids WHERE id = given_id) THEN
        RETURN;
    END IF;
    SELECT * INTO offer FROM items WHERE id = given_item;
    IF a.current IS DISTINCT FROM given_item THEN
        said := 'over';
    ELSIF bidder IN (offer.owner, a.leader) THEN
        said := 'own';
    ELSIF offered < offer.starting OR offered <= a.price THEN
        said := 'low';
    ELSE
        PERFORM FROM people WHERE id IN (bidder, a.leader) ORDER BY id FOR NO KEY UPDATE;
        UPDATE people SET balance = balance - offered WHERE id = bidder AND balance >= offered;
        IF NOT FOUND THEN
            said := 'poor';
        ELSE
            said := 'accepted';
            UPDATE people SET balance = balance + a.price WHERE id = a.leader;
            UPDATE auctions SET
                price = offered, leader = bidder, bids = bids + 1, seq = seq + 1,
                closes = clock_timestamp() + make_interval(secs => seconds)
            WHERE id = a.id;
        END IF;
    END IF;
    INSERT INTO bids (id, auction, listing, item, person, amount, placed, verdict)
    VALUES (given_id, a.id, a.listing, given_item, bidder, offered, clock_timestamp(), said);
    IF said = 'accepted' THEN
        RETURN QUERY SELECT * FROM state WHERE auction = a.id;
    END IF;
END
$$;

-- Sells one item whose time is over to who bid most, and offers the next one; gives how that auction stands then, no
-- row where none is due.  What was bought comes last in the auction's turns, and is then offered by its new owner.
CREATE FUNCTION sell() RETURNS SETOF state LANGUAGE plpgsql AS $$
DECLARE
    a auctions;
    seller integer;
BEGIN
    SELECT * INTO a FROM auctions WHERE closes <= clock_timestamp() ORDER BY closes LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT owner INTO seller FROM items WHERE id = a.current;
    UPDATE people SET balance = balance + a.price WHERE id = seller;
    INSERT INTO purchases (auction, listing, item, seller, buyer, amount, made)
    VALUES (a.id, a.listing, a.current, seller, a.leader, a.price, clock_timestamp());
    UPDATE items SET owner = a.leader, turn = (SELECT max(turn) + 1 FROM items WHERE auction = a.id)
    WHERE id = a.current;
    UPDATE auctions SET
        current = (SELECT id FROM items WHERE auction = a.id ORDER BY turn LIMIT 1),
        listing = listing + 1, seq = seq + 1, price = 0, leader = NULL, bids = 0, closes = NULL
    WHERE id = a.id;
    RETURN QUERY SELECT * FROM state WHERE auction = a.id;
END
$$;

-- The books: what there is of everything, and how much breaks what must hold.
-- adrift: cents that came or went.  wrong: sales that did not go to the highest bid for its amount.  unsold: offers that
-- ended with bids and without a sale.  astray: auctions that do not stand as their bids say.  falling: accepted bids
-- that were not more than the one before.  stolen: items that are not their last buyer's.
CREATE FUNCTION books() RETURNS json LANGUAGE sql STABLE AS $$
    WITH accepted AS (
        SELECT *, lag(amount) OVER w AS before, count(*) OVER w AS place
        FROM bids WHERE verdict = 'accepted' WINDOW w AS (PARTITION BY auction, listing ORDER BY number)
    ), best AS (
        SELECT DISTINCT ON (auction, listing) * FROM accepted ORDER BY auction, listing, amount DESC
    ), last AS (
        SELECT DISTINCT ON (item) * FROM purchases ORDER BY item, id DESC
    )
    SELECT json_build_object(
        'users', d.users, 'data_seed', d.seed, 'checksum', d.checksum,
        'people', (SELECT count(*) FROM people), 'auctions', (SELECT count(*) FROM auctions),
        'items', (SELECT count(*) FROM items), 'bids', (SELECT count(*) FROM bids),
        'accepted', (SELECT count(*) FROM accepted), 'purchases', (SELECT count(*) FROM purchases),
        'attendances', (SELECT count(*) FROM attendances), 'pictures', (SELECT count(*) FROM pictures),
        'images', (SELECT count(*) FROM images),
        'adrift', (SELECT sum(balance) FROM people) + (SELECT sum(price) FROM auctions) - d.money,
        'wrong', (SELECT count(*) FROM purchases AS p LEFT JOIN best AS b USING (auction, listing)
                  WHERE (b.person, b.amount, b.item) IS DISTINCT FROM (p.buyer, p.amount, p.item)),
        'unsold', (SELECT count(*) FROM best AS b JOIN auctions AS a ON a.id = b.auction AND b.listing < a.listing
                   LEFT JOIN purchases AS p ON p.auction = b.auction AND p.listing = b.listing WHERE p.id IS NULL),
        'astray', (SELECT count(*) FROM auctions AS a LEFT JOIN best AS b ON b.auction = a.id AND b.listing = a.listing
                   LEFT JOIN accepted AS l ON l.auction = a.id AND l.listing = a.listing AND l.place = a.bids
                   WHERE (a.leader, a.price) IS DISTINCT FROM (b.person, coalesce(b.amount, 0))
                      OR a.leader IS DISTINCT FROM l.person),
        'falling', (SELECT count(*) FROM accepted WHERE amount <= before),
        'stolen', (SELECT count(*) FROM last AS l JOIN items AS i ON i.id = l.item WHERE i.owner <> l.buyer),
        'server', current_setting('server_version'), 'synchronous_commit', current_setting('synchronous_commit'),
        'fsync', current_setting('fsync'), 'full_page_writes', current_setting('full_page_writes')
    )
    FROM data_set AS d
$$;

-- The application's own account: it may use the auctions, and neither forget a bid nor change what they are made of.
CREATE ROLE auction LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO auction;
GRANT INSERT ON sessions, items, bids, purchases, attendances, pictures, images TO auction;
GRANT UPDATE ON auctions, people, items, attendances, images TO auction;
GRANT DELETE ON sessions TO auction;
