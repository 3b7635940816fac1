// Package imagedata checks that inline images can be decoded, in little memory: a small file may claim or unfold to
// gigabytes of pixels. It imports only the standard library.
package imagedata

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image/gif"
	"image/jpeg"
	"net/http"
	"strings"
)

// MaxPixels is how many pixels an image has at most.
const MaxPixels = 50_000_000

// maxDecoded is how many pixels a JPEG has at most to be decoded whole: a progressive one takes 15 bytes for each.
const maxDecoded = 5_000_000

// slots bounds how many images are decoded at once in this process: one takes up to 75 MB for that time.
var slots = make(chan struct{}, 2)

// formats are the images that models can be shown, by media type.
var formats = map[string]struct {
	name  string
	check func([]byte) error
}{
	"image/png":  {"PNG", checkPNG},
	"image/jpeg": {"JPEG", checkJPEG},
	"image/gif":  {"GIF", checkGIF},
	"image/webp": {"WebP", checkWebP},
}

var (
	errBroken = errors.New("damaged or incomplete")
	errLarge  = errors.New("too many pixels")
)

// Check says in a sentence why the data: URL of an image is rejected: its type is not PNG, JPEG, GIF or WebP, or its content
// has another type, cannot be decoded or has too many pixels. Other URLs are accepted, as "". Check waits while other images are
// decoded; the error is that of a context that ended first.
func Check(ctx context.Context, url string) (string, error) {
	head, content, _ := strings.Cut(url, ",")
	if len(head) < 5 || !strings.EqualFold(head[:5], "data:") {
		return "", nil
	}
	claimed, _, _ := strings.Cut(strings.ToLower(head[5:]), ";")
	if claimed == "image/jpg" { // what many programs call it
		claimed = "image/jpeg"
	}
	format, known := formats[claimed]
	if !known {
		return "The type of an inline image must be image/png, image/jpeg, image/gif or image/webp.", nil
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(content, "="))
	if err != nil {
		return "The content of an inline image must be valid base64.", nil
	}
	if kind, _, _ := strings.Cut(http.DetectContentType(data), ";"); kind != claimed {
		return fmt.Sprintf("The inline image is labeled %s, but its content is %s. Correct the label or the content.", claimed, kind), nil
	}
	switch err := format.check(data); {
	case errors.Is(err, errLarge):
		return fmt.Sprintf("The inline image may have at most %d megapixels. Scale it down.", MaxPixels/1_000_000), nil
	case err != nil:
		return fmt.Sprintf("The inline image cannot be decoded as %s: it is damaged or incomplete. Send the whole file.", format.name), nil
	}
	return "", nil
}

// bounded checks the dimensions of an image before anything is unfolded.
func bounded(width, height int64) error {
	switch {
	case width <= 0 || height <= 0:
		return errBroken
	case width > MaxPixels || height > MaxPixels || width*height > MaxPixels:
		return errLarge
	}
	return nil
}

// checkGIF decodes the first frame, which is what models are shown.
func checkGIF(data []byte) error {
	c, err := gif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if err := bounded(int64(c.Width), int64(c.Height)); err != nil {
		return err
	}
	_, err = gif.Decode(bytes.NewReader(data))
	return err
}

// checkJPEG decodes an image. One in a variant that the standard library does not know is accepted if its segments are whole,
// and so is a large one.
func checkJPEG(data []byte) error {
	if err := segments(data); err != nil {
		return err
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err == nil {
		if err := bounded(int64(c.Width), int64(c.Height)); err != nil {
			return err
		}
		if c.Width*c.Height > maxDecoded {
			return nil
		}
		_, err = jpeg.Decode(bytes.NewReader(data))
	}
	if _, unknown := errors.AsType[jpeg.UnsupportedError](err); unknown {
		return nil
	}
	return err
}

// segments walks over the segments of a JPEG up to its end marker.
func segments(data []byte) error {
	for i := 2; i+1 < len(data); {
		m := data[i+1]
		switch {
		case data[i] != 0xff, m == 0, m == 0xff: // compressed data, or padding
			i++
		case m >= 0xd0 && m <= 0xd7: // a restart marker
			i += 2
		case m == 0xd9:
			return nil
		case m < 0xc0 || m == 0xd8 || i+3 >= len(data):
			return errBroken
		default:
			i += 2 + max(2, int(data[i+2])<<8|int(data[i+3]))
		}
	}
	return errBroken
}
