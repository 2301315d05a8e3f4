# Keeps one throw-away Postgres cluster for a test process: makes a folder, says its name, and does what it is asked
# line by line, answering "ok" or "failed". When its input ends, because the process closed it or died, it stops the
# server and removes the folder. Everything happens here, one after the other, so that no moment exists in which the
# process could die and leave something behind.
#
# usage: sh -c "$(cat keeper.sh)" keeper BIN TEMP
#
#   init PASSWORD   makes the cluster
#   copy PORT PASSWORD DIR   makes a standby of another keeper's cluster, whose server is stopped
#   start PORT      starts the server, answers when it accepts connections or has ended
#   stop SIGNAL     sends the server a signal, answers when it has ended

trap '' PIPE # nobody may be left to read the answer
umask 077
bin=$1
dir=$(mktemp -d "$2/stint-postgres.XXXXXXXX" 2>&1) || {
	echo "$dir"
	exit 1
}
cd "$dir" || exit 1
exec 2>>"$dir/log"
echo "$dir"

lock="$dir/data/postmaster.pid"
server=

# The server notes its state in the last line of its lock file, which a killed one may have left there.
accepts() {
	[ "$(head -n 1 "$lock" 2>/dev/null)" = "$server" ] && [ "$(tail -n 1 "$lock" 2>/dev/null | tr -d ' ')" = ready ]
}

alive() { kill -0 "$server" 2>/dev/null; }

# Both waits have limits, so that this script comes back to its input whatever the server does.

start() {
	"$bin/postgres" -D "$dir/data" -p "$1" </dev/null >&2 &
	server=$!
	tries=0
	until accepts; do
		tries=$((tries + 1))
		if [ "$tries" -gt 3000 ] || ! alive; then
			stop QUIT
			return 1
		fi
		sleep 0.02
	done
}

stop() {
	[ -n "$server" ] || return 0
	kill -s "$1" "$server"
	kill -s CONT "$server" # a test may have frozen it
	tries=0
	while alive; do
		tries=$((tries + 1))
		[ "$tries" -ne 1500 ] || kill -s QUIT "$server" # which kills the sessions that don't obey
		sleep 0.02
	done
	wait "$server"
	server=
}

while read -r command argument; do
	case $command in
	init)
		echo "$argument" >"$dir/password" &&
			"$bin/initdb" -D "$dir/data" --username=postgres --pwfile="$dir/password" --auth-local=trust \
				--auth-host=password --locale=C --encoding=UTF8 --no-sync </dev/null >&2
		;;
	copy)
		from=${argument#* } port=${argument%% *}
		cp -R "${from#* }/data" "$dir/data" && touch "$dir/data/standby.signal" &&
			echo "primary_conninfo = 'host=127.0.0.1 port=$port user=postgres password=${from%% *}'" >>"$dir/data/postgresql.auto.conf"
		;;
	start) start "$argument" ;;
	stop) stop "$argument" ;;
	*) false ;;
	esac && echo ok || echo failed
done

stop QUIT
# A server that was killed could not remove its shared memory, a few bytes that count against the system's limit.
if [ -f "$lock" ]; then
	# shellcheck disable=SC2046 # two words: key and id
	set -- $(sed -n 7p "$lock")
	ipcrm -m "$2"
fi
cd /
for _ in 1 2 3 4 5; do # the last sessions of a killed server may still be writing
	rm -rf "$dir" && break
	sleep 0.2
done
