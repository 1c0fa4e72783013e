-- How many relations do programs join to their first, and how many programs do?
CREATE FUNCTION joined(query text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
	programs int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		n := n + (line ~ '^ *Join: ')::int;
		programs := programs + (line ~ '^ *Driver: ')::int;
	END LOOP;
	RETURN ARRAY[n, programs];
END $$;
