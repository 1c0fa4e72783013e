#!/bin/bash
# Brings PostgreSQL's own regression scripts and their data into build/postgres-regress, from
# Debian's source package; they are not part of this repository. Needs no right to write outside
# of build/: apt gets lists and folders of its own there.
#
# The installed version is asked for first; where the mirror has it no more, any of PostgreSQL 15.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=$PWD/build/postgres-regress
[ ! -e "$target/sql/join.sql" ] || exit 0
work=$PWD/build/postgres-source
mkdir -p "$work/lists/partial" "$work/archives/partial"
cd "$work"
: >deb-src.list
: >deb-src.sources
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
	[ ! -f "$f" ] || sed -n 's/^deb /deb-src /p' "$f" >>deb-src.list
done
for f in /etc/apt/sources.list.d/*.sources; do
	[ ! -f "$f" ] || { sed 's/^Types:.*/Types: deb-src/' "$f"; echo; } >>deb-src.sources
done
mkdir -p parts
mv deb-src.list deb-src.sources parts/
apt=(-q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" -o APT::Sandbox::User=)
apt-get "${apt[@]}" update >apt.log 2>&1 || { tail -n 5 apt.log >&2; exit 1; }
installed=$(dpkg-query -W -f '${Version}' postgresql-15 2>/dev/null || true)
for version in $installed $(apt-cache "${apt[@]}" showsrc postgresql-15 | sed -n 's/^Version: //p' | sort -Vr); do
	if apt-get "${apt[@]}" --download-only source "postgresql-15=$version" >>apt.log 2>&1; then
		echo "PostgreSQL's regression scripts of $version"
		rm -rf "$target" unpacked
		mkdir unpacked
		tar xf postgresql-15_"${version%-*}".orig.tar.* -C unpacked --wildcards --strip-components=4 '*/src/test/regress/sql' '*/src/test/regress/data' '*/COPYRIGHT'
		mv unpacked "$target"
		exit 0
	fi
done
echo "no source package of postgresql-15 could be fetched:" >&2
tail -n 5 apt.log >&2
exit 1
