package config

import "testing"

// The flags of printed commands work in a shell, and contain no password.
func TestFlagsOfPrintedCommands(t *testing.T) {
	const secret = "postgres://u:hunter2@h/d"
	for _, c := range []struct {
		env   string
		flags DataFlags
		want  string
	}{
		{"", DataFlags{DataDir: "data"}, "--data-dir data"},
		{"", DataFlags{DataDir: "it's here"}, `--data-dir 'it'\''s here'`},
		{"", DataFlags{DataDir: "d", DatabaseURLFile: "/my file"}, "--data-dir d --database-url-file '/my file'"},
		{"", DataFlags{DataDir: "d", DatabaseURL: "sqlite:x.db"}, "--data-dir d --database-url sqlite:x.db"},
		{"", DataFlags{DataDir: "d", DatabaseURL: "postgres:///d?host=/s&user=u"}, "--data-dir d --database-url 'postgres:///d?host=/s&user=u'"},
		{"", DataFlags{DataDir: "d", DatabaseURL: secret}, "--data-dir d --database-url postgres://u:xxxxx@h/d"},
		{secret, DataFlags{DataDir: "d", DatabaseURL: secret}, "--data-dir d"},
	} {
		t.Setenv("DECKHAND_DATABASE_URL", c.env)
		if got := c.flags.Flags(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
