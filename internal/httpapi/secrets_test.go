package httpapi

import (
	"strings"
	"sync"
	"testing"

	"deckhand/api"
)

const toSecrets = "/api/secrets"

func TestSecretsOverHTTP(t *testing.T) {
	r := newRig(t)
	r.do("GET", toSecrets, "").want(t, 200, `{"custom_secrets":[]}`)
	// Nothing is stored, so nothing is found, and nothing comes into being by looking.
	r.do("PUT", toSecrets+"/NPM", `{"name":"NPM"}`).want(t, 404, `"error":"Secret with ID NPM not found"`)
	r.do("DELETE", toSecrets+"/NPM", "").want(t, 404, `"error":"Secret with ID NPM not found"`)
	r.do("GET", toSettings, "").want(t, 404)

	if a := r.do("POST", toSecrets, `{"name":"NPM","value":"`+canary+`","description":"publish key"}`).want(t, 201); a.body != `{"message":"Secret created successfully"}` {
		t.Errorf("%s", a.body)
	}
	r.do("POST", toSecrets, `{"name":"DB","value":"`+canary+`-2","description":null}`).want(t, 201)
	r.do("POST", toSecrets, `{"name":"NPM","value":"other"}`).want(t, 400, `"message":"Secret NPM already exists"`)
	if a := r.do("GET", toSecrets, "").want(t, 200); a.body != `{"custom_secrets":[{"name":"DB","description":null},{"name":"NPM","description":"publish key"}]}` {
		t.Errorf("%s", a.body)
	}
	r.as("bob", "GET", toSecrets, "").want(t, 200, `[]`)
	r.as("bob", "DELETE", toSecrets+"/NPM", "").want(t, 404)

	r.do("PUT", toSecrets+"/NPM", `{"name":"DB"}`).want(t, 400, "Secret DB already exists")
	r.do("PUT", toSecrets+"/NPM", `{"name":"NPM_TOKEN"}`).want(t, 200, `{"message":"Secret updated successfully"}`)
	r.do("PUT", toSecrets+"/NPM", `{"name":"NPM_TOKEN"}`).want(t, 404)
	r.do("PUT", toSecrets+"/DB", `{"name":"DB","description":"the database"}`).want(t, 200)
	r.do("GET", toSecrets, "").want(t, 200, `{"name":"DB","description":"the database"},{"name":"NPM_TOKEN","description":"publish key"}`)
	s, err := r.api.Conversations.Settings.Get(t.Context(), "ada")
	if err != nil || s.CustomSecrets["NPM_TOKEN"].Value.Reveal() != canary || s.CustomSecrets["DB"].Value.Reveal() != canary+"-2" {
		t.Errorf("the values did not stay: %v", err)
	}
	r.do("PUT", toSecrets+"/DB", `{"name":"DB","description":null}`).want(t, 200)
	r.do("DELETE", toSecrets+"/NPM_TOKEN", "").want(t, 200, `{"message":"Secret deleted successfully"}`)
	r.do("DELETE", toSecrets+"/NPM_TOKEN", "").want(t, 404)
	r.do("GET", toSecrets, "").want(t, 200, `{"custom_secrets":[{"name":"DB","description":null}]}`)
	if strings.Contains(r.logs.String(), canary) {
		t.Error("a value is in the log")
	}
}

func TestSecretsThatAreRefused(t *testing.T) {
	r := newRig(t)
	r.do("POST", toSecrets, `{"name":"OLD","value":"x"}`).want(t, 201)
	for body, at := range map[string]string{
		`{"name":"1A","value":"x"}`: `"name"`, `{"name":"A-B","value":"x"}`: `"name"`, `{"name":"a b","value":"x"}`: `"name"`, `{"name":"PATH","value":"x"}`: `"name"`,
		`{"name":"` + strings.Repeat("A", 129) + `","value":"x"}`: `"name"`, `{"value":"x"}`: `"name"`, `{"name":"A"}`: `"value"`, `{"name":"A","value":""}`: `"value"`,
		`{"name":"A","value":7}`: `"value"`, `{"name":"A","value":"` + strings.Repeat("x", 1<<17) + `"}`: `"value"`, `{"name":"A","value":"` + canary + `","vlaue":"x"}`: `"vlaue"`,
		`{"name":"A","value":"x","description":"` + strings.Repeat("d", 2000) + `"}`: `"description"`,
	} {
		if a := r.do("POST", toSecrets, body).want(t, 422, `["body",`+at+`]`); strings.Contains(a.body, canary) {
			t.Errorf("the value is repeated: %s", a.body)
		}
	}
	for body, at := range map[string]string{`{"name":"1A"}`: `"name"`, `{}`: `"name"`, `{"name":"A","value":"x"}`: `"value"`, `{"name":"A","description":"\u0001"}`: `"description"`} {
		r.do("PUT", toSecrets+"/OLD", body).want(t, 422, `["body",`+at+`]`)
	}
	r.do("GET", toSecrets, "").want(t, 200, `{"custom_secrets":[{"name":"OLD","description":null,"warning":"This secret is stored and works, but it is not masked in output, because it is shorter than 8 characters."}]}`)
}

// Of many that want the same name, one gets it, and no secret is lost.
func TestSecretRenamesAreAtomic(t *testing.T) {
	r := newRig(t)
	names := []string{"A", "B", "C", "D"}
	for _, n := range names {
		r.do("POST", toSecrets, `{"name":"`+n+`","value":"`+n+`"}`).want(t, 201)
	}
	var wg sync.WaitGroup
	statuses := make(chan int, len(names))
	for _, n := range names {
		wg.Go(func() { statuses <- r.do("PUT", toSecrets+"/"+n, `{"name":"ONE"}`).status })
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for s := range statuses {
		count[s]++
	}
	left := decoded[api.Secrets](t, r.do("GET", toSecrets, ""))
	if count[200] != 1 || count[400] != 3 || len(left.CustomSecrets) != 4 {
		t.Errorf("%v %+v", count, left)
	}
}
