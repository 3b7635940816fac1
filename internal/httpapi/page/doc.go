// Package page serves the web page, the manual, the API reference and the plain pages, and
// logs browsers in.
package page
