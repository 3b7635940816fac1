// Package notify tells the outside world that something happened in a
// conversation: webhooks of the users' own, thin and signed after the Standard
// Webhooks specification.
//
// What is to be told is queued by the store in the transaction that appends the
// events (session.News becomes a Delivery for each webhook that wants it), so
// nothing is lost when the server dies in between. The Dispatcher takes
// deliveries from the queue, sends them, and settles each one: delivered, to be
// tried again, or given up. Hooks is what the door uses to manage webhooks and
// to show their deliveries. Records has the rules about what is stored.
//
// Browsers and e-mail addresses are receivers beside webhooks, with the same queue. What they are
// told is for people, so an Announcer (package notice) decides it at each attempt and sends it;
// push and mail below have the protocols.
//
// The package knows neither the door nor a database; it dials only through the
// client it is given.
package notify
