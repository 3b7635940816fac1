#!/bin/sh
# Starts the service, or restarts it after an upgrade. Conversations continue.
set -e
root=${DPKG_ROOT:-}
config=$root/etc/deckhand/deckhand.yaml
# With deb, the config file is not part of the package, so that an upgrade keeps it without asking.
if ! test -e "$config"; then
	mkdir -p "$root/etc/deckhand"
	cp "$root/usr/share/deckhand/deckhand.yaml" "$config"
fi
chown root:deckhand "$root/etc/deckhand" "$config"
chmod 0750 "$root/etc/deckhand"
chmod 0640 "$config"
# A server that cannot start, for example because its port is in use, must not fail the installation: the package would stay half configured.
start() {
	if systemctl "$@" deckhand.service; then return; fi
	echo "Deckhand did not start. To show why, run: journalctl -u deckhand. After fixing the cause, run: systemctl restart deckhand" >&2
	return 1
}
new=
if test -e "$root/run/deckhand.installed"; then new=1; fi
rm -f "$root/run/deckhand.installed"
if test -d "$root/run/systemd/system"; then
	systemctl daemon-reload
	if systemctl is-active --quiet deckhand.service; then
		start restart || true
	elif test -n "$new"; then
		if start enable --now; then
			echo "Deckhand is running. To show the login link, run: journalctl -u deckhand | grep 'log in'"
		fi
	else
		echo "The service was not running, so it was not started. To start it, run: systemctl start deckhand"
	fi
else
	echo "systemd is not running. To start the server, run: deckhand serve"
fi
