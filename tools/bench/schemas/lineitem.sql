-- TPC-H's (DBT-3's) largest table with a primary key and two more indexes.
CREATE TABLE lineitem (
    l_orderkey integer,
    l_partkey integer,
    l_suppkey integer,
    l_linenumber integer,
    l_quantity numeric(15, 2),
    l_extendedprice numeric(15, 2),
    l_discount numeric(15, 2),
    l_tax numeric(15, 2),
    l_returnflag char(1),
    l_linestatus char(1),
    l_shipdate date,
    l_commitdate date,
    l_receiptdate date,
    l_shipinstruct char(25),
    l_shipmode char(10),
    l_comment varchar(44),
    PRIMARY KEY (l_orderkey, l_linenumber)
);
CREATE INDEX lineitem_partkey_suppkey ON lineitem (l_partkey, l_suppkey);
CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate);
