package socketproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/socketproxy"
)

// recorder is an engine that records what reaches it. The container deckhand-c, the volume deckhand-v and the exec e have
// the label of Deckhand; the container other and the volume deckhand-other do not.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (e *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.45")
	w.Header().Set("Content-Type", "application/json")
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	inspected := map[string]string{
		"containers/deckhand-c/json": `{"Id":"c","Config":{"Labels":{"deckhand":"1"}}}`,
		"containers/other/json":      `{"Id":"o","Config":{"Labels":{}}}`,
		"volumes/deckhand-v":         `{"Name":"deckhand-v","Labels":{"deckhand":"1"}}`,
		"volumes/deckhand-other":     `{"Name":"deckhand-other"}`,
		"exec/e/json":                `{"ID":"e","ContainerID":"deckhand-c"}`,
		"exec/o/json":                `{"ID":"o","ContainerID":"other"}`,
	}
	if r.Header.Get("User-Agent") != "test" { // the proxy itself
		if body, ok := inspected[path]; ok {
			_, _ = io.WriteString(w, body)
		} else if !strings.HasSuffix(r.URL.Path, "_ping") {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"message":"not found"}`)
		}
		return
	}
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, fmt.Sprintf("%s %s %s %q %s", r.Method, path, r.URL.RawQuery, r.Header.Get("Content-Type")+r.Header.Get("Upgrade"), body))
}

func (e *recorder) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// recorded returns a function that sends a request through a proxy and returns the status and what reached the engine.
func recorded(t *testing.T) func(request, contentType, body string) (int, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "e")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	engine := &recorder{}
	backend := &httptest.Server{Listener: l, Config: &http.Server{Handler: engine}}
	backend.Start()
	t.Cleanup(backend.Close)
	p, err := socketproxy.New(socket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return func(request, contentType, body string) (int, string) {
		t.Helper()
		method, path, _ := strings.Cut(request, " ")
		var content io.Reader
		if body != "" {
			content = struct{ io.Reader }{strings.NewReader(body)} // chunked
		}
		r, err := http.NewRequestWithContext(context.Background(), method, front.URL+path, content)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", "test")
		if contentType == "h2c" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "h2c")
		} else if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		said, _ := io.ReadAll(res.Body)
		if got := engine.take(); len(got) > 0 {
			return res.StatusCode, got[0]
		}
		return res.StatusCode, string(said)
	}
}

const form = "application/x-www-form-urlencoded"

// sandboxWith returns the body of a request for a container, with more fields of its host.
func sandboxWith(host string) string {
	masked, _ := json.Marshal(docker.Masked)
	return fmt.Sprintf(`{"Image":"x","Labels":{"deckhand":"1"},"HostConfig":{"NetworkMode":"none","CapDrop":["ALL"],"SecurityOpt":["no-new-privileges"],"Memory":1,"MemorySwap":1,"PidsLimit":1,"MaskedPaths":%s%s}}`, masked, host)
}

func TestNothingUncheckedReachesTheEngine(t *testing.T) {
	t.Parallel()
	send := recorded(t)
	const create, asJSON = "POST /v1.45/containers/create?name=deckhand-n", "application/json"
	pull := "POST /v1.45/images/create?fromImage=docker.io/library/x&tag=1"
	for what, r := range map[string][3]string{
		"no memory limit":             {create, asJSON, strings.Replace(sandboxWith(""), `"Memory":1`, `"Memory":0`, 1)},
		"swap":                        {create, asJSON, strings.Replace(sandboxWith(""), `"MemorySwap":1`, `"MemorySwap":-1`, 1)},
		"no limit of processes":       {create, asJSON, strings.Replace(sandboxWith(""), `"PidsLimit":1`, `"PidsLimit":-1`, 1)},
		"shared memory":               {create, asJSON, sandboxWith(`,"ShmSize":1099511627776`)},
		"ulimit":                      {create, asJSON, sandboxWith(`,"Ulimits":[{"Name":"nofile","Soft":1,"Hard":1048576}]`)},
		"unknown ulimit":              {create, asJSON, sandboxWith(`,"Ulimits":[{"Name":"memlock","Soft":-1,"Hard":-1}]`)},
		"no read-only paths":          {create, asJSON, sandboxWith(`,"ReadonlyPaths":[]`)},
		"empty CapAdd":                {create, asJSON, sandboxWith(`,"CapAdd":[]`)},
		"empty devices":               {create, asJSON, sandboxWith(`,"Devices":[]`)},
		"other case":                  {create, asJSON, sandboxWith(`,"readonlypaths":[]`)},
		"last masked paths":           {create, asJSON, sandboxWith(`,"maskedPaths":[]`)},
		"unknown field":               {create, asJSON, sandboxWith(`,"KernelMemory":1`)},
		"two documents":               {create, asJSON, sandboxWith("") + sandboxWith("")},
		"restart":                     {create, asJSON, sandboxWith(`,"RestartPolicy":{"Name":"always"}`)},
		"option of the log":           {create, asJSON, sandboxWith(`,"LogConfig":{"Type":"json-file","Config":{"tag":"x"}}`)},
		"volume without label":        {create, asJSON, sandboxWith(`,"Mounts":[{"Type":"volume","Source":"deckhand-other","Target":"/x"}]`)},
		"new volume without label":    {create, asJSON, sandboxWith(`,"Mounts":[{"Type":"volume","Source":"deckhand-new","Target":"/x"}]`)},
		"name twice":                  {create + "&name=other", asJSON, sandboxWith("")},
		"name with a slash":           {"POST /v1.45/containers/create?name=deckhand-a%2Fb", asJSON, sandboxWith("")},
		"environment":                 {create, asJSON, strings.Replace(sandboxWith(""), `{"Image"`, `{"Env":["A=b"],"Image"`, 1)},
		"start with a body":           {"POST /v1.45/containers/deckhand-c/start", asJSON, `{"Binds":["/:/host"]}`},
		"old start":                   {"POST /v1.23/containers/deckhand-c/start", "", ""},
		"old version":                 {"GET /v1.39/info", "", ""},
		"no version":                  {"POST /containers/deckhand-c/start", "", ""},
		"two versions":                {"POST /v1.45/v1.23/containers/deckhand-c/start", "", ""},
		"long version":                {"POST /v1.45.1/containers/deckhand-c/start", "", ""},
		"checkpoint":                  {"POST /v1.45/containers/deckhand-c/start?checkpoint=x&checkpoint-dir=/etc", "", ""},
		"stop with a body":            {"POST /v1.45/containers/deckhand-c/stop", form, "t=1"},
		"wait with a body":            {"POST /v1.45/containers/deckhand-c/wait", form, "condition=x"},
		"pause with a body":           {"POST /v1.45/containers/deckhand-c/pause", asJSON, "{}"},
		"pull by a form":              {pull, form, "fromSrc=http://127.0.0.1/"},
		"pull from a source":          {pull + "&fromSrc=-", "", ""},
		"pull from another source":    {pull + "&fromsrc=-", "", ""},
		"pull, repository":            {pull + "&repo=x", "", ""},
		"pull from a folder":          {"POST /v1.45/images/create?fromImage=docker-archive:/etc&tag=1", "", ""},
		"pull by a short name":        {"POST /v1.45/images/create?fromImage=oci&tag=x", "", ""},
		"semicolon":                   {pull + ";fromSrc=-", "", ""},
		"exec as a user":              {"POST /v1.45/containers/deckhand-c/exec", asJSON, `{"Cmd":["id"],"User":"0"}`},
		"exec privileged":             {"POST /v1.45/containers/deckhand-c/exec", asJSON, `{"Cmd":["id"],"Privileged":false,"privileged":true}`},
		"exec in another":             {"POST /v1.45/exec/o/start", asJSON, `{}`},
		"exec start, other fields":    {"POST /v1.45/exec/e/start", asJSON, `{"Tty":true}`},
		"files for another":           {"PUT /v1.45/containers/other/archive?path=/", "application/x-tar", "tar"},
		"files, path twice":           {"PUT /v1.45/containers/deckhand-c/archive?path=/&path=/x", "application/x-tar", "tar"},
		"update, devices":             {"POST /v1.45/containers/deckhand-c/update", asJSON, `{"Devices":[]}`},
		"update, restart":             {"POST /v1.45/containers/deckhand-c/update", asJSON, `{"RestartPolicy":{"Name":"always"}}`},
		"list by another spelling":    {`GET /v1.45/containers/json?filters={"Label":{"deckhand=1":true}}`, "", ""},
		"list by the last":            {`GET /v1.45/containers/json?filters={"label":{"deckhand=1":true},"label":{"x":true}}`, "", ""},
		"list with two filters":       {`GET /v1.45/volumes?filters={"label":{"deckhand=1":true}}&filters={}`, "", ""},
		"double encoding":             {"GET /v1.45/containers/deckhand-c%252f..%252fother/json", "", ""},
		"encoded slash":               {"GET /v1.45/containers/other%2Fjson", "", ""},
		"slash at the end":            {"DELETE /v1.45/containers/deckhand-c/", "", ""},
		"links":                       {"DELETE /v1.45/containers/deckhand-c?link=1", "", ""},
		"volume options, empty":       {"POST /v1.45/volumes/create", asJSON, `{"Name":"deckhand-n","Labels":{"deckhand":"1"},"DriverOpts":{}}`},
		"volume name with a slash":    {"POST /v1.45/volumes/create", asJSON, `{"Name":"deckhand-/etc","Labels":{"deckhand":"1"}}`},
		"inspect with a body":         {"GET /v1.45/containers/deckhand-c/json", asJSON, `{}`},
		"removal of another's volume": {"DELETE /v1.45/volumes/deckhand-other", "", ""},
	} {
		r[0] = strings.NewReplacer(`{`, "%7B", `}`, "%7D", `"`, "%22").Replace(r[0])
		if status, got := send(r[0], r[1], r[2]); status != http.StatusForbidden || !strings.HasPrefix(got, `{"message"`) {
			t.Errorf("%s: %d %s", what, status, got)
		}
	}
}

func TestTheEngineGetsWhatWasChecked(t *testing.T) {
	t.Parallel()
	send := recorded(t)
	for _, c := range []struct{ request, contentType, body, want, not string }{
		{"POST /v1.45/containers/deckhand-c/start", form, "", `POST containers/deckhand-c/start  "" `, ""},
		{"POST /v1.45/containers/deckhand-c/stop?t=1", "", "", "POST containers/deckhand-c/stop t=1", ""},
		{"POST /v1.45/images/create?tag=1&fromImage=docker.io%2Flibrary%2Fx", form, "", `POST images/create fromImage=docker.io%2Flibrary%2Fx&tag=1 "" `, ""},
		{"PUT /v1.45/containers/deckhand-c/archive?path=/a", form, "path=/b", `PUT containers/deckhand-c/archive path=%2Fa "application/x-tar" path=/b`, ""},
		{"POST /v1.45/exec/e/start", "text/plain", `{"Detach":false}`, `POST exec/e/start  "application/json" {"Detach":false`, ""},
		{"POST /v1.45/containers/deckhand-c/exec", form, `{"cmd":["id"]}`, `"Cmd":["id"]`, "cmd"},
		{"POST /v1.45/containers/create?name=deckhand-n", form, sandboxWith(`,"Privileged":true,"privileged":false`), `"Privileged":false`, "true"},
		{"POST /v1.45/containers/create?name=deckhand-n", "", sandboxWith(`,"ReadonlyPaths":null,"Mounts":[{"Type":"volume","Source":"deckhand-v","Target":"/x"}]`), `"ReadonlyPaths":null`, ""},
		{"POST /v1.45/containers/create?name=deckhand-n", "", sandboxWith(`,"Mounts":[{"Type":"volume","Source":"deckhand-new","Target":"/x","VolumeOptions":{"Labels":{"deckhand":"1"}}}]`), `"Source":"deckhand-new"`, ""},
		{"GET /v1.45/info", "h2c", "", `GET info  "" `, ""},
		{"GET /_ping", "", "", `GET  `, ""},
	} {
		status, got := send(c.request, c.contentType, c.body)
		if status != http.StatusOK || !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %d %s; want %s", c.request, status, got, c.want)
		}
	}
}
