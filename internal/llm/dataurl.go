package llm

import "strings"

// SplitDataURL splits the data: URL of an image into its media type and its base64
// content. It is not ok for other formats.
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
