package imagedata

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"runtime"
	"strings"
	"testing"
)

func url(kind string, data []byte) string {
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// chunk is a chunk of a PNG.
func chunk(kind string, body []byte) []byte {
	out := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind...)
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	z.Write(data)
	z.Close()
	return out.Bytes()
}

// drawn is a PNG with this header and content.
func drawn(width, height uint32, rest [5]byte, content []byte) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(header, rest[:]...))...)
	return append(append(out, chunk("IDAT", content)...), chunk("IEND", nil)...)
}

var rgba16 = [5]byte{16, 6}

// samples are images that every decoder can read, by name.
func samples(t testing.TB) map[string]string {
	t.Helper()
	bounds := image.Rect(0, 0, 21, 13)
	many, deep, two := image.NewNRGBA(bounds), image.NewNRGBA64(bounds), image.NewPaletted(bounds, color.Palette{color.Black, color.White})
	grey := image.NewGray(bounds)
	for i := range many.Pix {
		many.Pix[i] = byte(i * 7)
	}
	out := map[string]string{
		"a web address": "https://example.org/a.png",
		"webp":          url("image/webp", []byte(webP)),
		// 5x5 in seven passes of 1 byte per pixel.
		"png, interlaced": url("image/png", drawn(5, 5, [5]byte{8, 0, 0, 0, 1}, zipped(bytes.Join([][]byte{
			make([]byte, 2), make([]byte, 2), make([]byte, 3), make([]byte, 4), make([]byte, 4), make([]byte, 9), make([]byte, 12)}, nil)))),
	}
	for name, img := range map[string]image.Image{"colours": many, "16 bits": deep, "two colours": two, "grey": grey} {
		var p, j, g bytes.Buffer
		for _, err := range []error{png.Encode(&p, img), jpeg.Encode(&j, img, nil), gif.Encode(&g, img, nil)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		out["png, "+name] = url("image/png", p.Bytes())
		out["jpeg, "+name], out["jpg, "+name] = url("image/jpeg", j.Bytes()), url("IMAGE/JPG", j.Bytes())
		out["gif, "+name] = url("image/gif", g.Bytes())
		out["without padding, "+name] = strings.TrimRight(out["png, "+name], "=")
		out["with more behind it, "+name] = url("image/png", append(p.Bytes(), "more"...))
	}
	return out
}

const webP = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

func content(t testing.TB, dataURL string) []byte {
	t.Helper()
	_, text, _ := strings.Cut(dataURL, ",")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, u := range samples(t) {
		if msg, err := Check(t.Context(), u); msg != "" || err != nil {
			t.Errorf("%s: %q, %v", name, msg, err)
		}
		if strings.HasPrefix(name, "png") { // a sample that the standard library refuses proves nothing
			if _, err := png.Decode(bytes.NewReader(content(t, u))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	all := samples(t)
	good, photo, moving := content(t, all["png, colours"]), content(t, all["jpeg, colours"]), content(t, all["gif, colours"])
	corrupt := bytes.Clone(good)
	corrupt[bytes.Index(good, []byte("IDAT"))+20] ^= 0xff
	const damaged, large = "damaged or incomplete", "at most 50 megapixels"
	for name, c := range map[string]struct {
		kind, says string
		data       []byte
	}{
		"the start of a PNG":      {"image/png", damaged, good[:30]},
		"a PNG without its end":   {"image/png", damaged, good[:len(good)-5]},
		"a corrupt IDAT":          {"image/png", damaged, corrupt},
		"a corrupt stream":        {"image/png", damaged, drawn(2, 2, rgba16, []byte("not compressed"))},
		"too few rows":            {"image/png", damaged, drawn(2, 2, rgba16, zipped(make([]byte, 33)))},
		"too many rows":           {"image/png", damaged, drawn(2, 2, rgba16, zipped(make([]byte, 51)))},
		"an unknown filter":       {"image/png", damaged, drawn(2, 1, rgba16, zipped(bytes.Repeat([]byte{9}, 17)))},
		"no palette":              {"image/png", damaged, drawn(1, 1, [5]byte{8, 3}, zipped(make([]byte, 2)))},
		"an unknown depth":        {"image/png", damaged, drawn(1, 1, [5]byte{3, 0}, zipped(make([]byte, 2)))},
		"no pixels":               {"image/png", damaged, drawn(0, 1, rgba16, zipped(nil))},
		"a PNG that claims a lot": {"image/png", large, drawn(4294967295, 4294967295, rgba16, zipped(nil))},
		"a PNG above the limit":   {"image/png", large, drawn(10_000, 5_001, rgba16, zipped(nil))},
		"a GIF that is a header":  {"image/gif", damaged, []byte("GIF89a")},
		"half a GIF":              {"image/gif", damaged, moving[:len(moving)/2]},
		"a large GIF":             {"image/gif", large, []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00\x3b")},
		"half a JPEG":             {"image/jpeg", damaged, photo[:len(photo)/2]},
		"the start of a JPEG":     {"image/jpeg", damaged, photo[:20]},
		"a JPEG of nothing":       {"image/jpeg", damaged, []byte("\xff\xd8\xff\xe0\x00\x02\xff\xd9")},
		"half a WebP":             {"image/webp", damaged, []byte(webP)[:28]},
		"a WebP without an image": {"image/webp", damaged, []byte("RIFF\x0c\x00\x00\x00WEBPVP8 \x00\x00\x00\x00")},
		"a large WebP":            {"image/webp", large, []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff")},
		"a PNG called JPEG":       {"image/jpeg", "labeled image/jpeg, but its content is image/png", good},
		"a PNG called something":  {"image/x-foo", "must be image/png, image/jpeg", good},
		"a text":                  {"image/png", "its content is text/plain", []byte("hello")},
	} {
		if msg, err := Check(t.Context(), url(c.kind, c.data)); !strings.Contains(msg, c.says) || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, msg, err, c.says)
		}
	}
}

// A small file with many pixels takes time, but no memory.
func TestManyPixelsTakeLittleMemory(t *testing.T) {
	row := make([]byte, 1+8*7000)
	var content bytes.Buffer
	z, err := zlib.NewWriterLevel(&content, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for range 7000 {
		z.Write(row)
	}
	z.Close()
	u := url("image/png", drawn(7000, 7000, rgba16, content.Bytes()))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	msg, err := Check(t.Context(), u)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; msg != "" || err != nil || took > 32<<20 {
		t.Errorf("%q, %v, %d bytes", msg, err, took)
	}
}

// An image waits for its turn, and not longer than its request.
func TestWait(t *testing.T) {
	for range cap(slots) {
		slots <- struct{}{}
	}
	defer func() {
		for range cap(slots) {
			<-slots
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if msg, err := Check(ctx, url("image/webp", []byte(webP))); msg != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", msg, err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, u := range samples(f) {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		if _, err := Check(t.Context(), u); err != nil {
			t.Error(err)
		}
	})
}
