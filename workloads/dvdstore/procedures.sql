-- The transactions of the pages.

-- A customer with the last purchases, at most ten, newest first.  No row: no customer has that name
-- and password.  A customer without purchases has one row without a product.
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

-- The number of a new customer; null if another one has that name.
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

CREATE FUNCTION browse_by_category(wanted integer, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products WHERE category = wanted AND special ORDER BY id LIMIT most
$$;

CREATE FUNCTION browse_by_title(words text, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products
    WHERE to_tsvector('simple', title) @@ plainto_tsquery('simple', words) ORDER BY id LIMIT most
$$;

CREATE FUNCTION browse_by_actor(words text, most integer)
RETURNS SETOF products LANGUAGE sql STABLE AS $$
    SELECT * FROM products
    WHERE to_tsvector('simple', actor) @@ plainto_tsquery('simple', words) ORDER BY id LIMIT most
$$;

-- Buys products, or none of them if one has too little stock: all is rolled back, without a row.
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

-- Stock that falls below 3 is ordered anew, up to 250.
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

-- What was loaded.
CREATE TABLE data_set AS
SELECT (SELECT count(*) FROM orders) AS orders, sum(stock) AS stock FROM inventory;

-- The books: how much there is, and what breaks a rule.  lost: products that were not sold as often
-- as new orders say.  adrift: pieces of stock that came or went otherwise.
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

-- The pages' account: it can change neither prices nor the tables.
CREATE ROLE shop LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO shop;
GRANT INSERT ON customers, orders, orderlines, cust_hist, reorder TO shop;
GRANT UPDATE ON inventory TO shop;
