package check

import (
	"fmt"
	"math"
)

// Accounts returns the violations in the money of users.
func Accounts(all []Account) []Violation {
	c := &collector{}
	for _, a := range all {
		if math.Abs(a.Spent-a.Conversations) > tolerance {
			c.add(RuleMoney, "the ledger of %s says %.9f, the conversations cost %.9f", a.User, a.Spent, a.Conversations)
		}
		if a.Billed > a.Spent+tolerance {
			c.add(RuleMoney, "the model billed %s %.9f, the ledger has only %.9f", a.User, a.Billed, a.Spent)
		}
		if math.Abs(a.Reserved) > tolerance {
			c.add(RuleMoney, "%.9f are still reserved for %s", a.Reserved, a.User)
		}
		if a.Limit > 0 && a.Spent > a.Limit+tolerance {
			c.add(RuleMoney, "%s spent %.9f, the limit is %.9f", a.User, a.Spent, a.Limit)
		}
	}
	return c.found
}

// slack is how many goroutines or descriptors more a server may have at its end: connections
// that are kept open, and timers.
const slack = 25

// Remains returns the violations in what is left on the machine.
func Remains(m Machine) []Violation {
	c := &collector{}
	for what, list := range map[string][]string{"sandbox": m.Sandboxes, "process": m.Processes, "file": m.Files, "control group": m.Groups} {
		for _, one := range list {
			c.add(RuleOrphans, "%s %s is left", what, one)
		}
	}
	for what, list := range map[string][]Growth{"goroutines": m.Goroutines, "descriptors": m.Descriptors} {
		for _, g := range list {
			if g.After > g.Before+slack {
				c.add(RuleOrphans, "%s has %s: %d at first, %d at the end", g.Of, what, g.Before, g.After)
			}
		}
	}
	return c.found
}

// Refused is the violation that a valid request was refused.
func Refused(conversation, what string, err error) Violation {
	return Violation{RuleRefused, conversation, fmt.Sprintf("%s: %v", what, err)}
}
