package admission

import (
	"container/heap"
	"fmt"
	"strconv"

	"deckhand/api"
	"deckhand/internal/session"
)

// The reasons to wait.
const (
	ServerLimit = "server_limit" // all slots of the server are in use
	UserLimit   = "user_limit"   // the user has as many running conversations as allowed
)

// Place is the position of a session in the queue.
type Place = api.QueuePlace

// position is a Place without its message. Position is 0 for a session that runs.
type position struct {
	Position int    `json:"position,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Running  int    `json:"running,omitempty"`
	Limit    int    `json:"limit,omitempty"`
}

// place returns the Place with its message.
func (p position) place() *Place {
	why := fmt.Sprintf("%d of %d conversations are running on this server.", p.Running, p.Limit)
	if p.Reason == UserLimit {
		why = fmt.Sprintf("You have %d of %d conversations running.", p.Running, p.Limit)
	}
	return &Place{Position: p.Position, Reason: p.Reason, Running: p.Running, Limit: p.Limit, Message: "Waiting for a free slot: " + Ordinal(p.Position) + " in the queue. " + why}
}

// Ordinal returns an English ordinal number, such as 1st.
func Ordinal(n int) string {
	end := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}

// places returns the positions of all waiting families, by root: the order in which they would get slots if no family
// were added. Families that wait for the limit per user have a position among their user's families.
func (l *line) places() map[session.ID]position {
	out := make(map[session.ID]position, len(l.waiting))
	sim := l.simulate()
	for n := 1; ; n++ {
		f := sim.take()
		if f == nil {
			break
		}
		out[f.Root] = l.serverPlace(n)
	}
	for user, rest := range sim.left() {
		for i, f := range rest {
			out[f.Root] = position{i + 1, UserLimit, l.runs.users[user], l.limits.RunningPerUser}
		}
	}
	return out
}

// serverPlace is the place of a family that waits for a slot of this server. Kept slots are not counted while they are free.
func (l *line) serverPlace(n int) position {
	limit := l.limits.Running
	if free := limit - l.used.total; free > 0 && free <= l.limits.Kept {
		limit = l.used.total
	}
	return position{n, ServerLimit, l.used.total, limit}
}

// simulation grants slots in the order of next, as if the server had any number of them.
type simulation struct {
	*line
	runs   map[string]int
	served map[string]int64
	grants int64
	streak int
	at     [classes]map[string]int // how many of a user's queue were taken
	heaps  [classes]*candidates
}

func (l *line) simulate() *simulation {
	s := &simulation{line: l, runs: map[string]int{}, served: map[string]int64{}, grants: l.grants, streak: l.streak}
	for c := range s.heaps {
		s.at[c], s.heaps[c] = map[string]int{}, &candidates{}
		for user := range l.queues[c] {
			s.runs[user], s.served[user] = l.runs.users[user], l.served[user]
		}
	}
	for c := range s.heaps {
		for user := range l.queues[c] {
			s.push(class(c), user)
		}
	}
	return s
}

// push adds a user's first remaining family of a class, if there is one and the user is below the limit.
func (s *simulation) push(c class, user string) {
	if q := s.queues[c][user][s.at[c][user]:]; len(q) > 0 && s.runs[user] < s.limits.RunningPerUser {
		heap.Push(s.heaps[c], candidate{q[0], s.runs[user], s.served[user]})
	}
}

// peek returns the best family of a class. Candidates that are older than the last grant of their user are pushed again.
func (s *simulation) peek(c class) *family {
	h := s.heaps[c]
	for h.Len() > 0 {
		top := h.list[0]
		if user := top.Owner; top.runs != s.runs[user] || top.served != s.served[user] {
			heap.Pop(h)
			s.push(c, user)
			continue
		}
		return top.family
	}
	return nil
}

// take grants the next slot and returns the family that got it, nil if there is none.
func (s *simulation) take() *family {
	f, automation := s.peek(people), s.peek(automations)
	if f == nil || automation != nil && s.streak >= peopleFirst {
		f = automation
	}
	if f == nil {
		return nil
	}
	c, user := f.class(), f.Owner
	heap.Pop(s.heaps[c])
	s.at[c][user]++
	s.runs[user]++
	s.grants++
	s.served[user] = s.grants
	s.push(c, user)
	if s.streak++; f.Automated || s.peek(automations) == nil {
		s.streak = 0
	}
	return f
}

// left returns the families of each user that were not taken, people's first.
func (s *simulation) left() map[string][]*family {
	out := map[string][]*family{}
	for c := range s.queues {
		for user, q := range s.queues[c] {
			out[user] = append(out[user], q[s.at[c][user]:]...)
		}
	}
	return out
}

// candidates is a heap of candidates.
type candidates struct{ list []candidate }

func (c *candidates) Len() int      { return len(c.list) }
func (c *candidates) Swap(i, j int) { c.list[i], c.list[j] = c.list[j], c.list[i] }
func (c *candidates) Push(x any)    { c.list = append(c.list, x.(candidate)) }
func (c *candidates) Less(i, j int) bool {
	return c.list[i].compare(c.list[j]) < 0
}
func (c *candidates) Pop() any {
	last := c.list[len(c.list)-1]
	c.list = c.list[:len(c.list)-1]
	return last
}
