package knowledge

import (
	"errors"
	"path"
	"strings"
)

// Parse parses a microagent of a repository. Its error is a sentence for the author of
// the file.
func Parse(file, text string) (Microagent, error) {
	cut := text
	if len(cut) > maxFile {
		cut = cut[:maxFile]
	}
	d := parse(strings.ToValidUTF8(cut, "\ufffd"))
	if d.wrong != "" {
		return Microagent{}, errors.New(d.wrong)
	}
	if len(cut) < len(text) {
		d.body += note(file)
	}
	base := path.Base(file)
	return microagent(strings.TrimSuffix(base, path.Ext(base)), file, Repository, d), nil
}
