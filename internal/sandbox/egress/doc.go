// Package egress is the policy proxy through which all network traffic of a sandbox goes.
// It runs in the server and serves the connections that processes in the sandbox make to
// 127.0.0.1:3128.
//
// It is an ordinary HTTP proxy: requests in absolute form for http, CONNECT for
// everything else. Each request is checked twice: against the policy of its sandbox by
// name, before the name is resolved, and by package outbound by address, after it was
// resolved and before anything is sent. So an allowed name cannot lead to the machine's
// own network, and a forbidden name is not even sent to a name server. Redirects are
// followed by the client, as new requests.
//
// Tunnels are not inspected, with one exception: with an allowlist, one allowed host of a
// large provider must not give access to all its other hosts. So a tunnel must start with
// TLS for the host that it was opened to (SNI), or with a plain HTTP request; these
// requests are taken out of the tunnel, and each must name the host. A client that names
// no host is rejected, unless the host is listed by its address, and so is one that hides
// the name (ECH), because it shows another one. Requests inside TLS cannot be checked.
// SSH is allowed if the list has the host with its port, as in example.org:22. No other
// protocol is allowed.
//
// Every request and tunnel is recorded in a Ledger, without its path and query, which may
// contain secrets.
//
// Git may need a token that the sandbox must not have. Requests to git.deckhand.internal
// are for the host in their path. The policy, the address check and the ledger use that
// host; the token is added when the request is sent. See package gitgate.
package egress
