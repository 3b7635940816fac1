package imagedata

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
)

// channels is how many samples a pixel has, by colour type.
var channels = map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}

// checkPNG unfolds the pixels without keeping them: the standard library would take up to 400 MB.
func checkPNG(data []byte) error {
	var header []byte
	var parts []io.Reader
	palette, ended := false, false
	for rest := data[8:]; !ended; {
		if len(rest) < 12 {
			return errBroken
		}
		size, kind := int64(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		if size > int64(len(rest)-12) {
			return errBroken
		}
		body := rest[8 : 8+size]
		critical := kind[0] < 'a' // decoders skip other chunks that they cannot read
		if critical && crc32.ChecksumIEEE(rest[4:8+size]) != binary.BigEndian.Uint32(rest[8+size:]) {
			return errBroken
		}
		switch {
		case header == nil && (kind != "IHDR" || size != 13):
			return errBroken
		case kind == "IHDR":
			header = body
		case kind == "PLTE":
			palette = true
		case kind == "IDAT":
			parts = append(parts, bytes.NewReader(body))
		}
		ended = kind == "IEND"
		rest = rest[12+size:]
	}
	if len(parts) == 0 || header[9] == 3 && !palette {
		return errBroken
	}
	r, err := newRows(header)
	if err != nil {
		return err
	}
	z, err := zlib.NewReader(io.MultiReader(parts...))
	if err != nil {
		return err
	}
	if _, err := io.Copy(r, z); err != nil {
		return err
	}
	return r.done()
}

// pass is one of the smaller images that a PNG consists of: one, or seven if it is interlaced.
type pass struct{ rows, bytes int64 }

// rows takes the unfolded content of a PNG and checks that it has the rows that the header announces.
type rows struct {
	passes []pass
	left   int64 // bytes of the row that has begun
}

// newRows reads a header.
func newRows(header []byte) (*rows, error) {
	width, height := int64(binary.BigEndian.Uint32(header)), int64(binary.BigEndian.Uint32(header[4:]))
	if err := bounded(width, height); err != nil {
		return nil, err
	}
	depth, colour := int64(header[8]), header[9]
	bits := depth * channels[colour]
	fits := depth == 8 || depth == 16 && colour != 3 || (depth == 1 || depth == 2 || depth == 4) && (colour == 0 || colour == 3)
	if bits == 0 || !fits || header[10] != 0 || header[11] != 0 || header[12] > 1 {
		return nil, errBroken
	}
	// Where the pixels of a pass begin, and how far apart they are, in x and y.
	grid := [][4]int64{{0, 0, 1, 1}}
	if header[12] == 1 {
		grid = [][4]int64{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}
	}
	r := &rows{}
	for _, g := range grid {
		w, h := (width-g[0]+g[2]-1)/g[2], (height-g[1]+g[3]-1)/g[3]
		if w > 0 && h > 0 {
			r.passes = append(r.passes, pass{rows: h, bytes: (w*bits + 7) / 8})
		}
	}
	return r, nil
}

// Write implements io.Writer. It ends the unfolding as soon as there is too much.
func (r *rows) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if r.left > 0 {
			skip := min(r.left, int64(len(p)))
			r.left -= skip
			p = p[skip:]
			continue
		}
		if len(r.passes) == 0 || p[0] > 4 { // a row begins with its filter
			return 0, errBroken
		}
		r.left, p = r.passes[0].bytes, p[1:]
		if r.passes[0].rows--; r.passes[0].rows == 0 {
			r.passes = r.passes[1:]
		}
	}
	return n, nil
}

func (r *rows) done() error {
	if r.left > 0 || len(r.passes) > 0 {
		return errBroken
	}
	return nil
}
