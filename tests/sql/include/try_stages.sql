-- The rows that PostgreSQL gives, and those that come with stages forced; an error counts as one row, its SQLSTATE. How many stages there are,
-- in which plan, and whether another plan ran in the end. gpuvm.whole_query and gpuvm.force stay on for the rest of the statement.
CREATE FUNCTION try_stages(query text, OUT stages int, OUT plan json, OUT fallback text, OUT expected text[], OUT got text[]) LANGUAGE plpgsql AS $$
DECLARE
	ran json;
	one record;
BEGIN
	expected := '{}';
	got := '{}';
	PERFORM set_config('gpuvm.enabled', 'off', true), set_config('gpuvm.whole_query', 'off', true);
	BEGIN
		FOR one IN EXECUTE query LOOP
			expected := expected || one::text;
		END LOOP;
	EXCEPTION WHEN OTHERS THEN
		expected := ARRAY[SQLSTATE];
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	BEGIN
		EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO ran;
		fallback := substring(ran::text FROM '"Fallback": "([^"]*)');
		FOR one IN EXECUTE query LOOP
			got := got || one::text;
		END LOOP;
	EXCEPTION WHEN OTHERS THEN
		got := ARRAY[SQLSTATE];
	END;
END $$;
