"""psql scripts as statements: what PostgreSQL's regression scripts need, and no more."""
import re

TOKEN = re.compile(r"""
    --[^\n]* | /\*.*?\*/ | (?<![\w$])[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag) | ; | \\[^\n]*
""", re.X | re.S)
COPY_IN = re.compile(r"^\s*copy\b.*\bfrom\s+stdin\b", re.I | re.S)
COMMENTS = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.S)


def split(text):
    """(statement, rows that follow a COPY FROM stdin or None); lines for psql itself are left out."""
    begin = position = 0
    while True:
        found = TOKEN.search(text, position)
        if not found:
            return
        position = found.end()
        token = found.group()
        if token == ";" or token.startswith("\\"):
            statement = COMMENTS.sub("", text[begin:found.start()]).strip()
            begin = position
            # \gset and the like end a statement; alone on a line psql does it itself
            if statement and not token.startswith("\\set"):
                rows = None
                if COPY_IN.match(statement):
                    begin = text.index("\n", position) + 1
                    end = text.index("\\.\n", begin)
                    rows, begin, position = text[begin:end], end + 3, end + 3
                yield statement, rows
