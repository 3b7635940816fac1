package risk

import (
	"net/netip"
	"net/url"
	"strings"
)

const sends = "It sends data to another machine."

// networkRules are the programs that talk to other machines.
var networkRules = map[string]rule{
	"curl": curlRule,
	"wget": wgetRule,
	"scp sftp nc ncat netcat socat telnet ftp lftp tftp ssh mosh ssh-copy-id sendmail mail mailx mutt swaks ngrok cloudflared frpc chisel tor torsocks proxychains": always(High, sends),
	"rsync":   rsyncRule,
	"openssl": opensslRule,
	"nslookup dig host ping ping6 traceroute tracepath whois": dnsRule,
	"http https xh httpie lynx w3m links elinks aria2c axel":  always(Unknown, "It connects to another machine in a way that cannot be analyzed."),
	"netstat lsof": always(Low, "It only prints text."),
	"ss":           ssRule,
}

// maxQuery is how long the part of an address may be that its author chooses
// freely. Longer ones could carry data away.
const maxQuery = 120

// Address rates an address that is asked for something.
func Address(raw string) (Rating, string) {
	if strings.ContainsAny(raw, hole) {
		return High, "What it asks another machine for is only known at run time."
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || strings.ContainsAny(raw, `{}\`) || strings.ContainsAny(u.Path+u.RawQuery, "[]") {
		return Unknown, "It requests a URL that cannot be parsed."
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return Unknown, "It requests something that is not a web page."
	case loopback(u.Hostname()):
		return Low, "It sends a request to a server in the sandbox."
	case u.User != nil, len(u.RawQuery)+len(u.Fragment) > maxQuery, len(u.Path) > 2*maxQuery, len(u.Host) > maxQuery:
		return High, "It requests a URL that is long enough to leak data."
	}
	return Medium, "It sends a request to another machine; the URL could leak data."
}

// loopback reports whether a host is the sandbox itself.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && a.IsLoopback()
}

// curlQuiet and curlValued are the options of curl that send nothing; those of
// the second kind take a value.
const (
	curlQuiet  = " -s -S -f -L -i -I -v -k -g -N -4 -6 -# --silent --show-error --fail --location --include --head --verbose --insecure --compressed --no-progress-meter --fail-with-body "
	curlValued = " -m --max-time --connect-timeout --retry --retry-delay -A --user-agent -H --header "
)

func curlRule(c command, args []arg) {
	if asksVersion(args) {
		c.add(Low, "It only prints a version.")
		return
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		var value arg
		if i+1 < len(args) {
			value = args[i+1]
		}
		switch name := " " + a.text + " "; {
		case !a.known:
			c.add(Address(hole))
		case !strings.HasPrefix(a.text, "-"):
			c.add(Address(a.text))
		case strings.Contains(curlQuiet, name):
		case !strings.HasPrefix(a.text, "--") && strings.Trim(a.text[1:], "sSfLiIvkgN46#") == "":
		case strings.Contains(curlValued, name):
			if i++; !value.known || strings.HasPrefix(value.text, "@") || len(value.text) > maxQuery {
				c.add(High, sends)
			}
		case a.text == "-w" || a.text == "--write-out":
			if i++; !value.known || strings.Contains(value.text, "%output") || strings.HasPrefix(value.text, "@") {
				c.add(Unknown, "It writes in a way that cannot be analyzed.")
			}
		case a.text == "-o" || a.text == "--output":
			i++
			c.writes(value, "It saves a download to a file.")
		case !strings.HasPrefix(a.text, "--") && strings.Trim(a.text[1:], "sSfLikgNOJ") == "", a.is("--remote-name"):
			c.add(Medium, "It saves a download to a file.")
		case (a.text == "-X" || a.text == "--request") && (value.text == "GET" || value.text == "HEAD"):
			i++
		default:
			c.curlSends(args)
			return
		}
	}
	c.add(Low, "It requests nothing.")
}

// curlSends rates a request with options that send something, or that the rules
// do not know. Only to the sandbox itself is that no reason to fear for data.
func (c command) curlSends(args []arg) {
	for _, a := range args {
		if strings.Contains(a.text, "://") || strings.HasPrefix(a.text, "localhost:") {
			if r, _ := Address(a.text); r != Low || anyOf(args, "xK", "--proxy", "--config", "--resolve", "--connect-to", "--preproxy", "--next", "--unix-socket", "--doh-url") {
				c.add(High, sends)
				return
			}
			c.add(Medium, "It sends data to a server in the sandbox.")
		}
	}
	if !anyOf(args, "", "--help", "--manual") {
		for _, a := range operands(args) {
			if r, _ := Address(a.text); r == Medium && strings.Contains(a.text, ".") || r == High {
				c.add(High, sends)
			}
		}
	}
	c.add(Medium, "It connects to another machine.")
}

func wgetRule(c command, args []arg) {
	if asksVersion(args) {
		c.add(Low, "It only prints a version.")
		return
	}
	c.add(Medium, "It saves a download to a file.")
	if anyOf(args, "ei", "--post-data", "--post-file", "--body-data", "--body-file", "--method", "--execute", "--config", "--use-askpass", "--input-file", "--header") || opaque(args) {
		c.add(High, sends)
	}
	for i, a := range args {
		switch {
		case a.text == "-O" && i+1 < len(args):
			c.writes(args[i+1], "It saves a download to a file.")
		case strings.Contains(a.text, "://"):
			c.add(Address(a.text))
		}
	}
}

// ssRule: it can also write what it knows to a file, and end connections.
func ssRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	if opaque(args) || anyOf(args, "DKF", "--diag", "--kill", "--filter") {
		c.add(Medium, "It may write to a file or end connections.")
	}
	for i, a := range args {
		if a.text == "-D" && i+1 < len(args) {
			c.writes(args[i+1], "It writes to a file.")
		}
	}
}

func rsyncRule(c command, args []arg) {
	changes(c, args)
	if anyOf(args, "e", "--rsh", "--rsync-path", "--delete", "--daemon") {
		c.add(High, "It runs other programs, or deletes files.")
	}
	for _, a := range args {
		if strings.Contains(a.text, ":") || !a.known {
			c.add(High, sends)
		}
	}
}

func opensslRule(c command, args []arg) {
	c.add(Medium, "It works with keys.")
	for _, a := range args {
		if !a.known || strings.HasPrefix(a.text, "s_") || a.text == "ocsp" || strings.Contains(a.text, "engine") || strings.Contains(a.text, "provider") {
			c.add(High, sends)
		}
	}
}

// dnsRule rates DNS lookups: the name travels to the server of its zone.
func dnsRule(c command, args []arg) {
	c.add(Medium, "It resolves a name over the network.")
	for _, a := range args {
		if !a.known || len(a.text) > 60 {
			c.add(High, "The requested name could leak data.")
		}
	}
}
