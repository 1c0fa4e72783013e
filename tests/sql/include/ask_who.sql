-- Who answered: the VM, or PostgreSQL and why; or that the answers differ.
CREATE FUNCTION ask(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM (%s) q', query);
	mine text;
	theirs text;
	who text := 'VM';
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	EXECUTE whole INTO theirs;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		EXECUTE whole INTO mine;
		PERFORM set_config('gpuvm.require', 'any', true);
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		GET STACKED DIAGNOSTICS who = PG_EXCEPTION_DETAIL;
		PERFORM set_config('gpuvm.require', 'any', true);
		EXECUTE whole INTO mine;
	END;
	RETURN CASE WHEN mine IS NOT DISTINCT FROM theirs THEN who ELSE 'the answers differ' END;
END $$;
