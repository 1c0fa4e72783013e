-- The rows that PostgreSQL gives, and those that come with stages forced: from them alone, if the query has some; else why it has none.
-- gpuvm.whole_query and gpuvm.force stay on for the rest of the statement.
CREATE FUNCTION in_stages(query text, OUT stages int, OUT plan jsonb, OUT why text, OUT expected text[], OUT got text[]) LANGUAGE plpgsql AS $$
DECLARE
	one record;
BEGIN
	expected := '{}';
	got := '{}';
	PERFORM set_config('gpuvm.enabled', 'off', true), set_config('gpuvm.whole_query', 'off', true);
	FOR one IN EXECUTE query LOOP
		expected := expected || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.whole_query', 'on', true), set_config('gpuvm.force', 'on', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	stages := substring(plan::text FROM '"Stages": (\d+)');
	IF stages IS NULL THEN
		SELECT max(reason) FILTER (WHERE node = 'Whole statement') INTO why FROM gpuvm.why_not(query);
	ELSE
		PERFORM set_config('gpuvm.require', 'cpu', true);
	END IF;
	FOR one IN EXECUTE query LOOP
		got := got || one::text;
	END LOOP;
	PERFORM set_config('gpuvm.require', 'any', true);
END $$;
CREATE FUNCTION same_rows(a text[], b text[]) RETURNS bool LANGUAGE sql AS $$
SELECT ARRAY(SELECT unnest(a) COLLATE "C" ORDER BY 1) = ARRAY(SELECT unnest(b) COLLATE "C" ORDER BY 1) $$;
