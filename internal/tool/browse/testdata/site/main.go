// Command site is the little web site that the browser's tests look at. It runs
// inside the sandbox, and writes the port that it chose to the first file it is
// given, and what it is asked for to the second.
package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
)

//go:embed pages
var pages embed.FS

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(os.Args[1]+".new", []byte(fmt.Sprintln(port)), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(os.Args[1]+".new", os.Args[1]); err != nil {
		log.Fatal(err)
	}
	asked, err := os.Create(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	pages := site()
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(asked, r.URL) // for tests that wait for a request
		pages.ServeHTTP(w, r)
	})))
}

func site() http.Handler {
	files, err := fs.Sub(pages, "pages")
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(files))
	mux.HandleFunc("/answer", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>Answer</title><h1>Hello %s, you like %s</h1>", r.FormValue("name"), strings.Join(r.Form["color"], "+"))
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		io.WriteString(w, "a,b\n1,2\n")
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		f, head, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b, _ := io.ReadAll(f)
		fmt.Fprintf(w, "received %s: %s", head.Filename, b)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<title>Large</title><p>first words</p>"+strings.Repeat("<button>filler</button>", 1500)+"<p>last words</p>")
	})
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<title>Huge</title><p>first words</p>"+strings.Repeat("<i></i>", 20000))
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, port, _ := net.SplitHostPort(r.Host)
		fmt.Fprintf(w, `<title>Frames</title><iframe title="inner" src="http://localhost:%s/inner.html"></iframe>`, port)
	})
	return mux
}
