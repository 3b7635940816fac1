// Package nats carries wakes between members over a NATS server. Conn is a small client of core NATS: it
// publishes, subscribes and reconnects. Messages are lost while there is no connection, and when a subscriber
// is too slow. Members also poll the database, so a lost message only costs time.
package nats
