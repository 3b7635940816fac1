package page

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// render tells of a tree whose first node is its root.
func render(nodes []*accessibility.Node) (*tree, string) {
	w := &tree{clickable: map[cdp.BackendNodeID]bool{7: true}}
	f := &frame{nodes: map[accessibility.NodeID]*accessibility.Node{}}
	for _, n := range nodes {
		if n != nil {
			f.nodes[n.NodeID] = n
			if f.root == nil {
				f.root = n
			}
		}
	}
	if f.root != nil {
		w.write(f, f.root, "", 0)
	}
	return w, w.out.String()
}

func decode(t testing.TB, text string) []*accessibility.Node {
	t.Helper()
	var r accessibility.GetFullAXTreeResult
	if err := jsonv2.Unmarshal([]byte(text), &r, jsonv2.AllowInvalidUTF8(true)); err != nil {
		t.Skip(err)
	}
	return r.Nodes
}

const sample = `{"nodes":[
	{"nodeId":"1","ignored":false,"role":{"type":"x","value":"RootWebArea"},"name":{"type":"x","value":"A  page\nhere"},"childIds":["2","3","4","1"]},
	{"nodeId":"2","ignored":true,"role":{"type":"x","value":"none"},"childIds":["5"]},
	{"nodeId":"3","ignored":false,"role":{"type":"x","value":"generic"},"backendDOMNodeId":7,"childIds":["6"]},
	{"nodeId":"4","ignored":false,"role":{"type":"x","value":"InlineTextBox"},"name":{"type":"x","value":"again"}},
	{"nodeId":"5","ignored":false,"role":{"type":"x","value":"textbox"},"backendDOMNodeId":9,"name":{"type":"x","value":"it's"},"value":{"type":"x","value":"v"},
		"properties":[{"name":"focused","value":{"type":"x","value":true}},{"name":"invalid","value":{"type":"x","value":"false"}},{"name":"level","value":{"type":"x","value":2}}],"childIds":["8"]},
	{"nodeId":"6","ignored":false,"role":{"type":"x","value":"generic"},"childIds":["7"]},
	{"nodeId":"7","ignored":false,"role":{"type":"x","value":"StaticText"},"name":{"type":"x","value":"text"}},
	{"nodeId":"8","ignored":false,"role":{"type":"x","value":"StaticText"},"name":{"type":"x","value":"it's"}}
]}`

func TestTree(t *testing.T) {
	w, got := render(decode(t, sample))
	want := "RootWebArea 'A page here'\n\t[9] textbox 'it\\'s', value='v', focused, level=2\n\t[7] generic, clickable\n\t\tStaticText 'text'\n"
	if got != want || w.focused != 9 {
		t.Errorf("%d has the keyboard, and the page is\n%s\nwant\n%s", w.focused, got, want)
	}
}

// A tree that is too large is not searched.
func TestTreeDeep(t *testing.T) {
	var nodes []*accessibility.Node
	for i := range 100_000 {
		id := func(n int) accessibility.NodeID { b, _ := json.Marshal(n); return accessibility.NodeID(b) }
		nodes = append(nodes, &accessibility.Node{
			NodeID: id(i), ChildIDs: []accessibility.NodeID{id(i + 1)},
			Role: &accessibility.Value{Value: jsonv2.Value(`"list"`)},
		})
	}
	if w, got := render(nodes); strings.Count(got, "\n") != maxLevel || w.level != 0 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

func FuzzTree(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		nodes := decode(t, text)
		_, got := render(nodes)
		if !utf8.ValidString(got) || strings.Count(got, "\n") > len(nodes) {
			t.Errorf("%q", got)
		}
	})
}

func TestKeys(t *testing.T) {
	for text, want := range map[string]combination{
		"a": {'a', 0}, "Enter": {'\r', 0}, "Control+a": {'a', 2}, "Control+Shift+Z": {'Z', 10}, "Alt++": {'+', 1}, "+": {'+', 0},
		"Space": {' ', 0}, "ä": {'ä', 0}, "Meta+Tab": {'\t', 4}, "Shift+ArrowDown": {namedKeys()["ArrowDown"], 8},
	} {
		if got, err := parseKeys(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Hyperdrive", "Control+", "a+b", "Enter+a", "+a"} {
		if got, err := parseKeys(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("Control+Shift+a")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseKeys(text); err == nil && (c.held < 0 || c.held > 15) {
			t.Errorf("%q is %+v", text, c)
		}
	})
}
