package v0

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checkImage accepts images that a model can be shown: a web URL, or inline data that is
// an image by its content. It is the only rule for images from users.
func checkImage(s string) (typ, msg string) {
	if typ, msg = checkImageForm(s); typ != "" {
		return typ, msg
	}
	if data, ok := cutFold(s, "data:image/"); ok {
		switch http.DetectContentType(start(data)) {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
		default:
			return "value_error", "The content of an inline image must be a PNG, JPEG, GIF or WebP image."
		}
	}
	return "", ""
}

// checkImageForm checks only the form of a URL, for imported events, which cannot be
// corrected. Other schemes could refer to files of the server or the client.
func checkImageForm(s string) (typ, msg string) {
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

// start decodes as much of an inline image as is needed to detect its type.
func start(s string) []byte {
	_, data, _ := strings.Cut(s, ",")
	data = data[:min(len(data), base64.RawStdEncoding.EncodedLen(510))] // a multiple of 3, so that no group is split
	content, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	return content
}

// inline reports whether the text after data:image/ is an image in base64, with or
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

// checkFile accepts the name or URL of an uploaded file. It is resolved where the files
// are.
func checkFile(s string) (typ, msg string) {
	switch {
	case s == "":
		return "string_too_short", "The address of a file is not empty."
	case longer(s, MaxURL):
		return "string_too_long", "The address of a file has at most " + decimal(MaxURL) + " characters."
	}
	return "", ""
}

// printable rejects control characters and spaces, which are invalid in URLs and which
// parsers skip in different ways.
func printable(s string) (typ, msg string) {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return "url_parsing", "A URL has no blanks and no control characters."
		}
	}
	return "", ""
}

// cutFold is strings.CutPrefix ignoring case.
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

// CheckImageURL says why an image URL is rejected; both results are empty if it is accepted.
func CheckImageURL(s string) (typ, msg string) { return checkImage(s) }
