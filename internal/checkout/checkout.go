package checkout

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"path"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// Source is where a repository comes from, and where it goes.
type Source struct {
	// URL is http:// or https://, without credentials.
	URL string
	// Folder is where in the workspace it goes, "." for the workspace itself.
	Folder string
	// Coauthored says that commits name the user as well; see Coauthor.
	Coauthored bool
	// Confirm says that the person is asked before scripts of the repository run.
	Confirm bool
	// Template says that repositories made with git init do so too; see Template.
	Template bool
}

// Folder is the usual folder of a repository: its name without the owner.
func Folder(repository string) string {
	name := strings.TrimSuffix(path.Base(repository), ".git")
	if name == "" || name == "." || name == "/" || strings.HasPrefix(name, temporary) {
		return "repository"
	}
	return name
}

// Config is what a Checkout needs.
type Config struct {
	Sessions *session.Sessions
	// Source says where a session's repository comes from.
	Source func(ctx context.Context, st session.State) (Source, error)
	// Mask gives what takes an owner's secrets out of what is recorded; nil takes nothing.
	Mask func(ctx context.Context, owner string) (*secret.Masker, error)
	// Confinable says that the network can be closed to a script.
	Confinable bool
	// AskTime is how long the person may take to answer, 0 for ever, and AcceptLate
	// says that scripts run if there is no answer.
	AskTime    time.Duration
	AcceptLate bool
	// CloneTime and SetUpTime bound a clone and a set-up script; 0 is the usual.
	CloneTime, SetUpTime time.Duration
}

// How long things may take.
const (
	cloneTime = 30 * time.Minute
	setUpTime = 10 * time.Minute
)

// Checkout brings repositories into workspaces.
type Checkout struct{ Config }

// New makes one.
func New(c Config) *Checkout {
	if c.CloneTime == 0 {
		c.CloneTime = cloneTime
	}
	if c.SetUpTime == 0 {
		c.SetUpTime = setUpTime
	}
	return &Checkout{c}
}

// work is one repository on its way into one workspace.
type work struct {
	*Checkout
	id   session.ID
	box  *sandbox.Sandbox
	want session.Created
	src  Source
	mask *secret.Masker
	// before is the checkout that was lost, nil if there was none.
	before *session.CheckedOut
	// distrusted says that scripts of the repository may have run that is not trusted.
	distrusted bool
	tell       func(sandbox.Progress)
}

// Prepare sees to it that the session's repository, if it has one, is in the
// workspace and set up. While the person is asked about its scripts it is not set up
// yet, and session.State.Unprepared stays true. What is there already is left as it is. A repository that cannot be had is
// a *sandbox.Unavailable.
func (c *Checkout) Prepare(ctx context.Context, st session.State, box *sandbox.Sandbox, tell func(sandbox.Progress)) error {
	if st.Created.Parent != "" {
		return nil
	}
	src, err := c.Source(ctx, st)
	if err != nil {
		return err
	}
	w := &work{Checkout: c, id: st.ID, box: box, want: st.Created, src: src, before: st.Checkout, distrusted: st.Checkout != nil && !st.Trusts(), tell: tell}
	if c.Mask != nil {
		if w.mask, err = c.Mask(ctx, st.Owner); err != nil {
			return err
		}
	}
	if src.Template {
		if err := w.template(ctx); err != nil {
			return err
		}
	}
	if st.Created.Repository == "" {
		return nil
	}
	fresh := false
	if st.Checkout != nil {
		if fresh, err = w.missing(ctx, path.Join(st.Checkout.Folder, ".git")); err != nil {
			return err
		}
	}
	if st.Checkout == nil || fresh {
		if st, err = w.checkOut(ctx); err != nil {
			return err
		}
	}
	if err := w.begin(ctx, st.Checkout.Folder); err != nil {
		return err
	}
	return w.scripts(ctx, st)
}

// begin has shells begin in the repository. A runner of an older version that
// cannot do that is no reason to give up.
func (w *work) begin(ctx context.Context, folder string) error {
	err := w.box.Begin(ctx, folder)
	if _, refused := sandbox.Refusal(err); refused {
		return nil
	}
	return err
}

// missing is true when there is no such file in the workspace.
func (w *work) missing(ctx context.Context, name string) (bool, error) {
	_, err := w.box.Stat(ctx, sandbox.InWorkspace(name))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if _, refused := sandbox.Refusal(err); refused { // there is something, though not what it should be
		return false, nil
	}
	return false, err
}

// has is true when there is such a file, in the workspace and not behind a link
// that leads out of it.
func (w *work) has(ctx context.Context, name string) (bool, error) {
	f, err := w.box.Stat(ctx, sandbox.InWorkspace(name))
	if _, refused := sandbox.Refusal(err); refused {
		return false, nil
	}
	return err == nil && !f.IsDir(), err
}

// checkOut has the repository brought into its folder, and records it.
func (w *work) checkOut(ctx context.Context) (session.State, error) {
	done, err := w.adopt(ctx)
	if err != nil {
		return session.State{}, err
	}
	if done == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, w.CloneTime, errSlow)
		defer cancel()
		done, err = w.clone(ctx)
		if err != nil && errors.Is(context.Cause(ctx), errSlow) {
			err = w.no(cloneFailed, fmt.Sprintf("it took longer than %s", w.CloneTime))
		}
		if err != nil {
			return session.State{}, err
		}
	}
	return w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) { return s.CheckOut(*done) })
}

var errSlow = errors.New("the clone takes too long")

// marker is the file in a complete clone that says what it is.
const marker = ".git/deckhand.json"

// adopt looks at what is in the repository's place: a clone that was completed
// and never recorded is taken, nothing is nil, and anything else is in the way.
func (w *work) adopt(ctx context.Context) (*session.CheckedOut, error) {
	found, err := w.box.List(ctx, sandbox.InWorkspace(w.src.Folder))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil, nil
	}
	if _, refused := sandbox.Refusal(err); err != nil && !refused {
		return nil, err
	}
	var text bytes.Buffer
	_, err = w.box.Read(ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(path.Join(w.src.Folder, marker)), Length: 1 << 16}, &text)
	done := &session.CheckedOut{}
	if err == nil && json.Unmarshal(text.Bytes(), done) == nil && done.Repository == w.want.Repository && done.Dir != "" {
		return done, nil
	}
	if errors.Is(err, sandbox.ErrLost) || ctx.Err() != nil {
		return nil, err
	}
	place := "a file or folder named " + w.src.Folder
	if w.src.Folder == "." {
		place = "something else"
	}
	return nil, w.no(cloneFailed, "there is "+place+" where the repository belongs in the workspace; move it away and start the conversation again")
}

// letters are those of a branch's name.
const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// word is n random letters.
func word(n int) string {
	b := make([]byte, n)
	for i := range b {
		k, _ := rand.Int(rand.Reader, big.NewInt(int64(len(letters)))) // never fails
		b[i] = letters[k.Int64()]
	}
	return string(b)
}

// checkRequest refuses what git could take for something else. The API has
// done so too; here it is done where it matters.
func (w *work) checkRequest() error {
	if w.want.Branch != "" && !gitprovider.ValidBranch(w.want.Branch) {
		return w.no(branchMissing, "the branch name is not valid")
	}
	if CheckURL(w.src.URL) != nil {
		return w.no(cloneFailed, "only http:// and https:// URLs can be cloned")
	}
	return nil
}
