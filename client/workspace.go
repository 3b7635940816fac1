package client

import (
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"deckhand/api"
)

// ListFiles lists a folder of the workspace, "" for the workspace itself. Names
// are relative to the workspace; those of folders end with a slash. Names that
// are not UTF-8 are spelled as api.EncodeName does, here and everywhere.
func (c *Client) ListFiles(ctx context.Context, id, folder string) ([]string, error) {
	return call[[]string](ctx, c, http.MethodGet, item(id)+"/list-files?"+url.Values{"path": {folder}}.Encode(), nil)
}

// ReadFile returns the text of a file, or a data: address for images, PDF and video.
func (c *Client) ReadFile(ctx context.Context, id, file string) (string, error) {
	out, err := c.OpenFile(ctx, id, file)
	return out.Code, err
}

// OpenFile is ReadFile with the etag that SaveFile needs.
func (c *Client) OpenFile(ctx context.Context, id, file string) (api.FileContent, error) {
	return call[api.FileContent](ctx, c, http.MethodGet, item(id)+"/select-file?"+url.Values{"file": {file}}.Encode(), nil)
}

// SaveFile replaces a file that still has the content of the etag, or makes one that
// is not there yet if the etag is "". It returns the etag of the file now.
func (c *Client) SaveFile(ctx context.Context, id, file, content, etag string) (string, error) {
	in := api.SaveFile{Path: file, Content: content}
	if etag != "" {
		in.ETag = api.Some(etag)
	}
	out, err := call[api.SavedFile](ctx, c, http.MethodPut, item(id)+"/file", in)
	return out.ETag, err
}

// Zip writes the workspace to w as a ZIP archive. After an error, what was
// written is not a whole archive.
func (c *Client) Zip(ctx context.Context, id string, w io.Writer) error {
	return c.save(ctx, item(id)+"/zip-directory", w)
}

// Changes lists the files that differ from where the work began.
func (c *Client) Changes(ctx context.Context, id string) ([]api.GitChange, error) {
	return call[[]api.GitChange](ctx, c, http.MethodGet, item(id)+"/git/changes", nil)
}

// Diff returns a file before and now.
func (c *Client) Diff(ctx context.Context, id, file string) (api.GitDiff, error) {
	return call[api.GitDiff](ctx, c, http.MethodGet, item(id)+"/git/diff?"+url.Values{"path": {file}}.Encode(), nil)
}

// Upload is a file to send. Name is the file's name in the workspace, in any bytes.
type Upload struct {
	Name string
	Data io.Reader
}

// Upload puts files into the workspace. retryKey may be empty; with one, sending
// the same files again stores nothing twice.
func (c *Client) Upload(ctx context.Context, id, retryKey string, files ...Upload) (api.Uploaded, error) {
	body, to := io.Pipe()
	form := multipart.NewWriter(to)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		to.CloseWithError(sendFiles(form, files))
	}()
	defer func() {
		body.Close() // the server may have had enough before everything was sent
		<-sent
	}()
	req, err := c.request(ctx, http.MethodPost, item(id)+"/upload-files", body)
	if err != nil {
		return api.Uploaded{}, err
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	return exchange[api.Uploaded](c, req, retryKey)
}

func sendFiles(form *multipart.Writer, files []Upload) error {
	for _, f := range files {
		// The form that starts with the character set is the only one that holds every name.
		var name strings.Builder
		for i := range len(f.Name) {
			if c := f.Name[i]; c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				name.WriteByte(c)
			} else {
				fmt.Fprintf(&name, "%%%02X", c)
			}
		}
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="files"; filename*=UTF-8''` + name.String()},
			"Content-Type":        {"application/octet-stream"},
		})
		if err != nil {
			return err
		}
		if _, err := io.Copy(part, f.Data); err != nil {
			return err
		}
	}
	return form.Close()
}

// Ports lists the TCP ports that something in the sandbox listens on; none while it does not run.
func (c *Client) Ports(ctx context.Context, id string) ([]api.Port, error) {
	return call[[]api.Port](ctx, c, http.MethodGet, item(id)+"/ports", nil)
}

// RuntimeConfig tells which sandbox a conversation has.
func (c *Client) RuntimeConfig(ctx context.Context, id string) (api.RuntimeConfig, error) {
	return call[api.RuntimeConfig](ctx, c, http.MethodGet, item(id)+"/config", nil)
}

// Egress tells how the sandbox may reach the network, and what it asked for;
// query may hold before and limit.
func (c *Client) Egress(ctx context.Context, id string, query url.Values) (api.Egress, error) {
	return call[api.Egress](ctx, c, http.MethodGet, item(id)+"/egress?"+query.Encode(), nil)
}

// SetEgress says how the sandbox may reach the network: open, allowlist with
// what it may reach, or off.
func (c *Client) SetEgress(ctx context.Context, id, mode string, allow ...string) (api.Egress, error) {
	in := api.SetEgress{Mode: mode}
	if len(allow) > 0 {
		in.Allow = api.Some(allow)
	}
	return call[api.Egress](ctx, c, http.MethodPut, item(id)+"/egress", in)
}

// Trust tells whether the conversation's repository is trusted.
func (c *Client) Trust(ctx context.Context, id string) (api.Trust, error) {
	return call[api.Trust](ctx, c, http.MethodGet, item(id)+"/trust", nil)
}

// TrustedRepositories lists the repositories that the user trusts.
func (c *Client) TrustedRepositories(ctx context.Context) ([]string, error) {
	out, err := call[api.TrustedRepositories](ctx, c, http.MethodGet, "/api/trusted-repositories", nil)
	return out.Repositories, err
}

// SetTrustedRepositories replaces the repositories that the user trusts: host and
// path, such as github.com/octo/app.
func (c *Client) SetTrustedRepositories(ctx context.Context, list ...string) ([]string, error) {
	out, err := call[api.TrustedRepositories](ctx, c, http.MethodPut, "/api/trusted-repositories", api.TrustedRepositories{Repositories: append([]string{}, list...)})
	return out.Repositories, err
}

// SetTrust trusts the conversation's repository, or stops trusting it.
func (c *Client) SetTrust(ctx context.Context, id string, trusted bool) (api.Trust, error) {
	return call[api.Trust](ctx, c, http.MethodPut, item(id)+"/trust", api.SetTrust{Trusted: trusted})
}
