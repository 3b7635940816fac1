package risk

import (
	"strings"

	"deckhand/internal/risk/names"
)

// fileRules are the programs that read and change files, and the system.
var fileRules = map[string]rule{
	"cat tac head tail wc stat strings od hexdump md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum nl cut paste join comm cmp diff rev fold fmt expand unexpand column tr grep egrep fgrep zcat bzcat xzcat jq base64 base32 colrm tsort readelf": reader,
	"ls dir vdir basename dirname realpath readlink which whereis id whoami groups users uname arch nproc df du ps free uptime w who tty locale getconf seq expr cal printenv lscpu lsblk factor numfmt":                                                                always(Low, "It only prints text."),
	"sort":     sortRule,
	"uniq xxd": secondIsOutput,
	"tree":     outputOption("o", "--output"),
	"file":     outputOption("C", "--compile"),
	"date":     dateRule,
	"hostname": hostnameRule,
	"tee":      teeRule,
	"cp":       cpRule,
	"touch mkdir rmdir mv ln install truncate split csplit mktemp rename dos2unix unix2dos patch gzip gunzip bzip2 bunzip2 xz unxz zstd zip unzip 7z": changes,
	"rm unlink":     rmRule,
	"chmod":         chmodRule,
	"tar bsdtar":    tarRule,
	"kill":          killRule,
	"pkill killall": always(Medium, "It ends processes by their name."),
	"crontab":       crontabRule,
	"dd shred wipefs mkfs mke2fs fdisk sfdisk parted losetup cryptsetup mkswap swapon swapoff badblocks hdparm": always(High, "It writes to devices, or permanently destroys data."),
	"mount umount insmod modprobe rmmod sysctl iptables ip6tables nft ufw ip ifconfig route brctl useradd userdel usermod groupadd groupdel adduser deluser passwd chpasswd visudo chown chgrp chattr setcap setfacl ldconfig update-alternatives update-rc.d dpkg-reconfigure hwclock timedatectl hostnamectl loginctl systemctl service rc-service initctl": always(High, "It changes the system."),
	"shutdown reboot halt poweroff init telinit kexec killall5": always(High, "It shuts the system down."),
	"at batch atd cron anacron":                                 always(High, "It makes something run later."),
}

func sortRule(c command, args []arg) {
	reader(c, args)
	if anyOf(args, "", "--compress-program") {
		c.add(High, "It runs another program.")
	}
	if opaque(args) || anyOf(args, "o", "--output") {
		c.add(Medium, "It may write to a file.")
	}
	for i, a := range args {
		if a.text == "-o" && i+1 < len(args) {
			c.writes(args[i+1], "It writes to a file.")
		}
	}
}

// secondIsOutput rates programs whose second operand is written.
func secondIsOutput(c command, args []arg) {
	reader(c, args)
	if ops := operands(args); len(ops) > 1 {
		c.writes(ops[len(ops)-1], "It writes to a file.")
	}
	if opaque(args) {
		c.add(Medium, "It may write to a file.")
	}
}

// outputOption makes the rule of a program that only reads but for one option.
func outputOption(letter, long string) rule {
	return func(c command, args []arg) {
		reader(c, args)
		if opaque(args) || anyOf(args, letter, long) {
			c.add(Medium, "It may write to a file.")
		}
	}
}

func dateRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "-d" || a.text == "--date":
			i++
		case (a.text == "-r" || a.text == "-f") && i+1 < len(args):
			i++
			c.reads(args[i]) // what is no date is shown
		case a.known && strings.HasPrefix(a.text, "+"), a.text == "-u" || a.text == "-R", strings.HasPrefix(a.text, "-I"), a.is("--date"), a.is("--utc"), a.is("--iso-8601"), a.is("--rfc-3339"):
		default:
			c.add(High, "It may set the clock.")
		}
	}
}

func hostnameRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	for _, a := range args {
		if !a.known || !strings.HasPrefix(a.text, "-") || strings.ContainsAny(a.text, "Fb") || a.is("--file") {
			c.add(High, "It changes the system.")
		}
	}
}

func teeRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	if opaque(args) {
		c.add(Unknown, "Which file it changes is only known at run time.")
	}
	for _, a := range operands(args) {
		if !a.process {
			c.writes(a, "It writes to a file.")
		}
	}
}

// changes rates a program that may write to all that it is given.
func changes(c command, args []arg) {
	c.add(Medium, "It changes files.")
	for _, a := range args {
		if a.text == "--" {
			continue
		}
		_, value, option := strings.Cut(a.text, "=")
		switch {
		case a.known && strings.HasPrefix(a.text, "-") && option:
			c.writes(arg{text: value, known: true}, "It changes files.")
		case a.known && strings.HasPrefix(a.text, "-"):
		default:
			c.writes(a, "It changes files.")
		}
	}
}

func cpRule(c command, args []arg) {
	c.add(Medium, "It changes files.")
	ops := operands(args)
	if opaque(args) || anyOf(args, "t", "--target-directory") || len(ops) < 2 {
		changes(c, args)
		return
	}
	for _, from := range ops[:len(ops)-1] {
		c.reads(from)
	}
	c.writes(ops[len(ops)-1], "It changes files.")
}

func rmRule(c command, args []arg) {
	changes(c, args)
	if anyOf(args, "rRf", "--recursive", "--force", "--no-preserve-root") {
		c.add(High, "It deletes files, possibly whole folders, without asking; this cannot be undone.")
	}
	for _, a := range args {
		switch {
		case a.glob && !a.flag():
			c.add(High, "It deletes all files that match a pattern; this cannot be undone.")
		case !a.known:
			c.add(High, "It deletes files that are only known at run time; this cannot be undone.")
		}
	}
}

func chmodRule(c command, args []arg) {
	c.add(Medium, "It changes permissions of a file.")
	ops := operands(args)
	if anyOf(args, "R", "--recursive") {
		c.add(High, "It changes permissions of a whole folder.")
	}
	if len(ops) == 0 {
		return
	}
	mode := ops[0]
	if !mode.plain() || strings.ContainsAny(mode.text, "st") || strings.HasSuffix(mode.text, "77") || len(mode.text) > 3 && strings.Trim(mode.text, "01234567") == "" && mode.text[0] != '0' {
		c.add(High, "It lets anyone change a file, or run it as its owner.")
	}
	for _, a := range ops[1:] {
		c.writes(a, "It changes permissions of a file.")
	}
}

func tarRule(c command, args []arg) {
	c.add(Medium, "It packs or unpacks files.")
	if opaque(args) || anyOf(args, "IFPC", "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command", "--absolute-names") {
		c.add(Unknown, "It packs or unpacks in a way that may run programs or leave the folder.")
	}
	for _, a := range args {
		if a.is("--to-command") || a.is("--checkpoint-action") || a.is("--use-compress-program") {
			c.add(High, "It runs other programs while it packs or unpacks.")
		}
		if strings.Contains(a.text, ":") && !strings.HasPrefix(a.text, "-") {
			c.add(High, "It may write an archive to another machine.")
		}
		if !strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "/") {
			c.reads(a)
			if why := names.Sensitive(c.at(a.text)); why != "" {
				c.add(High, why)
			}
		}
	}
}

func killRule(c command, args []arg) {
	c.add(Medium, "It ends a process.")
	for _, a := range args {
		if a.text == "-1" || a.text == "1" || a.text == "0" {
			c.add(High, "It ends many processes at once.")
		}
	}
}

func crontabRule(c command, args []arg) {
	if len(args) == 1 && args[0].known && args[0].text == "-l" {
		c.add(Low, "It only prints text.")
		return
	}
	c.add(High, "It makes something run later.")
}
