// Package legacy serves clients of the legacy server: its front end, its Socket.IO dialect,
// and operations that have no other use here.
package legacy
