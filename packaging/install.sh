#!/bin/sh
# Installs Deckhand from a folder or a web server with the release files.
#
#   ./install.sh [--from DIR|URL] [--sums FILE] [--prefix DIR] [--uninstall]
#
# --from    folder or URL with the archives and SHA256SUMS; default: the folder of this script, without network access
# --sums    a SHA256SUMS file that you trust, instead of the one in --from
# --prefix  folder that contains bin and share; default: /usr/local for root, otherwise ~/.local
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

# Everything is in a function, so that nothing runs if only a part of this script was downloaded.
main() {
	from=$(dirname "$0") prefix='' uninstall='' sums=''
	while test $# -gt 0; do
		case $1 in
		--from | --sums | --prefix)
			test -n "${2:-}" || fail "$1 needs a value; see --help"
			case $1 in
			--from) from=$2 ;;
			--sums) sums=$2 ;;
			--prefix) prefix=$2 ;;
			esac
			shift 2
			;;
		--uninstall) uninstall=1; shift ;;
		-h | --help) usage; exit 0 ;;
		*) fail "unknown option $1; see --help" ;;
		esac
	done
	if test -n "$prefix"; then
		case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
	elif test "$(id -u)" = 0; then
		prefix=/usr/local
	else
		prefix=${HOME:?set HOME, or use --prefix}/.local
	fi
	if test -n "$uninstall"; then
		remove
		exit 0
	fi
	platform
	stage=$(mktemp -d)
	trap 'rm -rf "$stage"' EXIT
	trap 'exit 130' INT HUP TERM
	case $from in
	http://* | https://*) download ;;
	-*) from=./$from find_archive ;;
	*) find_archive ;;
	esac
	verify
	install
}

usage() {
	cat <<-'END'
		Installs Deckhand from a folder or a web server with the release files.

		  ./install.sh [--from DIR|URL] [--sums FILE] [--prefix DIR] [--uninstall]

		--from    folder or URL with the archives and SHA256SUMS; default: the folder of this script, without network access
		--sums    a SHA256SUMS file that you trust, instead of the one in --from
		--prefix  folder that contains bin and share; default: /usr/local for root, otherwise ~/.local
	END
}

remove() {
	if ! test -e "$prefix/bin/deckhand"; then
		echo "Deckhand is not installed in $prefix. Use --prefix to choose another folder."
		exit 0
	fi
	rm -f "$prefix/bin/deckhand" "$prefix"/share/man/man1/deckhand*.1.gz "$prefix"/share/man/man5/deckhand.yaml.5.gz \
		"$prefix/share/bash-completion/completions/deckhand" "$prefix/share/zsh/site-functions/_deckhand" "$prefix/share/fish/vendor_completions.d/deckhand.fish"
	rm -rf "$prefix/share/doc/deckhand"
	echo "Removed Deckhand from $prefix. Data directories were not deleted."
}

platform() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "unsupported operating system: $(uname -s); there are archives for Linux and macOS" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "unsupported architecture: $(uname -m); there are archives for amd64 and arm64" ;;
	esac
}

# fetch NAME: downloads a file of $from to $stage.
fetch() {
	if command -v curl >/dev/null; then
		# Not even a redirect may leave https.
		curl -fsSL --proto-redir =https --retry 3 -o "$stage/$1" "$from/$1" || fail "cannot download $from/$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$stage/$1" "$from/$1" || fail "cannot download $from/$1"
	else
		fail "curl or wget is needed to download from $from; install one of them, or download the files another way and use --from with their folder"
	fi
}

download() {
	from=${from%/}
	case $from in
	https://* | http://127.0.0.1 | http://127.0.0.1[:/]* | http://localhost | http://localhost[:/]*) ;;
	*) test -n "$sums" || fail "$from is not encrypted, so its checksums prove nothing; use https, or --sums with a SHA256SUMS file that you trust" ;;
	esac
	if test -z "$sums"; then
		fetch SHA256SUMS
		sums=$stage/SHA256SUMS
	fi
	test -r "$sums" || fail "cannot read $sums"
	name=$(awk -v end="_${os}_$arch.tar.gz" '{ sub(/\r$/, ""); sub(/^\*/, "", $2); sub(/^\.\//, "", $2) } $2 ~ /^deckhand_[A-Za-z0-9._~+-]+$/ && substr($2, length($2) - length(end) + 1) == end && !seen[$2]++ { print $2 }' "$sums")
	case $name in
	'') fail "no archive for ${os}_$arch at $from" ;;
	*[!A-Za-z0-9._~+-]*) fail "several archives for ${os}_$arch at $from" ;;
	esac
	fetch "$name"
	archive=$stage/$name
}

find_archive() {
	archive=
	for file in "$from"/deckhand_*_"${os}_$arch".tar.gz; do
		test -e "$file" || fail "no deckhand_*_${os}_$arch.tar.gz in $from; use --from to set the folder with the release files"
		test -f "$file" || fail "$file is not a file"
		test -z "$archive" || fail "several archives for ${os}_$arch in $from; keep only one"
		archive=$file
	done
	name=$(basename "$archive")
	if test -z "$sums"; then
		sums=$from/SHA256SUMS
		test -e "$sums" || fail "cannot verify $archive: no SHA256SUMS in $from"
	fi
	test -r "$sums" || fail "cannot read $sums"
	# Verify and unpack the same bytes, even if the file is changed in the meantime.
	cp "$archive" "$stage/archive" || fail "cannot read $archive"
	archive=$stage/archive
}

verify() {
	# One checksum of lower-case digits, also from a file with the line ends or names of another system.
	want=$(awk -v name="$name" '{ sub(/\r$/, "") } NF == 2 { sub(/^\*/, "", $2); sub(/^\.\//, "", $2) } NF == 2 && $2 == name && !seen[tolower($1)]++ { print tolower($1) }' "$sums")
	case $want in
	'') fail "cannot verify $name: no checksum for it in $sums" ;;
	*[!0-9a-f]*) fail "cannot verify $name: $sums has no valid checksum for it, or several" ;;
	esac
	if command -v sha256sum >/dev/null; then
		have=$(sha256sum <"$archive")
	elif command -v shasum >/dev/null; then
		have=$(shasum -a 256 <"$archive")
	else
		fail "cannot verify $name: neither sha256sum nor shasum is installed"
	fi
	have=${have%% *}
	test "$have" = "$want" || fail "checksum mismatch for $name: expected $want, got $have; the file is damaged or was modified"
}

install() {
	mkdir "$stage/files"
	tar -xzf "$archive" -C "$stage/files"
	mkdir -p "$prefix/bin" && test -w "$prefix/bin" || fail "cannot write to $prefix/bin; use --prefix to choose another folder"
	mkdir -p "$prefix/share/man/man1" "$prefix/share/man/man5" "$prefix/share/bash-completion/completions" \
		"$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" "$prefix/share/doc/deckhand" || fail "cannot write to $prefix; use --prefix to choose another folder"
	# Replace the file by renaming, so that a running server is not affected.
	new=$prefix/bin/.deckhand.new
	cp "$stage/files/deckhand" "$new"
	chmod 0755 "$new"
	if ! version=$("$new" version); then
		rm -f "$new"
		fail "the program in $name does not run on this machine"
	fi
	mv -f "$new" "$prefix/bin/deckhand"
	cp "$stage"/files/man/*.1.gz "$prefix/share/man/man1/"
	cp "$stage"/files/man/*.5.gz "$prefix/share/man/man5/"
	cp "$stage/files/completion/deckhand.bash" "$prefix/share/bash-completion/completions/deckhand"
	cp "$stage/files/completion/deckhand.zsh" "$prefix/share/zsh/site-functions/_deckhand"
	cp "$stage/files/completion/deckhand.fish" "$prefix/share/fish/vendor_completions.d/deckhand.fish"
	# Not share/deckhand, which is the data directory if the prefix is ~/.local.
	cp -r "$stage/files/share/." "$prefix/share/doc/deckhand/"

	echo "Installed $version as $prefix/bin/deckhand."
	case ":$PATH:" in
	*":$prefix/bin:"*) echo "To open a session in the current folder, run: deckhand. To start a server, run: deckhand serve." ;;
	*) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
	esac
}

main "$@"
