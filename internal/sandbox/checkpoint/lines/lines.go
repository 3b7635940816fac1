// Package lines counts changed lines and detects renamed files.
package lines

import (
	"bytes"
	"slices"
)

// maxTable limits the work of comparing two texts exactly.
const maxTable = 4 << 20

// Count returns how many lines were added and removed between two texts.
func Count(before, after []byte) (added, removed int) {
	a, b := split(before), split(after)
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[len(a)-1], b[len(b)-1]) {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	same := 0
	if len(a)*len(b) <= maxTable {
		same = subsequence(a, b)
	} else {
		same = shared(a, b)
	}
	return len(b) - same, len(a) - same
}

// Binary reports whether content is not text, as git decides it.
func Binary(content []byte) bool { return bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 }

func split(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

// subsequence returns the length of the longest common subsequence.
func subsequence(a, b [][]byte) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if bytes.Equal(x, y) {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// shared returns how many lines two texts have in common, in any order.
func shared(a, b [][]byte) (n int) {
	count := make(map[string]int, len(a))
	for _, x := range a {
		count[string(x)]++
	}
	for _, y := range b {
		if count[string(y)] > 0 {
			count[string(y)]--
			n++
		}
	}
	return n
}

// File is a file that was removed or added.
type File struct {
	Hash [32]byte
	Size int64
	// Text is the content, nil if it is unknown or binary.
	Text []byte
}

// maxCompared is the number of files up to which changed files are compared with each other.
const maxCompared = 60

// Renames pairs added with removed files: result[i] is the index in removed of the old version of added[i], or -1. Files with the same
// content are paired first, then those that have at least half of their lines in common, the most similar first. Empty files are not paired.
func Renames(removed, added []File) []int {
	out := make([]int, len(added))
	taken := make([]bool, len(removed))
	byHash := map[[32]byte][]int{}
	for i, f := range removed {
		if f.Size > 0 {
			byHash[f.Hash] = append(byHash[f.Hash], i)
		}
	}
	left := 0
	for i, f := range added {
		out[i] = -1
		if same := byHash[f.Hash]; f.Size > 0 && len(same) > 0 {
			out[i], byHash[f.Hash] = same[0], same[1:]
			taken[same[0]] = true
		} else {
			left++
		}
	}
	if left == 0 || left > maxCompared || len(removed) > 2*maxCompared {
		return out
	}
	type match struct{ removed, added, score int }
	var all []match
	for i, a := range added {
		for j, r := range removed {
			if out[i] >= 0 || taken[j] || len(a.Text) == 0 || len(r.Text) == 0 {
				continue
			}
			if score := similarity(r.Text, a.Text); score >= 50 {
				all = append(all, match{j, i, score})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y match) int { return y.score - x.score })
	for _, m := range all {
		if out[m.added] < 0 && !taken[m.removed] {
			out[m.added], taken[m.removed] = m.removed, true
		}
	}
	return out
}

// similarity returns the share of the larger text's bytes that are in lines of both texts, in percent.
func similarity(a, b []byte) int {
	if min(len(a), len(b))*2 < max(len(a), len(b)) {
		return 0
	}
	count := map[string]int{}
	for _, x := range split(a) {
		count[string(x)]++
	}
	same := 0
	for _, y := range split(b) {
		if count[string(y)] > 0 {
			count[string(y)]--
			same += len(y) + 1
		}
	}
	return min(same, len(b)) * 100 / max(len(a), len(b))
}
