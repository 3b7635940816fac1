package gitprovider

import "testing"

func TestRequestName(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]string{
		"github": "Pull request #7 of octo/app", "gitlab": "Merge request !7 of octo/app", "gitea": "Pull request #7 of octo/app", "unheard-of": "Pull request #7 of octo/app",
	} {
		if got := RequestName(provider, "octo/app", 7); got != want {
			t.Errorf("%s: %s", provider, got)
		}
	}
}
