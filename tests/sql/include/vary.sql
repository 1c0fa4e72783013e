-- Statistics that speak against a dictionary.
CREATE FUNCTION vary(tab regclass, VARIADIC cols name[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	col name;
BEGIN
	FOREACH col IN ARRAY cols LOOP
		EXECUTE format('ALTER TABLE %s ALTER %I SET (n_distinct = 2000000)', tab, col);
	END LOOP;
	EXECUTE format('ANALYZE %s', tab);
END $$;
