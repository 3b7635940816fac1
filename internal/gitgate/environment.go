package gitgate

import (
	"maps"
	"strconv"
)

// Environment is what makes git inside a sandbox use the gate for these sites.
// It is added to env, where a user may have set such variables too. It holds no
// secret, and is in no file: git's configuration files belong to the sandbox.
//
// Git expands the addresses when it uses them, so a repository's own
// configuration names the real host.
func Environment(env map[string]string, sites []Site, proxy string) map[string]string {
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	if _, set := out["GIT_TERMINAL_PROMPT"]; !set {
		out["GIT_TERMINAL_PROMPT"] = "0" // there is no user to answer
	}
	if len(sites) == 0 {
		return out
	}
	n, err := strconv.Atoi(out["GIT_CONFIG_COUNT"])
	if err != nil || n < 0 {
		n = 0
	}
	set := func(key, value string) {
		at := strconv.Itoa(n)
		out["GIT_CONFIG_KEY_"+at], out["GIT_CONFIG_VALUE_"+at] = key, value
		n++
	}
	set("http.http://"+Name+"/.proxy", proxy)
	taken := map[string]bool{}
	for _, s := range sites {
		for _, from := range s.spellings() {
			if !taken[from] { // the same name with two ports has one ssh address
				taken[from] = true
				set("url."+s.Gate()+"/.insteadOf", from)
			}
		}
	}
	out["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	return out
}
