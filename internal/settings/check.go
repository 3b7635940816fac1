package settings

import (
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"deckhand/internal/gitprovider"
	_ "deckhand/internal/gitprovider/forge" // lists the providers
	"deckhand/internal/outbound"
)

// Longest values. They are far above what anyone needs and far below what hurts.
const (
	maxURL           = 2048
	maxKey           = 8 << 10
	maxEnvValue      = 64 << 10
	maxDescription   = 1000
	maxImage         = 512
	maxModel         = 256
	maxCustomSecrets = 1000
	// maxSecretBytes is how long all secrets of a user may be together. Looking for them
	// takes about 150 times as much memory.
	maxSecretBytes = 128 << 10
)

// problem is a stable word for machines and a sentence for people. The sentence never
// has the value in it: it might be a secret, or a secret pasted into the wrong field.
type problem struct{ typ, msg string }

var nothingStored = &problem{"value_error", "The masked value keeps the stored value, but nothing is stored. Send the actual value."}

func tooLong(limit int) *problem {
	return &problem{"string_too_long", "Must not be longer than " + strconv.Itoa(limit) + " characters."}
}

func anyBool(bool) *problem { return nil }

func checkIterations(n int) *problem {
	switch {
	case n < 1:
		return &problem{"greater_than_equal", "Must be a number from 1 to 100000."}
	case n > 100_000:
		return &problem{"less_than_equal", "Must be a number from 1 to 100000."}
	}
	return nil
}

func checkCondenserSize(n int) *problem {
	switch {
	case n < 20:
		return &problem{"greater_than_equal", "Must be a number from 20 to 100000."}
	case n > 100_000:
		return &problem{"less_than_equal", "Must be a number from 20 to 100000."}
	}
	return nil
}

func checkFactor(n int) *problem {
	if !slices.Contains([]int{1, 2, 4, 8}, n) {
		return &problem{"literal_error", "Must be 1, 2, 4 or 8."}
	}
	return nil
}

func checkBudget(v float64) *problem {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return &problem{"finite_number", "Must be a finite number of US dollars."}
	case v < 0:
		return &problem{"greater_than_equal", "Must be 0 or more US dollars, or null for no limit."}
	}
	return nil
}

func oneOf(names []string) func(string) *problem {
	return func(s string) *problem {
		if slices.Contains(names, s) {
			return nil
		}
		return &problem{"literal_error", "Must be one of " + strings.Join(names, ", ") + "."}
	}
}

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*$`)

func checkLanguage(s string) *problem {
	if len(s) > 35 || !languageTag.MatchString(s) {
		return &problem{"value_error", "Must be a language tag such as en or pt-BR, at most 35 characters."}
	}
	return nil
}

func checkModel(s string) *problem {
	if len(s) > maxModel {
		return tooLong(maxModel)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return &problem{"value_error", "Must be provider/model, without spaces or control characters."}
	}
	return nil
}

// checkLine is for text on one line.
func checkLine(limit int) func(string) *problem {
	return func(s string) *problem {
		if utf8.RuneCountInString(s) > limit {
			return tooLong(limit)
		}
		if hasControl(s, "") {
			return &problem{"value_error", "Must be one line without control characters."}
		}
		return nil
	}
}

func hasControl(s, allowed string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) })
}

// checkKey is for what is sent in a header, where a line break would start another one.
func checkKey(s string) *problem {
	if len(s) > maxKey {
		return tooLong(maxKey)
	}
	if hasControl(s, "") {
		return &problem{"value_error", "The key contains a line break or another control character. Copy it again."}
	}
	if strings.TrimSpace(s) == "" {
		return &problem{"value_error", "The key is blank. Send a key, or an empty string to clear the stored one."}
	}
	return nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are variables by which programs are found and the sandbox is left: a
// secret of that name would break every command.
var reserved = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "SHELL": true, "PWD": true, "TERM": true, "ENV": true, "BASH_ENV": true, "IFS": true,
	"LD_PRELOAD": true, "LD_LIBRARY_PATH": true, "HTTP_PROXY": true, "HTTPS_PROXY": true, "ALL_PROXY": true, "NO_PROXY": true,
}

// checkSecretName is for names that become environment variables of the sandbox.
func checkSecretName(s string) *problem {
	if reserved[strings.ToUpper(s)] {
		return &problem{"value_error", "This name is reserved for the sandbox. Choose another."}
	}
	return checkEnvName(s)
}

func checkEnvName(s string) *problem {
	if len(s) > 128 || !envName.MatchString(s) {
		return &problem{"value_error", "The name must be a valid environment variable name: letters, digits and _, not starting with a digit, at most 128 characters."}
	}
	return nil
}

func checkEnvValue(s string) *problem {
	if len(s) > maxEnvValue {
		return tooLong(maxEnvValue)
	}
	if strings.ContainsRune(s, 0) {
		return &problem{"value_error", "The value must not contain a NUL character."}
	}
	return nil
}

func checkDescription(s string) *problem {
	if utf8.RuneCountInString(s) > maxDescription {
		return tooLong(maxDescription)
	}
	if hasControl(s, "\n\t\r") {
		return &problem{"value_error", "The description must not contain control characters."}
	}
	return nil
}

func checkImage(s string) *problem {
	if len(s) > maxImage || !validImage(s) {
		return &problem{"value_error", "Must be an image reference in lower case, such as debian:13 or registry.example.com:5000/team/image:tag@sha256:…."}
	}
	return nil
}

func checkEmail(s string) *problem {
	bad := &problem{"value_error", "Must be an e-mail address such as ada@example.org."}
	addr, err := mail.ParseAddress(s)
	if len(s) > 254 || err != nil || addr.Address != s || hasControl(s, "") || strings.ContainsAny(s, " \"<>") {
		return bad
	}
	local, domain, _ := strings.Cut(s, "@")
	if len(local) > 64 || strings.Trim(domain, ".-") != domain {
		return bad
	}
	return nil
}

// checkGitName refuses what git would refuse at the first commit.
func checkGitName(s string) *problem {
	if p := checkLine(255)(s); p != nil {
		return p
	}
	if strings.ContainsAny(s, "<>") || strings.Trim(s, " .,:;\"'\\") == "" {
		return &problem{"value_error", "Must be a name that git accepts: no < or >, and not only punctuation."}
	}
	return nil
}

func checkGitEmail(s string) *problem {
	if p := checkLine(254)(s); p != nil {
		return p
	}
	if strings.ContainsAny(s, "<> ") {
		return &problem{"value_error", "Must be an e-mail address without spaces, < and >."}
	}
	return nil
}

func checkURL(s string) *problem {
	if len(s) > maxURL {
		return tooLong(maxURL)
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || hasControl(s, "") || strings.ContainsFunc(s, unicode.IsSpace) {
		return &problem{"url_parsing", "Must be a complete URL such as https://host.example/path."}
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return &problem{"url_scheme", "The URL must start with http:// or https://."}
	}
	if u.User != nil {
		return &problem{"url_parsing", "The URL must not contain a user name or password. Send the key in its own field."}
	}
	if !validPort(u.Port(), u.Host) {
		return &problem{"url_parsing", "The port in the URL must be a number from 1 to 65535."}
	}
	return nil
}

func validPort(port, host string) bool {
	if port == "" {
		return !strings.HasSuffix(host, ":")
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535
}

// checkHost is for a git provider's host: a name, with a port or a scheme if need be.
func checkHost(s string) *problem {
	u, err := url.Parse(withScheme(s))
	if err != nil || len(s) > 300 || checkURL(withScheme(s)) != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return &problem{"value_error", "Must be a host name such as git.example.com or git.example.com:8443."}
	}
	return nil
}

func withScheme(host string) string {
	if strings.Contains(host, "://") {
		return host
	}
	return "https://" + host
}

// origin returns the origin of an address, or "" for the provider's default.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return outbound.Origin(u)
}

// providerOrigin is where a provider's token goes.
func providerOrigin(provider, host string) string {
	if host == "" {
		host = gitprovider.Describe(provider).Host
	}
	if host == "" {
		return ""
	}
	return origin(withScheme(host))
}
