"""The private cluster of cluster.sh, and connections to it, for the test tools.

Values come back as PostgreSQL prints them: every type is returned as text, so
that answers are compared to the last digit.
"""
import os
import subprocess

import psycopg2
import psycopg2.extensions

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster.sh")


def _as_text(value, cursor):
    return value


def connect(host, port=5432, dbname="postgres", user="postgres"):
    """An autocommit connection whose results are text."""
    conn = psycopg2.connect(host=host, port=port, dbname=dbname, user=user)
    conn.autocommit = True
    with conn.cursor() as cur:
        cur.execute("SELECT oid FROM pg_catalog.pg_type WHERE typtype IN ('b', 'p', 'r')")
        oids = tuple(int(row[0]) for row in cur.fetchall())
    text = psycopg2.extensions.new_type(oids, "TEXT_OF_ANY", _as_text)
    psycopg2.extensions.register_type(text, conn)
    return conn


class Cluster:
    """A cluster in `directory`, made by `create` or found there."""

    def __init__(self, directory):
        self.directory = directory

    @staticmethod
    def place(name):
        return subprocess.run([SCRIPT, "place", name], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

    @staticmethod
    def create(name, **settings):
        """Makes and starts a new cluster; one left over under this name is removed."""
        cluster = Cluster(Cluster.place(name))
        cluster.drop()
        cluster._run("init", *[f"{key.replace('__', '.')}={value}" for key, value in settings.items()])
        cluster.start()
        return cluster

    def _run(self, command, *args):
        return subprocess.run([SCRIPT, command, self.directory, *args], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def start(self):
        self._run("start")

    def stop(self):
        self._run("stop")

    def drop(self):
        self._run("drop")

    @property
    def host(self):
        return self._run("socket")

    def connect(self, dbname="postgres"):
        return connect(self.host, dbname=dbname)


def library_installed(name="gpuvm"):
    libdir = subprocess.run(["pg_config", "--pkglibdir"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    return os.path.exists(os.path.join(libdir, name + ".so"))
