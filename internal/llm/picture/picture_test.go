package picture

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// samples are images of every kind, by media type.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	var p, j, g bytes.Buffer
	grey := image.NewGray(image.Rect(0, 0, 2, 2))
	for _, err := range []error{png.Encode(&p, grey), jpeg.Encode(&j, grey, nil), gif.Encode(&g, grey, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{
		"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes(),
		"image/webp": []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"),
	}
}

func dataURL(kind string, data []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// serve starts a server of images and a fetcher for it.
func serve(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *Fetcher) {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s, &Fetcher{Client: s.Client()}
}

func TestDataURLs(t *testing.T) {
	all := samples(t)
	f := &Fetcher{}
	for kind, data := range all {
		for _, claimed := range []string{kind, "image/png", "image/x-unknown"} {
			got, err := f.DataURL(t.Context(), dataURL(claimed, data))
			if err != nil || got != dataURL(kind, data) {
				t.Errorf("%s called %s gives %.40q, %v", kind, claimed, got, err)
			}
		}
	}
	most := append(bytes.Clone(all["image/png"]), make([]byte, MaxBytes-len(all["image/png"]))...)
	if _, err := f.DataURL(t.Context(), dataURL("image/png", most)); err != nil {
		t.Errorf("the largest image: %v", err)
	}
	for name, test := range map[string]struct{ url, says string }{
		"too large":     {dataURL("image/png", append(most, 0)), "larger than 5 MB"},
		"far too large": {"data:image/png;base64," + strings.Repeat("A", 3*MaxBytes), "larger than 5 MB"},
		"not base64":    {"data:image/png;base64,%%%", "not valid base64"},
		"cut":           {"data:image/png;base64,iVBORw0KGgo", "not valid base64"},
		"plain":         {"data:image/png,abc", "must be of the form"},
		"not an image":  {"data:text/html;base64,PGh0bWw+", "must be of the form"},
		"a lie":         {dataURL("image/png", []byte("<html>hello</html>")), "looks like text/html"},
		"svg":           {dataURL("image/svg+xml", []byte(`<?xml version="1.0"?><svg/>`)), "looks like text/xml"},
	} {
		_, err := f.DataURL(t.Context(), test.url)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, wanted %q", name, err, test.says)
		}
	}
}

func TestFetch(t *testing.T) {
	all := samples(t)
	var times atomic.Int32
	s, f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		times.Add(1)
		w.Header().Set("Content-Type", "application/octet-stream") // what it is called does not count
		w.Write(all[strings.TrimPrefix(r.URL.Path, "/")])
	})
	for kind, data := range all {
		for range 2 {
			got, err := f.DataURL(t.Context(), s.URL+"/"+kind)
			if err != nil || got != dataURL(kind, data) {
				t.Errorf("%s gives %.40q, %v", kind, got, err)
			}
		}
	}
	if n := times.Load(); int(n) != len(all) {
		t.Errorf("%d requests for %d images", n, len(all))
	}
}

func TestFetchFails(t *testing.T) {
	s, f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.Error(w, "no", http.StatusNotFound)
		case "/told":
			w.Header().Set("Content-Length", fmt.Sprint(MaxBytes+1))
			w.WriteHeader(http.StatusOK)
		case "/large":
			w.(http.Flusher).Flush() // its length is not told
			w.Write(bytes.Repeat([]byte{0x89}, MaxBytes+1))
		case "/text":
			fmt.Fprint(w, "hello")
		case "/dropped":
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("x"))
			panic(http.ErrAbortHandler)
		}
	})
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for address, says := range map[string]string{
		s.URL + "/missing":             "404 Not Found",
		s.URL + "/told":                "larger than 5 MB",
		s.URL + "/large":               "larger than 5 MB",
		s.URL + "/text":                "looks like text/plain",
		s.URL + "/dropped":             "could not be fetched",
		s.URL + "/empty":               "looks like text/plain",
		gone.URL + "/?token=hush":      "refused",
		"ftp://example.com/a.png":      "must be an http(s) or data: URL",
		"file:///etc/passwd":           "must be an http(s) or data: URL",
		"/a.png":                       "must be an http(s) or data: URL",
		"":                             "must be an http(s) or data: URL",
		"http://user:hush@127.0.0.1/a": "must not contain a password",
		"https://%zz":                  "must be an http(s) or data: URL",
	} {
		_, err := f.DataURL(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, wanted %q", address, err, says)
			continue
		}
		if strings.Contains(err.Error(), "hush") {
			t.Errorf("a secret is in %q", err)
		}
	}
}

// TestFailuresAreNotKept shows that an image that comes later is found.
func TestFailuresAreNotKept(t *testing.T) {
	dot := samples(t)["image/png"]
	var there atomic.Bool
	s, f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !there.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Write(dot)
	})
	if _, err := f.DataURL(t.Context(), s.URL); err == nil {
		t.Fatal("it was found before it was there")
	}
	there.Store(true)
	if _, err := f.DataURL(t.Context(), s.URL); err != nil {
		t.Fatal(err)
	}
}

func TestKeep(t *testing.T) {
	dot := samples(t)["image/png"]
	var mu sync.Mutex
	fetched := map[string]int{}
	s, f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fetched[r.URL.Path]++
		w.Write(dot)
	})
	f.Keep = 2*len(dataURL("image/png", dot)) + 1
	for _, path := range []string{"/a", "/b", "/a", "/c", "/a", "/b", "/c"} { // c puts b out, then b puts c out, then c puts a out
		if _, err := f.DataURL(t.Context(), s.URL+path); err != nil {
			t.Fatal(err)
		}
	}
	if fetched["/a"] != 1 || fetched["/b"] != 2 || fetched["/c"] != 2 {
		t.Errorf("fetched %v", fetched)
	}
	if f.size > f.Keep || f.newest.Len() != 2 || len(f.kept) != 2 {
		t.Errorf("%d bytes in %d images are kept", f.size, f.newest.Len())
	}
	f.Keep = 10
	if _, err := f.DataURL(t.Context(), s.URL+"/d"); err != nil {
		t.Errorf("an image that is too large to keep: %v", err)
	}
}

// TestShare lets many ask at once while the server waits for all of them.
func TestShare(t *testing.T) {
	dot := samples(t)["image/png"]
	arrived, answer := make(chan struct{}), make(chan struct{})
	var times atomic.Int32
	s, f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		times.Add(1)
		close(arrived)
		<-answer
		w.Write(dot)
	})
	// The first one gives up: the others get their image all the same.
	impatient, giveUp := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := f.DataURL(impatient, s.URL)
		left <- err
	}()
	<-arrived
	var group sync.WaitGroup
	started := make(chan struct{}, 8)
	for range 8 {
		group.Go(func() {
			started <- struct{}{}
			if got, err := f.DataURL(t.Context(), s.URL); err != nil || got != dataURL("image/png", dot) {
				t.Errorf("got %.40q, %v", got, err)
			}
		})
	}
	for range 8 {
		<-started
	}
	f.await(s.URL, 9)
	giveUp()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up got %v", err)
	}
	close(answer)
	group.Wait()
	if n := times.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// await returns when as many wait for an address.
func (s *shared) await(address string, n int) {
	for {
		s.mu.Lock()
		waiting := 0
		if f := s.flying[address]; f != nil {
			waiting = f.waiting
		}
		s.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}

// TestAllLeave shows that a request ends when the last caller leaves.
func TestAllLeave(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	s, f := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := f.DataURL(ctx, s.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	<-gone
	if _, err := f.DataURL(ctx, s.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is over began: %v", err)
	}
}

// TestTimeout has a server that never answers.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fetcher{Client: &http.Client{Transport: silence{}}}
		_, err := f.DataURL(t.Context(), "https://example.com/a.png")
		if err == nil || !strings.Contains(err.Error(), "did not respond within 20 seconds") {
			t.Errorf("it ended with %v", err)
		}
	})
}

// silence is a server that never answers.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func FuzzDataURL(f *testing.F) {
	for kind, data := range samples(f) {
		f.Add(dataURL(kind, data))
	}
	f.Add("data:image/png;base64,iVBORw0KGgo=")
	f.Add("data:;base64,")
	f.Add("data:image/gif;a=b;base64,R0lGODlh")
	f.Fuzz(func(t *testing.T, url string) {
		if !strings.HasPrefix(url, "data:") {
			return
		}
		got, err := (&Fetcher{}).DataURL(t.Context(), url)
		if err != nil {
			return
		}
		again, err := (&Fetcher{}).DataURL(t.Context(), got)
		if err != nil || again != got {
			t.Errorf("%q became %q, then %q, %v", url, got, again, err)
		}
	})
}
