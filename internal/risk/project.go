package risk

import (
	"slices"
	"strings"
)

const builds = "It runs code of the project, or installs something."

// projectRules are the tools with which people build, test and publish.
var projectRules = map[string]rule{
	"git":                          versioned(gitRule),
	"make gmake":                   versioned(makeRule),
	"go":                           goRule,
	"pip pipx":                     versioned(pipRule),
	"npm yarn pnpm":                bySubcommand("ls list root prefix", "publish unpublish login logout adduser token owner deprecate access dist-tag config set team star", Medium, builds),
	"cargo":                        bySubcommand("", "publish login logout yank owner", Medium, builds),
	"poetry uv flit hatch pdm gem": bySubcommand("", "publish push yank config auth owner signin", Medium, builds),
	"twine":                        always(High, "It publishes something."),
	"apt apt-get aptitude dnf yum apk pacman zypper": versioned(packagesRule),
	"apt-cache dpkg-query":                           versioned(packagesRule),
	"brew":                                           bySubcommand("list info", "", Medium, builds),
	"docker podman":                                  versioned(dockerRule),
	"kubectl helm terraform tofu ansible ansible-playbook pulumi": bySubcommand("", "apply delete create replace patch edit exec cp drain scale rollout install upgrade uninstall destroy import up", Medium, "It asks or changes other machines."),
	"gh glab hub": ghRule,
	"aws gcloud az gsutil s3cmd rclone doctl heroku vercel netlify flyctl fly firebase mc b2": always(High, "It works on machines or data outside of the sandbox."),
	"npx bunx uvx pipenv bundle rake composer gradle gradlew mvn ant dotnet mix rustc rustup gcc g++ cc clang clang++ javac java kotlinc tsc eslint prettier black ruff mypy pytest tox nox jest vitest cmake ninja meson bazel gofmt rustfmt clang-format shellcheck dpkg nvm conda mamba": versioned(always(Medium, builds)),
	"gpg gpg2 ssh-keygen ssh-add ssh-agent": always(Medium, "It works with keys."),
}

func makeRule(c command, args []word) {
	c.add(Medium, builds)
	for _, a := range args {
		name, value, sets := strings.Cut(a.text, "=")
		switch {
		case !a.known, a.short("E"), a.is("--eval"):
			c.add(Unknown, "What it builds is only known when it runs.")
		case sets && !strings.HasPrefix(name, "-"):
			c.assigned(strings.TrimRight(name, ":+?!"), true, value)
		}
	}
}

func goRule(c command, args []word) {
	for _, a := range args {
		name := strings.TrimLeft(a.text, "-")
		if a.flag() && (!a.known || strings.HasPrefix(name, "exec") || strings.HasPrefix(name, "toolexec") || strings.HasPrefix(name, "vettool") || strings.HasPrefix(name, "overlay")) {
			c.add(Unknown, "It runs another program in a way that is not looked into.")
			return
		}
	}
	switch {
	case len(args) == 1 && args[0].plain() && (args[0].text == "version" || args[0].text == "help"):
		c.add(Low, "It only asks for a version.")
	case len(args) > 0 && args[0].text == "env":
		c.add(Low, "It only shows something.")
		for _, a := range args[1:] {
			if a.flag() && a.text != "-json" {
				c.add(High, "It changes how Go works from now on.")
			}
		}
	default:
		c.add(Medium, builds)
	}
}

func pipRule(c command, args []word) {
	bySubcommand("list show freeze check", "config", Medium, builds)(c, args)
}

func packagesRule(c command, args []word) {
	if anyOf(args, "o", "--option", "--config-file") {
		c.add(Unknown, "It installs in a way that is not looked into.")
	}
	bySubcommand("list show search policy info depends rdepends", "remove purge autoremove erase del dist-upgrade full-upgrade", Medium, "It installs packages.")(c, args)
}

func dockerRule(c command, args []word) {
	c.add(Medium, "It works with containers.")
	for _, a := range args {
		switch {
		case !a.known, a.is("--privileged"), a.text == "push" || a.text == "login" || a.text == "prune", a.is("--pid"), a.is("--device"), a.is("--cap-add"),
			strings.HasPrefix(a.text, "/:"), strings.Contains(a.text, "docker.sock"), strings.HasPrefix(a.text, "-v/"):
			c.add(High, "It publishes an image, or gives a container power over the machine.")
		}
	}
}

func ghRule(c command, args []word) {
	ops := operands(args)
	if len(ops) > 1 && ops[1].plain() && slices.Contains([]string{"view", "list", "status", "diff", "checks"}, ops[1].text) {
		c.add(Medium, "It asks the git provider.")
		return
	}
	c.add(High, "It changes something at the git provider.")
}
