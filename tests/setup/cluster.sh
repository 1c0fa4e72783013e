#!/bin/bash
# A private PostgreSQL cluster in a folder of its own, reachable through a Unix
# socket in that folder only. Called, or sourced for its functions.
#
#   cluster.sh init  DIR [setting=value ...]   a new cluster (DIR must not hold one)
#   cluster.sh start DIR
#   cluster.sh stop  DIR
#   cluster.sh drop  DIR                       stop it and remove the folder
#   cluster.sh psql  DIR [psql arguments ...]
#   cluster.sh place NAME                      prints a folder for it that the server's user can reach
#   cluster.sh socket DIR                      prints the folder of its socket
#
# PostgreSQL refuses to run as root: then the server runs as `postgres`, which
# owns DIR; otherwise as the caller. The database superuser is `postgres` in
# both cases. The folder has mode 0700, so `trust` admits its owner and root.

CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PG_BIN=$(pg_config --bindir)

# Runs a command as the server's user, in a folder that this user can enter.
as_server() {
	if [ "$(id -u)" = 0 ]; then
		(cd / && exec runuser -u postgres -- "$@")
	else
		(cd / && exec "$@")
	fi
}

# In the checkout if the server's user can get there (not below /root), else in /var/tmp.
cluster_place() {
	if as_server test -x "$CHECKOUT"; then
		echo "$CHECKOUT/$1"
	else
		echo "/var/tmp/gpuvm-$(id -u)-$(echo "$CHECKOUT" | cksum | cut -d' ' -f1)/$1"
	fi
}

# A socket's path may have 107 bytes: a folder with a long name keeps it elsewhere.
cluster_socket() {
	if [ ${#1} -lt 85 ]; then
		echo "$1"
	else
		echo "/tmp/gpuvm-$(id -u)-$(echo "$1" | cksum | cut -d' ' -f1)"
	fi
}

cluster_init() {
	local dir=$1 socket setting
	shift
	if [ -e "$dir/data/PG_VERSION" ]; then
		echo "there is a cluster in $dir already" >&2
		return 1
	fi
	socket=$(cluster_socket "$dir")
	mkdir -p "$dir" "$socket"
	chmod 700 "$dir" "$socket"
	[ "$(id -u)" != 0 ] || chown postgres: "$dir" "$socket"
	as_server "$PG_BIN/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync \
		>"$dir/initdb.log" || return 1
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$socket'"
		echo "port = 5432"
		echo "fsync = off"
		echo "shared_preload_libraries = 'gpuvm'"
		for setting in "$@"; do
			echo "${setting%%=*} = '${setting#*=}'"
		done
	} >>"$dir/data/postgresql.conf"
}

cluster_start() {
	local dir=$1
	if as_server "$PG_BIN/pg_ctl" -D "$dir/data" status >/dev/null; then
		return 0
	fi
	if ! as_server "$PG_BIN/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 start >/dev/null; then
		echo "the server in $dir did not start:" >&2
		tail -n 20 "$dir/server.log" >&2
		return 1
	fi
}

cluster_stop() {
	local dir=$1
	[ -e "$dir/data/postmaster.pid" ] || return 0
	as_server "$PG_BIN/pg_ctl" -D "$dir/data" -m fast -w -t 60 stop >/dev/null
}

cluster_drop() {
	local dir=$1 socket
	socket=$(cluster_socket "$dir")
	cluster_stop "$dir" || return 1
	[ ! -e "$dir/data/PG_VERSION" ] || rm -rf "$dir"
	[ "$socket" = "$dir" ] || rm -rf "$socket"
}

cluster_psql() {
	local dir=$1
	shift
	"$PG_BIN/psql" -X -h "$(cluster_socket "$dir")" -p 5432 -U postgres "$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	command=${1:-}
	case $command in
		init | start | stop | drop | psql | socket)
			dir=$(realpath -m "${2:?the folder of the cluster}")	# a host name that is no absolute path is not a socket's
			shift 2
			"cluster_$command" "$dir" "$@"
			;;
		place) cluster_place "${2:?a name}" ;;
		*) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
fi
