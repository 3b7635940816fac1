// Package api is the contract: the types that travel over the wire and the
// codes that name what went wrong. It has no behaviour beyond encoding and
// imports nothing but the standard library, so a client can depend on it alone.
package api
