// Package mcp serves conversations to external agents as the tools of an MCP server. The
// tools call the same use cases and queries as the routes.
package mcp
