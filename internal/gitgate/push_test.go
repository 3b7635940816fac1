package gitgate

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// line writes one as git does, with its length before it.
func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

func TestReadPush(t *testing.T) {
	const zero, one = "0000000000000000000000000000000000000000", "1111111111111111111111111111111111111111"
	command := func(ref, can string) string { return line(zero + " " + one + " refs/heads/" + ref + "\x00" + can) }
	for name, test := range map[string]struct{ body, refused string }{
		"a branch":                {command("mend", " report-status-v2 side-band-64k agent=git/2.39") + "0000PACK", ""},
		"two, and a shallow one":  {line("shallow "+one) + command("mend", " report-status") + line(zero+" "+one+" refs/heads/b") + "0000PACK", ""},
		"nothing, to ask":         {"0000", ""},
		"a name that looks so":    {command("push-options", " report-status") + "0000PACK", ""},
		"options":                 {command("mend", " report-status push-options") + "0000" + line("repo.private=false") + "0000PACK", "push options"},
		"options, said later":     {command("mend", " report-status") + command("b", "push-options") + "0000" + line("x") + "0000", "push options"},
		"options, behind shallow": {line("shallow "+one) + command("mend", "push-options") + "0000", "push options"},
		"options, signed":         {line("push-cert\x00push-options") + line("certificate version 0.1\n") + line("push-cert-end\n") + "0000", "push options"},
		"nothing at all":          {"", "not a push"},
		"no end":                  {command("mend", " report-status"), "not a push"},
		"a line cut off":          {command("mend", " report-status")[:30], "not a push"},
		"another protocol":        {"0001" + command("mend", ""), "not a push"},
		"no length":               {"PACKPACK", "not a push"},
		"a length with a sign":    {"+00a123456", "not a push"},
		"too many":                {strings.Repeat(line(strings.Repeat("x", 60000)), 40), "too many"},
	} {
		in := strings.NewReader(test.body)
		head, err := ReadPush(iotest.OneByteReader(in))
		switch rest, _ := io.ReadAll(in); {
		case test.refused == "" && (err != nil || string(head)+string(rest) != test.body || !strings.HasSuffix(string(head), "0000")):
			t.Errorf("%s: %q %v", name, head, err)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHideOptions(t *testing.T) {
	for _, c := range [][2]string{
		{"001f# service=git-receive-pack\n0000", "001f# service=git-receive-pack\n0000"},
		{"00b0 refs/heads/push-options\x00report-status push-options atomic\n", "00b0 refs/heads/push-options\x00report-status push-refused atomic\n"},
		{"00b0 refs/heads/main\x00atomic push-options\n", "00b0 refs/heads/main\x00atomic push-refused\n"},
		{"", ""},
	} {
		if got := string(HideOptions([]byte(c[0]))); got != c[1] {
			t.Errorf("%q", got)
		}
	}
}

func FuzzReadPush(f *testing.F) {
	f.Add(line("a\x00push-options") + "0000")
	f.Add("0000PACK")
	f.Fuzz(func(t *testing.T, body string) {
		head, err := ReadPush(strings.NewReader(body))
		if err == nil && (!strings.HasPrefix(body, string(head)) || !strings.HasSuffix(string(head), "0000")) {
			t.Errorf("%q of %q", head, body)
		}
	})
}
