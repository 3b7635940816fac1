package bashstate

import "testing"

// Looking for words first must not miss what the pattern finds.
func TestMayHook(t *testing.T) {
	for text, want := range map[string]bool{
		"trap 'echo bye' EXIT": true, "source ./env": true, "x=$(eval y)": true, "BASH_XTRACEFD=3": true, ". ./env": true, "a;. b": true,
		"set -o vi": true, "shopt -s x; set -o emacs": true, "echo hi": false, "ls .": false, "set -e": false, "cat vi": false, "./run": false, "traps": false,
	} {
		if MayHook(text) != want {
			t.Errorf("MayHook(%q) is %t", text, !want)
		}
	}
}

func TestTraceTo(t *testing.T) {
	for text, want := range map[string]string{"exec 7>log; BASH_XTRACEFD=7; set -x": "7", "echo BASH_XTRACEFD": "", "X=1": "", "BASH_XTRACEFD=": ""} {
		if got := TraceTo(text); got != want {
			t.Errorf("TraceTo(%q) is %q", text, got)
		}
	}
}
