-- The number of rows and a checksum of all of them; the query is read by itself, so that it may run in stages.
CREATE FUNCTION answers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	one record;
	n bigint := 0;
	checksum numeric := 0;
BEGIN
	FOR one IN EXECUTE query LOOP
		n := n + 1;
		checksum := checksum + hashtextextended(one::text, 0);
	END LOOP;
	RETURN n || ' rows, ' || checksum;
END $$;
