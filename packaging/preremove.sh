#!/bin/sh
# Stops the service and its sandboxes, except during an upgrade.
set -e
case "${1:-0}" in
remove | 0)
	if test -d "${DPKG_ROOT:-}/run/systemd/system"; then
		systemctl disable --now deckhand.service || true
		# Sandboxes keep running when the server stops, so they must be killed separately. It is an error if there are none.
		systemctl kill --signal=SIGKILL deckhand.service 2>/dev/null || true
	fi
	;;
esac
