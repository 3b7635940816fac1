package names

import (
	"regexp"
	"slices"
	"strings"
)

// harmlessVariables change how programs speak, not what they do.
var harmlessVariables = []string{"CI", "CLICOLOR", "COLUMNS", "DEBIAN_FRONTEND", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "NO_COLOR", "TERM", "TZ", "VERBOSE",
	"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "RUST_BACKTRACE", "GIT_TERMINAL_PROMPT"}

// dangerousVariable matches the variables that decide what runs, where it is found or which
// hosts it contacts.
var dangerousVariable = regexp.MustCompile(`^(PATH|IFS|ENV|HOME|SHELL|SHELLOPTS|BASHOPTS|BASH_.*|PROMPT_COMMAND|PS[0-4]|CDPATH|GLOBIGNORE|HIST.*|MAIL.*|TMPDIR|` +
	`LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|GIT_.*|SSH_.*|SVN_.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|LESS.*|MANOPT|` +
	`PYTHON.*|PERL.*|RUBY.*|NODE_.*|NPM_.*|npm_.*|JAVA_.*|_JAVA_OPTIONS|JDK_.*|CLASSPATH|GO(FLAGS|PROXY|SUMDB|NOSUMDB|PRIVATE|ENV|TOOLCHAIN|PATH|BIN|CACHEPROG)|CARGO_.*|RUSTC.*|RUSTFLAGS|` +
	`MAKEFLAGS|MFLAGS|GNUMAKEFLAGS|CC|CXX|LD|AR|.*FLAGS|.*_OPTIONS|.*_OPTS|.*_RSH|.*_WRAPPER|.*_(PROXY|proxy)|PIP_.*|UV_.*|DOCKER_.*|KUBECONFIG|AWS_.*|CURL_.*|SSL.*|OPENSSL_.*|REQUESTS_.*|XDG_.*|RIPGREP_.*|FZF_.*|DIRSTACK|FUNCNAME|` +
	`(http|https|ftp|all|no)_proxy|pager|editor)$`)

// HarmlessVariable reports whether a variable only changes how programs speak.
func HarmlessVariable(name string) bool {
	return slices.Contains(harmlessVariables, name) || strings.HasPrefix(name, "LC_")
}

// DangerousVariable reports whether a variable decides what runs, where it is found or which hosts it contacts.
func DangerousVariable(name string) bool { return dangerousVariable.MatchString(name) }
