package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The variables of commands are set on the page, or the page links to where they are explained.
func TestVariablesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	used := regexp.MustCompile(`\$\{?(BASE|KEY|ID)\b`)
	for _, page := range documents(t) {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		visible := regexp.MustCompile(`(?s)<!--.*?-->`).ReplaceAllString(string(text), "")
		seen := map[string]bool{}
		for _, m := range used.FindAllStringSubmatch(visible, -1) {
			if name := m[1]; !seen[name] {
				seen[name] = true
				set := regexp.MustCompile(`(?m)^ *(export )?` + name + `=`).MatchString(visible)
				if !set && !strings.Contains(visible, "first-steps.md#variables") {
					t.Errorf("%s uses $%s, but neither sets it nor links to first-steps.md#variables", page, name)
				}
			}
		}
	}
}
