-- The number of rows and a checksum of all of them.
CREATE FUNCTION answers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(q::text, 0)), 0) FROM (%s OFFSET 0) q', query) INTO result;
	RETURN result;
END $$;
