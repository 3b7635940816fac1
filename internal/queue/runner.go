package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"time"
)

const (
	// lease is how long a claim lasts; it is renewed while the work goes on.
	lease = time.Minute
	// manyReady is enough to fill all places even if many lanes are passed over.
	manyReady = 512
	// storeAgain is how long to wait when the store fails.
	storeAgain = 5 * time.Second
	// lookEvery is how often a queue is looked at that others may have added to.
	lookEvery = 5 * time.Second
)

// Runner has the work of a queue done, in many lanes at once.
type Runner struct {
	Store  Store
	Logger *slog.Logger
	// AtOnce is how many lanes are worked on at the same time, and PerUser how many of them
	// may be one user's, so that a slow receiver does not hold up other users; 0 means no limit.
	AtOnce, PerUser int
	// Work does what is due in a lane and records it. It returns true if it has given the
	// lane back. What it leaves undone when ctx ends is done by the next Run.
	Work func(ctx context.Context, l Lane) (released bool)
	// More lists lanes, at most room of them, that are to be worked on although nothing is due
	// in them, but for those that are being worked on; nil for none.
	More func(room int, busy func(lane string) bool) []Lane
	// Added has a value when something may have become due; it may be nil.
	Added <-chan struct{}
	// Sweep is called at the start and every hour; nil for nothing.
	Sweep func(ctx context.Context)
	// Member is the process that the Runner belongs to. It must be live before Run.
	Member Member
	// Clock is the clock of this process; nil means time.Now.
	Clock func() time.Time

	holder string
	busy   map[string]Lane
	users  map[string]int // how many lanes of each user are worked on
	ended  chan string
}

// Member is one of the processes that work on a queue. The zero value is the only one.
type Member struct {
	// Name is the holder of its claims; "" for a random name.
	Name string
	// Live lists the names of the live processes; nil for none but this one. Claims of all
	// others are released when Run starts.
	Live func(ctx context.Context) ([]string, error)
	// Shared is true if other processes may add to the queue, of which this one is not told.
	Shared bool
}

// Run works until ctx ends, and waits for what is under way then.
func (r *Runner) Run(ctx context.Context) error {
	if r.Clock == nil {
		r.Clock = time.Now
	}
	r.holder, r.busy, r.users, r.ended = cmp.Or(r.Member.Name, rand.Text()), map[string]Lane{}, map[string]int{}, make(chan string, r.AtOnce)
	for !r.free(ctx) {
		if !Pause(ctx) {
			return nil
		}
	}
	hour, renew := time.NewTicker(time.Hour), time.NewTicker(lease/3)
	defer hour.Stop()
	defer renew.Stop()
	r.sweep(ctx)
	for {
		wake := r.fill(ctx)
		var due <-chan time.Time
		if len(r.busy) > 0 { // without claims there is nothing to renew
			due = renew.C
		}
		select {
		case <-ctx.Done():
			for len(r.busy) > 0 {
				r.end(<-r.ended)
			}
			return nil
		case lane := <-r.ended:
			r.end(lane)
		case <-r.Added:
		case <-wake:
		case <-due:
			r.renew(ctx)
		case <-hour.C:
			r.sweep(ctx)
		}
	}
}

// free releases the claims of processes that died.
func (r *Runner) free(ctx context.Context) bool {
	var alive []string
	var err error
	if r.Member.Live != nil {
		alive, err = r.Member.Live(ctx)
	}
	if err == nil {
		err = r.Store.Update(ctx, func(tx Tx) error {
			return Free(tx, func(holder string) bool { return holder != r.holder && slices.Contains(alive, holder) })
		})
	}
	r.complain(ctx, "cannot release claims of an earlier process", err)
	return err == nil
}

// fill begins all that may be begun now. The channel says when to look again, if nothing
// happens before.
func (r *Runner) fill(ctx context.Context) <-chan time.Time {
	if ctx.Err() != nil || len(r.busy) >= r.AtOnce {
		return nil // an end makes us look again
	}
	now := r.Clock()
	var ready []Lane
	var next time.Time
	err := r.Store.View(ctx, func(tx Tx) (err error) {
		ready, next, err = tx.Ready(now, manyReady)
		return err
	})
	if err != nil {
		r.complain(ctx, "cannot read the queue", err)
		return time.After(storeAgain)
	}
	if lanes := r.choose(ready); len(lanes) > 0 {
		var taken []Lane
		err := r.Store.Update(ctx, func(tx Tx) (err error) {
			taken, err = Take(tx, r.holder, now, now.Add(lease), lanes...)
			return err
		})
		if err != nil {
			r.complain(ctx, "cannot claim work", err)
			return time.After(storeAgain)
		}
		for _, l := range taken {
			r.begin(ctx, l)
		}
	}
	if r.Member.Shared && (next.IsZero() || next.Sub(now) > lookEvery) {
		return time.After(lookEvery)
	}
	if next.IsZero() {
		return nil
	}
	return time.After(next.Sub(now))
}

// choose says which lanes to claim: as many as there are places, and not too many of one
// user's. The end of what is passed over for makes us look again.
func (r *Runner) choose(ready []Lane) []Lane {
	var chosen []Lane
	mine := map[string]int{}
	for _, l := range ready {
		if len(r.busy)+len(chosen) >= r.AtOnce {
			return chosen
		}
		if _, at := r.busy[l.Name]; at || r.PerUser > 0 && r.users[l.User]+mine[l.User] >= r.PerUser {
			continue
		}
		mine[l.User]++
		chosen = append(chosen, l)
	}
	if r.More == nil {
		return chosen
	}
	return append(chosen, r.More(r.AtOnce-len(r.busy)-len(chosen), func(lane string) bool {
		_, at := r.busy[lane]
		return at || slices.ContainsFunc(chosen, func(l Lane) bool { return l.Name == lane })
	})...)
}

func (r *Runner) begin(ctx context.Context, l Lane) {
	r.busy[l.Name] = l
	r.users[l.User]++
	go func() {
		if !r.Work(ctx, l) {
			r.release(ctx, l)
		}
		r.ended <- l.Name
	}()
}

func (r *Runner) end(lane string) {
	user := r.busy[lane].User
	delete(r.busy, lane)
	if r.users[user]--; r.users[user] == 0 {
		delete(r.users, user)
	}
}

// release gives a lane back also when ctx has ended, so that the next process need not wait.
func (r *Runner) release(ctx context.Context, l Lane) {
	err := r.Store.Update(context.WithoutCancel(ctx), l.Claimed().Release)
	r.complain(ctx, "cannot release a claim", err) // it ends by itself
}

func (r *Runner) renew(ctx context.Context) {
	if len(r.busy) == 0 {
		return
	}
	claims := make([]Claim, 0, len(r.busy))
	for _, l := range r.busy {
		claims = append(claims, l.Claimed())
	}
	err := r.Store.Update(ctx, func(tx Tx) error { return Renew(tx, r.Clock().Add(lease), claims...) })
	r.complain(ctx, "cannot renew claims", err)
}

func (r *Runner) sweep(ctx context.Context) {
	if r.Sweep != nil {
		r.Sweep(ctx)
	}
}

func (r *Runner) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.Logger.Error(what, "error", err)
	}
}

// Pause waits a little after a failure of the store; false if ctx ended.
func Pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(storeAgain):
		return true
	}
}
