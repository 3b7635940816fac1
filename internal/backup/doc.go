// Package backup stores the data of a server in a folder and restores it from there.
//
// The database, each workspace and the master key are streams of bytes. Streams are cut into
// chunks where their content says so, and a chunk is stored once under its hash, so that a second
// backup adds only what has changed. A backup is a manifest that lists the chunks of its streams.
// Nothing is ever changed in place: chunks and manifests are written under temporary names, synced
// and renamed, and the manifest comes last.
package backup
