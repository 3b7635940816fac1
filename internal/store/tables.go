package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Type is the type of a column in the form in which rows travel between databases.
type Type byte

// The values of these types are int64, bool, string and []byte; nil is NULL.
const (
	Int  Type = 'i'
	Bool Type = 'b'
	Text Type = 't'
	Blob Type = 'B'
)

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
}

// Table is a table that a move carries to another database. Names are those of PostgreSQL.
type Table struct {
	Name    string
	Columns []Column
	// Key is how many of the columns are the primary key. They come first.
	Key int
	// Only are the values of the first column of the rows that travel, and Except of one that does not; empty for all rows. The
	// others belong to the database.
	Only, Except string
}

// Tables are all tables that a move carries, in an order in which no row refers to a later one. A table that is not listed here
// must be listed as local by its database, with the reason; TestTablesAreKnown of each database fails otherwise.
var Tables = []Table{
	// meta is first and small: it is stored together with the record of the move.
	table("meta", 1, "name t, value B").except(MetaMove),
	table("counters", 1, "name t, value i").only("access"),
	table("users", 1, "name t, admin b, disabled b, created_at i"),
	table("keys", 1, "id t, username t, label t, admin b, created_at i, expires_at i, revoked_at i, hash B, sign_on b"),
	table("links", 2, "issuer t, subject t, username t, created_at i, email t, email_verified b"),
	table("data_keys", 1, "username t, id t, master_id t, wrapped B, created_at i"),
	table("settings", 1, "username t, version i, body B, updated_at i"),
	table("answers", 2, "username t, key t, request t, status i, header B, body B, created_at i"),
	table("spending", 2, "username t, month t, amount i"),
	table("reservations", 2, "username t, session t, amount i"),
	table("egress", 2, "sandbox t, id i, at i, took i, call t, method t, host t, port i, sent i, received i, verdict t, reason t"),
	table("feedback", 1, "id i, username t, session t, at i, rating i, event i, reason t, metadata B, polarity t, permissions t, email t, version t"),
	// The numbers that were given away, so that none is given away again.
	table("sequences", 1, "name t, value i"),
	table("webhooks", 1, "id t, username t, description t, events i, enabled b, target B, created_at i, changed_at i, failures i, failing_since i, quiet_until i, disabled t"),
	table("integrations", 1, "id t, username t, provider t, host t, mention t, label t, repositories t, allowed_users t, enabled b, secret B, created_at i, changed_at i"),
	table("threads", 4, "integration t, repository t, pull b, number i, session t"),
	table("queue_owners", 2, "queue t, id t, username t"),
	table("queue_items", 3, "queue t, owner t, seq i, id t, print t, lane t, session t, kind t, state t, open b, attempts i, created_at i, next_at i, body B, details B"),
	table("queue_lanes", 2, "queue t, name t, username t, waiting i, due_at i, holder t, until i, claim i, ready_at i"),
	table("names", 1, "id t, n i"),
	table(SessionsTable, 1, "n i, id t, owner t, created_at i, updated_at i, last i, attention i, deleted b, holder t, compressed i, row B"),
	table(EventsTable, 2, "n i, last i, at i, body B"),
}

// The tables that are verified together, conversation by conversation.
const (
	SessionsTable = "sessions"
	EventsTable   = "events"
)

// Sequences are the tables whose first column is given away by the database.
var Sequences = []string{"feedback"}

// MetaMove is the name of the meta value that a database has while an installation is moved into it, and MetaID that of the
// key of session IDs, which no two installations share.
const (
	MetaMove = "move"
	MetaID   = "id_key"
)

// table reads a list of columns, each with the letter of its type.
func table(name string, key int, columns string) Table {
	t := Table{Name: name, Key: key}
	for c := range strings.SplitSeq(columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		t.Columns = append(t.Columns, Column{name, Type(kind[0])})
	}
	return t
}

func (t Table) only(value string) Table   { t.Only = value; return t }
func (t Table) except(value string) Table { t.Except = value; return t }

// Names are the names of the columns.
func (t Table) Names() []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// Side is a database that an installation is moved from or to. It is used by one goroutine.
type Side interface {
	// String names the database, without a password.
	String() string
	// Read calls each for up to limit rows whose key is greater than after, in the order of their keys; nil begins with the
	// first one. An error of each ends it and is returned. The values of a row may be kept.
	Read(ctx context.Context, t Table, after []any, limit int, each func(row []any) error) error
	// Write stores rows of a table and the record of the move in one transaction. clear first deletes all rows that travel.
	Write(ctx context.Context, t Table, rows [][]any, record []byte, clear bool) error
	// Finish makes what the database derives from the rows, such as indexes for searches.
	Finish(ctx context.Context) error
	// Done deletes the record of the move: from now on, a server can use the database.
	Done(ctx context.Context) error
	// Schema returns the columns of each table that the database has.
	Schema(ctx context.Context) (map[string][]string, error)
	Close() error
}

// CheckSchema returns an error if a database has a table or column that a move would leave behind. local are those that belong to
// the database, as TABLE or TABLE.COLUMN.
func CheckSchema(has map[string][]string, local map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if local[name] != "" {
			continue
		}
		i := slices.IndexFunc(Tables, func(t Table) bool { return t.Name == name })
		if i < 0 {
			return fmt.Errorf("the table %s is neither in store.Tables nor local to the database", name)
		}
		for _, c := range has[name] {
			if !slices.Contains(Tables[i].Names(), c) && local[name+"."+c] == "" {
				return fmt.Errorf("the column %s of the table %s is neither in store.Tables nor local to the database", c, name)
			}
		}
		for _, c := range Tables[i].Names() {
			if !slices.Contains(has[name], c) {
				return fmt.Errorf("the table %s has no column %s, which is in store.Tables", name, c)
			}
		}
	}
	for _, t := range Tables {
		if _, ok := has[t.Name]; !ok {
			return fmt.Errorf("the table %s of store.Tables is missing", t.Name)
		}
	}
	return nil
}
