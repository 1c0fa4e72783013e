-- What a query's programs gave up for.
CREATE FUNCTION fallbacks(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ '^ *Fallback: ' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END $$;
