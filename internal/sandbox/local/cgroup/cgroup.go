// Package cgroup limits the resources of groups of processes, if the kernel and the
// machine's owner allow it: with version 1 and version 2 of control groups, below the
// group of this process.
package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are what a group may use. All are set.
type Limits struct {
	CPUs      float64
	Memory    int64
	Processes int
}

// The controllers that Limits need.
var controllers = []string{"memory", "pids", cpuName}

// cpuName is the controller of processor time.
const cpuName = "cpu"

// freezerName is the controller that stops groups. It has no limits.
const freezerName = "freezer"

// Parent is where groups are made.
type Parent struct {
	// V2 is the folder in the unified hierarchy, "" if that has nothing for us.
	V2 string
	// V1 are the folders in hierarchies of their own, by controller.
	V1 map[string]string
	// Missing says why a controller cannot be used.
	Missing map[string]string
	// own are the folders of this process's own groups in hierarchies of their own.
	own []string
}

// parentName is the group that holds ours, below our own process's.
const parentName = "deckhand"

// Find looks for the controllers and makes the parent groups.
func Find() *Parent {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return none(err.Error())
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return none(err.Error())
	}
	p := &Parent{V1: map[string]string{}, Missing: map[string]string{}}
	v1, v2 := locate(string(mounts), string(groups))
	var unified []string
	for _, c := range controllers {
		if dir, ok := v1[c]; ok {
			dir = filepath.Join(dir, parentName)
			if err := usable(dir); err != nil {
				p.Missing[c] = err.Error()
				continue
			}
			p.V1[c] = dir
			p.own = append(p.own, v1[c])
			continue
		}
		unified = append(unified, c)
	}
	if len(unified) > 0 {
		p.unify(v2, unified)
	}
	if p.V2 == "" {
		p.addFreezer(v1)
	}
	return p
}

// Why says which controllers cannot be used and why; "" if all can.
func (p *Parent) Why() string {
	var missing []string
	for c, why := range p.Missing {
		missing = append(missing, c+": "+why)
	}
	slices.Sort(missing)
	return strings.Join(missing, "; ")
}

// addFreezer has groups made in the hierarchy that can freeze them, too. The unified one
// does that by itself.
func (p *Parent) addFreezer(v1 map[string]string) {
	own, ok := v1[freezerName]
	if !ok {
		return
	}
	if dir := filepath.Join(own, parentName); usable(dir) == nil {
		p.V1[freezerName] = dir
		p.own = append(p.own, own)
	}
}

func none(why string) *Parent {
	p := &Parent{Missing: map[string]string{}}
	for _, c := range controllers {
		p.Missing[c] = why
	}
	return p
}

// Has says whether a controller is used.
func (p *Parent) Has(controller string) bool {
	_, missing := p.Missing[controller]
	return !missing
}

func usable(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// It may exist and belong to another user.
	trial, err := os.MkdirTemp(dir, "trial-")
	if err != nil {
		return err
	}
	return os.Remove(trial)
}

// locate finds the folder of our own group in every hierarchy.
func locate(mountinfo, cgroup string) (v1 map[string]string, v2 string) {
	own := map[string]string{} // controller, "" for the unified one
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			own[c] = f[2]
		}
	}
	v1 = map[string]string{}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		root, at := left[3], left[4]
		switch right[0] {
		case "cgroup2":
			if dir, ok := below(at, root, own[""]); ok {
				v2 = dir
			}
		case "cgroup":
			for c := range strings.SplitSeq(right[2], ",") {
				if path, known := own[c]; known {
					if dir, ok := below(at, root, path); ok {
						v1[c] = dir
					}
				}
			}
		}
	}
	return v1, v2
}

// below is where the group lies in a mount that shows the hierarchy from root on.
func below(at, root, group string) (string, bool) {
	if group == "" {
		return "", false
	}
	rel, err := filepath.Rel(root, group)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		// A process that was put into a container sees its group from elsewhere; the
		// mount is then the best it has.
		return at, root == "/"
	}
	return filepath.Join(at, rel), true
}

// unify prepares the unified hierarchy. There, a group that has groups below it
// with limits may hold no processes, so this process moves into one of its own.
func (p *Parent) unify(own string, want []string) {
	fail := func(err error) {
		for _, c := range want {
			p.Missing[c] = err.Error()
		}
	}
	if own == "" {
		fail(errors.New("there are no control groups"))
		return
	}
	has, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		fail(err)
		return
	}
	var use []string
	for _, c := range want {
		if containsWord(string(has), c) {
			use = append(use, c)
		} else {
			p.Missing[c] = "the controller is not given to " + own
		}
	}
	if len(use) == 0 {
		return
	}
	want = use
	if err := enable(own, use); err != nil {
		fail(err)
		return
	}
	dir := filepath.Join(own, parentName)
	if err := usable(dir); err != nil {
		fail(err)
		return
	}
	if err := control(dir, use); err != nil {
		fail(err)
		return
	}
	p.V2 = dir
}

// enable passes controllers on to the groups below own.
func enable(own string, use []string) error {
	err := control(own, use)
	if err == nil {
		return nil
	}
	leaf := filepath.Join(own, parentName+"-server")
	if e := os.Mkdir(leaf, 0o755); e != nil && !errors.Is(e, fs.ErrExist) {
		return err
	}
	if e := write(leaf, "cgroup.procs", strconv.Itoa(os.Getpid())); e != nil {
		return e
	}
	return control(own, use)
}

func control(dir string, use []string) error {
	now, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, c := range use {
		if containsWord(string(now), c) {
			continue
		}
		if err := write(dir, "cgroup.subtree_control", "+"+c); err != nil {
			return err
		}
	}
	return nil
}

func containsWord(text, word string) bool {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Split(bufio.ScanWords)
	for s.Scan() {
		if s.Text() == word {
			return true
		}
	}
	return false
}

// write sets a file of a group. Go would first find out whether it can wait for such a file.
func write(dir, file, value string) error {
	name := filepath.Join(dir, file)
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(value))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return &os.PathError{Op: "write", Path: name, Err: err}
		}
		return nil
	}
}

// Group is one group, in as many hierarchies as it needs.
type Group struct {
	// Dirs are its folders; the one in the unified hierarchy is also V2.
	Dirs []string
	V2   string
	// old says that it was there before, and may have limits.
	old bool
}

// Make makes a group, or takes the one that exists.
func (p *Parent) Make(name string) (*Group, error) {
	g := &Group{}
	for _, parent := range p.V1 {
		if err := g.add(filepath.Join(parent, name)); err != nil {
			return g, err
		}
	}
	if p.V2 != "" {
		g.V2 = filepath.Join(p.V2, name)
		if err := g.add(g.V2); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *Group) add(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if g.old = g.old || errors.Is(err, fs.ErrExist); err != nil && !g.old {
		return err
	}
	if !slices.Contains(g.Dirs, dir) {
		g.Dirs = append(g.Dirs, dir)
	}
	return nil
}

// Set sets the limits of a group. A limit of as many processors as the machine can ever have
// is none, and the kernel takes long to set it: a new group is left without.
func (p *Parent) Set(g *Group, l Limits) error {
	unlimited := !g.old && l.CPUs >= float64(possible())
	for c, parent := range p.V1 {
		if c == cpuName && unlimited {
			continue
		}
		for _, dir := range g.Dirs {
			if filepath.Dir(dir) == parent {
				if err := apply(dir, v1Settings(c, l)); err != nil {
					return err
				}
			}
		}
	}
	if g.V2 == "" {
		return nil
	}
	for _, c := range controllers {
		if _, v1 := p.V1[c]; !v1 && p.Has(c) && (c != cpuName || !unlimited) {
			if err := apply(g.V2, v2Settings(c, l)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bound limits all groups together, by memory and processes; 0 leaves one as it is.
func (p *Parent) Bound(l Limits) error {
	var failed error
	for c, value := range map[string]int64{"memory": l.Memory, "pids": int64(l.Processes)} {
		if value <= 0 || !p.Has(c) {
			continue
		}
		if dir, ok := p.V1[c]; ok {
			failed = errors.Join(failed, apply(dir, v1Settings(c, l)))
		} else if p.V2 != "" {
			failed = errors.Join(failed, apply(p.V2, v2Settings(c, l)))
		}
	}
	return failed
}

// Sweep removes the groups whose names start with prefix and that hold no
// process. Others cannot be removed, so there is nothing to be careful about.
func (p *Parent) Sweep(prefix string) {
	parents := []string{p.V2}
	for _, dir := range p.V1 {
		parents = append(parents, dir)
	}
	for _, dir := range parents {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if dir != "" && e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// setting is a file and what is written to it.
type setting struct {
	file, value string
	// optional files are not there on every machine (without swap, for one).
	optional bool
}

const period = 100_000 // microseconds, which is what a new group has

// possible is how many processors the machine can have, also those that are added while it runs.
var possible = sync.OnceValue(func() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return math.MaxInt32
	}
	return countOf(strings.TrimSpace(string(text)))
})

// countOf returns how many processors a list like "0-3,8" can name: up to its last one.
func countOf(list string) int {
	last := list[strings.LastIndexAny(list, ",-")+1:]
	n, err := strconv.Atoi(last)
	if err != nil {
		return math.MaxInt32
	}
	return n + 1
}

func quota(l Limits) string { return strconv.Itoa(max(1000, int(l.CPUs*period))) }

func v1Settings(controller string, l Limits) []setting {
	memory := strconv.FormatInt(l.Memory, 10)
	switch controller {
	case "memory":
		return []setting{{file: "memory.limit_in_bytes", value: memory}, {file: "memory.memsw.limit_in_bytes", value: memory, optional: true}}
	case "pids":
		return []setting{{file: "pids.max", value: strconv.Itoa(l.Processes)}}
	case freezerName:
		return nil
	default:
		return []setting{{file: "cpu.cfs_quota_us", value: quota(l)}}
	}
}

func v2Settings(controller string, l Limits) []setting {
	switch controller {
	case "memory":
		return []setting{
			{file: "memory.max", value: strconv.FormatInt(l.Memory, 10)},
			{file: "memory.swap.max", value: "0", optional: true},
			{file: "memory.oom.group", value: "0", optional: true},
		}
	case "pids":
		return []setting{{file: "pids.max", value: strconv.Itoa(l.Processes)}}
	default:
		return []setting{{file: "cpu.max", value: quota(l) + " " + strconv.Itoa(period)}}
	}
}

func apply(dir string, settings []setting) error {
	for _, s := range settings {
		if err := write(dir, s.file, s.value); err != nil && !s.optional {
			return fmt.Errorf("setting %s to %s: %w", s.file, s.value, err)
		}
	}
	return nil
}

// removeTime is how long the kernel may take to forget a process that has ended.
const removeTime = 10 * time.Second

// Remove removes the folders of groups whose processes have ended. The kernel
// needs a moment to forget them.
func Remove(ctx context.Context, dirs []string) error {
	var failed error
	end := time.Now().Add(removeTime)
	for _, dir := range dirs {
		for wait := time.Millisecond; ; wait *= 2 {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if time.Now().After(end) || ctx.Err() != nil {
				failed = errors.Join(failed, err)
				break
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}
	return failed
}
