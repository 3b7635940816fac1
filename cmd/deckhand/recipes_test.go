package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"deckhand/internal/llm/llmtest"
	"deckhand/internal/soak"
)

const recipes = "../../examples/ci"

// recipe is what the recipes have in common: a list of scripts.
type recipe struct {
	Jobs map[string]struct {
		Steps []struct{ Run string }
	}
	Deckhand struct {
		Script []string
	}
}

// script is the part of a recipe that runs the agent and what follows.
func (r recipe) script() string {
	for _, job := range r.Jobs {
		for _, s := range job.Steps {
			if strings.Contains(s.Run, "deckhand run") {
				return s.Run
			}
		}
	}
	return strings.Join(r.Deckhand.Script, "\n")
}

// The recipes for CI are linted, and their scripts run on a real repository.
func TestRecipes(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "runs the scripts of CI recipes")
	schema, err := os.ReadFile(filepath.Join(recipes, "review.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"github-actions.yml", "gitea-actions.yml", "gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(recipes, name)
			if strings.HasSuffix(name, "-actions.yml") {
				lint := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "actionlint", "-shellcheck=", file)
				if out, err := lint.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			} else {
				lintGitLab(t, file)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r recipe
			if err := yaml.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			for answer, passes := range map[string]bool{`{"ok":true,"findings":[]}`: true, `{"ok":false,"findings":[{"file":"a.txt","line":1,"problem":"p"}]}`: false, "no JSON": false} {
				d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return done(answer) })
				d.repository(string(schema))
				out, err := d.recipe(r.script())
				if (err == nil) != passes {
					t.Errorf("%s: %v\n%s", answer, err, out)
				}
				holds(t, string(d.server.Asked()[0].Body), "Review this change", "+changed")
			}
		})
	}
}

// repository makes the folder of the desk a clone with a change on a branch.
func (d *desk) repository(schema string) {
	d.t.Helper()
	script := `git init -q -b main . && git config user.email a@example.org && git config user.name a &&
mkdir .deckhand && printf %s "$1" > .deckhand/review.json && echo first > a.txt && git add . && git commit -qm first &&
git update-ref refs/remotes/origin/main HEAD && git checkout -qb topic && echo changed > a.txt && git commit -qam second`
	cmd := exec.Command("sh", "-c", script, "sh", schema)
	cmd.Dir = d.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%v %s", err, out)
	}
}

// recipe runs the script of a recipe as a runner does.
func (d *desk) recipe(script string) (string, error) {
	d.t.Helper()
	bin := d.t.TempDir()
	program, err := filepath.Abs(programFile())
	if err == nil {
		err = os.Symlink(program, filepath.Join(bin, "deckhand"))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = d.dir
	cmd.Env = append(slices.Clone(d.command("x").Env), "PATH="+bin+":"+os.Getenv("PATH"), "DECKHAND_DATA_DIR="+d.data, "DECKHAND_MODEL=openai/gpt-4o", "DECKHAND_BASE_URL="+d.server.URL+"/v1",
		"DECKHAND_SANDBOX=host", "DECKHAND_RUNNER="+withSandbox(d.t, "host")[slices.Index(withSandbox(d.t, "host"), "--runner-path")+1],
		"BASE=main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main", "GITHUB_STEP_SUMMARY="+filepath.Join(bin, "summary"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lintGitLab checks the keys of a job, for which there is no linter without a server.
func lintGitLab(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var jobs map[string]map[string]any
	if err := yaml.UnmarshalWithOptions(text, &jobs, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	known := []string{"stage", "image", "timeout", "rules", "variables", "before_script", "script", "artifacts"}
	for name, job := range jobs {
		for key := range job {
			if !slices.Contains(known, key) {
				t.Errorf("%s: %s has the unknown key %s", file, name, key)
			}
		}
		if len(job["script"].([]any)) == 0 {
			t.Errorf("%s: %s does nothing", file, name)
		}
	}
}
