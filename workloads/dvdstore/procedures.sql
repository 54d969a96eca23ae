-- The transactions of the pages.

-- Returns a customer with the last purchases, at most ten, newest first; no row if no customer has
-- that name and password.  A customer without purchases has one row without a product.
CREATE FUNCTION login(given_name text, given_password text)
RETURNS TABLE (
    customer integer, first_name text, last_name text,
    product integer, title text, actor text, related text
)
LANGUAGE sql STABLE AS $$
    SELECT c.id, c.first_name, c.last_name, p.id, p.title, p.actor, r.title
    FROM customers AS c
    LEFT JOIN LATERAL (
        SELECT h.product, h.order_id, h.line FROM cust_hist AS h WHERE h.customer = c.id
        ORDER BY h.order_id DESC, h.line LIMIT 10
    ) AS bought ON true
    LEFT JOIN products AS p ON p.id = bought.product
    LEFT JOIN products AS r ON r.id = p.related
    WHERE c.username = given_name AND c.password = given_password
    ORDER BY bought.order_id DESC, bought.line
$$;

-- Adds a customer, and returns its number; null if another customer has that name.
CREATE FUNCTION new_customer(
    first_name text, last_name text, street text, city text, country text, email text, phone text,
    card text, username text, password text, age integer, income integer, gender text
) RETURNS integer LANGUAGE sql AS $$
    INSERT INTO customers (
        first_name, last_name, street, city, country, email, phone,
        card, username, password, age, income, gender
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (username) DO NOTHING
    RETURNING id
$$;

-- Returns the first `most` special products of a category.
CREATE FUNCTION browse_by_category(wanted integer, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products WHERE category = wanted AND special ORDER BY id LIMIT most
$$;

-- Returns the first `most` products whose titles hold all words.
CREATE FUNCTION browse_by_title(words text, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products
    WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', words) ORDER BY id LIMIT most
$$;

-- Returns the first `most` products whose actors have all of these names.
CREATE FUNCTION browse_by_actor(words text, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products
    WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', words) ORDER BY id LIMIT most
$$;

-- Buys products, and returns the lines of the order.  If one product has too little stock, all is
-- rolled back, and there is no row.  wanted, quantities: product and number of pieces of each line.
-- Stock is taken in the order of the products, so that no two purchases wait for each other.
CREATE FUNCTION purchase(buyer integer, wanted integer[], quantities integer[])
RETURNS TABLE (
    order_id integer, line integer, title text, quantity integer,
    price numeric, net numeric, tax numeric, total numeric
)
LANGUAGE plpgsql AS $$
DECLARE
    item record;
    placed orders;
BEGIN
    FOR item IN
        SELECT w.product, sum(w.quantity)::integer AS quantity
        FROM unnest(wanted, quantities) AS w (product, quantity)
        GROUP BY w.product ORDER BY w.product
    LOOP
        UPDATE inventory SET stock = stock - item.quantity, sold = sold + item.quantity
        WHERE inventory.product = item.product AND stock >= item.quantity;
        IF NOT FOUND THEN
            RAISE EXCEPTION SQLSTATE 'SHOP1' USING MESSAGE = 'too little stock';
        END IF;
    END LOOP;
    WITH bill AS (
        SELECT
            sum(p.price * w.quantity) AS net, round(sum(p.price * w.quantity) * 0.0825, 2) AS tax
        FROM unnest(wanted, quantities) AS w (product, quantity)
        JOIN products AS p ON p.id = w.product
    )
    INSERT INTO orders (customer, placed, net, tax, total)
    SELECT buyer, current_date, bill.net, bill.tax, bill.net + bill.tax FROM bill
    RETURNING * INTO placed;
    INSERT INTO cust_hist (customer, order_id, line, product)
    SELECT buyer, placed.id, w.line, w.product
    FROM unnest(wanted) WITH ORDINALITY AS w (product, line);
    RETURN QUERY
    WITH added AS (
        INSERT INTO orderlines (order_id, line, product, quantity, price)
        SELECT placed.id, w.line, w.product, w.quantity, p.price
        FROM unnest(wanted, quantities) WITH ORDINALITY AS w (product, quantity, line)
        JOIN products AS p ON p.id = w.product
        RETURNING *
    )
    SELECT
        placed.id, a.line, p.title, a.quantity, a.price, placed.net, placed.tax, placed.total
    FROM added AS a JOIN products AS p ON p.id = a.product ORDER BY a.line;
EXCEPTION
    WHEN SQLSTATE 'SHOP1' THEN
        RETURN;
END
$$;

-- Reorders a product whose stock falls below 3, up to 250 pieces.
CREATE FUNCTION restock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reorder (product, placed, left_over, quantity)
    VALUES (NEW.product, now(), NEW.stock, 250 - NEW.stock);
    NEW.stock := 250;
    RETURN NEW;
END
$$;

CREATE TRIGGER restock BEFORE UPDATE OF stock ON inventory
FOR EACH ROW WHEN (NEW.stock < 3) EXECUTE FUNCTION restock();

-- The numbers at the start of a cell.
CREATE TABLE data_set AS
SELECT (SELECT count(*) FROM orders) AS orders, sum(stock) AS stock FROM inventory;

-- The books: numbers of rows, faults (0 in a correct database), and the server's settings.  lost:
-- products that were sold in another number than the new orders say.  adrift: pieces of stock that
-- were neither sold nor reordered.
CREATE FUNCTION account() RETURNS json LANGUAGE sql STABLE AS $$
    WITH fresh AS (
        SELECT orders.* FROM orders, data_set WHERE id > data_set.orders
    ), went AS (
        SELECT product, sum(quantity) AS quantity
        FROM orderlines JOIN fresh ON fresh.id = order_id GROUP BY product
    )
    SELECT json_build_object(
        'customers', (SELECT count(*) FROM customers), 'orders', (SELECT count(*) FROM orders),
        'new_cents', (SELECT coalesce(sum(total) * 100, 0)::bigint FROM fresh),
        'reorders', (SELECT count(*) FROM reorder),
        'lost', (SELECT count(*) FROM inventory AS i LEFT JOIN went USING (product)
                 WHERE i.sold <> coalesce(went.quantity, 0)),
        'adrift', (SELECT sum(stock + sold) FROM inventory) - d.stock
                  - (SELECT coalesce(sum(quantity), 0) FROM reorder),
        'server', current_setting('server_version'),
        'synchronous_commit', current_setting('synchronous_commit'),
        'fsync', current_setting('fsync'),
        'full_page_writes', current_setting('full_page_writes')
    )
    FROM data_set AS d
$$;

-- The pages' account, which may change neither prices nor the tables.
CREATE ROLE shop LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO shop;
GRANT INSERT ON customers, orders, orderlines, cust_hist, reorder TO shop;
GRANT UPDATE ON inventory TO shop;
