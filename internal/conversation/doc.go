// Package conversation holds the use cases of conversations: create, start, say, decide, override, fork, rename, pause,
// stop, delete. Every entry point (HTTP, Socket.IO, the MCP server, triggers, delegation, the command run) calls these functions
// with a typed command, and maps the Refusal it may get to its own form. The package knows no entry point, no database and no
// model adapter: what it needs of them are functions and small interfaces in Config.
package conversation
