// Command image writes the container image of the server as an archive that docker load and podman load accept. It needs
// no container engine and no network. The same inputs give the same bytes.
//
//	image -program FILE -arch amd64 -version VERSION -created UNIX -certificates FILE -out FILE
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// The user of the server in the image, and its home.
const (
	user = 65532
	home = "/var/lib/deckhand"
)

func main() {
	var o options
	flag.StringVar(&o.program, "program", "", "the static program for Linux")
	flag.StringVar(&o.arch, "arch", "", "its architecture")
	flag.StringVar(&o.version, "version", "", "version, used as the tag")
	flag.Int64Var(&o.created, "created", 0, "time of the image in seconds since 1970")
	flag.StringVar(&o.certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "certificates that the server trusts")
	flag.StringVar(&o.out, "out", "", "archive to write")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct {
	program, arch, version, certificates, out string
	created                                   int64
}

func (o options) run() (err error) {
	if o.program == "" || o.arch == "" || o.version == "" || o.out == "" {
		return errors.New("-program, -arch, -version and -out are required")
	}
	var layer bytes.Buffer
	if err := o.layer(&layer); err != nil {
		return err
	}
	config, err := json.Marshal(o.config(layer.Bytes()))
	if err != nil {
		return err
	}
	configName, layerName := sum(config)+".json", sum(layer.Bytes())+".tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "Layers": []string{layerName}, "RepoTags": []string{"deckhand:" + o.version, "deckhand:latest"},
	}})
	if err != nil {
		return err
	}
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := archive{tar.NewWriter(zip), time.Unix(o.created, 0)}
	for _, file := range []entry{{name: configName, content: config}, {name: layerName, content: layer.Bytes()}, {name: "manifest.json", content: manifest}} {
		if err := w.add(file); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zip.Close())
}

// layer writes the files of the image.
func (o options) layer(to io.Writer) error {
	program, err := os.ReadFile(o.program)
	if err != nil {
		return err
	}
	certificates, err := os.ReadFile(o.certificates)
	if err != nil {
		return err
	}
	w := archive{tar.NewWriter(to), time.Unix(o.created, 0)}
	for _, file := range []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", content: fmt.Appendf(nil, "root:x:0:\ndeckhand:x:%d:\n", user)},
		{name: "etc/nsswitch.conf", content: []byte("hosts: files dns\n")},
		{name: "etc/passwd", content: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\ndeckhand:x:%d:%d:deckhand:%s:/sbin/nologin\n", user, user, home)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", content: certificates},
		{name: "run/", mode: 0o755},
		{name: "run/deckhand/", mode: 0o700, owner: user},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/deckhand", content: program, mode: 0o755},
		{name: "var/", mode: 0o755},
		{name: "var/lib/", mode: 0o755},
		{name: home[1:] + "/", mode: 0o700, owner: user},
	} {
		if err := w.add(file); err != nil {
			return err
		}
	}
	return w.Close()
}

// config describes the image. Listening on all addresses of the container without TLS is left to the person who starts it, with DECKHAND_BEHIND_PROXY.
func (o options) config(layer []byte) map[string]any {
	created := time.Unix(o.created, 0).UTC().Format(time.RFC3339)
	return map[string]any{
		"architecture": o.arch, "os": "linux", "created": created,
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", user, user),
			"Env": []string{
				"PATH=/usr/bin", "HOME=" + home, "DECKHAND_DATA_DIR=" + home, "DECKHAND_ADDR=0.0.0.0:3000", "DECKHAND_SANDBOX=docker",
			},
			"Entrypoint": []string{"/usr/bin/deckhand"}, "Cmd": []string{"serve"},
			"ExposedPorts": map[string]any{"3000/tcp": map[string]any{}},
			"Volumes":      map[string]any{home: map[string]any{}},
			"WorkingDir":   home, "StopSignal": "SIGTERM",
			"Healthcheck": map[string]any{
				"Test": []string{"CMD", "/usr/bin/deckhand", "health"}, "Interval": 30 * time.Second, "Timeout": 10 * time.Second, "StartPeriod": 10 * time.Second, "Retries": 3,
			},
			"Labels": map[string]string{
				"org.opencontainers.image.title": "Deckhand", "org.opencontainers.image.version": o.version, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
		"history": []map[string]any{{"created": created, "created_by": "scripts/image"}},
	}
}

// entry is a file, or a folder if its name ends with a slash.
type entry struct {
	name    string
	content []byte
	mode    int64 // default 0644
	owner   int
}

type archive struct {
	*tar.Writer
	time time.Time
}

func (a archive) add(e entry) error {
	h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: a.time, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if e.name[len(e.name)-1] == '/' {
		h.Typeflag = tar.TypeDir
	}
	if h.Mode == 0 {
		h.Mode = 0o644
	}
	if err := a.WriteHeader(h); err != nil {
		return err
	}
	_, err := a.Write(e.content)
	return err
}

func sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
