-- The tables of the social-events site.  Ids of new rows come from id_gen, inside the transaction
-- that uses them, so that a transaction that fails leaves no gap.

CREATE TABLE id_gen (
    gen_key VARCHAR(20) NOT NULL PRIMARY KEY,
    gen_value INT NOT NULL
);

CREATE TABLE address (
    addressid INT NOT NULL PRIMARY KEY,
    street1 VARCHAR(80) NOT NULL,
    street2 VARCHAR(80) NOT NULL,
    city VARCHAR(40) NOT NULL,
    state VARCHAR(20) NOT NULL,
    zip VARCHAR(10) NOT NULL,
    country VARCHAR(40) NOT NULL,
    latitude DECIMAL(9, 6) NOT NULL,
    longitude DECIMAL(9, 6) NOT NULL
);

CREATE TABLE person (
    personid INT NOT NULL PRIMARY KEY,
    username VARCHAR(30) NOT NULL UNIQUE,
    -- SHA-256 of salt and password.  A slow hash, right for real accounts, would be most of what
    -- is measured.
    salt CHAR(16) NOT NULL,
    password_hash CHAR(64) NOT NULL,
    firstname VARCHAR(30) NOT NULL,
    lastname VARCHAR(30) NOT NULL,
    email VARCHAR(80) NOT NULL,
    telephone VARCHAR(20) NOT NULL,
    summary VARCHAR(1000) NOT NULL,
    timezone VARCHAR(40) NOT NULL,
    image VARCHAR(60) NOT NULL,
    thumbnail VARCHAR(60) NOT NULL,
    addressid INT NOT NULL,
    FOREIGN KEY (addressid) REFERENCES address (addressid)
);

CREATE TABLE person_person (
    personid INT NOT NULL,
    friendid INT NOT NULL,
    PRIMARY KEY (personid, friendid),
    FOREIGN KEY (personid) REFERENCES person (personid),
    FOREIGN KEY (friendid) REFERENCES person (personid)
);

CREATE TABLE socialevent (
    socialeventid INT NOT NULL PRIMARY KEY,
    title VARCHAR(100) NOT NULL,
    summary VARCHAR(200) NOT NULL,
    description VARCHAR(2000) NOT NULL,
    telephone VARCHAR(20) NOT NULL,
    takes_place DATETIME NOT NULL,
    created DATETIME NOT NULL,
    image VARCHAR(60) NOT NULL,
    thumbnail VARCHAR(60) NOT NULL,
    literature VARCHAR(60) NOT NULL,
    submitterid INT NOT NULL,
    addressid INT NOT NULL,
    KEY newest (created, socialeventid),
    KEY posted (submitterid, created),
    FOREIGN KEY (submitterid) REFERENCES person (personid),
    FOREIGN KEY (addressid) REFERENCES address (addressid)
);

-- refcount: the number of events that have the tag.
CREATE TABLE socialeventtag (
    socialeventtagid INT NOT NULL PRIMARY KEY,
    tag VARCHAR(30) NOT NULL UNIQUE,
    refcount INT NOT NULL,
    KEY popular (refcount, tag)
);

CREATE TABLE socialeventtag_socialevent (
    socialeventtagid INT NOT NULL,
    socialeventid INT NOT NULL,
    PRIMARY KEY (socialeventtagid, socialeventid),
    KEY of_event (socialeventid),
    FOREIGN KEY (socialeventtagid) REFERENCES socialeventtag (socialeventtagid),
    FOREIGN KEY (socialeventid) REFERENCES socialevent (socialeventid)
);

CREATE TABLE person_socialevent (
    personid INT NOT NULL,
    socialeventid INT NOT NULL,
    PRIMARY KEY (personid, socialeventid),
    KEY attendees (socialeventid),
    FOREIGN KEY (personid) REFERENCES person (personid),
    FOREIGN KEY (socialeventid) REFERENCES socialevent (socialeventid)
);

CREATE TABLE comments_rating (
    commentid INT NOT NULL PRIMARY KEY,
    socialeventid INT NOT NULL,
    personid INT NOT NULL,
    rating TINYINT NOT NULL CHECK (rating BETWEEN 1 AND 5),
    comment VARCHAR(1000) NOT NULL,
    created DATETIME NOT NULL,
    KEY of_event (socialeventid, commentid),
    FOREIGN KEY (socialeventid) REFERENCES socialevent (socialeventid),
    FOREIGN KEY (personid) REFERENCES person (personid)
);
