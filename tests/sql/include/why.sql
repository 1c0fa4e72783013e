-- Why does a join stay with PostgreSQL?
CREATE FUNCTION why(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT node || ': ' || reason FROM gpuvm.why_not(query) WHERE node LIKE 'Join%' ORDER BY 1
$$;
