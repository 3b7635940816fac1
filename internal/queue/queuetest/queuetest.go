// Package queuetest is what every queue.Store must pass.
package queuetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"deckhand/internal/queue"
)

// Rig is a new, empty queue.
type Rig struct {
	Store queue.Store
	// Added says that something may have become due.
	Added <-chan struct{}
	// AddUser makes a user known, and DisableUser locks one out.
	AddUser, DisableUser func(name string)
	// Reopen closes the store and opens what it has stored; nil if that does not survive.
	Reopen func() queue.Store
}

// Noon is when the suite begins.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// at is some minutes after noon.
func at(minutes int) time.Time { return Noon.Add(time.Duration(minutes) * time.Minute) }

// Run runs the suite. open makes a new, empty queue and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for name, test := range map[string]func(*suite){
		"items":                 (*suite).items,
		"names come once":       (*suite).names,
		"owners":                (*suite).owners,
		"pages":                 (*suite).pages,
		"opened":                (*suite).opened,
		"waiting":               (*suite).waiting,
		"history":               (*suite).history,
		"lanes":                 (*suite).lanes,
		"ready":                 (*suite).ready,
		"pushing":               (*suite).pushing,
		"arming":                (*suite).arming,
		"errors store nothing":  (*suite).refused,
		"added":                 (*suite).added,
		"claims":                (*suite).claims,
		"one gets the claim":    (*suite).oneClaims,
		"lost claims":           (*suite).lost,
		"reopen":                (*suite).reopen,
		"all is done, in order": (*suite).allDone,
		"a dead holder's work":  (*suite).deadHolder,
		"a live holder's work":  (*suite).liveHolder,
		"fair to users":         (*suite).fair,
		"tried again":           (*suite).again,
		"not done when stopped": (*suite).stopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &suite{Rig: open(t), T: t}
			s.AddUser("maria")
			s.AddUser("otto")
			s.update(func(tx queue.Tx) error { return errors.Join(tx.AddOwner("a", "maria"), tx.AddOwner("b", "otto")) })
			test(s)
		})
	}
}

type suite struct {
	Rig
	*testing.T
}

func (s *suite) update(fn func(tx queue.Tx) error) {
	s.Helper()
	if err := s.Store.Update(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) view(fn func(tx queue.Tx) error) {
	s.Helper()
	if err := s.Store.View(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
}

func (s *suite) equal(got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// item is one with a field of every kind set.
func item(owner, id string) queue.Item {
	return queue.Item{Owner: owner, ID: id, Print: "print " + id, Lane: "lane of " + owner, Session: "s", Kind: "kind", State: "waiting",
		Body: []byte{0, 1, 0xff}, Details: []byte(`{"x":1}`), Open: true, Attempts: 3, CreatedAt: Noon, NextAt: at(1)}
}

// push adds an item with everything that belongs to it, and returns it with its Seq.
func (s *suite) push(it queue.Item, user string) (pushed queue.Item) {
	s.Helper()
	s.update(func(tx queue.Tx) error {
		it, _, added, err := queue.Push(tx, it, user, queue.Gate{})
		if err == nil && !added {
			err = errors.New("it was not added")
		}
		pushed = it
		return err
	})
	return pushed
}

func (s *suite) find(owner, id string) (it queue.Item, found bool) {
	s.Helper()
	s.view(func(tx queue.Tx) (err error) {
		it, found, err = tx.Find(owner, id)
		return err
	})
	return it, found
}

func (s *suite) lane(name string) (l queue.Lane) {
	s.Helper()
	s.view(func(tx queue.Tx) (err error) {
		l, _, err = tx.Lane(name)
		return err
	})
	return l
}

func (s *suite) items() {
	want := s.push(item("a", "1"), "maria")
	s.equal(want.Seq, int64(1))
	got, _ := s.find("a", "1")
	s.equal(got, want)
	want.Lane, want.Session, want.State, want.Body, want.Details, want.Open, want.Attempts, want.NextAt = "other", "t", "done", nil, []byte("{}"), false, 4, time.Time{}
	put := func(it queue.Item) (there bool) {
		s.Helper()
		s.update(func(tx queue.Tx) (err error) {
			there, err = tx.Put(it)
			return err
		})
		return there
	}
	s.equal(put(want), true)
	got, _ = s.find("a", "1")
	s.equal(got, want)
	for _, gone := range []queue.Item{item("a", "2"), item("b", "1"), {Owner: "a", Seq: 1, ID: "another"}, {Owner: "a", Seq: 2, ID: "1"}} {
		s.equal(put(gone), false)
	}
	got, _ = s.find("a", "1")
	s.equal(got, want)
}

func (s *suite) names() {
	add := func(it queue.Item) (fresh bool) {
		s.Helper()
		s.update(func(tx queue.Tx) (err error) {
			_, fresh, err = tx.Add(it)
			return err
		})
		return fresh
	}
	s.equal(add(item("a", "1")), true)
	same, print := item("a", "1"), item("a", "2")
	same.Print, print.Print = "another", "print 1"
	s.equal(add(same), false)
	s.equal(add(print), false)
	s.equal(add(item("b", "1")), true)
	for _, id := range []string{"3", "4"} { // without a print there is nothing to compare
		it := item("a", id)
		it.Print = ""
		s.equal(add(it), true)
	}
	var all sync.WaitGroup
	fresh := make(chan bool, 8)
	for range cap(fresh) {
		all.Go(func() { fresh <- add(item("a", "at once")) })
	}
	all.Wait()
	n := 0
	for range cap(fresh) {
		if <-fresh {
			n++
		}
	}
	s.equal(n, 1)
	last, _ := s.find("a", "at once")
	s.equal(last.Seq, int64(4))
}

func (s *suite) owners() {
	s.push(item("a", "1"), "maria")
	s.push(item("b", "1"), "otto")
	s.update(func(tx queue.Tx) error { return tx.RemoveOwner("a") })
	if _, found := s.find("a", "1"); found {
		s.Error("the item outlived its owner")
	}
	if _, found := s.find("b", "1"); !found {
		s.Error("another's item is gone")
	}
	s.update(func(tx queue.Tx) error {
		_, added, err := tx.Add(item("a", "2"))
		s.equal(added, false)
		return err
	})
}

func (s *suite) pages() {
	for i := range 5 {
		s.push(item("a", fmt.Sprint(i+1)), "maria")
	}
	s.push(item("b", "x"), "otto")
	s.view(func(tx queue.Tx) error {
		page, err := tx.Page("a", 4, 2)
		s.equal(ids(page), []string{"3", "2"})
		if err == nil {
			page, err = tx.Page("a", 2, 2)
			s.equal(ids(page), []string{"1"})
		}
		return err
	})
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := s.Store.View(ctx, func(queue.Tx) error { return nil }); err == nil {
		s.Error("a request that was given up was answered")
	}
}

func ids(items []queue.Item) (out []string) {
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

func (s *suite) opened() {
	for i, it := range []queue.Item{item("b", "1"), item("a", "2"), item("a", "3"), item("a", "4")} {
		it.Open, it.Session = i != 2, []string{"s", "s", "s", "t"}[i]
		s.push(it, "maria")
	}
	s.view(func(tx queue.Tx) error {
		of, err := tx.Opened("s")
		s.equal(ids(of), []string{"2", "1"})
		if err == nil {
			of, err = tx.Opened("")
			s.equal(ids(of), []string{"2", "1", "4"})
		}
		return err
	})
}

func (s *suite) waiting() {
	for id, minute := range map[string]int{"late": 9, "early": 1, "middle": 5} {
		it := item("a", id)
		it.NextAt = at(minute)
		s.push(it, "maria")
	}
	never, other := item("a", "never"), item("a", "other")
	never.NextAt, other.Lane = time.Time{}, "other"
	s.push(never, "maria")
	s.push(other, "maria")
	first := func() string {
		s.Helper()
		var it queue.Item
		s.view(func(tx queue.Tx) (err error) {
			it, _, err = tx.First("lane of a")
			return err
		})
		return it.ID
	}
	s.equal(first(), "early")
	s.view(func(tx queue.Tx) error {
		n, err := tx.Count("lane of a")
		s.equal(n, 3)
		_, found, none := tx.First("unknown")
		s.equal(found, false)
		return errors.Join(err, none)
	})
	s.update(func(tx queue.Tx) error { return tx.Advance("lane of a", at(3)) })
	for id, minute := range map[string]int{"late": 3, "early": 1, "middle": 3, "other": 1} {
		it, _ := s.find("a", id)
		s.equal(it.NextAt, at(minute))
	}
	it, _ := s.find("a", "never")
	s.equal(it.NextAt, time.Time{})
}

func (s *suite) history() {
	for i := range 6 {
		it := item("a", fmt.Sprint(i+1))
		it.Open, it.CreatedAt = i == 1, at(i)
		s.push(it, "maria")
	}
	s.push(item("b", "other"), "otto")
	left := func(want ...string) {
		s.Helper()
		s.view(func(tx queue.Tx) error {
			page, err := tx.Page("a", 100, 100)
			s.equal(ids(page), want)
			return err
		})
	}
	s.update(func(tx queue.Tx) error { return tx.Drop("a", 4, at(3)) })
	left("6", "5", "4", "2")
	s.view(func(tx queue.Tx) error {
		last, err := tx.Last("a")
		s.equal(last, int64(6))
		none, err2 := tx.Last("unknown")
		s.equal(none, int64(0))
		old, err3 := tx.Older(at(4), 2)
		s.equal(ids(old), []string{"other", "2"})
		return errors.Join(err, err2, err3)
	})
	s.update(func(tx queue.Tx) error {
		old, err := tx.Older(at(4), 10)
		for _, it := range old {
			err = errors.Join(err, tx.Remove(it))
		}
		return err
	})
	left("6", "5")
}

func (s *suite) refused() {
	no := errors.New("no")
	if err := s.Store.Update(s.Context(), func(queue.Tx) error { return no }); !errors.Is(err, no) {
		s.Errorf("got %v, want the error of the function", err)
	}
	err := s.Store.Update(s.Context(), func(tx queue.Tx) error {
		if _, _, _, err := queue.Push(tx, item("a", "1"), "maria", queue.Gate{}); err != nil {
			return err
		}
		return no // against the rule, and nothing is half done all the same
	})
	if !errors.Is(err, no) {
		s.Errorf("got %v, want the error of the function", err)
	}
	if _, found := s.find("a", "1"); found || s.lane("lane of a").Waiting != 0 {
		s.Error("something of it was stored")
	}
}

func (s *suite) added() {
	s.push(item("a", "1"), "maria")
	select {
	case <-s.Added:
	default:
		s.Error("no signal that something was added")
	}
}
