#!/usr/bin/python3
"""Data of the Star Schema Benchmark, from a seed: CSV files with a header line.

    tests/ssb/generate.py FOLDER [--scale 0.1] [--parts N]

Cardinalities, domains and what follows from what are those of the paper (revision 3, section 2), uniform as there: at scale SF 6,000,000 SF line
items in 1,500,000 SF orders of one to seven lines, 30,000 SF customers, 2,000 SF suppliers, 200,000 (1 + log2 SF) parts (below scale 1:
200,000 SF), and the days of seven years. The rows do not depend on how many processes write them.
"""
import argparse
import datetime
import math
import multiprocessing
import os
import random
import shutil

SEED = 15					# no query is without rows at scale 0.1
REGIONS = {"AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"), "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
           "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"), "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
           "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA")}
NATIONS = [(nation, region) for region, nations in REGIONS.items() for nation in nations]
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
COLORS = """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim
dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic
midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow
spring steel tan thistle tomato turquoise violet wheat white yellow""".split()
TYPES = [f"{a} {b} {c}" for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO") for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
         for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")]
CONTAINERS = [f"{a} {b}" for a in ("SM", "LG", "MED", "JUMBO", "WRAP") for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")]
FIRST, DAYS, ORDER_DAYS = datetime.date(1992, 1, 1), 2557, 2406	# the last order leaves room for its commit date
SEASONS = {12: "Christmas", 1: "Winter", 2: "Winter", 3: "Spring", 4: "Spring", 5: "Spring", 6: "Summer", 7: "Summer", 8: "Summer", 9: "Fall", 10: "Fall", 11: "Christmas"}
HOLIDAYS = {(12, 24), (12, 25), (1, 1), (2, 20), (4, 20), (5, 20), (7, 4), (9, 7), (11, 25)}
CHUNK = 10_000					# orders that share a random generator

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "


def key(day):
    return day.year * 10000 + day.month * 100 + day.day


def dates():
    yield "d_datekey,d_date,d_dayofweek,d_month,d_year,d_yearmonthnum,d_yearmonth,d_daynuminweek,d_daynuminmonth,d_daynuminyear,d_monthnuminyear,d_weeknuminyear," \
          "d_sellingseason,d_lastdayinweekfl,d_lastdayinmonthfl,d_holidayfl,d_weekdayfl"
    for i in range(DAYS):
        day = FIRST + datetime.timedelta(days=i)
        in_year, in_week = day.timetuple().tm_yday, day.isoweekday() % 7 + 1	# Sunday is 1
        yield (f'{key(day)},"{day.strftime("%B")} {day.day}, {day.year}",{day.strftime("%A")},{day.strftime("%B")},{day.year},{day.year * 100 + day.month},{day.strftime("%b")}{day.year},'
               f'{in_week},{day.day},{in_year},{day.month},{(in_year - 1) // 7 + 1},{SEASONS[day.month]},{in_week == 7},{(day + datetime.timedelta(days=1)).day == 1},'
               f'{(day.month, day.day) in HOLIDAYS},{2 <= in_week <= 6}')


def place(rng):
    """address, city, nation, region, phone"""
    n = rng.randrange(len(NATIONS))
    nation, region = NATIONS[n]
    address = "".join(rng.choices(LETTERS, k=rng.randint(10, 25)))
    return f'"{address}",{nation[:9].ljust(9)}{rng.randrange(10)},{nation},{region},{10 + n}-{rng.randint(100, 999)}-{rng.randint(100, 999)}-{rng.randint(1000, 9999)}'


def suppliers(n):
    rng = random.Random(f"{SEED}:supplier")
    yield "s_suppkey,s_name,s_address,s_city,s_nation,s_region,s_phone"
    for i in range(1, n + 1):
        yield f"{i},Supplier#{i:09d},{place(rng)}"


def customers(n):
    rng = random.Random(f"{SEED}:customer")
    yield "c_custkey,c_name,c_address,c_city,c_nation,c_region,c_phone,c_mktsegment"
    for i in range(1, n + 1):
        yield f"{i},Customer#{i:09d},{place(rng)},{rng.choice(SEGMENTS)}"


def parts(n):
    rng = random.Random(f"{SEED}:part")
    yield "p_partkey,p_name,p_mfgr,p_category,p_brand1,p_color,p_type,p_size,p_container"
    for i in range(1, n + 1):
        mfgr = f"MFGR#{rng.randint(1, 5)}"
        category = f"{mfgr}{rng.randint(1, 5)}"
        yield (f"{i},{' '.join(rng.sample(COLORS, 2))[:22]},{mfgr},{category},{category}{rng.randint(1, 40)},{rng.choice(COLORS)},{rng.choice(TYPES)},{rng.randint(1, 50)},"
               f"{rng.choice(CONTAINERS)}")


LINEORDER = "lo_orderkey,lo_linenumber,lo_custkey,lo_partkey,lo_suppkey,lo_orderdate,lo_orderpriority,lo_shippriority,lo_quantity,lo_extendedprice,lo_ordtotalprice,lo_discount," \
            "lo_revenue,lo_supplycost,lo_tax,lo_commitdate,lo_shipmode"


def lines(sizes, first, last, keys):
    """The lines of the orders first .. last - 1, of one chunk."""
    random_ = random.Random(f"{SEED}:lineorder:{first // CHUNK}").random
    ncustomers, nsuppliers, nparts = sizes
    for o in range(first, last):
        orderkey = (o >> 3 << 5) + (o & 7) + 1	# eight of 32 keys, as in TPC-H
        day = int(random_() * ORDER_DAYS)
        of_order = f"{1 + int(random_() * ncustomers)}"
        priority, total, found = PRIORITIES[int(random_() * 5)], 0, []
        for line in range(1, 2 + int(random_() * 7)):
            part, quantity, discount, tax = 1 + int(random_() * nparts), 1 + int(random_() * 50), int(random_() * 11), int(random_() * 9)
            price = 90000 + part // 10 % 20001 + 100 * (part % 1000)
            extended = quantity * price
            revenue = extended * (100 - discount) // 100
            total += revenue * (100 + tax) // 100
            found.append((f"{orderkey},{line},{of_order},{part},{1 + int(random_() * nsuppliers)},{keys[day]},{priority},0,{quantity},{extended},",
                          f",{discount},{revenue},{6 * price // 10},{tax},{keys[day + 30 + int(random_() * 61)]},{MODES[int(random_() * 7)]}\n"))
        for head, tail in found:
            yield f"{head}{total}{tail}"


def write_lines(job):
    path, sizes, norders, worker, workers = job
    keys = [key(FIRST + datetime.timedelta(days=i)) for i in range(DAYS)]
    with open(path, "w", encoding="utf-8") as f:
        f.write(LINEORDER + "\n")
        for first in range(worker * CHUNK, norders, workers * CHUNK):
            f.writelines(lines(sizes, first, min(first + CHUNK, norders), keys))


def generate(folder, scale, workers):
    """{table: its files}, made once for a scale."""
    if not os.path.exists(folder):
        new = folder + ".new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        nparts = int(200_000 * (1 + math.floor(math.log2(scale)))) if scale >= 1 else max(1, int(200_000 * scale))
        ncustomers, nsuppliers = max(1, int(30_000 * scale)), max(1, int(2_000 * scale))
        for name, rows in (("date", dates()), ("supplier", suppliers(nsuppliers)), ("customer", customers(ncustomers)), ("part", parts(nparts))):
            with open(os.path.join(new, f"{name}.csv"), "w", encoding="utf-8") as f:
                f.writelines(row + "\n" for row in rows)
        jobs = [(os.path.join(new, f"lineorder.{w}.csv"), (ncustomers, nsuppliers, nparts), int(1_500_000 * scale), w, workers) for w in range(workers)]
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            pool.map(write_lines, jobs)
        os.rename(new, folder)
    found = {}
    for name in sorted(os.listdir(folder)):
        found.setdefault(name.split(".")[0], []).append(os.path.join(folder, name))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--parts", type=int, default=os.cpu_count())
    options = parser.parse_args()
    generate(options.folder, options.scale, options.parts)
