// Package refusal explains why PostgreSQL does not let a server use its database, and what to do.
package refusal

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/advice"
	"deckhand/internal/store/postgres/pg"
)

// explained is an error with another text.
type explained struct {
	text string
	error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

// Explain adds to an error of opening a database why PostgreSQL refused it, and what to do. Statements that fail later are not a matter of
// settings, and keep their errors. flag is the flag with the URL of the database, or with the file that contains it.
func Explain(c *pgconn.Config, flag string, err error) error {
	reason, fix := cause(c, flag, err)
	if reason == "" {
		return err
	}
	if state := pg.State(err); state != "" {
		reason += " (SQLSTATE " + state + ")"
	}
	return advice.With(explained{reason, err}, "%s", fix)
}

// cause returns the reason and the fix; "" if the error says enough.
func cause(c *pgconn.Config, flag string, err error) (reason, fix string) {
	var said pgconn.PgError
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		said = *e
	}
	database, user := quoted(c.Database), quoted(c.User)
	switch said.Code {
	case "3D000": // invalid_catalog_name
		return fmt.Sprintf("the database %s does not exist", database),
			fmt.Sprintf("create it: CREATE DATABASE %s OWNER %s; or correct the name in %s", database, user, flag)
	case "28P01": // invalid_password
		return fmt.Sprintf("PostgreSQL does not accept the password of the user %s, or has no such user", user),
			"correct the user and the password in " + flag + " (the password may also be in PGPASSWORD or ~/.pgpass), or set it: ALTER ROLE " + user + " PASSWORD '…'"
	case "28000": // invalid_authorization_specification
		return refused(said, user, flag)
	case "42501": // insufficient_privilege
		return forbidden(said, database, user)
	case "53300": // too_many_connections
		return "PostgreSQL has no free connections",
			"raise max_connections of PostgreSQL, or the CONNECTION LIMIT of the user or database, if they have one; or set a lower pool_max_conns in " + flag
	case "":
		return unconnected(err, flag)
	}
	return "", ""
}

// refused is cause for a login that PostgreSQL refuses.
func refused(said pgconn.PgError, user, flag string) (reason, fix string) {
	switch {
	case strings.Contains(said.Message, "pg_hba.conf") && strings.Contains(said.Message, "no encryption"):
		return "PostgreSQL does not allow this connection without TLS: " + said.Message, "set sslmode=require or sslmode=verify-full in " + flag + ", or allow the connection in pg_hba.conf and reload PostgreSQL"
	case strings.Contains(said.Message, "pg_hba.conf"):
		return "PostgreSQL does not allow this connection: " + said.Message, "allow this user, database and address in pg_hba.conf, and reload PostgreSQL"
	}
	return fmt.Sprintf("PostgreSQL does not let the user %s log in: %s", user, said.Message),
		"correct the user in " + flag + ", or create it: CREATE ROLE " + user + " LOGIN PASSWORD '…'"
}

// forbidden is cause for a privilege that the user lacks.
func forbidden(said pgconn.PgError, database, user string) (reason, fix string) {
	switch {
	case strings.Contains(said.Detail, "CONNECT"):
		return fmt.Sprintf("the user %s may not connect to the database %s", user, database), "GRANT CONNECT ON DATABASE " + database + " TO " + user
	case strings.Contains(said.Message, "for database"):
		return fmt.Sprintf("the user %s may not create the tables in the database %s: %s", user, database, said.Message), "GRANT CREATE ON DATABASE " + database + " TO " + user
	}
	return fmt.Sprintf("the user %s lacks a privilege: %s", user, said.Message),
		"connect as the owner of the schema deckhand, or make " + user + " the owner of the schema and of everything in it"
}

// unconnected is cause for a connection that failed before PostgreSQL replied.
func unconnected(err error, flag string) (reason, fix string) {
	var (
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
	)
	switch {
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgconn has no type for it
		return "the database URL requires TLS, and PostgreSQL does not use it", "set ssl = on and a certificate in postgresql.conf, or, if the network is trusted, sslmode=disable in " + flag
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.As(err, &name):
		return "the TLS certificate of PostgreSQL is not accepted: " + last(err), "set sslrootcert in " + flag + " to the certificate of its authority, and use a host name that is in the certificate"
	case pg.Unconnected(err):
		return "the database cannot be reached: " + last(err), "check that PostgreSQL is running and that the host and port in " + flag + " are correct; psql must be able to connect with the same URL from this machine"
	}
	return "", ""
}

// last is the innermost error, without what the ones around it repeat.
func last(err error) string {
	if e := (*pgconn.ConnectError)(nil); errors.As(err, &e) && e.Unwrap() != nil {
		err = e.Unwrap()
	}
	return pg.Brief(err)
}

// quoted is an identifier of SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
