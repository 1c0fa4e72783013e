"""The table of ClickBench and its rows, the same in PostgreSQL and in DuckDB: arithmetic of the row's number i.

As in the original, users, pages, referers and regions are skewed, there are hundreds of thousands of different addresses and titles, seven of eight
search phrases are empty, rows come by time, and many columns are nearly always 0 or ''. A tenth of the rows has the counter that queries 37 to 43
ask for: the original's 0.7% would leave them nothing to do.
"""
from workloads import generated

BITS = 20
DAYS = 30


def skewed(first, second, number):
    """0 .. number - 1, small ones more often, of two uniform numbers."""
    mask = (1 << BITS) - 1
    return f"((({first} & {mask}) * ({second} & {mask}) >> {BITS}) * {number} >> {BITS})"


def text(e):
    return f"CAST({e} AS varchar)"


def word(words, e):
    return f"split_part('{' '.join(words)}', ' ', CAST(1 + ({e}) % {len(words)} AS int))"


def spread(e):
    """A number of 62 bits of one below 2^31, different ones of different."""
    return f"(({e}) * 1103515245 % 2147483647 * 2147483648 + ({e}) * 48271 % 2147483647)"


def spread_value(number):
    return number * 1103515245 % 2147483647 * 2147483648 + number * 48271 % 2147483647


NOUNS = "новости погода карта работа авто квартиры билеты рецепты игры фото видео музыка форум отзывы цены магазин доставка ремонт одежда книги".split()
PLACES = "Москва Петербург Казань Омск Самара Пермь Уфа Тула Томск Сочи Киев Минск Алматы Одесса".split()
PATHS = "catalog news forum photo search item user page list shop auto real-estate job game video music".split()
HOSTS = "example market auto realty cinema sport mail video forum travel".split()
MODELS = "iPad iPhone GT-I9500 Lumia Nexus HTC_Desire A1 Optimus Xperia Galaxy One P780".split()


def address(n):
    """One page in 400 is Google's, or speaks of it; some hosts have a www."""
    host = (f"CASE WHEN {n} % 400 = 7 THEN 'google.ru' WHEN {n} % 400 = 8 THEN 'www.google.com' ELSE "
            f"CASE WHEN {n} % 5 = 0 THEN 'www.' ELSE '' END || {word(HOSTS, n)} || {text(f'{n} % 97 * ({n} % 7)')} || '.ru' END")
    path = f"{word(PATHS, f'{n} >> 3')} || '/' || {word(PATHS, f'{n} >> 5')} || '.php?id=' || {text(n)} || '&state=19945206&lang=ru&ref=' || {text(f'{n} % 1009')}"
    return f"'http://' || {host} || '/' || {path}"


def steps(rows):
    """Named numbers of a row, each step of the ones before it."""
    pace = DAYS * 86400 * 1024 // (rows + 1)
    return [
        [(name, generated.mixed(k + 1)) for k, name in enumerate("abcdefgh")],
        [("visitor", skewed("a", "b", rows // 3)),
         ("page", f"CASE WHEN c % 16 = 0 THEN 0 ELSE {skewed('c', 'd', rows // 3)} END"),
         ("source", f"CASE WHEN e % 5 = 0 THEN -1 WHEN e % 7 = 0 THEN 0 ELSE {skewed('e', 'f', rows // 3)} END"),
         ("phrase", f"CASE WHEN g % 8 = 0 THEN 1 + {skewed('g >> 3', 'h', rows // 8 + 1)} ELSE 0 END"),
         ("event", f"TIMESTAMP '2013-07-02 00:00:00' + (i * {pace} >> 10) * INTERVAL '1 second'"),
         ("site", f"CASE WHEN h % 10 = 0 THEN 62 ELSE 100 + {skewed('h', 'c', 6500)} END")],
    ]


def constants():
    """UserID, URLHash and RefererHash of rows that there are many of."""
    return spread_value(0 + 7), spread_value(0 + 11), spread_value(0 + 13)


def columns():
    """(name, type, expression) of all 105 columns in the original's order."""
    def rarely(n, share, e, otherwise="0"):
        return f"CASE WHEN {n} % {share} = 0 THEN {e} ELSE {otherwise} END"

    search_engine = "CASE WHEN phrase = 0 THEN 0 ELSE 2 + g % 7 END"
    adv_engine = rarely("a", 160, "2 + b % 20")
    title = f"{word(NOUNS, 'page')} || ' ' || {word(NOUNS, 'page >> 4')} || ' — ' || {word(PLACES, 'page >> 2')} || CASE WHEN page % 300 = 9 THEN ' Google ' ELSE ', ' END || {word(NOUNS, 'page >> 7')} || ' ' || {text('page >> 1')}"
    phrase = f"CASE WHEN phrase = 0 THEN '' ELSE {word(NOUNS, 'phrase')} || ' ' || {word(PLACES, 'phrase >> 3')} || ' ' || {text('phrase >> 2')} END"
    referer = f"CASE WHEN source < 0 THEN '' ELSE {address('(source + 100)')} END"
    empty = "''"
    kinds = {"s": "smallint", "i": "integer", "l": "bigint", "t": "text", "d": "date", "m": "timestamp", "v": "varchar(255)", "c": "char(1)"}
    listed = [
        ("WatchID", "l", spread("i")), ("JavaEnable", "s", "CASE WHEN a % 5 = 0 THEN 0 ELSE 1 END"), ("Title", "t", f"CASE WHEN page % 50 = 3 THEN '' ELSE {title} END"),
        ("GoodEvent", "s", "1"), ("EventTime", "m", "event"), ("EventDate", "d", "CAST(event AS date)"), ("CounterID", "i", "site"),
        ("ClientIP", "i", "visitor * 7919 % 2147483647 - 1000000000"), ("RegionID", "i", skewed("visitor * 40503", "visitor * 30011", 9040)),
        ("UserID", "l", spread("visitor + 7")), ("CounterClass", "s", rarely("b", 50, "1")), ("OS", "s", "visitor % 90"), ("UserAgent", "s", "visitor % 80"),
        ("URL", "t", address("page")), ("Referer", "t", referer), ("IsRefresh", "s", rarely("d", 8, "1")), ("RefererCategoryID", "s", rarely("e", 3, "source % 12000")),
        ("RefererRegionID", "i", rarely("e", 3, "source % 500")), ("URLCategoryID", "s", "page % 12000"), ("URLRegionID", "i", "page % 500"),
        ("ResolutionWidth", "s", f"CAST({word('1368 1024 1280 1920 1638 1750 1087 1996'.split(), 'visitor')} AS int)"),
        ("ResolutionHeight", "s", f"CAST({word('768 1024 800 1080 960 1200 554 658'.split(), 'visitor')} AS int)"), ("ResolutionDepth", "s", rarely("visitor", 40, "16", "23")),
        ("FlashMajor", "s", "visitor % 12"), ("FlashMinor", "s", "visitor % 8"), ("FlashMinor2", "t", f"CASE WHEN visitor % 3 = 0 THEN '' ELSE {text('visitor % 900')} END"),
        ("NetMajor", "s", rarely("visitor", 9, "3")), ("NetMinor", "s", rarely("visitor", 9, "5")), ("UserAgentMajor", "s", "visitor % 40"),
        ("UserAgentMinor", "v", word("0 1 si 17 S9 10 2c 8 k".split(), "visitor")), ("CookieEnable", "s", rarely("visitor", 300, "0", "1")),
        ("JavascriptEnable", "s", rarely("visitor", 99, "0", "1")), ("IsMobile", "s", rarely("visitor", 18, "1")), ("MobilePhone", "s", rarely("visitor", 18, "1 + visitor % 70")),
        ("MobilePhoneModel", "t", f"CASE WHEN visitor % 18 = 0 THEN {word(MODELS, 'visitor')} || CASE WHEN visitor % 4 = 0 THEN '' ELSE {text('visitor % 13')} END ELSE '' END"),
        ("Params", "t", f"CASE WHEN b % 40 = 0 THEN '{{\"price\":' || {text('b % 5000')} || '}}' ELSE '' END"), ("IPNetworkID", "i", "visitor % 4000000"),
        ("TraficSourceID", "s", "CASE WHEN e % 5 = 0 THEN -1 WHEN phrase > 0 THEN 2 WHEN f % 8 = 0 THEN 6 ELSE 1 END"), ("SearchEngineID", "s", search_engine),
        ("SearchPhrase", "t", phrase), ("AdvEngineID", "s", adv_engine), ("IsArtifical", "s", rarely("c", 70, "1")), ("WindowClientWidth", "s", "300 + visitor % 7 * 200 + a % 90"),
        ("WindowClientHeight", "s", "200 + visitor % 5 * 150 + b % 70"), ("ClientTimeZone", "s", "CASE WHEN visitor % 4 = 0 THEN visitor % 700 ELSE 135 END"),
        ("ClientEventTime", "m", "event + (visitor % 7200 - 3600) * INTERVAL '1 second'"), ("SilverlightVersion1", "s", rarely("visitor", 3, "5")),
        ("SilverlightVersion2", "s", rarely("visitor", 3, "1")), ("SilverlightVersion3", "i", rarely("visitor", 3, "visitor % 20000")), ("SilverlightVersion4", "s", "0"),
        ("PageCharset", "t", "CASE WHEN page % 9 = 0 THEN 'utf-8' WHEN page % 50 = 3 THEN '' ELSE 'windows-1251;charset' END"), ("CodeVersion", "i", "page % 2000"),
        ("IsLink", "s", rarely("d", 20, "1")), ("IsDownload", "s", rarely("d", 500, "1")), ("IsNotBounce", "s", rarely("c", 11, "1")), ("FUniqID", "l", f"CASE WHEN visitor % 3 = 0 THEN 0 ELSE {spread('visitor')} END"),
        ("OriginalURL", "t", f"CASE WHEN page % 6 = 0 THEN {address('page')} ELSE '' END"), ("HID", "i", "d % 1073741824"), ("IsOldCounter", "s", "0"), ("IsEvent", "s", rarely("f", 60, "1")),
        ("IsParameter", "s", rarely("f", 90, "1")), ("DontCountHits", "s", rarely("f", 12, "1")), ("WithHash", "s", rarely("f", 25, "1")), ("HitColor", "c", rarely("c", 30, "'g'", "'5'")),
        ("LocalEventTime", "m", "event + (visitor % 12) * INTERVAL '1 hour'"), ("Age", "s", "visitor % 56"), ("Sex", "s", "visitor % 3"), ("Income", "s", "visitor % 5"),
        ("Interests", "s", "visitor % 16384"), ("Robotness", "s", rarely("visitor", 50, "visitor % 38")), ("RemoteIP", "i", "visitor * 104729 % 2147483647 - 1000000000"),
        ("WindowName", "i", rarely("a", 7, "a % 300000", "-1")), ("OpenerName", "i", rarely("b", 7, "b % 300000", "-1")), ("HistoryLength", "s", "c % 60"),
        ("BrowserLanguage", "t", rarely("visitor", 30, "'en'", "'S0'")), ("BrowserCountry", "t", f"CASE WHEN visitor % 30 = 0 THEN {word('US UA BY KZ DE'.split(), 'visitor >> 3')} ELSE 'h1' END"),
        ("SocialNetwork", "t", rarely("e", 400, "'vk'", empty)), ("SocialAction", "t", rarely("e", 900, "'like'", empty)), ("HTTPError", "s", rarely("f", 700, "404")),
        ("SendTiming", "i", rarely("a", 3, "a % 5000")), ("DNSTiming", "i", rarely("a", 3, "b % 900")), ("ConnectTiming", "i", rarely("a", 3, "c % 1500")),
        ("ResponseStartTiming", "i", rarely("a", 3, "d % 9000")), ("ResponseEndTiming", "i", rarely("a", 3, "e % 9000")), ("FetchTiming", "i", rarely("a", 3, "f % 30000")),
        ("SocialSourceNetworkID", "s", rarely("e", 300, "1 + e % 6")), ("SocialSourcePage", "t", f"CASE WHEN e % 300 = 0 THEN {address('(source + 500)')} ELSE '' END"),
        ("ParamPrice", "l", rarely("b", 40, "b % 5000")), ("ParamOrderID", "t", rarely("b", 80, text("b"), empty)), ("ParamCurrency", "t", "'NHR'"), ("ParamCurrencyID", "s", "0"),
        ("OpenstatServiceName", "t", rarely("d", 200, "'direct.example.ru'", empty)), ("OpenstatCampaignID", "t", rarely("d", 200, text("d % 9000"), empty)),
        ("OpenstatAdID", "t", rarely("d", 200, text("d % 90000"), empty)), ("OpenstatSourceID", "t", rarely("d", 200, "'premium'", empty)), ("UTMSource", "t", rarely("a", 60, word(HOSTS, "a"), empty)),
        ("UTMMedium", "t", rarely("a", 60, "'cpc'", empty)), ("UTMCampaign", "t", rarely("a", 60, text("a % 4000"), empty)), ("UTMContent", "t", rarely("a", 120, text("a % 40000"), empty)),
        ("UTMTerm", "t", rarely("a", 120, word(NOUNS, "a"), empty)), ("FromTag", "t", rarely("b", 500, "'rss'", empty)), ("HasGCLID", "s", rarely("b", 900, "1")),
        ("RefererHash", "l", spread("source + 13")), ("URLHash", "l", spread("page + 11")), ("CLID", "i", rarely("c", 200, "c % 90000")),
    ]
    return [(name.lower(), kinds[kind], e) for name, kind, e in listed]


def with_long_texts(listed):
    """The same, but for one row with texts that are too long for dictionaries, where there are many different ones."""
    many = ("title", "url", "referer", "originalurl", "searchphrase")
    return [(name, kind, f"CASE WHEN i = 7 THEN repeat('long ', 2000) ELSE {e} END" if name in many else e) for name, kind, e in listed]
