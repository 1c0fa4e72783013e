-- Is a query's answer the machine's, and PostgreSQL's, in its order? If the machine gave none: why. A machine that only reads rows for
-- PostgreSQL's aggregates has not divided.
CREATE FUNCTION ask(query text, OUT "by" text, OUT equal bool) LANGUAGE plpgsql AS $$
DECLARE
	whole text := format('SELECT string_agg(q::text, '' '') FROM (%s) q', query);
	machine text;
	postgres text;
	line text;
	top text;
BEGIN
	"by" := 'VM';
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		"by" := coalesce(substring(line FROM '^ *(Fallback: .*)'), "by");
		machine := coalesce(machine, substring(line FROM 'GpuVM'));
		IF line !~ '^ *(->  )?(Sort|Limit)' THEN
			top := coalesce(top, line);
		END IF;
	END LOOP;
	IF "by" = 'VM' AND top !~ 'GpuVM' THEN
		"by" := 'rows for PostgreSQL';
	END IF;
	IF machine IS NULL THEN
		"by" := 'PostgreSQL';
	END IF;
	EXECUTE whole INTO machine;
	SET LOCAL gpuvm.enabled = off;
	EXECUTE whole INTO postgres;
	SET LOCAL gpuvm.enabled = on;
	equal := machine IS NOT DISTINCT FROM postgres;
END $$;
CREATE FUNCTION ask_all(queries text[]) RETURNS TABLE ("by" text, equal bool, query text) LANGUAGE sql VOLATILE AS $$
	SELECT a."by", a.equal, q FROM unnest(queries) WITH ORDINALITY AS u (q, n), LATERAL ask(q) a ORDER BY n
$$;
