package secret

import (
	"strings"
	"testing"
)

// Values that can stand in any text by chance are not masked, and it is said why.
func TestWeakness(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "shorter than 8", "import": "shorter than 8", "content": "shorter than 8", "a1b2c3d": "shorter than 8",
		Mask: "mask", "----------------": "different characters", "abababababab": "different characters",
		"function": "common", "execute_bash": "common", "awaiting_user_input": "common", "user_input": "common",
		"/workspace": "common", "/workspace/": "common", "/workspace/src/app": "common", "/usr/local/bin": "common",
		"Undefined": "common", "localhost": "common", "password": "common", "12345678": "common",
		"a1b2c3d4": "", "hunter2-hunter2": "", "ghp_0123456789abcdef": "", "correct horse battery staple": "",
		"/workspace/s3cr3t-folder": "", "passw0rd!": "",
	} {
		if got := Weakness(value); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, wanted %q", value, got, want)
		}
	}
}
