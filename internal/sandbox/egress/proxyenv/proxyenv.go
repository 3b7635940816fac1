// Package proxyenv has the environment variables that make programs in a sandbox use its
// proxy. It has almost no imports, because the runner needs it.
package proxyenv

import (
	"maps"
	"slices"
	"strconv"
)

// Env is what everything in a sandbox gets, for a proxy on this port of its
// loopback.
//
// curl, git, pip, apt, npm, wget, cargo and Go programs read the usual
// variables; which of the two spellings differs, so both are set. (curl takes
// http_proxy in lower case only, because a web server puts a request's Proxy
// header into HTTP_PROXY for its scripts.) all_proxy is for other schemes and
// for clients that read nothing else. Node's own fetch and http need to be told
// to look at them. Nothing needs npm_config_proxy, and a tool's own variable
// would win over a proxy that the user sets for a single command.
func Env(port int) map[string]string {
	proxy := "http://127.0.0.1:" + strconv.Itoa(port)
	const direct = "localhost,127.0.0.1,::1"
	return map[string]string{
		"http_proxy": proxy, "HTTP_PROXY": proxy,
		"https_proxy": proxy, "HTTPS_PROXY": proxy,
		"all_proxy": proxy, "ALL_PROXY": proxy,
		"no_proxy": direct, "NO_PROXY": direct,
		"NODE_USE_ENV_PROXY": "1",
	}
}

// Variables is Env as NAME=value, in order of the names.
func Variables(port int) []string {
	env := Env(port)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
