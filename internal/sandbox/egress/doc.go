// Package egress is the policy proxy that is a sandbox's only way out. It runs
// in the server: whatever something in the sandbox sends to its own
// 127.0.0.1:3128 arrives here as a connection.
//
// It is an ordinary HTTP proxy: requests in absolute form for http, CONNECT for
// everything else. Each request is asked of the policy of its sandbox by name,
// before the name is looked up, and then of package outbound by address, after
// the name was looked up and before anything is sent. So a name that may be
// asked for cannot lead to the machine's own network, and a name that may not
// be asked for is not even told to a name server. Redirects are the client's
// business: where they lead is a new request.
//
// What a tunnel carries is not looked into, with one exception: where an
// allowlist rules, one allowed host of a large provider must not give access to
// all others. There a tunnel must begin with TLS that asks for the host it was
// opened to (SNI), or with a plain HTTP request; these are taken out of the
// tunnel, and each must name the host. A client that names no host is refused,
// unless the host is listed by its address, and so is one that hides the name
// (ECH), because it shows another in its place. Whether a request inside TLS
// names the same host once more cannot be seen. SSH passes if the list has the
// host with its port, as in example.org:22, and nothing else does.
//
// Every request and tunnel is written down in a Ledger, without its path and
// query, which may hold secrets.
//
// Git is different in one way: it may need a token that a sandbox must not
// have. Requests for git.deckhand.internal are for the host that their path
// names. The policy, the address check and the ledger see that host; the token
// is added when the request is sent. See package gitgate.
package egress
