-- The same in the order of a locale.
CREATE COLLATION IF NOT EXISTS english (LOCALE = 'en_US.utf8');
CREATE TABLE shadoks (
    id integer,
    name text COLLATE english,
    value integer
);
CREATE INDEX shadoks_name ON shadoks (name);
