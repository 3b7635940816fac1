package risk

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

// harmlessFiles take everything and keep nothing.
var harmlessFiles = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"}

// sensitive says why a path should not be written to without a thought, "" if it may.
func sensitive(name string) string {
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

// secrets reports whether a path holds credentials. The path may follow a git revision: HEAD:.env.
func secrets(name string) bool {
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

// at is where a name leads from the folder that cd went to.
func (j *judge) at(name string) string {
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || j.dir == "" {
		return path.Clean(name)
	}
	return path.Join(j.dir, name)
}

// writes rates a file that is written to or removed.
func (j *judge) writes(w arg, reason string) {
	name := j.at(w.text)
	if slices.Contains(harmlessFiles, name) && w.plain() {
		j.add(Low, "It discards output.")
		return
	}
	if w.text == "" && w.known {
		return
	}
	why := sensitive(name)
	switch {
	case why != "":
		j.add(High, why)
	case strings.HasPrefix(w.text, "~") && !strings.Contains(w.text, "/"):
		j.add(High, "It changes a user's home folder.")
	case w.glob && strings.ContainsAny(w.text[:1], "/.~"), !w.known:
		j.add(Unknown, "Which file it changes is only known at run time.")
	default:
		j.add(Medium, reason)
	}
}

// reads rates a file whose content is shown.
func (j *judge) reads(w arg) {
	if words := j.loops[w.variable]; len(words) > 0 {
		for _, word := range words {
			j.reads(word)
		}
		return
	}
	name := j.at(w.text)
	switch {
	case w.process: // rated by itself
	case secrets(name) || w.glob && findsSecrets(name):
		j.add(Medium, "It reads a file that may contain credentials.")
	case !w.known:
		j.add(Medium, "Which file it reads is only known at run time.")
	default:
		j.add(Low, "It only reads.")
	}
}

// findsSecrets reports whether a pattern could have been written to find a file
// with credentials. A pattern that finds all kinds of names is not meant, unless
// it is for hidden ones.
func findsSecrets(pattern string) bool {
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

// ReadPath rates looking at a file.
func ReadPath(name string) (Rating, string) {
	switch {
	case name == "":
		return Unknown, "The file path is missing."
	case Disguised(name):
		return High, "The file name contains invisible or control characters."
	case secrets(name):
		return Medium, "It reads a file that may contain credentials."
	}
	return Low, "It only reads."
}

// WritePath rates changing a file.
func WritePath(name string) (Rating, string) {
	if r, why := ReadPath(name); r == Unknown || r == High {
		return r, why
	}
	if why := sensitive(name); why != "" {
		return High, why
	}
	return Medium, "It changes a file."
}

// Disguised reports whether a text holds characters that make it look like another one.
func Disguised(text string) bool { return strings.ContainsFunc(text, disguises) }
