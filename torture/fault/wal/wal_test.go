package wal

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

const page = 512

// forged makes a log with frames; those with true are commits.
func forged(commits ...bool) []byte {
	out := make([]byte, headerSize)
	binary.BigEndian.PutUint32(out, 0x377f0682)
	binary.BigEndian.PutUint32(out[4:], 3007000)
	binary.BigEndian.PutUint32(out[8:], page)
	copy(out[16:], "saltsalt")
	l := log{order: binary.LittleEndian}
	a, b := l.sum(0, 0, out[:24])
	binary.BigEndian.PutUint32(out[24:], a)
	binary.BigEndian.PutUint32(out[28:], b)
	for i, commit := range commits {
		f := bytes.Repeat([]byte{byte(i + 1)}, frameSize+page)
		binary.BigEndian.PutUint32(f, uint32(i+1))
		binary.BigEndian.PutUint32(f[4:], 0)
		if commit {
			binary.BigEndian.PutUint32(f[4:], 9)
		}
		copy(f[8:], "saltsalt")
		a, b = l.sum(a, b, f[:8])
		a, b = l.sum(a, b, f[frameSize:])
		binary.BigEndian.PutUint32(f[16:], a)
		binary.BigEndian.PutUint32(f[20:], b)
		out = append(out, f...)
	}
	return out
}

// However a log is torn, everything up to the last commit stays, and nothing behind it is a good frame
// that is committed.
func TestTear(t *testing.T) {
	t.Parallel()
	whole := forged(false, true, true, false, false)
	const committed = headerSize + 3*(frameSize+page)
	if l, err := parse(whole); err != nil || l.committed != committed || l.valid != len(whole) {
		t.Fatalf("%+v %v", l, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, how := range Ways {
		for range 50 {
			file := filepath.Join(t.TempDir(), "wal")
			if err := os.WriteFile(file, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Tear(file, how, random); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[:committed], whole[:committed]) || bytes.Equal(got, whole) {
				t.Fatalf("%s: a commit was damaged, or nothing", how)
			}
			if l, err := parse(got); err != nil || l.committed != committed {
				t.Fatalf("%s: %d %v", how, l.committed, err)
			}
		}
	}
}

func TestTearWithoutALog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wal")
	if _, err := Tear(file, Garbage, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Tear(file, Garbage, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "short" {
		t.Errorf("%q", got)
	}
}
