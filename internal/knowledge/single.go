package knowledge

import (
	"errors"
	"path"
	"strings"
)

// Parse reads one microagent of a repository from the text of its file. It
// fails with a sentence for whoever wrote the file.
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
