#!/bin/sh
# Stops the service and its sandboxes, but not when another version follows.
set -e
case "${1:-0}" in
remove | 0)
	if test -d /run/systemd/system; then
		systemctl disable --now deckhand.service || true
		# Sandboxes outlive the server on purpose.
		systemctl kill --kill-whom=all --signal=SIGKILL deckhand.service 2>/dev/null || true
	fi
	;;
esac
