package fetch

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// silent are elements that say nothing to a reader.
var silent = []atom.Atom{
	atom.Title, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Canvas, atom.Link, atom.Meta,
	atom.Button, atom.Input, atom.Select, atom.Dialog,
}

// frame are elements around what a page is about.
var frame = []atom.Atom{atom.Nav, atom.Header, atom.Footer, atom.Aside}

// enough is the length of text from which a page's main part is taken for all of it.
const enough = 200

// markdown is what an HTML page says: its title and its main part, if it marks one.
func markdown(page []byte, at *url.URL) (string, error) {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return "", errors.New("its HTML cannot be read; fetch it raw")
	}
	title := ""
	if n := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Title }); n != nil {
		title = strings.Join(strings.Fields(textOf(n)), " ")
	}
	prune(doc, silent)
	part := mainPart(doc)
	if part == doc {
		prune(doc, frame)
		if len(strings.TrimSpace(textOf(doc))) == 0 { // all of it was frame
			if doc, err = html.Parse(bytes.NewReader(page)); err != nil {
				return "", errors.New("its HTML cannot be read; fetch it raw")
			}
			prune(doc, silent)
			part = doc
		}
	}
	body, err := convert(part, at)
	if err != nil {
		return "", err
	}
	if title != "" && !strings.HasPrefix(body, "# ") {
		body = strings.TrimSpace("# " + title + "\n\n" + body)
	}
	return body, nil
}

// convert writes a part of a page as markdown, or as plain words if that would
// be too much work.
func convert(part *html.Node, at *url.URL) (string, error) {
	unspan(part)
	if !easy(part) {
		return strings.TrimSpace(plain(part)), nil
	}
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := c.ConvertNode(part, converter.WithDomain(at.String()))
	if err != nil {
		return "", errors.New("its HTML cannot be turned into text")
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(out), "\uFFFD")), nil
}

// mainPart is the element that the page calls its main part, or the only
// article, if there is something in it; else all of it.
func mainPart(doc *html.Node) *html.Node {
	for _, is := range []func(*html.Node) bool{
		func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" },
		func(n *html.Node) bool { return n.DataAtom == atom.Article },
	} {
		found := 0
		var part *html.Node
		for n := range doc.Descendants() {
			if is(n) {
				found++
				part = n
			}
		}
		if found == 1 && len(strings.TrimSpace(textOf(part))) >= enough {
			return part
		}
	}
	return doc
}

func first(doc *html.Node, is func(*html.Node) bool) *html.Node {
	for n := range doc.Descendants() {
		if is(n) {
			return n
		}
	}
	return nil
}

// prune takes elements out, with comments and images that are written into the page.
func prune(doc *html.Node, elements []atom.Atom) {
	var out []*html.Node
	for n := range doc.Descendants() {
		inline := n.DataAtom == atom.Img && strings.HasPrefix(attr(n, "src"), "data:")
		if n.Type == html.CommentNode || n.Type == html.ElementNode && (inline || slices.Contains(elements, n.DataAtom)) {
			out = append(out, n)
		}
	}
	for _, n := range out {
		n.Parent.RemoveChild(n)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf is all text in a node.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
