package v0

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checkImage accepts what a model can be shown: an address on the web, or the image
// itself. Other schemes would name files of the server or of whoever reads along.
func checkImage(s string) (typ, msg string) {
	if data, ok := cutFold(s, "data:image/"); ok {
		switch {
		case longer(s, MaxImageData):
			return "string_too_long", "An inline image has at most " + decimal(MaxImageData) + " characters."
		case !inline(data):
			return "url_parsing", "An inline image is data:image/TYPE;base64,DATA, and DATA must be valid base64."
		}
		return printable(s)
	}
	if longer(s, MaxURL) {
		return "string_too_long", "The address of an image has at most " + decimal(MaxURL) + " characters."
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "url_parsing", "This is not a valid URL."
	case u.Scheme != "http" && u.Scheme != "https":
		return "url_scheme", "An image is an http or https URL, or inline as data:image/TYPE;base64,DATA."
	case u.Host == "":
		return "url_parsing", "The URL must have a host."
	}
	return printable(s)
}

// inline reports whether what follows data:image/ holds an image in base64, with or
// without padding.
func inline(s string) bool {
	kind, data, ok := strings.Cut(s, ",")
	_, coded := cutFold(kind[max(0, len(kind)-len(";base64")):], ";base64")
	if !ok || !coded || data == "" || strings.ContainsAny(data, "\r\n") { // which decoders skip
		return false
	}
	_, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	return err == nil && strings.Count(data, "=") <= 2
}

// checkFile accepts the name or address of a file that was uploaded before. What it
// means is found out where files are.
func checkFile(s string) (typ, msg string) {
	switch {
	case s == "":
		return "string_too_short", "The address of a file is not empty."
	case longer(s, MaxURL):
		return "string_too_long", "The address of a file has at most " + decimal(MaxURL) + " characters."
	}
	return "", ""
}

// printable refuses control characters and blanks, which no URL has and which
// different readers skip differently.
func printable(s string) (typ, msg string) {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return "url_parsing", "A URL has no blanks and no control characters."
		}
	}
	return "", ""
}

// cutFold is strings.CutPrefix without regard to case, as URLs want it.
func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

func decimal(n int) string { return strconv.Itoa(n) }

// unquote is for values that were parsed before, so it cannot fail.
func unquote(v jsontext.Value) string {
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(b)
}

// CheckImageURL says why an image may not be attached from this address; both are empty if it may.
func CheckImageURL(s string) (typ, msg string) { return checkImage(s) }
