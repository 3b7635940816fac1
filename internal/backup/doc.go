// Package backup stores the data of a server in a folder and restores it from there.
//
// The database, each workspace and the master key are streams of bytes. Streams are cut into
// chunks at boundaries that depend on their content, and each chunk is stored once under its hash,
// so a second backup adds only what has changed. A backup is a manifest with the chunks of its
// streams. Files are never changed in place: they are written under temporary names, synced and
// renamed, the manifest last.
package backup
