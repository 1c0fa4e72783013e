-- The tables of the Star Schema Benchmark (O'Neil, O'Neil, Chen: Star Schema Benchmark, revision 3, section 2), with their primary keys. Prices are cents.
CREATE TABLE date (d_datekey int PRIMARY KEY, d_date char(18) NOT NULL, d_dayofweek char(9) NOT NULL, d_month char(9) NOT NULL, d_year int NOT NULL, d_yearmonthnum int NOT NULL,
	d_yearmonth char(7) NOT NULL, d_daynuminweek int NOT NULL, d_daynuminmonth int NOT NULL, d_daynuminyear int NOT NULL, d_monthnuminyear int NOT NULL, d_weeknuminyear int NOT NULL,
	d_sellingseason varchar(12) NOT NULL, d_lastdayinweekfl boolean NOT NULL, d_lastdayinmonthfl boolean NOT NULL, d_holidayfl boolean NOT NULL, d_weekdayfl boolean NOT NULL);
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(25) NOT NULL, s_city char(10) NOT NULL, s_nation char(15) NOT NULL, s_region char(12) NOT NULL,
	s_phone char(15) NOT NULL);
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(25) NOT NULL, c_city char(10) NOT NULL, c_nation char(15) NOT NULL, c_region char(12) NOT NULL,
	c_phone char(15) NOT NULL, c_mktsegment char(10) NOT NULL);
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(22) NOT NULL, p_mfgr char(6) NOT NULL, p_category char(7) NOT NULL, p_brand1 char(9) NOT NULL, p_color varchar(11) NOT NULL,
	p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL);
CREATE TABLE lineorder (lo_orderkey bigint NOT NULL, lo_linenumber int NOT NULL, lo_custkey int NOT NULL, lo_partkey int NOT NULL, lo_suppkey int NOT NULL, lo_orderdate int NOT NULL,
	lo_orderpriority char(15) NOT NULL, lo_shippriority char(1) NOT NULL, lo_quantity int NOT NULL, lo_extendedprice int NOT NULL, lo_ordtotalprice int NOT NULL, lo_discount int NOT NULL,
	lo_revenue int NOT NULL, lo_supplycost int NOT NULL, lo_tax int NOT NULL, lo_commitdate int NOT NULL, lo_shipmode char(10) NOT NULL, PRIMARY KEY (lo_orderkey, lo_linenumber));
