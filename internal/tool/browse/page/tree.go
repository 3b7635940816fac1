package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/domsnapshot"
	"github.com/chromedp/cdproto/page"

	"deckhand/internal/clip"
	"deckhand/internal/tool/browse/devtools"
)

// What is asked of a page is bounded before it is asked for.
const (
	maxElements   = 15_000
	maxCharacters = 4_000_000
	maxFrames     = 20
	maxIndent     = 20
	maxLevel      = 1000 // that is looked into, not that is shown
	maxName       = 500
)

// tree describes a page as text.
type tree struct {
	out       strings.Builder
	clickable map[cdp.BackendNodeID]bool
	frames    map[cdp.BackendNodeID]*frame // by the element that shows them
	focused   cdp.BackendNodeID
	level     int
}

// frame is the tree of one document.
type frame struct {
	root  *accessibility.Node
	nodes map[accessibility.NodeID]*accessibility.Node
}

// Tree lists the elements of the page, one per line and indented, with their
// bids, and says which one has the keyboard.
func (t *Tab) Tree(ctx context.Context) (text, focused string, err error) {
	w := &tree{clickable: map[cdp.BackendNodeID]bool{}, frames: map[cdp.BackendNodeID]*frame{}}
	if err := w.clicks(ctx, t); err != nil {
		return "", "", err
	}
	top, err := t.frame(ctx, "")
	if err != nil {
		return "", "", err
	}
	if err := w.inner(ctx, t); err != nil {
		return "", "", err
	}
	if top != nil {
		w.write(top, top.root, "", 0)
	}
	if w.focused != 0 {
		focused = fmt.Sprint(w.focused.Int64())
	}
	return w.out.String(), focused, nil
}

// clicks asks which elements do something when they are clicked on: a page says
// so of every link, but also of anything that it made into a button.
func (w *tree) clicks(ctx context.Context, t *Tab) error {
	r, err := call(ctx, t, domsnapshot.CaptureSnapshot, domsnapshot.CaptureSnapshotParams{ComputedStyles: []string{}})
	if err != nil {
		return err
	}
	for _, d := range r.Documents {
		if d.Nodes == nil || d.Nodes.IsClickable == nil {
			continue
		}
		for _, i := range d.Nodes.IsClickable.Index {
			if i >= 0 && i < int64(len(d.Nodes.BackendNodeID)) {
				w.clickable[d.Nodes.BackendNodeID[i]] = true
			}
		}
	}
	return nil
}

// frame asks for the tree of a document, "" for the page itself.
func (t *Tab) frame(ctx context.Context, id cdp.FrameID) (*frame, error) {
	r, err := call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{FrameID: id})
	if err != nil {
		return nil, err
	}
	f := &frame{nodes: map[accessibility.NodeID]*accessibility.Node{}}
	for _, n := range r.Nodes {
		if n == nil {
			continue
		}
		f.nodes[n.NodeID] = n
		if n.ParentID == "" && f.root == nil {
			f.root = n
		}
	}
	if f.root == nil {
		return nil, nil
	}
	return f, nil
}

// inner asks for the documents that the page embeds. One that disappears is left out.
func (w *tree) inner(ctx context.Context, t *Tab) error {
	r, err := call(ctx, t, page.GetFrameTree, cdp.Empty{})
	if err != nil || r.FrameTree == nil {
		return err
	}
	waiting := slices.Clone(r.FrameTree.ChildFrames)
	for n := 0; len(waiting) > 0 && n < maxFrames; n++ {
		at := waiting[0]
		waiting = append(waiting[1:], at.ChildFrames...)
		owner, err := call(ctx, t, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: at.Frame.ID})
		var f *frame
		if err == nil {
			f, err = t.frame(ctx, at.Frame.ID)
		}
		var refused *devtools.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if f != nil {
			w.frames[owner.BackendNodeID] = f
		}
	}
	return nil
}

// skipped are roles that repeat what others say.
var skipped = []string{"InlineTextBox", "LineBreak", "ListMarker"}

// empty are roles that mean nothing by themselves.
var empty = []string{"generic", "none", "presentation", "LayoutTable", "LayoutTableRow", "LayoutTableCell"}

// write tells of a node and all below it. The name is that of the line above,
// which need not be said twice.
func (w *tree) write(f *frame, n *accessibility.Node, above string, depth int) {
	// Taken out, so that a tree that bites its tail has an end.
	delete(f.nodes, n.NodeID)
	if w.level++; w.level > maxLevel {
		w.level--
		return
	}
	defer func() { w.level-- }()
	role, name := word(n.Role), excerpt(clip.Line(word(n.Name)), maxName)
	if slices.Contains(skipped, role) {
		return
	}
	id := n.BackendDOMNodeID
	told := !n.Ignored && (role == "StaticText" && name != "" && name != above ||
		role != "StaticText" && !(slices.Contains(empty, role) && name == "" && !w.clickable[id]))
	if told {
		w.line(n, role, name, depth)
		depth, above = min(depth+1, maxIndent), name
	}
	for _, child := range n.ChildIDs {
		if c := f.nodes[child]; c != nil {
			w.write(f, c, above, depth)
		}
	}
	if in := w.frames[id]; in != nil && id != 0 {
		delete(w.frames, id)
		w.write(in, in.root, "", depth)
	}
}

// told are the properties that matter for interacting with the page.
var told = []accessibility.PropertyName{
	"checked", "pressed", "selected", "expanded", "disabled", "required", "readonly", "invalid", "multiselectable", "haspopup", "level", "url",
}

// line tells of one node.
func (w *tree) line(n *accessibility.Node, role, name string, depth int) {
	out := &w.out
	out.WriteString(strings.Repeat("\t", depth))
	id := n.BackendDOMNodeID
	if role != "StaticText" && role != "RootWebArea" && id > 0 {
		fmt.Fprintf(out, "[%d] ", id.Int64())
	}
	out.WriteString(role)
	if name != "" {
		out.WriteString(" " + quote(name))
	}
	if v := word(n.Value); v != "" && role != "StaticText" {
		out.WriteString(", value=" + quote(excerpt(v, maxName)))
	}
	if w.clickable[id] && role != "link" && role != "button" {
		out.WriteString(", clickable")
	}
	for _, p := range n.Properties {
		if p == nil || p.Value == nil {
			continue
		}
		v := word(p.Value)
		if p.Name == "focused" && v == "true" && role != "RootWebArea" {
			w.focused = id
			out.WriteString(", focused")
		}
		if !slices.Contains(told, p.Name) || v == "" || v == "false" {
			continue
		}
		switch {
		case v == "true":
			out.WriteString(", " + string(p.Name))
		case p.Name == "url":
			if role == "link" {
				out.WriteString(", url=" + quote(excerpt(v, 200)))
			}
		default:
			out.WriteString(", " + string(p.Name) + "=" + excerpt(v, 50))
		}
	}
	out.WriteString("\n")
}

// quote puts a text between quotes, on one line.
func quote(s string) string {
	return "'" + strings.NewReplacer("\n", " ", "\r", " ", "'", `\'`).Replace(s) + "'"
}

// word is a value as text.
func word(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var text string
	if v.Value[0] == '"' {
		if jsonv2.Unmarshal(v.Value, &text, jsonv2.AllowInvalidUTF8(true)) != nil {
			return ""
		}
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	if v.Value[0] == '{' || v.Value[0] == '[' {
		return ""
	}
	return string(v.Value)
}
