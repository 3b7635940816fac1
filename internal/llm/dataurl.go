package llm

import "strings"

// SplitDataURL takes an image's data: URL apart: its media type and its content,
// which stays in base64. What is written in another way is not ok.
func SplitDataURL(url string) (mediaType, content string, ok bool) {
	rest, isData := strings.CutPrefix(url, "data:")
	head, content, hasComma := strings.Cut(rest, ",")
	mediaType, isBase64 := strings.CutSuffix(head, ";base64")
	mediaType, _, _ = strings.Cut(mediaType, ";") // without parameters
	ok = isData && hasComma && isBase64 && content != "" && strings.HasPrefix(mediaType, "image/")
	if !ok {
		return "", "", false
	}
	return mediaType, content, true
}
