package page

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/input"
)

// dragSteps is how many moves lead from one element to the other: pages want to
// see the mouse on its way.
const dragSteps = 10

// dragTime is how long the browser may take to say that it drags something.
const dragTime = 2 * time.Second

// Drag drags an element onto another.
func (t *Tab) Drag(ctx context.Context, from, to string) error {
	source, err := t.element(ctx, from)
	if err != nil {
		return err
	}
	defer t.release(ctx)
	goal, err := t.element(ctx, to)
	if err != nil {
		return err
	}
	if _, err := goal.middle(ctx); err != nil {
		return err
	}
	a, err := source.middle(ctx)
	if err != nil {
		return err
	}
	b, err := goal.place(ctx) // where it is now, after the page may have scrolled
	if err != nil {
		return err
	}
	if o := t.browser.options; b.x < 0 || b.y < 0 || b.x > float64(o.Width) || b.y > float64(o.Height) {
		return errors.New("the two elements do not fit on the screen together")
	}
	var native bool
	if err := source.run(ctx, canDrag, &native); err != nil {
		return err
	}
	return t.drags(ctx, a, b, native)
}

// drags moves the mouse with its button down. What the browser itself drags it
// hands to us, because there is no desktop that would drop it.
func (t *Tab) drags(ctx context.Context, from, to point, native bool) (err error) {
	t.browser.mu.Lock()
	t.drag = nil
	t.browser.mu.Unlock()
	if _, err := call(ctx, t, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: native}); err != nil {
		return err
	}
	at := from
	defer func() { // whatever happened, the button does not stay down
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dragTime)
		defer cancel()
		err = errors.Join(err, t.mouse(ctx, input.DispatchMouseEventTypeMouseReleased, at, 0))
		_, _ = call(ctx, t, input.SetInterceptDrags, input.SetInterceptDragsParams{Enabled: false})
	}()
	if err := t.mouse(ctx, input.DispatchMouseEventTypeMouseMoved, from, 0); err != nil {
		return err
	}
	if err := t.mouse(ctx, input.DispatchMouseEventTypeMousePressed, from, 1); err != nil {
		return err
	}
	for i := 1; i <= dragSteps; i++ {
		part := float64(i) / dragSteps
		at = point{from.x + (to.x-from.x)*part, from.y + (to.y-from.y)*part}
		if err := t.mouse(ctx, input.DispatchMouseEventTypeMouseMoved, at, 1); err != nil {
			return err
		}
	}
	if !native {
		return nil
	}
	return t.drop(ctx, to)
}

// drop finishes what the browser drags, if it does.
func (t *Tab) drop(ctx context.Context, to point) error {
	soon, cancel := context.WithTimeout(ctx, dragTime)
	defer cancel()
	var data *input.DragData
	err := t.browser.until(soon, func() bool { data = t.drag; return data != nil })
	if err != nil {
		if ctx.Err() == nil && soon.Err() != nil {
			return nil // the page moves it by itself
		}
		return err
	}
	for _, kind := range []input.DispatchDragEventType{
		input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop,
	} {
		if _, err := call(ctx, t, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: to.x, Y: to.y, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// mouse moves the mouse, or its left button.
func (t *Tab) mouse(ctx context.Context, kind input.DispatchMouseEventType, at point, down int64) error {
	p := input.DispatchMouseEventParams{Type: kind, X: at.x, Y: at.y, Buttons: down}
	if kind != input.DispatchMouseEventTypeMouseMoved || down != 0 {
		p.Button = input.MouseButtonLeft
	}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		p.ClickCount = 1
	}
	_, err := call(ctx, t, input.DispatchMouseEvent, p)
	return err
}
