-- All rows of a query, which is read by itself, so that it may run in stages.
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows text[] := '{}';
	one record;
BEGIN
	FOR one IN EXECUTE query LOOP
		rows := rows || one::text;
	END LOOP;
	RETURN (SELECT string_agg(r, ' ' ORDER BY r) FROM unnest(rows) r);
END $$;
-- Who answers (with gpuvm.require, so an answer by the VM was one) and what is left to PostgreSQL; and is it what PostgreSQL answers?
CREATE FUNCTION ask(query text, OUT "by" text, OUT equal bool, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	PERFORM set_config('gpuvm.enabled', 'off', true);
	BEGIN
		answer := rows_of(query);
	EXCEPTION WHEN OTHERS THEN
		answer := 'ERROR: ' || SQLERRM;
	END;
	PERFORM set_config('gpuvm.enabled', 'on', true), set_config('gpuvm.require', replace(current_setting('gpuvm.device'), 'auto', 'vm'), true);
	BEGIN
		got := rows_of(query);
		SELECT coalesce('VM, but ' || string_agg(DISTINCT node || ': ' || reason, '; '), 'VM') INTO "by" FROM gpuvm.why_not(query);
	EXCEPTION
		WHEN object_not_in_prerequisite_state THEN
			GET STACKED DIAGNOSTICS "by" = PG_EXCEPTION_DETAIL;
			"by" := regexp_replace("by", '^PostgreSQL''s own plan would run: |^Table "\w+" would be read by PostgreSQL: |\.$', '', 'g');
			PERFORM set_config('gpuvm.require', 'any', true);
			BEGIN
				got := rows_of(query);
			EXCEPTION WHEN OTHERS THEN
				got := 'ERROR: ' || SQLERRM;
			END;
		WHEN OTHERS THEN
			"by" := 'VM';
			got := 'ERROR: ' || SQLERRM;
	END;
	PERFORM set_config('gpuvm.require', 'any', true);
	equal := got IS NOT DISTINCT FROM answer;
END $$;
-- The answers of many queries, each with one expression in the place of %s.
CREATE FUNCTION ask_each(template text, VARIADIC expressions text[]) RETURNS TABLE (expression text, "by" text, equal bool, answer text) LANGUAGE sql AS $$
SELECT e, (a)."by", (a).equal, left((a).answer, 90) FROM (SELECT e, ask(format(template, e)) a FROM unnest(expressions) e OFFSET 0) q $$;
