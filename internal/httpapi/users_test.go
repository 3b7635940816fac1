package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

func TestUsers(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) { c.Account.Usage.Limit = 20e9 }})
	r.settle("ada")
	r.create(`{}`)
	r.spent("ada", session.MonthOf(time.Now()), 0.25e9, 0)
	users := decoded[[]api.User](t, r.as("admin", "GET", "/api/users", "").want(t, 200))
	if len(users) != 3 || users[0].Name != "ada" || users[1].Name != "admin" || users[2].Name != "bob" {
		t.Fatalf("got %+v", users)
	}
	if ada := users[0]; ada.Admin || ada.Disabled || ada.Conversations != 2 || ada.Spent != 0.25 || ada.Budget == nil || *ada.Budget != 20 || time.Since(ada.CreatedAt) > time.Hour {
		t.Errorf("got %+v", ada)
	}
	if admin := users[1]; !admin.Admin || admin.Conversations != 0 || admin.Spent != 0 {
		t.Errorf("got %+v", admin)
	}
}

func TestCreateUser(t *testing.T) {
	r := newRig(t)
	made := decoded[api.User](t, r.as("admin", "POST", "/api/users", `{"name":"carol","admin":true}`).want(t, 201, `"budget":null`, `"conversations":0`, `"spent":0`))
	if made.Name != "carol" || !made.Admin || made.Disabled {
		t.Errorf("got %+v", made)
	}
	decoded[api.User](t, r.as("admin", "POST", "/api/users", `{"name":"dan"}`).want(t, 201, `"admin":false`))
	r.as("admin", "POST", "/api/users", `{"name":"carol"}`).want(t, 409)
	for _, body := range []string{`{}`, `{"name":""}`, `{"name":"Carol"}`, `{"name":"../x"}`, `{"name":null}`, `{"name":"x","admin":null}`, `{"name":"x","more":1}`, `{"name":"` + strings.Repeat("n", 65) + `"}`} {
		r.as("admin", "POST", "/api/users", body).want(t, 422)
	}
	// A new user can be given a key, and can then log in.
	key := decoded[api.NewKey](t, r.as("admin", "POST", "/api/keys", `{"user":"carol","admin":true}`).want(t, 201))
	r.do("GET", "/api/users", "", "X-Session-API-Key", key.Secret).want(t, 200)
}

func TestUsersAreForAdmins(t *testing.T) {
	r := newRig(t)
	for _, c := range [][3]string{{"GET", "/api/users", ""}, {"POST", "/api/users", `{"name":"eve"}`}, {"PATCH", "/api/users/bob", `{"disabled":true}`}, {"PATCH", "/api/users/nobody", `{"disabled":true}`}} {
		r.as("ada", c[0], c[1], c[2]).want(t, 403)
		r.do(c[0], c[1], c[2], "X-Session-API-Key", "").want(t, 401)
	}
	if len(decoded[[]api.User](t, r.as("admin", "GET", "/api/users", "").want(t, 200))) != 3 {
		t.Error("a user was made")
	}
}

func TestDisableUser(t *testing.T) {
	r := newRig(t)
	r.as("admin", "PATCH", "/api/users/bob", `{"disabled":true}`).want(t, 200, `"name":"bob"`, `"disabled":true`)
	r.as("bob", "GET", "/api/me", "").want(t, 401)
	r.as("admin", "PATCH", "/api/users/bob", `{}`).want(t, 200, `"disabled":true`)
	r.as("admin", "PATCH", "/api/users/bob", `{"disabled":false}`).want(t, 200, `"disabled":false`)
	r.as("bob", "GET", "/api/me", "").want(t, 200)
	r.as("admin", "PATCH", "/api/users/nobody", `{"disabled":true}`).want(t, 404)
	r.as("admin", "PATCH", "/api/users/bob", `{"disabled":null}`).want(t, 422)
	r.as("admin", "PATCH", "/api/users/bob", `{"disabled":"yes"}`).want(t, 422)
}

// The last administrator cannot remove the last admin access, neither by hand nor by two requests at once.
func TestLastAdminStays(t *testing.T) {
	r := newRig(t)
	r.as("admin", "PATCH", "/api/users/admin", `{"disabled":true}`).want(t, 409, "last usable admin key")
	r.as("admin", "POST", "/api/users", `{"name":"carol","admin":true}`).want(t, 201)
	r.as("admin", "PATCH", "/api/users/admin", `{"disabled":true}`).want(t, 409) // she has no key, so she could not come in
	key := decoded[api.NewKey](t, r.as("admin", "POST", "/api/keys", `{"user":"carol","admin":true}`).want(t, 201)).Secret
	done := make(chan int, 2)
	for user, with := range map[string]string{"admin": key, "carol": r.keys["admin"]} {
		go func() {
			done <- r.do("PATCH", "/api/users/"+user, `{"disabled":true}`, "X-Session-API-Key", with).status
		}()
	}
	first, second := <-done, <-done
	// One of them wins; the other finds itself locked out or refused.
	if (first == http.StatusOK) == (second == http.StatusOK) {
		t.Errorf("got %d and %d, want one of them to be done", first, second)
	}
}
