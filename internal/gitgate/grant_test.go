package gitgate_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/gitgate"
)

func TestCredentials(t *testing.T) {
	pair := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		provider, token string
		ownHost         bool
		want            []string
	}{
		{"github", "t0ken", false, []string{pair("x-access-token:t0ken")}},
		{"gitlab", "t0ken", true, []string{pair("oauth2:t0ken")}},
		{"gitea", "t0ken", true, []string{pair("oauth2:t0ken")}},
		{"bitbucket", "ada:t0ken", false, []string{pair("ada:t0ken")}},
		{"bitbucket", "t0ken", false, []string{pair("x-token-auth:t0ken"), pair("x-bitbucket-api-token-auth:t0ken")}},
		{"bitbucket", "t0ken", true, []string{"Bearer t0ken", pair("x-token-auth:t0ken")}},
		{"enterprise_sso", "t0ken", true, []string{"Bearer t0ken", pair("oauth2:t0ken")}},
	} {
		g := gitgate.Grant{Credentials: gitgate.Credentials(c.provider, c.token, c.ownHost)}
		var got []string
		for _, s := range g.Credentials {
			got = append(got, s.Reveal())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", c.provider, got, c.want)
		}
		all := strings.Join(got, " ") + " t0ken"
		if hidden := g.Hide(all); strings.Contains(hidden, "t0ken") || strings.Contains(hidden, base64.StdEncoding.EncodeToString([]byte("oauth2:t0ken"))) {
			t.Errorf("%s: %q becomes %q", c.provider, all, hidden)
		}
		if shown := fmt.Sprintf("%v %+v %#v", g, g, g); strings.Contains(shown, "t0ken") {
			t.Errorf("printed: %s", shown)
		}
	}
}

func TestMayWrite(t *testing.T) {
	for _, c := range []struct {
		grant      gitgate.Grant
		repository string
		want       bool
	}{
		{gitgate.Grant{}, "octo/app", true},
		{gitgate.Grant{Confined: true, Own: "octo/app"}, "octo/app", true},
		{gitgate.Grant{Confined: true, Own: "octo/app"}, "Octo/App", true},
		{gitgate.Grant{Confined: true, Own: "octo/app"}, "scm/octo/app", true},
		{gitgate.Grant{Confined: true, Own: "octo/app"}, "octo/app2", false},
		{gitgate.Grant{Confined: true, Own: "octo/app"}, "x/octo/app", false},
		{gitgate.Grant{Confined: true}, "octo/app", false},
		{gitgate.Grant{Confined: true}, "scm/", false},
	} {
		if got := c.grant.MayWrite(c.repository); got != c.want {
			t.Errorf("%+v %s: %v", c.grant, c.repository, got)
		}
	}
}

func TestReadBatch(t *testing.T) {
	for body, write := range map[string]bool{
		`{"operation":"download","objects":[{"oid":"a","size":1}]}`:                            false,
		`{"operation":"upload","transfers":["basic"],"ref":{"name":"refs/heads/x"}}`:           true,
		`{"operation":"download","Operation":"upload","OPERATION":"upload","private_token":1}`: false,
		`{"operation":"download","operation":"upload"}`:                                        true,
	} {
		clean, got, err := gitgate.ReadBatch([]byte(body))
		if err != nil || got != write {
			t.Errorf("%s: %v %v", body, got, err)
		}
		var sent map[string]any
		if err := json.Unmarshal(clean, &sent); err != nil {
			t.Fatal(err)
		}
		if op := sent["operation"]; (op == "upload") != write || strings.Contains(string(clean), "OPERATION") || strings.Contains(string(clean), "private_token") {
			t.Errorf("%s became %s", body, clean)
		}
	}
	for _, body := range []string{``, `[]`, `null`, `{}`, `{"operation":1}`, `{"operation":"delete"}`, `{"operation":"download"} x`, `{"Operation":"upload"}`} {
		if clean, _, err := gitgate.ReadBatch([]byte(body)); err == nil {
			t.Errorf("%s became %s", body, clean)
		}
	}
}

// Hosts hand the client's own credentials back to it with every object.
func TestWriteBatch(t *testing.T) {
	g := gitgate.Grant{Credentials: gitgate.Credentials("gitea", "t0ken", true)}
	auth := g.Credentials[0].Reveal()
	site := gitgate.Site{Scheme: "https", Host: "git.example"}
	action := func(href string, header map[string]string) string {
		raw, err := json.Marshal(map[string]any{"transfer": "basic", "objects": []any{map[string]any{"oid": oid, "size": 12,
			"actions": map[string]any{"download": map[string]any{"href": href, "header": header, "expires_in": 60}},
			"_links":  map[string]any{"download": map[string]any{"href": href, "header": header}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	here := "https://git.example/octo/app.git/info/lfs/objects/" + oid
	inside := "http://" + gitgate.Name + app + "/info/lfs/objects/" + oid
	for _, c := range []struct {
		name, href string
		header     map[string]string
		want       string
		kept       string
	}{
		{"at the host", here, map[string]string{"Authorization": auth, "Accept": "x/y"}, inside, "x/y"},
		{"with a token of its own", here, map[string]string{"authorization": "Bearer short-lived"}, inside, ""},
		{"the host's other spelling", "https://GIT.example:443/octo/app.git/info/lfs/objects/" + oid, nil, inside, ""},
		{"at a store", "https://store.example/x?sig=1&a=<b>", map[string]string{"Authorization": "RemoteAuth short-lived"}, "https://store.example/x?sig=1&a=<b>", "RemoteAuth short-lived"},
		{"at a store, with our token", "https://store.example/x", map[string]string{"Authorization": auth, "X-Token": "t0ken"}, "https://store.example/x", ""},
		{"the token in the address", "https://git.example/octo/app.git/x?token=t0ken", nil, "https://git.example/octo/app.git/x?token=**********", ""},
		{"with another scheme", strings.Replace(here, "https", "http", 1), map[string]string{"Authorization": auth}, strings.Replace(here, "https", "http", 1), ""},
	} {
		out, err := g.WriteBatch(site, []byte(action(c.href, c.header)))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Transfer string
			Objects  []struct {
				OID     string
				Size    int
				Actions map[string]struct {
					Href   string
					Header map[string]string
				}
			}
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		o := got.Objects[0]
		if header := o.Actions["download"].Header; c.kept == "" && len(header) > 0 {
			t.Errorf("%s: the client is told to send %v", c.name, header)
		}
		if o.Actions["download"].Href != c.want || o.OID != oid || o.Size != 12 || got.Transfer != "basic" || !strings.Contains(string(out), "expires_in") {
			t.Errorf("%s: %s", c.name, out)
		}
		if strings.Contains(string(out), "t0ken") || strings.Contains(string(out), strings.TrimPrefix(auth, "Basic ")) || !strings.Contains(string(out), c.kept) || strings.Contains(string(out), "_links") {
			t.Errorf("%s: %s", c.name, out)
		}
	}
	for _, body := range []string{"", "<html>", `{"objects":1}`, `{"objects":[{"actions":[]}]}`} {
		if out, err := g.WriteBatch(site, []byte(body)); err == nil {
			t.Errorf("%q became %s", body, out)
		}
	}
}
