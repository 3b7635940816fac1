package bind

import (
	"archive/tar"
	"io"
	"path"
	"strings"
)

// Moved returns an archive of a folder's content as one of the top folder: all names start with the folder. Close it when it is not read to
// its end.
func Moved(pack io.Reader, folder string) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(move(tar.NewReader(pack), tar.NewWriter(w), strings.Trim(folder, "/"))) }()
	return r
}

func move(from *tar.Reader, to *tar.Writer, folder string) error {
	for {
		h, err := from.Next()
		if err == io.EOF {
			return to.Close()
		}
		if err != nil {
			return err
		}
		slash := ""
		if h.Typeflag == tar.TypeDir {
			slash = "/"
		}
		h.Name = path.Join(folder, h.Name) + slash
		if h.Typeflag == tar.TypeLink { // names another entry
			h.Linkname = path.Join(folder, h.Linkname)
		}
		h.Format = tar.FormatPAX // which has room for every name
		if err := to.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil {
			return err
		}
	}
}
