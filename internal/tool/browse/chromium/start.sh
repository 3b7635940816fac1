# Starts a Chromium that outlives this script. $1 is its folder, $2 the size of
# its window. The first line of the output says how it went.
dir=$1
program=
for name in chromium chromium-browser google-chrome google-chrome-stable chromium-headless-shell headless_shell; do
	if program=$(command -v "$name"); then break; fi
done
if [ -z "$program" ]; then
	echo missing
	exit 0
fi
# One that does not answer any more must not keep its folder.
pid=$(cat "$dir/pid" 2>/dev/null)
if [ -n "$pid" ] && grep -aqF "$dir" "/proc/$pid/cmdline" 2>/dev/null; then
	kill -9 "$pid" 2>/dev/null
fi
# A folder that somebody else has put there cannot be removed, and is not used.
rm -rf "$dir" && mkdir -m 700 "$dir" "$dir/tmp" || { echo failed; exit 0; }

# Loopback never goes through the proxy: what the agent serves can be looked at.
proxy=${https_proxy:-$HTTPS_PROXY}
export XDG_CONFIG_HOME="$dir/config" XDG_CACHE_HOME="$dir/cache" TMPDIR="$dir/tmp"
setsid "$program" --headless=new --remote-debugging-port=0 --user-data-dir="$dir/profile" --window-size="$2" \
	--no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run --no-default-browser-check \
	--disable-background-networking --disable-component-update --disable-sync --disable-extensions --disable-breakpad \
	--disable-default-apps --disable-site-isolation-trials --metrics-recording-only --mute-audio --password-store=basic \
	--disable-features=IsolateOrigins,site-per-process,SitePerProcess,Translate,MediaRouter,OptimizationHints \
	--force-webrtc-ip-handling-policy=disable_non_proxied_udp \
	${proxy:+"--proxy-server=$proxy"} about:blank </dev/null >"$dir/log" 2>&1 &
echo $! >"$dir/pid"

tries=0
while [ $tries -lt 300 ] && kill -0 $! 2>/dev/null; do
	if [ -s "$dir/profile/DevToolsActivePort" ]; then
		echo ready
		exit 0
	fi
	sleep 0.1
	tries=$((tries + 1))
done
echo failed
grep -v -e dbus -e udev "$dir/log" | tail -n 5
