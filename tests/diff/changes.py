"""Random changes of the suite's tables: inserts, updates and deletes that keep the columns' ranges.

New ids come from one sequence, so that they stay unique. A change touches a few
blocks, the table's end, or rows scattered over it.
"""
import random

from tables import Range, copy_text

SEQUENCE = "d_ids"
MOST_IDS = 10**8


def sequence_sql(first):
    return f"CREATE SEQUENCE {SEQUENCE} START {first} MAXVALUE {MOST_IDS} CYCLE CACHE 20"


def make_changeable(tables):
    """Widens the range of id, and makes ids by default: to be called before queries are generated."""
    for table in tables:
        table.columns[0].range = Range(0, MOST_IDS)
        if table.rng is not None:
            table.setup.append(f"ALTER TABLE {table.name} ALTER COLUMN id SET DEFAULT nextval('{SEQUENCE}')")


def quoted(text):
    return text.replace("'", "''")


class Changes:
    """`blocks(relation)` tells the number of its blocks."""

    def __init__(self, seed, tables, blocks):
        self.rng = random.Random(seed)
        self.tables = [t for t in tables if t.rng is not None]
        self.blocks = blocks
        for table in self.tables:
            table.rng.seed(f"{seed}:{table.name}")

    def text(self, column):
        return None if column.nulls and self.rng.random() < column.nulls else column.value()

    def literal(self, column):
        text = self.text(column)
        return "NULL" if text is None else f"'{quoted(text)}'::{getattr(column, 'cast', column.type)}"

    def target(self, table):
        """The table, or one of its partitions."""
        return self.rng.choice([table.name] + table.imports)

    def where(self, relation):
        rng = self.rng
        kind = rng.choice(("block", "block", "run", "tail", "scattered", "first"))
        blocks = max(self.blocks(relation), 1)
        if kind == "scattered":
            m = rng.choice((7, 50, 300, 2000))
            return f"id % {m} = {rng.randrange(m)}"
        if kind == "first":
            return f"id <= (SELECT min(id) FROM {relation}) + {rng.choice((0, 5, 40))}"
        first = rng.randrange(blocks)
        last = first
        if kind == "run":
            last = first + rng.randrange(1 + blocks // 10)
        elif kind == "tail":
            first, last = int(blocks * rng.choice((0.5, 0.9, 0.98))), blocks
        elif rng.random() < 0.5:		# one row
            return f"ctid = '({first},{rng.randint(1, 20)})'::tid"
        return f"ctid >= '({first},0)'::tid AND ctid < '({last + 1},0)'::tid"

    def insert(self, table):
        rng = self.rng
        columns = table.columns[1:]
        names = ", ".join(c.name for c in columns)
        if rng.random() < 0.3:
            source = self.target(table)
            return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {source} WHERE {self.where(source)}"
        rows = ", ".join(f"({', '.join(self.literal(c) for c in columns)})" for _ in range(rng.choice((1, 1, 3, 20))))
        return f"INSERT INTO {table.name} ({names}) VALUES {rows}"

    def copy(self, table, rows):
        columns = table.columns[1:]
        lines = []
        for _ in range(rows):
            lines.append("\t".join("\\N" if text is None else copy_text(text) for text in map(self.text, columns)) + "\n")
        return f"COPY {table.name} ({', '.join(c.name for c in columns)}) FROM STDIN", "".join(lines)

    def update(self, table):
        rng = self.rng
        relation = self.target(table)
        chosen = rng.sample(table.columns[1:], min(rng.choice((1, 1, 2, 4)), len(table.columns) - 1))
        sets = [f"{c.name} = {c.name if rng.random() < 0.1 else self.literal(c)}" for c in chosen]
        if relation == table.name and rng.random() < 0.1:
            sets.append(f"id = nextval('{SEQUENCE}')")		# to another partition, if there are any
        return f"UPDATE {relation} SET {', '.join(sets)} WHERE {self.where(relation)}"

    def delete(self, table):
        relation = self.target(table)
        return f"DELETE FROM {relation} WHERE {self.where(relation)}"

    def change(self, table):
        return self.rng.choice((self.insert, self.update, self.update, self.update, self.delete))(table)
