package main

import (
	"fmt"
	"slices"
	"time"

	"deckhand/bench/peers"
	"deckhand/bench/report"
)

// comparePeers runs one scenario against the program and each peer of a folder.
func (b *bench) comparePeers(dir string) error {
	found, missing, err := peers.Find(dir)
	if err != nil {
		return err
	}
	for _, m := range missing {
		say("NOT MEASURED: %s", m)
		b.report.Notes = append(b.report.Notes, "Not measured: "+m+".")
	}
	if len(found) == 0 {
		return fmt.Errorf("no peer is installed in %s: each is a folder with an executable named start, see bench/README.md", dir)
	}
	folder, err := b.folder()
	if err != nil {
		return err
	}
	us, err := peers.Ours(b.server, folder)
	if err != nil {
		return err
	}
	size := peers.Size{Turns: pick(b, 80, 20), AtOnce: 50, During: pick(b, 5*time.Second, time.Second)}
	fmt.Printf("\n== peers: ours\n")
	ours, err := us.Measure(b.ctx, b.dir, size)
	if err != nil {
		return err
	}
	for _, p := range found {
		fmt.Printf("\n== peers: %s\n", p.Name)
		theirs, err := p.Measure(b.ctx, b.dir, size)
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if err != nil {
			say("NOT MEASURED TO THE END: %v", err)
		}
		for _, f := range theirs {
			b.against(p.Name, ours, f)
		}
		if err != nil {
			b.report.Add(report.Peers, "not measured to the end: "+p.Name, report.Count, 0, 0).Require(true, "none: it is not ours").Comment("%v", err)
		}
	}
	return nil
}

// against makes the row of one figure and one peer.
func (b *bench) against(name string, ours []peers.Figure, theirs peers.Figure) {
	at := slices.IndexFunc(ours, func(f peers.Figure) bool { return f.Name == theirs.Name })
	if at < 0 {
		return
	}
	l := b.report.Add(report.Peers, theirs.Name+", against "+name, theirs.Unit, ours[at].Value, theirs.Value)
	if l.Factor = l.Ratio; !theirs.More {
		l.Factor = 1 / l.Ratio
	}
	l.Require(l.Factor >= 1, "better than the peer")
	say("%-50s %12s  %s %12s", theirs.Name, report.Figure(ours[at].Value, theirs.Unit), name, report.Figure(theirs.Value, theirs.Unit))
}
