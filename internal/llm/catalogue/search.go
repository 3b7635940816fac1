package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Rank orders equally good matches: lower comes first.
type Rank func(model string) int

// Search returns the models that match a query, best first. Words may be in any order, be parts of words and have typing
// errors, and punctuation does not count: "sonnet 4.5" finds claude-sonnet-4-5. An empty query matches all.
func Search(models []string, query string, rank Rank) []string {
	want := words(query)
	type hit struct {
		model string
		words []string
		// fit is how well it matches: the higher the better.
		fit, rank int
	}
	var hits []hit
	for _, model := range models {
		have := words(model)
		if fit, ok := match(want, have); ok {
			hits = append(hits, hit{model, have, fit, rank(model)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		// A model of a provider that comes later must not hide behind a worse match, nor one with a typing error
		// before an exact one.
		return cmp.Or(cmp.Compare(b.fit, a.fit), cmp.Compare(a.rank, b.rank), newer(a.words, b.words), strings.Compare(a.model, b.model))
	})
	out := make([]string, len(hits))
	for i, h := range hits {
		out[i] = h.model
	}
	return out
}

// words splits a name where letters and digits meet, and at everything else.
func words(s string) []string {
	var out []string
	var word strings.Builder
	var last rune
	end := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	for _, r := range strings.ToLower(s) {
		letter, digit := unicode.IsLetter(r), unicode.IsDigit(r)
		if !letter && !digit || word.Len() > 0 && unicode.IsDigit(last) != digit {
			end()
		}
		if letter || digit {
			word.WriteRune(r)
		}
		last = r
	}
	end()
	return out
}

// How well a word matches, and what a whole query may have at most per word.
const (
	typo  = 1
	part  = 2
	start = 3
	exact = 4
)

// match says how well all wanted words match, as the worst of them: a name with one wrong word is no better than that word.
func match(want, have []string) (int, bool) {
	if len(want) == 0 {
		return exact, true
	}
	worst, joined := exact, ""
	for _, h := range have {
		if len(h) < 6 || !unicode.IsDigit(rune(h[0])) { // a date is no version
			joined += h
		}
	}
	for _, w := range want {
		best := 0
		for _, h := range have {
			best = max(best, alike(w, h))
		}
		if best < part && strings.Contains(joined, w) { // 35 is 3 and 5
			best = part
		}
		if best == 0 {
			return 0, false
		}
		worst = min(worst, best)
	}
	// Numbers in the order of the query: 4.5 is not 5.4.
	if worst >= start && consecutive(want, have) {
		worst++
	}
	return worst, true
}

// alike is how well one word matches another, 0 for not at all. Numbers match only as they are: another number is another
// model.
func alike(want, have string) int {
	digits := unicode.IsDigit(rune(want[0]))
	switch {
	case want == have:
		return exact
	case digits:
		return 0
	case strings.HasPrefix(have, want):
		return start
	case len(want) >= 2 && strings.Contains(have, want):
		return part
	case len(want) >= 4 && distance(want, have) <= 1+len(want)/7:
		return typo
	}
	return 0
}

// consecutive reports whether the wanted words stand in the name one after the other, in their order.
func consecutive(want, have []string) bool {
	for i := 0; i+len(want) <= len(have); i++ {
		ok := true
		for j, w := range want {
			ok = ok && strings.HasPrefix(have[i+j], w)
		}
		if ok {
			return true
		}
	}
	return false
}

// distance is how many letters were added, left out, replaced or swapped with their neighbour.
func distance(a, b string) int {
	if n := len(a) - len(b); n > 2 || n < -2 {
		return 3
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// newer puts higher numbers first where two names differ in one, and shorter names before those with additions.
func newer(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if unicode.IsDigit(rune(a[i][0])) && unicode.IsDigit(rune(b[i][0])) {
			if len(a[i]) != len(b[i]) && max(len(a[i]), len(b[i])) >= 6 { // a date is no version
				return cmp.Compare(len(a[i]), len(b[i]))
			}
			return cmp.Or(cmp.Compare(len(b[i]), len(a[i])), strings.Compare(b[i], a[i]))
		}
		return 0
	}
	return cmp.Compare(len(a), len(b))
}

// Vendor reports whether a provider makes the models that it offers; others resell them.
func Vendor(provider string) bool {
	provider = canonicalProvider(provider)
	return provider == "mistral" || slices.Contains(vendors, provider)
}

// Canonical is the one name of a provider.
func Canonical(provider string) string { return canonicalProvider(provider) }
