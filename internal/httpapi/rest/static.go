package rest

import (
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

const (
	// IndexFile is the page of a folder.
	IndexFile = "index.html"
	// Immutable is for files whose names change with their content.
	Immutable = "public, max-age=2592000, immutable"
)

// Accepts says whether the client takes a content coding.
func Accepts(r *http.Request, coding string) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		text, ok := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		q, err := strconv.ParseFloat(text, 64)
		return !ok || err == nil && q > 0
	}
	return false
}

// webTypes are what browsers insist on. The system's own table differs from machine to machine.
var webTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json", ".wasm": "application/wasm",
	".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif", ".ico": "image/x-icon",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".txt": "text/plain; charset=utf-8", ".xml": "application/xml",
}

func ContentType(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if t := webTypes[ext]; t != "" {
		return t
	}
	if t := mime.TypeByExtension(ext); t != "" {
		return t
	}
	return "application/octet-stream"
}
