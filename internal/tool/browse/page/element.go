package page

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"

	"deckhand/internal/tool/browse/devtools"
)

// element is one of a page, for as long as a step takes.
type element struct {
	tab    *Tab
	bid    string
	id     cdp.BackendNodeID
	object runtime.RemoteObjectID
}

// objects names what we hold of a page's memory, so that it can be let go of.
const objects = "deckhand"

// element finds what a bid means.
func (t *Tab) element(ctx context.Context, bid string) (*element, error) {
	n, err := strconv.ParseInt(strings.Trim(bid, "[] "), 10, 64)
	if err != nil || n <= 0 {
		return nil, fmt.Errorf("%q is not an element's number: take one in brackets from the list of elements", excerpt(bid, 50))
	}
	e := &element{tab: t, bid: bid, id: cdp.BackendNodeID(n)}
	r, err := call(ctx, t, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: e.id, ObjectGroup: objects})
	var refused *devtools.Error
	if errors.As(err, &refused) || err == nil && r.Object == nil {
		return nil, fmt.Errorf("there is no element [%d] on this page any more: look at the list of elements again", n)
	}
	if err != nil {
		return nil, err
	}
	e.object = r.Object.ObjectID
	return e, nil
}

// release lets go of what steps held in the page's memory.
func (t *Tab) release(ctx context.Context) {
	_, _ = call(ctx, t, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: objects})
}

// run calls a function of this package with the element as "this".
func (e *element) run(ctx context.Context, function string, out any, args ...any) error {
	yes := true
	p := runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: e.object, ReturnByValue: &yes, AwaitPromise: &yes, UserGesture: &yes}
	for _, a := range args {
		b, err := jsonv2.Marshal(a)
		if err != nil {
			return err
		}
		p.Arguments = append(p.Arguments, &runtime.CallArgument{Value: b})
	}
	r, err := call(ctx, e.tab, runtime.CallFunctionOn, p)
	if err != nil {
		return err
	}
	return result(r.Result, r.ExceptionDetails, out)
}

// point is a place on the page as it is shown.
type point struct{ x, y float64 }

// errHidden says that an element takes up no room.
var errHidden = errors.New("the element is not visible")

// middle brings an element into view and finds its middle.
func (e *element) middle(ctx context.Context) (point, error) {
	var refused *devtools.Error
	_, err := call(ctx, e.tab, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: e.id})
	if errors.As(err, &refused) {
		return point{}, errHidden
	}
	if err != nil {
		return point{}, err
	}
	return e.place(ctx)
}

// place finds the middle of an element where it is.
func (e *element) place(ctx context.Context) (point, error) {
	var refused *devtools.Error
	r, err := call(ctx, e.tab, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: e.id})
	if errors.As(err, &refused) {
		return point{}, errHidden
	}
	if err != nil {
		return point{}, err
	}
	for _, q := range r.Quads {
		if len(q) != 8 || area(q) < 1 {
			continue
		}
		return point{(q[0] + q[2] + q[4] + q[6]) / 4, (q[1] + q[3] + q[5] + q[7]) / 4}, nil
	}
	return point{}, errHidden
}

// area is that of a four-cornered shape.
func area(q dom.Quad) float64 {
	sum := 0.0
	for i := range 4 {
		j := (i + 1) % 4
		sum += q[2*i]*q[2*j+1] - q[2*j]*q[2*i+1]
	}
	return max(sum, -sum) / 2
}

// Click presses a mouse button on an element, so many times.
func (t *Tab) Click(ctx context.Context, bid, button string, modifiers []string, times int) error {
	if button == "" {
		button = "left"
	}
	which, ok := buttons[button]
	if !ok {
		return fmt.Errorf("there is no button %q: it is left, middle or right", excerpt(button, 50))
	}
	held, err := modifierBits(modifiers)
	if err != nil {
		return err
	}
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	at, err := e.middle(ctx)
	if errors.Is(err, errHidden) {
		// An option of a closed list, or a box that is drawn by something else.
		return e.run(ctx, clickHidden, nil)
	}
	if err != nil {
		return err
	}
	move := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at.x, Y: at.y, Modifiers: held}
	if _, err := call(ctx, t, input.DispatchMouseEvent, move); err != nil {
		return err
	}
	for n := range times {
		down := input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMousePressed, X: at.x, Y: at.y, Modifiers: held,
			Button: which.name, Buttons: which.bit, ClickCount: int64(n + 1),
		}
		up := down
		up.Type, up.Buttons = input.DispatchMouseEventTypeMouseReleased, 0
		if _, err := call(ctx, t, input.DispatchMouseEvent, down); err != nil {
			return err
		}
		if _, err := call(ctx, t, input.DispatchMouseEvent, up); err != nil {
			return err
		}
	}
	return nil
}

var buttons = map[string]struct {
	name input.MouseButton
	bit  int64
}{
	"left":   {input.MouseButtonLeft, 1},
	"right":  {input.MouseButtonRight, 2},
	"middle": {input.MouseButtonMiddle, 4},
}

// Hover moves the mouse over an element.
func (t *Tab) Hover(ctx context.Context, bid string) error {
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	at, err := e.middle(ctx)
	if err != nil {
		return err
	}
	_, err = call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: at.x, Y: at.y})
	return err
}

// Focus gives the keyboard to an element.
func (t *Tab) Focus(ctx context.Context, bid string) error {
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	return e.focus(ctx)
}

func (e *element) focus(ctx context.Context) error {
	var refused *devtools.Error
	_, err := call(ctx, e.tab, dom.Focus, dom.FocusParams{BackendNodeID: e.id})
	if errors.As(err, &refused) {
		return errors.New("the element cannot have the keyboard")
	}
	return err
}

// Fill puts a text into a field, in place of what is in it.
func (t *Tab) Fill(ctx context.Context, bid, text string) error {
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	var typed bool
	if err := e.run(ctx, fillField, &typed, text); err != nil || !typed {
		return err
	}
	if text == "" {
		return t.key(ctx, "Delete")
	}
	_, err = call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
	return err
}

// Select chooses options of a list, by their value or their text.
func (t *Tab) Select(ctx context.Context, bid string, options []string) error {
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	return e.run(ctx, selectOptions, nil, options)
}

// Press presses a key, with others held, on an element.
func (t *Tab) Press(ctx context.Context, bid, keys string) error {
	if _, err := parseKeys(keys); err != nil {
		return err
	}
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	if err := e.focus(ctx); err != nil {
		return err
	}
	return t.key(ctx, keys)
}

// wheel is a command whose parameters must be there also when they are 0.
var wheel = cdp.Command[wheelParams, cdp.Empty]{Method: input.DispatchMouseEvent.Method}

type wheelParams struct {
	Type   input.DispatchMouseEventType `json:"type"`
	X      float64                      `json:"x"`
	Y      float64                      `json:"y"`
	DeltaX float64                      `json:"deltaX"`
	DeltaY float64                      `json:"deltaY"`
}

// Scroll turns the wheel over the middle of the page.
func (t *Tab) Scroll(ctx context.Context, dx, dy float64) error {
	o := t.browser.options
	_, err := call(ctx, t, wheel, wheelParams{input.DispatchMouseEventTypeMouseWheel, float64(o.Width) / 2, float64(o.Height) / 2, dx, dy})
	return err
}

// Upload gives files to a field that takes them.
func (t *Tab) Upload(ctx context.Context, bid string, files []string) error {
	e, err := t.element(ctx, bid)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	var refused *devtools.Error
	_, err = call(ctx, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: files, BackendNodeID: e.id})
	if errors.As(err, &refused) {
		return fmt.Errorf("the element takes no files: %s", excerpt(refused.Message, 200))
	}
	return err
}

// Text is what can be read on the page, or in an element of it.
func (t *Tab) Text(ctx context.Context, bid string) (text string, err error) {
	if bid == "" {
		return text, t.evaluate(ctx, "("+readText+").call(document.body || document.documentElement)", &text)
	}
	e, err := t.element(ctx, bid)
	if err != nil {
		return "", err
	}
	defer t.release(ctx)
	return text, e.run(ctx, readText, &text)
}
