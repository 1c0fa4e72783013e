-- Whose of the queries' answers are not PostgreSQL's? What must give them: gpuvm.require. (answers.sql)
CREATE FUNCTION differs(required text DEFAULT 'any') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	q record;
	mine text;
	theirs text;
BEGIN
	FOR q IN SELECT * FROM queries ORDER BY n LOOP
		PERFORM set_config('gpuvm.require', required, true);
		mine := answers(q.query);
		SET LOCAL gpuvm.require = 'any';
		SET LOCAL gpuvm.enabled = off;
		theirs := answers(q.query);
		SET LOCAL gpuvm.enabled = on;
		IF mine IS DISTINCT FROM theirs THEN
			RETURN NEXT q.query || ': ' || mine || ', PostgreSQL ' || theirs;
		END IF;
	END LOOP;
END $$;
