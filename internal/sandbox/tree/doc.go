// Package tree measures, copies and removes folders with untrusted contents.
//
// The contents may change at any time, links may lead anywhere, and folders may be nested
// deeper than the longest path. So nothing is accessed by path: every step goes from an
// open folder to a name in it, never through a link, and only one folder is open at a
// time.
package tree
