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
new=
if test -e "$root/run/deckhand.installed"; then new=1; fi
rm -f "$root/run/deckhand.installed"
if test -d "$root/run/systemd/system"; then
	systemctl daemon-reload
	if systemctl is-active --quiet deckhand.service; then
		systemctl restart deckhand.service
	elif test -n "$new"; then
		systemctl enable --now deckhand.service
		echo "Deckhand is running. To show the login link, run: journalctl -u deckhand | grep 'log in'"
	else
		echo "The service was not running, so it was not started. To start it, run: systemctl start deckhand"
	fi
else
	echo "systemd is not running. To start the server, run: deckhand serve"
fi
