-- PostgreSQL's answer, whether gpuvm's is equal, and who gave it: the VM, or PostgreSQL, and why.
CREATE FUNCTION ask(query text, OUT "by" text, OUT equal bool, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query);
	got text;
	line text;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	EXECUTE whole INTO answer;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		EXECUTE whole INTO got;
		"by" := 'not imported';
		FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
			IF line LIKE '%GpuVM%' THEN
				"by" := 'VM';
			END IF;
		END LOOP;
		PERFORM set_config('gpuvm.require', 'any', true);
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		GET STACKED DIAGNOSTICS "by" = PG_EXCEPTION_DETAIL;
		"by" := regexp_replace("by", '^PostgreSQL''s own plan would run: |\.$', '', 'g');
		PERFORM set_config('gpuvm.require', 'any', true);
		EXECUTE whole INTO got;
	END;
	equal := got IS NOT DISTINCT FROM answer;
END $$;
