CREATE INDEX ON items (auction, turn);
CREATE INDEX ON bids (person, number);
CREATE INDEX ON bids (auction, listing);
CREATE INDEX ON purchases (buyer, id);
CREATE INDEX ON attendances (person, id);
CREATE UNIQUE INDEX ON attendances (auction, person) WHERE went IS NULL;
CREATE INDEX ON auctions (closes) WHERE closes IS NOT NULL;
SELECT setval(pg_get_serial_sequence(t, c), greatest(n, 1)) FROM (
    SELECT 'items' AS t, 'id' AS c, max(id) AS n FROM items
    UNION ALL SELECT 'bids', 'number', max(number) FROM bids
    UNION ALL SELECT 'purchases', 'id', max(id) FROM purchases
    UNION ALL SELECT 'attendances', 'id', max(id) FROM attendances
    UNION ALL SELECT 'pictures', 'id', max(id) FROM pictures
) AS last;
