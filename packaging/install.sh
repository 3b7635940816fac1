#!/bin/sh
# Installs Deckhand from a folder with the release files. Needs no network.
#
#   ./install.sh [--from DIR] [--prefix DIR] [--uninstall]
#
# --from    folder with the archives and SHA256SUMS; default: the folder of this script
# --prefix  folder that contains bin and share; default: /usr/local for root, otherwise ~/.local
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

from=$(dirname "$0")
if test "$(id -u)" = 0; then prefix=/usr/local; else prefix=$HOME/.local; fi
uninstall=
while test $# -gt 0; do
	case $1 in
	--from) from=${2:?--from needs a folder}; shift 2 ;;
	--prefix) prefix=${2:?--prefix needs a folder}; shift 2 ;;
	--uninstall) uninstall=1; shift ;;
	-h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) fail "unknown option $1; see --help" ;;
	esac
done

if test -n "$uninstall"; then
	rm -f "$prefix/bin/deckhand" "$prefix"/share/man/man1/deckhand*.1.gz "$prefix"/share/man/man5/deckhand.yaml.5.gz \
		"$prefix/share/bash-completion/completions/deckhand" "$prefix/share/zsh/site-functions/_deckhand" "$prefix/share/fish/vendor_completions.d/deckhand.fish"
	echo "Removed Deckhand from $prefix. Data directories were not deleted."
	exit 0
fi

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "unsupported operating system: $(uname -s)" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "unsupported architecture: $(uname -m)" ;;
esac

archive=
for file in "$from"/deckhand_*_"${os}_$arch".tar.gz; do
	test -e "$file" || fail "no deckhand_*_${os}_$arch.tar.gz in $from; use --from to set the folder with the release files"
	test -z "$archive" || fail "several archives for ${os}_$arch in $from; keep only one"
	archive=$file
done
test -e "$from/SHA256SUMS" || fail "cannot verify $archive: no SHA256SUMS in $from"

name=$(basename "$archive")
want=$(awk -v name="$name" '$2 == name { print $1 }' "$from/SHA256SUMS")
test -n "$want" || fail "cannot verify $archive: no checksum for $name in SHA256SUMS"
if command -v sha256sum >/dev/null; then have=$(sha256sum <"$archive"); else have=$(shasum -a 256 <"$archive"); fi
have=${have%% *}
test "$have" = "$want" || fail "checksum mismatch for $name: expected $want, got $have; the file is damaged or was modified"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tar -xzf "$archive" -C "$stage"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/man/man5" "$prefix/share/bash-completion/completions" \
	"$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
# Replace the file by renaming, so that a running server is not affected.
cp "$stage/deckhand" "$prefix/bin/.deckhand.new"
chmod 0755 "$prefix/bin/.deckhand.new"
mv -f "$prefix/bin/.deckhand.new" "$prefix/bin/deckhand"
cp "$stage"/man/*.1.gz "$prefix/share/man/man1/"
cp "$stage"/man/*.5.gz "$prefix/share/man/man5/"
cp "$stage/completion/deckhand.bash" "$prefix/share/bash-completion/completions/deckhand"
cp "$stage/completion/deckhand.zsh" "$prefix/share/zsh/site-functions/_deckhand"
cp "$stage/completion/deckhand.fish" "$prefix/share/fish/vendor_completions.d/deckhand.fish"

echo "Installed $("$prefix/bin/deckhand" version) as $prefix/bin/deckhand."
case ":$PATH:" in
*":$prefix/bin:"*) echo "To open a session in the current folder, run: deckhand. To start a server, run: deckhand serve." ;;
*) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
