package main

import (
	"fmt"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
)

// A comparison counts lines, and reports renamed files as such if it is asked to.
func TestCompareRenames(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "renamer", obeys)
	id := p.begin("$ seq 1 9 > old; seq 20 30 > gone")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	p.box.checkpointed(p.client, id, 1)
	p.ask(id, "$ mkdir sub; mv old sub/new; echo ten >> sub/new; rm gone; head -c 2 /dev/zero > bin", "awaiting_user_input")
	points := p.box.checkpointed(p.client, id, 2)
	before, now := client.Side{ID: id, Event: points[0]}, client.Side{ID: id}
	got, err := p.client.CompareRenames(t.Context(), before, now)
	if names := comparedNames(got); err != nil || names != "bin added 0 2, gone deleted 33 0 +0-11, sub/new renamed 18 22 from old +1-0" {
		t.Errorf("with renames: %s, %v", names, err)
	}
	if !got.Files[0].Binary {
		t.Errorf("a binary file: %+v", got.Files[0])
	}
	file, err := p.client.CompareRenamed(t.Context(), before, now, "sub/new", "old")
	if err != nil || file.Original == nil || file.Modified == nil || *file.Modified != *file.Original+"ten\n" {
		t.Errorf("a renamed file: %+v, %v", file, err)
	}
	got, err = p.client.Compare(t.Context(), before, now)
	if names := comparedNames(got); err != nil || names != "bin added 0 2, gone deleted 33 0 +0-11, old deleted 18 0, sub/new added 0 22" {
		t.Errorf("without renames: %s, %v", names, err)
	}
	stranger := l.person(t, "stranger", obeys)
	if _, err := stranger.client.CompareRenames(t.Context(), before, now); statusOf(err) != 404 {
		t.Errorf("another user: %v", err)
	}
}

// comparedNames writes a comparison in one line.
func comparedNames(c api.Comparison) string {
	var out []string
	for _, f := range c.Files {
		line := fmt.Sprintf("%s %s %d %d", f.Path, f.Status, f.Size, f.Other)
		if f.From != nil {
			line += " from " + *f.From
		}
		if f.Added != nil && f.Removed != nil {
			line += fmt.Sprintf(" +%d-%d", *f.Added, *f.Removed)
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}
