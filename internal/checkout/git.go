package checkout

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"strings"

	"deckhand/internal/sandbox"
)

// flags disable what a repository or a URL could make git do besides cloning: other
// transports, hooks, watchers, prompts, names that another system would treat as .git. A
// transfer that stalls for a minute is aborted.
var flags = []string{
	"git", "--no-pager", "-c", "protocol.allow=never", "-c", "protocol.http.allow=always", "-c", "protocol.https.allow=always",
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true",
	"-c", "credential.helper=", "-c", "core.askPass=", "-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=60", "-c", "safe.directory=*", "-c", "advice.detachedHead=false",
}

// environment does the same where there is no flag. Large files are fetched after the
// clone, not one by one during it.
var environment = map[string]string{
	"GIT_ALLOW_PROTOCOL": "http:https", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GCM_INTERACTIVE": "never",
	"GIT_TEMPLATE_DIR": "", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C", "LANGUAGE": "",
}

// CheckURL rejects URLs other than plain http:// and https://: other transports run
// programs or read files, and a leading dash is an option. Credentials are rejected too.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", strings.ContainsAny(address, "\x00\r\n\t "):
		return errors.New("the URL must start with http:// or https://")
	case u.User != nil:
		return errors.New("the URL must not contain credentials; store them in the settings")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL must not contain ? or #")
	}
	return nil
}

// environment returns the environment of git. If scripts of an untrusted repository may
// have run, git reads no configuration that they could have written.
func (w *work) environment() map[string]string {
	if !w.distrusted {
		return environment
	}
	env := maps.Clone(environment)
	env["GIT_CONFIG_NOSYSTEM"], env["GIT_CONFIG_GLOBAL"] = "1", "/dev/null"
	return env
}

// git runs git in a folder of the workspace. A non-zero exit code is not an error.
func (w *work) git(ctx context.Context, dir string, args ...string) (sandbox.ProcessResult, error) {
	all := append(append(make([]string, 0, len(flags)+len(args)), flags...), args...)
	r, err := w.box.Run(ctx, sandbox.Process{Args: all, Dir: dir, Env: w.environment(), Own: true, Limit: maxSaid}, nil)
	if words, refused := sandbox.Refusal(err); refused && ctx.Err() == nil {
		return r, w.no(cloneFailed, "git cannot be run in the sandbox ("+words+"); is it installed there?")
	}
	return r, err
}

// maxSaid is the maximum size of git's output.
const maxSaid = 256 << 10

// line returns the first line of git's output, or "" if it fails.
func (w *work) line(ctx context.Context, dir string, args ...string) (string, error) {
	r, err := w.git(ctx, dir, args...)
	if err != nil || r.Exit != 0 {
		return "", err
	}
	return strings.TrimSuffix(string(r.Stdout), "\n"), nil
}
