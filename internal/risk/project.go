package risk

import (
	"slices"
	"strings"
)

const builds = "It runs code of the project, or installs packages."

// projectRules are the tools with which people build, test and publish.
var projectRules = map[string]rule{
	"git":                          versioned(gitRule),
	"make gmake":                   daily("make", versioned(makeRule)),
	"go":                           daily("go", goRule),
	"pip pipx":                     versioned(pipRule),
	"npm pnpm":                     daily("npm", npmRule),
	"yarn":                         daily("npm", unversioned(bySubcommand("", npmPublishes, Medium, builds))),
	"cargo":                        daily("cargo", unversioned(bySubcommand("", "publish login logout yank owner", Medium, builds))),
	"poetry uv flit hatch pdm gem": bySubcommand("", "publish push yank config auth owner signin", Medium, builds),
	"twine":                        always(High, "It publishes something."),
	"apt apt-get aptitude dnf yum apk pacman zypper": versioned(packagesRule),
	"apt-cache dpkg-query":                           versioned(packagesRule),
	"brew":                                           bySubcommand("list info", "", Medium, builds),
	"docker podman":                                  versioned(dockerRule),
	"kubectl helm terraform tofu ansible ansible-playbook pulumi": bySubcommand("", "apply delete create replace patch edit exec cp drain scale rollout install upgrade uninstall destroy import up", Medium, "It reads from or changes other machines."),
	"gh glab hub": ghRule,
	"aws gcloud az gsutil s3cmd rclone doctl heroku vercel netlify flyctl fly firebase mc b2": always(High, "It changes machines or data outside the sandbox."),
	// These let the project's own files say which program answers, even for a version.
	"bundle rake composer gradle gradlew mvn ant dotnet mix rustc rustup rustfmt tox nox jest vitest bazel": always(Medium, builds),
	"pytest": daily("pytest", always(Medium, builds)),
	"npx bunx uvx pipenv gcc g++ cc clang clang++ javac java kotlinc tsc eslint prettier black ruff mypy cmake ninja meson gofmt clang-format shellcheck dpkg nvm conda mamba": versioned(always(Medium, builds)),
	"gpg gpg2 ssh-keygen ssh-add ssh-agent": always(Medium, "It works with keys."),
}

const npmPublishes = "publish unpublish login logout adduser token owner deprecate access dist-tag config set team star"

func npmRule(c command, args []arg) {
	for _, a := range args {
		if a.text == "--" {
			break
		}
		if a.text == "-C" || a.is("--script-shell") || a.is("--node-options") || a.is("--prefix") || a.is("--dir") || a.is("--userconfig") || a.is("--globalconfig") {
			c.add(Unknown, "It runs another program in a way that cannot be analyzed.")
		}
	}
	bySubcommand("ls list root prefix", npmPublishes, Medium, builds)(c, args)
}

// unversioned is a rule for a program that the project's own files can replace,
// so that nothing it is asked is harmless.
func unversioned(r rule) rule {
	return func(c command, args []arg) {
		c.add(Medium, builds)
		r(c, args)
	}
}

func makeRule(c command, args []arg) {
	c.add(Medium, builds)
	for _, a := range args {
		name, value, sets := strings.Cut(a.text, "=")
		switch {
		case !a.known, a.short("EfCI"), a.is("--eval"), a.is("--file"), a.is("--makefile"), a.is("--directory"), a.is("--include-dir"):
			c.add(Unknown, "What it builds is only known at run time.")
		case sets && !strings.HasPrefix(name, "-"):
			if value != "" && !plainWord.MatchString(value) { // makefiles hand it to a shell
				c.add(Unknown, "It passes text to the makefile that may be run as a command.")
			}
			c.assigned(strings.TrimRight(name, ":+?!"), true, value)
		}
	}
}

func goRule(c command, args []arg) {
	for i, a := range args {
		if (a.text == "-o" || a.text == "--o") && i+1 < len(args) {
			c.writes(args[i+1], builds)
		}
		name := strings.TrimLeft(a.text, "-")
		if a.flag() && (!a.known || strings.HasPrefix(name, "exec") || strings.HasPrefix(name, "toolexec") || strings.HasPrefix(name, "vettool") || strings.HasPrefix(name, "overlay")) {
			c.add(Unknown, "It runs another program in a way that cannot be analyzed.")
			return
		}
	}
	switch {
	case len(args) == 1 && args[0].plain() && (args[0].text == "version" || args[0].text == "help"):
		c.add(Low, "It only prints a version.")
	case len(args) > 0 && args[0].text == "env":
		c.add(Low, "It only prints text.")
		for _, a := range args[1:] {
			if a.flag() && a.text != "-json" {
				c.add(High, "It changes the Go configuration.")
			}
		}
	default:
		c.add(Medium, builds)
	}
}

func pipRule(c command, args []arg) {
	bySubcommand("list show freeze check", "config", Medium, builds)(c, args)
}

func packagesRule(c command, args []arg) {
	if anyOf(args, "o", "--option", "--config-file") {
		c.add(Unknown, "It installs in a way that cannot be analyzed.")
	}
	bySubcommand("list show search policy info depends rdepends", "remove purge autoremove erase del dist-upgrade full-upgrade", Medium, "It installs packages.")(c, args)
}

func dockerRule(c command, args []arg) {
	c.add(Medium, "It works with containers.")
	for _, a := range args {
		switch {
		case !a.known, a.is("--privileged"), a.text == "push" || a.text == "login" || a.text == "prune", a.is("--pid"), a.is("--device"), a.is("--cap-add"),
			strings.HasPrefix(a.text, "/:"), strings.Contains(a.text, "docker.sock"), strings.HasPrefix(a.text, "-v/"):
			c.add(High, "It publishes an image, or gives a container control of the machine.")
		}
	}
}

func ghRule(c command, args []arg) {
	ops := operands(args)
	if len(ops) > 1 && ops[1].plain() && slices.Contains([]string{"view", "list", "status", "diff", "checks"}, ops[1].text) {
		c.add(Medium, "It reads from the git provider.")
		return
	}
	c.add(High, "It changes something at the git provider.")
}
