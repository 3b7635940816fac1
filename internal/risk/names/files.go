// Package names knows which names of files, variables, settings and scripts are harmless, decide what runs or contain credentials.
package names

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// sensitiveNames are files and folders through which foreign code gets run or access is granted.
// They are sensitive everywhere.
var sensitiveNames = []string{
	".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local", ".husky", ".circleci", ".buildkite", ".woodpecker", ".vscode", ".idea", ".devcontainer",
	".openhands", ".deckhand", ".claude", ".cursor", ".codex", ".mcp.json", ".cursorrules",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".inputrc", ".envrc",
	".netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".gitconfig", ".git-credentials", ".gitmodules", ".vimrc", ".exrc", ".emacs", ".nanorc", ".curlrc", ".wgetrc", ".screenrc", ".tmux.conf",
	".pam_environment", ".rhosts", ".forward", ".xinitrc", ".xprofile", ".pre-commit-config.yaml", ".gitlab-ci.yml", ".travis.yml", ".drone.yml",
	"jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "authorized_keys", "authorized_keys2", "known_hosts", "id_rsa", "id_ed25519", "id_ecdsa",
	"crontab", "cron.d", "cron.daily", "cron.hourly", "sudoers", "sudoers.d", "ld.so.preload", "sitecustomize.py", "usercustomize.py",
}

// systemFolders stand at the root of a system. /tmp, /home and workspaces are not among them.
var systemFolders = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv", "sys", "usr", "var"}

// secretNames are files that contain credentials.
var secretNames = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".docker", "id_rsa", "id_ed25519", "id_ecdsa", "shadow", "gshadow", "environ", ".env", "credentials", ".pgpass",
	"service-account.json", "service_account.json", "credentials.json"}

// secretFile matches other names of files that contain credentials, in lower case: keys, .env.production, and gh's tokens.
var secretFile = regexp.MustCompile(`(\.pem|\.key|^\.env\..+|^id_(rsa|dsa|ecdsa|ed25519)[._-].+|^service[-_]account.*\.json|^client_secret.*\.json)$`)

// publicFile matches names that secretFile would match, of files without credentials.
var publicFile = regexp.MustCompile(`(^\.env\.(.*\.)?(example|sample|template|dist)|\.pub)$`)

// copySuffix matches what editors and tools append to the name of a copy.
var copySuffix = regexp.MustCompile(`(~|-|\.(bak|backup|old|orig|save|swp))$`)

// Sensitive says why a path should not be written to without a thought, "" if it may.
func Sensitive(name string) string {
	name = strings.ToLower(path.Clean(name))
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if slices.Contains(sensitiveNames, p) {
			return "It changes " + p + ", which decides what runs later or who gets in."
		}
		if p == ".github" && (i+1 == len(parts) || parts[i+1] == "workflows" || parts[i+1] == "actions") {
			return "It changes what runs in the project's CI."
		}
	}
	// A relative path that climbs may end at the root.
	if first := strings.TrimLeft(name, "./"); strings.HasPrefix(name, "/") || strings.HasPrefix(name, "..") {
		top, rest, _ := strings.Cut(first, "/")
		if slices.Contains(systemFolders, top) && !harmlessBelow(top, rest) {
			return "It changes a system file."
		}
		if name == "/" {
			return "It changes the root of the file system."
		}
	}
	return ""
}

// harmlessBelow reports whether the path is a public temporary folder inside a system folder.
func harmlessBelow(top, rest string) bool {
	return top == "var" && strings.HasPrefix(rest, "tmp/") || top == "dev" && strings.HasPrefix(rest, "shm/")
}

// Secrets reports whether a path holds credentials. The path may follow a git revision: HEAD:.env.
func Secrets(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(path.Clean(name)), func(r rune) bool { return r == '/' || r == ':' })
	for i, p := range parts {
		if p == "gh" && i > 0 && parts[i-1] == ".config" || p == "hosts.yml" && i > 0 && parts[i-1] == "gh" {
			return true
		}
		p = copySuffix.ReplaceAllString(p, "")
		if slices.Contains(secretNames, p) || secretFile.MatchString(p) && !publicFile.MatchString(p) {
			return true
		}
	}
	return false
}

// FindsSecrets reports whether a pattern could have been written to find a file
// with credentials. A pattern that finds all kinds of names is not meant, unless
// it is for hidden ones.
func FindsSecrets(pattern string) bool {
	for part := range strings.SplitSeq(strings.ToLower(pattern), "/") {
		if !strings.ContainsAny(part, "*?[") || strings.HasPrefix(part, "*") {
			continue
		}
		for _, name := range secretNames {
			if ok, err := path.Match(part, name); ok || err != nil {
				return true
			}
		}
	}
	return false
}
