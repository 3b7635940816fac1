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
// allowlist rules, a tunnel that begins with TLS must ask for the host it was
// opened to (SNI), or one allowed host of a large provider would be the door to
// all others. A client that names nobody is allowed by the tunnel's host alone;
// one that hides the name (ECH) shows another in its place and is refused.
// Whether the request inside names the same host once more cannot be seen. What
// does not begin with TLS, such as ssh on port 443, is allowed by its host.
//
// Every request and tunnel is written down in a Ledger, without its path and
// query, which may hold secrets.
//
// Git is different in one way: it may need a token that a sandbox must not
// have. Requests for git.deckhand.internal are for the host that their path
// names. The policy, the address check and the ledger see that host; the token
// is added when the request is sent. See package gitgate.
package egress
