-- The second queries of TPC-DS's templates 14, 23, 24 and 39 (specification 3.2.0, appendix B).
-- Q14b
WITH cross_items AS (
	SELECT i_item_sk AS ss_item_sk
	FROM item, (
		SELECT iss.i_brand_id AS brand_id, iss.i_class_id AS class_id, iss.i_category_id AS category_id
		FROM store_sales, item iss, date_dim d1
		WHERE ss_item_sk = iss.i_item_sk AND ss_sold_date_sk = d1.d_date_sk AND d1.d_year BETWEEN 1999 AND 1999 + 2
		INTERSECT
		SELECT ics.i_brand_id, ics.i_class_id, ics.i_category_id
		FROM catalog_sales, item ics, date_dim d2
		WHERE cs_item_sk = ics.i_item_sk AND cs_sold_date_sk = d2.d_date_sk AND d2.d_year BETWEEN 1999 AND 1999 + 2
		INTERSECT
		SELECT iws.i_brand_id, iws.i_class_id, iws.i_category_id
		FROM web_sales, item iws, date_dim d3
		WHERE ws_item_sk = iws.i_item_sk AND ws_sold_date_sk = d3.d_date_sk AND d3.d_year BETWEEN 1999 AND 1999 + 2) x
	WHERE i_brand_id = brand_id AND i_class_id = class_id AND i_category_id = category_id),
avg_sales AS (
	SELECT avg(quantity * list_price) AS average_sales
	FROM (
		SELECT ss_quantity AS quantity, ss_list_price AS list_price
		FROM store_sales, date_dim
		WHERE ss_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2
		UNION ALL
		SELECT cs_quantity, cs_list_price
		FROM catalog_sales, date_dim
		WHERE cs_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2
		UNION ALL
		SELECT ws_quantity, ws_list_price
		FROM web_sales, date_dim
		WHERE ws_sold_date_sk = d_date_sk AND d_year BETWEEN 1999 AND 1999 + 2) x)
SELECT this_year.channel AS ty_channel, this_year.i_brand_id AS ty_brand, this_year.i_class_id AS ty_class,
	this_year.i_category_id AS ty_category, this_year.sales AS ty_sales, this_year.number_sales AS ty_number_sales,
	last_year.channel AS ly_channel, last_year.i_brand_id AS ly_brand, last_year.i_class_id AS ly_class,
	last_year.i_category_id AS ly_category, last_year.sales AS ly_sales, last_year.number_sales AS ly_number_sales
FROM (
	SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price) AS sales,
		count(*) AS number_sales
	FROM store_sales, item, date_dim
	WHERE ss_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
		AND d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_year = 1999 + 1 AND d_moy = 12 AND d_dom = 11)
	GROUP BY i_brand_id, i_class_id, i_category_id
	HAVING sum(ss_quantity * ss_list_price) > (SELECT average_sales FROM avg_sales)) this_year,
	(
	SELECT 'store' AS channel, i_brand_id, i_class_id, i_category_id, sum(ss_quantity * ss_list_price) AS sales,
		count(*) AS number_sales
	FROM store_sales, item, date_dim
	WHERE ss_item_sk IN (SELECT ss_item_sk FROM cross_items) AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
		AND d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_year = 1999 AND d_moy = 12 AND d_dom = 11)
	GROUP BY i_brand_id, i_class_id, i_category_id
	HAVING sum(ss_quantity * ss_list_price) > (SELECT average_sales FROM avg_sales)) last_year
WHERE this_year.i_brand_id = last_year.i_brand_id AND this_year.i_class_id = last_year.i_class_id
	AND this_year.i_category_id = last_year.i_category_id
ORDER BY this_year.channel, this_year.i_brand_id, this_year.i_class_id, this_year.i_category_id
LIMIT 100;
-- Q23b
WITH frequent_ss_items AS (
	SELECT substring(i_item_desc, 1, 30) AS itemdesc, i_item_sk AS item_sk, d_date AS solddate, count(*) AS cnt
	FROM store_sales, date_dim, item
	WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year IN (2000, 2000 + 1, 2000 + 2, 2000 + 3)
	GROUP BY substring(i_item_desc, 1, 30), i_item_sk, d_date
	HAVING count(*) > 4),
max_store_sales AS (
	SELECT max(csales) AS tpcds_cmax
	FROM (
		SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS csales
		FROM store_sales, customer, date_dim
		WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk
			AND d_year IN (2000, 2000 + 1, 2000 + 2, 2000 + 3)
		GROUP BY c_customer_sk) x),
best_ss_customer AS (
	SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS ssales
	FROM store_sales, customer
	WHERE ss_customer_sk = c_customer_sk
	GROUP BY c_customer_sk
	HAVING sum(ss_quantity * ss_sales_price) > (50 / 100.0) * (SELECT * FROM max_store_sales))
SELECT c_last_name, c_first_name, sales
FROM (
	SELECT c_last_name, c_first_name, sum(cs_quantity * cs_list_price) AS sales
	FROM catalog_sales, customer, date_dim
	WHERE d_year = 2000 AND d_moy = 2 AND cs_sold_date_sk = d_date_sk
		AND cs_item_sk IN (SELECT item_sk FROM frequent_ss_items)
		AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best_ss_customer) AND cs_bill_customer_sk = c_customer_sk
	GROUP BY c_last_name, c_first_name
	UNION ALL
	SELECT c_last_name, c_first_name, sum(ws_quantity * ws_list_price) AS sales
	FROM web_sales, customer, date_dim
	WHERE d_year = 2000 AND d_moy = 2 AND ws_sold_date_sk = d_date_sk
		AND ws_item_sk IN (SELECT item_sk FROM frequent_ss_items)
		AND ws_bill_customer_sk IN (SELECT c_customer_sk FROM best_ss_customer) AND ws_bill_customer_sk = c_customer_sk
	GROUP BY c_last_name, c_first_name) y
ORDER BY c_last_name, c_first_name, sales
LIMIT 100;
-- Q24b
WITH ssales AS (
	SELECT c_last_name, c_first_name, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id, i_units,
		i_size, sum(ss_net_paid) AS netpaid
	FROM store_sales, store_returns, store, item, customer, customer_address
	WHERE ss_ticket_number = sr_ticket_number AND ss_item_sk = sr_item_sk AND ss_customer_sk = c_customer_sk
		AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND c_current_addr_sk = ca_address_sk
		AND c_birth_country <> upper(ca_country) AND s_zip = ca_zip AND s_market_id = 8
	GROUP BY c_last_name, c_first_name, s_store_name, ca_state, s_state, i_color, i_current_price, i_manager_id,
		i_units, i_size)
SELECT c_last_name, c_first_name, s_store_name, sum(netpaid) AS paid
FROM ssales
WHERE i_color = 'saddle'
GROUP BY c_last_name, c_first_name, s_store_name
HAVING sum(netpaid) > (SELECT 0.05 * avg(netpaid) FROM ssales)
ORDER BY c_last_name, c_first_name, s_store_name;
-- Q39b
WITH inv AS (
	SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, stdev, mean,
		CASE mean WHEN 0 THEN NULL ELSE stdev / mean END AS cov
	FROM (
		SELECT w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy, stddev_samp(inv_quantity_on_hand) AS stdev,
			avg(inv_quantity_on_hand) AS mean
		FROM inventory, item, warehouse, date_dim
		WHERE inv_item_sk = i_item_sk AND inv_warehouse_sk = w_warehouse_sk AND inv_date_sk = d_date_sk
			AND d_year = 2001
		GROUP BY w_warehouse_name, w_warehouse_sk, i_item_sk, d_moy) foo
	WHERE CASE mean WHEN 0 THEN 0 ELSE stdev / mean END > 1)
SELECT inv1.w_warehouse_sk, inv1.i_item_sk, inv1.d_moy, inv1.mean, inv1.cov, inv2.w_warehouse_sk, inv2.i_item_sk,
	inv2.d_moy, inv2.mean, inv2.cov
FROM inv inv1, inv inv2
WHERE inv1.i_item_sk = inv2.i_item_sk AND inv1.w_warehouse_sk = inv2.w_warehouse_sk AND inv1.d_moy = 1
	AND inv2.d_moy = 1 + 1 AND inv1.cov > 1.5
ORDER BY inv1.w_warehouse_sk, inv1.i_item_sk, inv1.d_moy, inv1.mean, inv1.cov, inv2.d_moy, inv2.mean, inv2.cov;
