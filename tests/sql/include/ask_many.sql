-- Who answered: the VM, or PostgreSQL and why; or that the answers differ.
CREATE FUNCTION ask(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT count(*) || '' '' || md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM (%s OFFSET 0) q', query);
	mine text;
	theirs text;
	who text := 'VM';
	top text;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	BEGIN
		EXECUTE whole INTO theirs;
	EXCEPTION WHEN OTHERS THEN
		theirs := SQLSTATE;
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		EXECUTE whole INTO mine;
		PERFORM set_config('gpuvm.require', 'any', true);
		EXECUTE 'EXPLAIN (COSTS OFF) ' || query INTO top;
		who := CASE WHEN top LIKE 'Custom Scan (GpuVM)%' THEN 'VM' ELSE 'VM, below: ' || top END;
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		GET STACKED DIAGNOSTICS who = PG_EXCEPTION_DETAIL;
		PERFORM set_config('gpuvm.require', 'any', true);
		EXECUTE whole INTO mine;
	WHEN OTHERS THEN
		mine := SQLSTATE;
		who := 'PostgreSQL raises ' || mine;
		PERFORM set_config('gpuvm.require', 'any', true);
	END;
	RETURN CASE WHEN mine IS NOT DISTINCT FROM theirs THEN who ELSE format('the answers differ: %s, but %s', theirs, mine) END;
END $$;
CREATE TABLE queries (n serial, query text);
-- Queries and who answered them; those that the VM answered are counted.
CREATE FUNCTION asked() RETURNS TABLE (who text, query text) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TEMP TABLE answers ON COMMIT DROP AS SELECT q.n, ask(q.query) AS who, q.query FROM queries q;
	RETURN QUERY SELECT 'VM', count(*) || ' queries' FROM answers a WHERE a.who = 'VM';
	RETURN QUERY SELECT a.who, a.query FROM answers a WHERE a.who <> 'VM' ORDER BY a.n;
	DROP TABLE answers;
	TRUNCATE queries;
END $$;
