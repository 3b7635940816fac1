// Package nats carries wakes between members over a NATS server. Conn is a small client of core NATS: it
// publishes and subscribes, and connects again when a connection ends. What is published while there is no
// connection is lost, as is what a slow subscriber has no room for: members look at the database in any case.
package nats
