#!/bin/sh
# Installs Deckhand from a folder with its release files. Needs no network.
#
#   ./install.sh [--from DIR] [--prefix DIR] [--uninstall]
#
# --from    folder with the archives and SHA256SUMS; default: the folder of this script
# --prefix  where bin and share are; default: /usr/local for root, otherwise ~/.local
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
	echo "Deckhand was removed from $prefix. Data directories are kept."
	exit 0
fi

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no build for $(uname -s)" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no build for $(uname -m)" ;;
esac

archive=
for file in "$from"/deckhand_*_"${os}_$arch".tar.gz; do
	test -e "$file" || fail "$from has no deckhand_*_${os}_$arch.tar.gz; name the folder of the release files with --from"
	test -z "$archive" || fail "$from has several archives for ${os}_$arch; keep one"
	archive=$file
done
test -e "$from/SHA256SUMS" || fail "$from has no SHA256SUMS, so $archive cannot be verified"

name=$(basename "$archive")
want=$(awk -v name="$name" '$2 == name { print $1 }' "$from/SHA256SUMS")
test -n "$want" || fail "SHA256SUMS has no line for $name"
if command -v sha256sum >/dev/null; then have=$(sha256sum <"$archive"); else have=$(shasum -a 256 <"$archive"); fi
have=${have%% *}
test "$have" = "$want" || fail "the checksum of $name is $have, wanted $want: the file is damaged or was changed"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tar -xzf "$archive" -C "$stage"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/man/man5" "$prefix/share/bash-completion/completions" \
	"$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
# A running server keeps the file that it was started from.
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
*":$prefix/bin:"*) echo "Open a session in a folder with: deckhand. Run a server with: deckhand serve." ;;
*) echo "Add it to your path: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
