package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deckhand/api"
)

const whyImages = "the page and the server must agree on the size of images, or one takes what the other refuses; use imageLimits of " + imageFile

const imageFile = "web/src/lib/images.ts"

var (
	imageLimit = regexp.MustCompile(`const largest = (\d+) << 20;`)
	// imageKinds is how code recognises an image by its type, before it looks at its size.
	imageKinds = regexp.MustCompile(`\(png\|jpeg\|`)
)

// images checks the page's limit on images, and that one file has it.
func images(t *tree) []finding {
	var found []finding
	text, err := fs.ReadFile(t.fsys, imageFile)
	if err != nil {
		return []finding{{imageFile, err.Error(), whyImages}}
	}
	if m := imageLimit.FindSubmatch(text); m == nil || string(m[1]) != fmt.Sprint(api.MaxImage>>20) {
		found = append(found, finding{imageFile, fmt.Sprintf("wanted const largest = %d << 20, as api.MaxImage", api.MaxImage>>20), whyImages})
	}
	for _, p := range t.paths {
		if p == imageFile || !within(p, "web/src") || !slices.Contains([]string{".ts", ".svelte"}, path.Ext(p)) || strings.HasSuffix(p, ".test.ts") {
			continue
		}
		if text, err := fs.ReadFile(t.fsys, p); err == nil && imageKinds.Match(text) {
			found = append(found, finding{p, "has its own rule for images", whyImages})
		}
	}
	return found
}

func TestImages(t *testing.T) { report(t, images(repository(t))) }

func TestImagesCatch(t *testing.T) {
	good := fmt.Sprintf("const largest = %d << 20;\n", api.MaxImage>>20)
	report(t, images(planted(t, map[string]string{imageFile: good, "web/src/a.ts": "isImage(file.type)"})))
	caught(t, images(planted(t, map[string]string{imageFile: "const largest = 10 << 20;\n"})), imageFile, "wanted")
	caught(t, images(planted(t, map[string]string{imageFile: good, "web/src/a.svelte": "/^image\\/(png|jpeg|gif|webp)$/.test(file.type)"})), "web/src/a.svelte", "own rule")
}
