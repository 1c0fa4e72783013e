-- The plan's nodes down to ours.
CREATE FUNCTION plan_text(node jsonb) RETURNS text LANGUAGE sql AS $$
SELECT CASE WHEN node->>'Node Type' = 'Custom Scan' THEN CASE WHEN node ? 'VM Sort Key' THEN 'VM sorted' ELSE 'VM' END
	ELSE (node->>'Node Type') || coalesce(' (' || (SELECT string_agg(plan_text(p), ', ') FROM jsonb_array_elements(node->'Plans') p) || ')', '') END $$;
-- Are the rows PostgreSQL's, one by one, and came they sorted from the VM? Else why not.
CREATE FUNCTION ask_rows(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT count(*) || '' '' || coalesce(md5(string_agg(q::text, E''\n'')), '''') FROM (%s) q', query);
	theirs text;
	mine text;
	nodes text;
	plan jsonb;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	EXECUTE whole INTO theirs;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	EXECUTE whole INTO mine;
	PERFORM set_config('gpuvm.require', 'any', true);
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	nodes := plan_text(plan->0->'Plan');
	RETURN CASE WHEN mine IS DISTINCT FROM theirs THEN format('the answers differ: %s, but %s', theirs, mine)
		WHEN nodes LIKE '%VM sorted%' AND nodes NOT LIKE '%Sort%' THEN 'VM'
		ELSE nodes || coalesce('; ' || (SELECT string_agg(reason, '; ') FROM gpuvm.why_not(query)), '') END;
END $$;
CREATE FUNCTION asked_rows() RETURNS TABLE (who text, query text) LANGUAGE plpgsql AS $$
BEGIN
	CREATE TEMP TABLE answers ON COMMIT DROP AS SELECT q.n, ask_rows(q.query) AS who, q.query FROM queries q;
	RETURN QUERY SELECT 'VM', count(*) || ' queries' FROM answers a WHERE a.who = 'VM';
	RETURN QUERY SELECT a.who, a.query FROM answers a WHERE a.who <> 'VM' ORDER BY a.n;
	DROP TABLE answers;
	TRUNCATE queries;
END $$;
