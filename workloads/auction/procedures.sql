-- All changes of auctions, each in one transaction.  Every transaction takes its locks in the same
-- order: the auction, then people by their numbers.

-- Decides a bid of `offered` cents.  Returns the state of the auction if the bid was accepted; no
-- row if it was refused, or if it was decided before: the broker may deliver a message twice.
-- A bid is paid for at once; the person who is outbid gets the money back.
-- seconds: after which the item is sold, unless somebody bids more.
CREATE FUNCTION decide(
    given_id uuid, given_auction integer, given_item integer,
    bidder integer, offered bigint, seconds double precision
) RETURNS SETOF state LANGUAGE plpgsql AS $$
DECLARE
    a auctions;
    offer items;
    verdict text;
BEGIN
    SELECT * INTO a FROM auctions WHERE id = given_auction FOR UPDATE;
    IF EXISTS (SELECT FROM bids WHERE id = given_id) THEN
        RETURN;
    END IF;
    SELECT * INTO offer FROM items WHERE id = given_item;
    IF a.current IS DISTINCT FROM given_item THEN
        verdict := 'over';
    ELSIF bidder IN (offer.owner, a.leader) THEN
        verdict := 'own';
    ELSIF offered < offer.starting OR offered <= a.price THEN
        verdict := 'low';
    ELSE
        PERFORM FROM people WHERE id IN (bidder, a.leader) ORDER BY id FOR NO KEY UPDATE;
        UPDATE people SET balance = balance - offered WHERE id = bidder AND balance >= offered;
        IF NOT FOUND THEN
            verdict := 'poor';
        ELSE
            verdict := 'accepted';
            UPDATE people SET balance = balance + a.price WHERE id = a.leader;
            UPDATE auctions SET
                price = offered, leader = bidder, bids = bids + 1, seq = seq + 1,
                closes = clock_timestamp() + make_interval(secs => seconds)
            WHERE id = a.id;
        END IF;
    END IF;
    INSERT INTO bids (id, auction, listing, item, person, amount, placed, verdict)
    VALUES (given_id, a.id, a.listing, given_item, bidder, offered, clock_timestamp(), verdict);
    IF verdict = 'accepted' THEN
        RETURN QUERY SELECT * FROM state WHERE auction = a.id;
    END IF;
END
$$;

-- Sells one item whose time is over to the highest bidder, and offers the auction's next item.
-- Returns the state of that auction; no row if no item's time is over.  The sold item goes to the
-- end of the auction's items; its new owner will offer it there.
CREATE FUNCTION sell() RETURNS SETOF state LANGUAGE plpgsql AS $$
DECLARE
    a auctions;
    seller integer;
BEGIN
    SELECT * INTO a FROM auctions WHERE closes <= clock_timestamp()
    ORDER BY closes LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT owner INTO seller FROM items WHERE id = a.current;
    UPDATE people SET balance = balance + a.price WHERE id = seller;
    INSERT INTO purchases (auction, listing, item, seller, buyer, amount, made)
    VALUES (a.id, a.listing, a.current, seller, a.leader, a.price, clock_timestamp());
    UPDATE items SET
        owner = a.leader, turn = (SELECT max(turn) + 1 FROM items WHERE auction = a.id)
    WHERE id = a.current;
    UPDATE auctions SET
        current = (SELECT id FROM items WHERE auction = a.id ORDER BY turn LIMIT 1),
        listing = listing + 1, seq = seq + 1, price = 0, leader = NULL, bids = 0, closes = NULL
    WHERE id = a.id;
    RETURN QUERY SELECT * FROM state WHERE auction = a.id;
END
$$;

-- The money of all people at the start of a cell.
CREATE TABLE data_set AS SELECT sum(balance) AS money FROM people;

-- The books: numbers of rows, faults (0 in a correct database), and the server's settings.
-- adrift: cents that were created or lost.  wrong: sales to another bid than the highest one.
CREATE FUNCTION books() RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object(
        'bids', (SELECT count(*) FROM bids),
        'accepted', (SELECT count(*) FROM bids WHERE verdict = 'accepted'),
        'purchases', (SELECT count(*) FROM purchases),
        'adrift', (SELECT sum(balance) FROM people) + (SELECT sum(price) FROM auctions)
                  - (SELECT money FROM data_set),
        'wrong', (
            SELECT count(*) FROM purchases AS p LEFT JOIN (
                SELECT DISTINCT ON (auction, listing) * FROM bids WHERE verdict = 'accepted'
                ORDER BY auction, listing, amount DESC
            ) AS b USING (auction, listing)
            WHERE (b.person, b.amount, b.item) IS DISTINCT FROM (p.buyer, p.amount, p.item)
        ),
        'server', current_setting('server_version'),
        'synchronous_commit', current_setting('synchronous_commit'),
        'fsync', current_setting('fsync'),
        'full_page_writes', current_setting('full_page_writes')
    )
$$;

-- The application's account, which may neither delete a bid nor change the tables.
CREATE ROLE auction LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO auction;
GRANT INSERT ON sessions, items, bids, purchases, attendances, pictures, images TO auction;
GRANT UPDATE ON auctions, people, items, attendances, images TO auction;
GRANT DELETE ON sessions TO auction;
