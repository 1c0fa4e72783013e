"""ClickBench: 43 queries over one table of 105 columns, the hits of a web counter. https://github.com/ClickHouse/ClickBench (CC BY-NC-SA 4.0) has the
schema, the queries and the original data, 100 million rows.

The rows here are made by arithmetic (clickbench_data.py), of the original's character. HAVING's 100,000 and the last OFFSET of 10,000, meant for the
original's number of rows, are scaled by it; values that conditions name are ones of these rows. Where ORDER BY leaves open which of several equal rows
LIMIT lets through, what is compared of these rows is their sort key and their number.
"""
from workloads import clickbench_data, generated, suite

ROWS = 1_000_000
# In the second one texts are stored value by value, as those of the original's 100 million rows would be, which no dictionary holds: by one row with long ones.
TABLES = {"hits": "ClickBench", "hits_values": "ClickBench, texts without dictionaries"}
# Of counter 62 in a month, as a site's owner asks.
SITE = "CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0"


def queries(rows):
    """[(query, the sort keys' positions in the output; None: nothing is left open)]"""
    many, far = max(1, rows // 1000), max(1, rows // 10_000)
    user, url, referer = clickbench_data.constants()
    widths = ", ".join("sum(ResolutionWidth)" if n == 0 else f"sum(ResolutionWidth + {n})" for n in range(90))
    return [
        ("SELECT count(*) FROM hits", None),
        ("SELECT count(*) FROM hits WHERE AdvEngineID <> 0", None),
        ("SELECT sum(AdvEngineID), count(*), avg(ResolutionWidth) FROM hits", None),
        ("SELECT avg(UserID) FROM hits", None),
        ("SELECT count(DISTINCT UserID) FROM hits", None),
        ("SELECT count(DISTINCT SearchPhrase) FROM hits", None),
        ("SELECT min(EventDate), max(EventDate) FROM hits", None),
        ("SELECT AdvEngineID, count(*) FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY count(*) DESC", None),
        ("SELECT RegionID, count(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC LIMIT 10", [1]),
        ("SELECT RegionID, sum(AdvEngineID), count(*) AS c, avg(ResolutionWidth), count(DISTINCT UserID) FROM hits GROUP BY RegionID ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' GROUP BY MobilePhoneModel ORDER BY u DESC LIMIT 10", [1]),
        ("SELECT MobilePhone, MobilePhoneModel, count(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> '' GROUP BY MobilePhone, MobilePhoneModel "
         "ORDER BY u DESC LIMIT 10", [2]),
        ("SELECT SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10", [1]),
        ("SELECT SearchPhrase, count(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY u DESC LIMIT 10", [1]),
        ("SELECT SearchEngineID, SearchPhrase, count(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT UserID, count(*) FROM hits GROUP BY UserID ORDER BY count(*) DESC LIMIT 10", [1]),
        ("SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase ORDER BY count(*) DESC LIMIT 10", [2]),
        ("SELECT UserID, SearchPhrase, count(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10", []),
        ("SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, count(*) FROM hits GROUP BY UserID, m, SearchPhrase ORDER BY count(*) DESC LIMIT 10", [3]),
        (f"SELECT UserID FROM hits WHERE UserID = {user}", None),
        ("SELECT count(*) FROM hits WHERE URL LIKE '%google%'", None),
        ("SELECT SearchPhrase, min(URL), count(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT SearchPhrase, min(URL), min(Title), count(*) AS c, count(DISTINCT UserID) FROM hits "
         "WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10", [3]),
        ("SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10", [4]),
        ("SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10", None),
        ("SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10", None),
        ("SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10", None),
        (f"SELECT CounterID, avg(length(URL)) AS l, count(*) AS c FROM hits WHERE URL <> '' GROUP BY CounterID HAVING count(*) > {many} ORDER BY l DESC LIMIT 25", [1]),
        (r"SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k, avg(length(Referer)) AS l, count(*) AS c, min(Referer) "
         f"FROM hits WHERE Referer <> '' GROUP BY k HAVING count(*) > {many} ORDER BY l DESC LIMIT 25", [1]),
        (f"SELECT {widths} FROM hits", None),
        ("SELECT SearchEngineID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits WHERE SearchPhrase <> '' "
         "GROUP BY SearchEngineID, ClientIP ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits WHERE SearchPhrase <> '' GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT WatchID, ClientIP, count(*) AS c, sum(IsRefresh), avg(ResolutionWidth) FROM hits GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT URL, count(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10", [1]),
        ("SELECT 1, URL, count(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC LIMIT 10", [2]),
        ("SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, count(*) AS c FROM hits GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC LIMIT 10", [4]),
        (f"SELECT URL, count(*) AS PageViews FROM hits WHERE {SITE} AND DontCountHits = 0 AND URL <> '' GROUP BY URL ORDER BY PageViews DESC LIMIT 10", [1]),
        (f"SELECT Title, count(*) AS PageViews FROM hits WHERE {SITE} AND DontCountHits = 0 AND Title <> '' GROUP BY Title ORDER BY PageViews DESC LIMIT 10", [1]),
        (f"SELECT URL, count(*) AS PageViews FROM hits WHERE {SITE} AND IsLink <> 0 AND IsDownload = 0 GROUP BY URL ORDER BY PageViews DESC LIMIT 10 OFFSET 1000", [1]),
        ("SELECT TraficSourceID, SearchEngineID, AdvEngineID, CASE WHEN (SearchEngineID = 0 AND AdvEngineID = 0) THEN Referer ELSE '' END AS Src, URL AS Dst, count(*) AS PageViews "
         f"FROM hits WHERE {SITE} GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst ORDER BY PageViews DESC LIMIT 10 OFFSET 1000", [5]),
        (f"SELECT URLHash, EventDate, count(*) AS PageViews FROM hits WHERE {SITE} AND TraficSourceID IN (-1, 6) AND RefererHash = {referer} "
         "GROUP BY URLHash, EventDate ORDER BY PageViews DESC LIMIT 10 OFFSET 100", [2]),
        (f"SELECT WindowClientWidth, WindowClientHeight, count(*) AS PageViews FROM hits WHERE {SITE} AND DontCountHits = 0 AND URLHash = {url} "
         f"GROUP BY WindowClientWidth, WindowClientHeight ORDER BY PageViews DESC LIMIT 10 OFFSET {far}", [2]),
        ("SELECT date_trunc('minute', EventTime) AS M, count(*) AS PageViews FROM hits WHERE CounterID = 62 AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' "
         "AND IsRefresh = 0 AND DontCountHits = 0 GROUP BY date_trunc('minute', EventTime) ORDER BY date_trunc('minute', EventTime) LIMIT 10 OFFSET 1000", None),
    ]


def settled(rows, keys):
    """The rows of which ORDER BY and LIMIT leave nothing open; of those with the first or the last key, which LIMIT or OFFSET cut, the key alone."""
    if keys is None or not rows:
        return rows
    key = lambda row: tuple(row[k] for k in keys)
    cut = (key(rows[0]), key(rows[-1]))
    return [key(row) if key(row) in cut else row for row in rows]


def run(bench):
    rows = bench.options.rows or ROWS
    for table, title in TABLES.items():
        columns = clickbench_data.columns() if table == "hits" else clickbench_data.with_long_texts(clickbench_data.columns())
        generated.load(bench, table, columns, rows, clickbench_data.steps(rows))
        asked = {f"Q{number}": query for number, query in enumerate(queries(rows), 1)}
        found = suite.run(bench, table, title, {label: sql.replace("FROM hits", f"FROM {table}") for label, (sql, _) in asked.items()},
                          settled=lambda label, answer: settled(answer, asked[label][1]), size=f"{rows:,} rows")
        suite.whole_bars(bench, title, found)
