package chromium

import (
	"strings"
	"testing"
)

const id = "/devtools/browser/4dc3c5df-2692-497b-a04d-1deaa017f7f2"

func TestParse(t *testing.T) {
	for text, want := range map[string]Place{
		"/workspace\n":                       {Workspace: "/workspace"},
		"/workspace\n38285\n" + id:           {38285, id, "/workspace"},
		"/workspace\n38285\n":                {Workspace: "/workspace"},
		"/workspace\n0\n" + id:               {Workspace: "/workspace"},
		"/workspace\n70000\n" + id:           {Workspace: "/workspace"},
		"/workspace\nx\n" + id:               {Workspace: "/workspace"},
		"/workspace\n80\n/json/version":      {Workspace: "/workspace"},
		"/workspace\n80\n@evil.test" + id:    {Workspace: "/workspace"},
		"/workspace\n80\n" + id + "/../../x": {Workspace: "/workspace"},
		"/workspace\n80\n/devtools/browser/" + strings.Repeat("a", 65): {Workspace: "/workspace"},
		"": {},
	} {
		if got := parse(text); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
	if got := (Place{Port: 80, Path: id}).URL(); got != "ws://127.0.0.1:80"+id {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/workspace\n38285\n" + id)
	f.Fuzz(func(t *testing.T, text string) {
		p := parse(text)
		if p.Port < 0 || p.Port > 65535 || (p.Port == 0) != (p.Path == "") || strings.ContainsAny(p.Path, "@?#. \n") {
			t.Errorf("%+v", p)
		}
	})
}

func TestFolder(t *testing.T) {
	if again := folder("a"); folder("a") == folder("b") || folder("a") != again || strings.ContainsAny(folder("a b/../'\"$x"), " '\"$.") {
		t.Error(folder("a b/../'\"$x"))
	}
}
