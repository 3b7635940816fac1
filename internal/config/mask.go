package config

import (
	"net/url"
	"regexp"
	"strings"
)

// masked replaces secrets.
const masked = "xxxxx"

// redacted returns a value with its secrets masked: the password of a URL or connection string, and the values of options such as
// token=. The value may be invalid: if it is ambiguous, everything before the last @ is masked.
func redacted(value string) string {
	return maskOptions(maskUser(value))
}

// maskUser masks the password in USER:PASSWORD@HOST, or everything up to the last @ if the value is ambiguous.
func maskUser(value string) string {
	last := strings.LastIndexByte(value, '@')
	if last < 0 {
		return value
	}
	start := strings.Index(value, "://") + len("://")
	if start < len("://") {
		if !strings.Contains(value[:last], ":") || option.MatchString(value[:last]) { // an e-mail address, or a connection string
			return value
		}
		return masked + value[last:]
	}
	u, err := url.Parse(value)
	authority := start + strings.IndexAny(value[start:]+"/", "/?#")
	at := strings.LastIndexByte(value[:authority], '@')
	switch {
	case start > last:
		return value
	case err != nil || u.Scheme == "nats" || u.Scheme == "tls" || !inOption(value[authority:]): // NATS may have several servers, or a token in place of a user
		return value[:start] + masked + value[last:]
	}
	if at < start {
		return value // only options have an @
	}
	name, _, password := strings.Cut(value[start:at], ":")
	switch {
	case password:
		return value[:start] + name + ":" + masked + value[at:]
	case strings.HasPrefix(u.Scheme, "http"): // a token
		return value[:start] + masked + value[at:]
	}
	return value
}

// inOption reports whether every @ in the part of a URL after the host is in the value of an option.
func inOption(rest string) bool {
	path, query, _ := strings.Cut(rest, "?")
	if strings.ContainsAny(path, "@#") || strings.Contains(query, "#") {
		return false
	}
	for part := range strings.SplitSeq(query, "&") {
		if name, _, ok := strings.Cut(part, "="); strings.Contains(part, "@") && (!ok || strings.Contains(name, "@")) {
			return false
		}
	}
	return true
}

// Options of URLs and connection strings.
var (
	option       = regexp.MustCompile(`([^\s=&?;#'"]+)(\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&;#]*)`)
	secretOption = regexp.MustCompile(`(?i)passw|pwd|secret|token|credential|signature|authoriz|api.?key|^(?:pass|key|sig|auth|access.?key)$`)
)

// maskOptions masks the values of options with secret names.
func maskOptions(value string) string {
	return option.ReplaceAllStringFunc(value, func(found string) string {
		part := option.FindStringSubmatch(found)
		name := part[1]
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if !secretOption.MatchString(name) {
			return found
		}
		return part[1] + part[2] + masked
	})
}
