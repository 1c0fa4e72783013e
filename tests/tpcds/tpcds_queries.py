"""TPC-DS's 99 queries, and the second ones of templates 14, 23, 24 and 39.

The texts, with the specification's validation parameters, are those of DuckDB's extension tpcds, which PostgreSQL takes
as they are; the second ones are in second_parts.sql. With these parameters 24 answers would say nothing at scale 0.1:
below scale 1 SMALL has others.
"""
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "setup")]

import workload  # noqa: E402

TABLES = workload.read_tables(os.path.join(HERE, "schema.sql"))
# At scale 0.1 there are 2 stores, 1 warehouse, and 2000 items. {query: [(the specification's text, the text instead)]}
SMALL = {
    "Q8": [("'24128'", "'31904'"), ("> 10", "> 0")],
    "Q16": [("cs1.cs_warehouse_sk <> cs2.cs_warehouse_sk", "cs1.cs_item_sk <> cs2.cs_item_sk")],
    "Q23": [(">4", ">1"), ("50/100.0", "20/100.0")],
    "Q23b": [("> 4", "> 1"), ("50 / 100.0", "20 / 100.0")],
    "Q24": [("= 'peach'", "> 'peach'")],
    "Q24b": [("= 'saddle'", "< 'saddle'")],
    "Q25": [("d1.d_moy = 4", "d1.d_moy BETWEEN 1 AND 12"), ("BETWEEN 4 AND 10", "BETWEEN 1 AND 12"),
            ("d2.d_year = 2001", "d2.d_year >= 2001"), ("d3.d_year = 2001", "d3.d_year >= 2001")],
    "Q32": [("= 977", "= 68")],
    "Q37": [("68 AND 68 + 30", "1 AND 1 + 97"), ("677", "68"), ("940", "69"), ("694", "58"), ("808", "79")],
    "Q39b": [("> 1.5", "> 1.1")],
    "Q41": [("738 AND 738+40", "1 AND 1000")],
    "Q44": [("ss_store_sk = 4", "ss_store_sk = 1")],
    "Q54": [("= 'Women'", "<> 'Women'"), ("= 'maternity'", "<> 'maternity'"),
            ("d_moy = 12\n     AND d_year = 1998 )", "d_moy >= 1\n     AND d_year = 1998 )"),
            ("d_month_seq+3", "d_month_seq+48")],
    "Q64": [("64 AND 64 + 10", "4 AND 64 + 30"), ("64 + 1 AND 64 + 15", "4 + 1 AND 64 + 30")],
    "Q65": [("0.1 *", "0.4 *")],
    "Q82": [("62 AND 62+30", "1 AND 1+97"), ("129", "68"), ("270", "69"), ("821", "58"), ("423", "79")],
    "Q84": [(">= 38128", ">= 0"), ("38128 + 50000", "38128 + 150000"), ("'Edgewood'", "'Forest Hills'")],
    "Q85": [("d_year = 2000", "d_year >= 1998"), ("100 AND 200)", "-1000 AND 1000)"),
            ("150 AND 300)", "-1000 AND 1000)"), ("50 AND 250)", "-1000 AND 1000)"), ("100.00 AND 150.00", "0.00 AND 300.00"),
            ("50.00 AND 100.00", "0.00 AND 300.00"), ("150.00 AND 200.00", "0.00 AND 300.00")],
    "Q88": [("'ese'", "'ought'")],
    "Q90": [("5000 AND 5200", "1500 AND 2600")],
    "Q91": [("d_year = 1998", "d_year >= 1998"), ("d_moy = 11", "d_moy BETWEEN 1 AND 12"), ("= -7", "<= -6")],
    "Q94": [("ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk", "ws1.ws_item_sk <> ws2.ws_item_sk"), ("'pri'", "'ese'")],
    "Q95": [("ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk", "ws1.ws_item_sk <> ws2.ws_item_sk"), ("'pri'", "'ese'")],
    "Q96": [("'ese'", "'ought'")],
}


def extension():
    """The path of DuckDB's extension: of this python, or of build/venv."""
    sys.path += glob.glob(os.path.join(ROOT, "build", "venv", "lib", "python3*", "site-packages"))
    try:
        import duckdb
        import duckdb_extension_tpcds
    except ImportError as e:
        raise SystemExit(f"{e}: tests/setup/install.sh --tpcds") from e
    folder = next(iter(duckdb_extension_tpcds.__path__))
    return os.path.join(folder, "extensions", f"v{duckdb.__version__}", "tpcds.duckdb_extension")


def queries(scale):
    """{name: query}"""
    path = extension()
    import duckdb
    with duckdb.connect() as conn:
        conn.execute(f"LOAD '{path}'")
        texts = conn.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    found = {f"Q{number}": sql.strip().rstrip(" \n;") for number, sql in texts}
    found.update(workload.read_queries(os.path.join(HERE, "second_parts.sql")))
    for name, changes in SMALL.items() if scale < 1 else ():
        for old, new in changes:
            if old not in found[name]:
                raise SystemExit(f"{name} has no {old}")
            found[name] = found[name].replace(old, new)
    return found
