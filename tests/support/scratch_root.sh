# Runs the last stage of the Dockerfile in a root of its own: scratch_root.sh ROOT PYTHON_PREFIX.
# The caller has unshared mounts, processes and network; it has put the files of the stage into ROOT, its RUN
# lines into ROOT/run.sh, what HEALTHCHECK and CMD run into ROOT/health.sh and ROOT/start.sh, and
# wheels of the locked packages into ROOT/packages.
set -eu
root=$1 prefix=$2

ip link set lo up
ip address add 192.0.2.1/32 dev lo  # from here clients come as from another machine
for place in /bin /lib /lib64 /sbin /usr "$prefix"; do
    mkdir -p "$root$place"
    mount -o bind,ro "$place" "$root$place"
done
mkdir -p "$root/dev" "$root/proc"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mkdir -p "$root/etc" "$root/tmp" "$root/opt"
chmod 1777 "$root/tmp"
cp /etc/hosts /etc/login.defs /etc/nsswitch.conf "$root/etc"
echo 'root:x:0:0::/root:/bin/sh' > "$root/etc/passwd"
echo 'root:x:0:' > "$root/etc/group"
cp "$root/etc/group" "$root/etc/gshadow"
cp "$root/etc/passwd" "$root/etc/shadow"

# in_root USER COMMAND...: with nothing of the environment but what the image has, and no index.
in_root() {
    user=$1
    shift
    chroot --userspec="$user" "$root" env -i HOME=/tmp PATH=/opt/python/bin:/usr/sbin:/usr/bin:/bin \
        PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_FIND_LINKS=/packages \
        WARREN_ALLOW_PLAINTEXT=1 WARREN_PASSWORD="eleven purple rabbits" "$@"
}

in_root root "$prefix/bin/python3" -m venv /opt/python
in_root root sh -eu /run.sh >&2

in_root warren: sh -euc 'echo $$ > /tmp/server.pid; . /start.sh' > "$root/output" 2>&1 &
server=$!
until in_root warren: sh -eu /health.sh 2>/dev/null; do
    if ! kill -0 $server 2>/dev/null; then
        cat "$root/output" >&2
        exit 1
    fi
done

link=$(grep -o 'http:[^ ]*/#/setup/[^ ]*' "$root/output" | sed 's/localhost/192.0.2.1/')
echo "eleven purple rabbits" | in_root warren: warren setup "$link" ada
in_root warren: warren queue list --url http://192.0.2.1:15672 --user ada
in_root warren: warren bench throughput --seconds 0.1 \
    "amqp://ada:eleven%20purple%20rabbits@192.0.2.1:5672/"
kill -TERM "$(cat "$root/tmp/server.pid")"
wait $server
