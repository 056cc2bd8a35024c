-- Short rows, many of them, with an index on text in the order of bytes.
CREATE TABLE shadoks (
    id integer,
    name text COLLATE "C",
    value integer
);
CREATE INDEX shadoks_name ON shadoks (name);
