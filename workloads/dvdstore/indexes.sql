-- Created after the rows.  Searches must name the full-text indexes' configuration, 'simple'.

CREATE UNIQUE INDEX customers_username ON customers (username);
CREATE INDEX customers_login ON customers (username, password);
CREATE INDEX products_category ON products (category);
CREATE INDEX products_special ON products (special);
CREATE INDEX products_category_special ON products (category, special);
CREATE INDEX products_title ON products USING gin (to_tsvector('simple', title));
CREATE INDEX products_actor ON products USING gin (to_tsvector('simple', actor));
CREATE INDEX cust_hist_customer ON cust_hist (customer, order_id);

ALTER TABLE products ADD FOREIGN KEY (category) REFERENCES categories;
ALTER TABLE products ADD FOREIGN KEY (related) REFERENCES products;
ALTER TABLE inventory ADD FOREIGN KEY (product) REFERENCES products;
ALTER TABLE orders ADD FOREIGN KEY (customer) REFERENCES customers;
ALTER TABLE orderlines ADD FOREIGN KEY (order_id) REFERENCES orders;
ALTER TABLE cust_hist ADD FOREIGN KEY (customer) REFERENCES customers;

SELECT setval(pg_get_serial_sequence('customers', 'id'), (SELECT max(id) FROM customers));
SELECT setval(pg_get_serial_sequence('orders', 'id'), (SELECT max(id) FROM orders));
