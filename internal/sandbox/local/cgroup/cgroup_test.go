package cgroup

import (
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	for name, c := range map[string]struct {
		mounts, groups string
		v1             map[string]string
		v2             string
	}{
		"v1": {hybrid, "8:pids:/\n4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/x\n",
			map[string]string{"pids": "/sys/fs/cgroup/pids", "memory": "/sys/fs/cgroup/memory/a/b", "cpu": "/sys/fs/cgroup/cpu,cpuacct/c", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/c"}, "/sys/fs/cgroup/unified/x"},
		"v2": {"30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n", "0::/system.slice/deckhand.service\n",
			map[string]string{}, "/sys/fs/cgroup/system.slice/deckhand.service"},
		"v2 in a container": {"30 23 0:26 /docker/1234 /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n", "0::/docker/1234/sub\n",
			map[string]string{}, "/sys/fs/cgroup/sub"},
		"none": {"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n", "", map[string]string{}, ""},
	} {
		v1, v2 := locate(c.mounts, c.groups)
		if !maps.Equal(v1, c.v1) || v2 != c.v2 {
			t.Errorf("%s: %v, %q", name, v1, v2)
		}
	}
}

func TestSettings(t *testing.T) {
	l := Limits{CPUs: 1.5, Memory: 1 << 30, Processes: 100}
	want := map[string]string{"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "0", "pids.max": "100", "cpu.max": "150000 100000"}
	got := map[string]string{}
	for _, c := range controllers {
		for _, s := range v2Settings(c, l) {
			got[s.file] = s.value
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("version 2: %v", got)
	}
	if q := quota(Limits{CPUs: 0.0001}); q != "1000" {
		t.Errorf("the least the kernel takes is 1000, not %s", q)
	}
}

// A process that is started on lent thread is in the group, and this one is not.
func TestLend(t *testing.T) {
	p := Find()
	if len(p.V1) == 0 {
		if os.Getenv("CI") == "true" && p.V2 == "" {
			t.Fatalf("no control groups: %v", p.Missing)
		}
		t.Skipf("SKIPPED: only the unified hierarchy, or none: %v", p.Missing)
	}
	before, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Make("test-lend")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Remove(t.Context(), g.Dirs); err != nil {
			t.Error(err)
		}
		for _, dir := range g.Dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is still there", dir)
			}
		}
	}()
	if err := p.Set(g, Limits{CPUs: 1, Memory: 100 << 20, Processes: 50}); err != nil {
		t.Fatal(err)
	}
	// Often enough to meet the first thread, which is not to be lent.
	for range 20 {
		var out, meanwhile []byte
		failed, err := p.Loan(g).Lend(func() (err error) {
			if meanwhile, err = os.ReadFile("/proc/self/cgroup"); err == nil {
				out, err = exec.Command("cat", "/proc/self/cgroup").Output()
			}
			return err
		})
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if n := strings.Count(string(out), "/test-lend\n"); n != len(p.V1) {
			t.Errorf("it is in the group %d times, wanted %d:\n%s", n, len(p.V1), out)
		}
		if string(meanwhile) != string(before) {
			t.Fatalf("this process was in\n%s", meanwhile)
		}
	}
	for _, thread := range threads(t) {
		now, err := os.ReadFile(thread)
		if err == nil && string(now) != string(before) {
			t.Errorf("%s is in\n%s", thread, now)
		}
	}
}

func threads(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(all) == 0 {
		t.Fatal("no threads", err)
	}
	slices.Sort(all)
	return all
}

// All groups together are bounded where the controllers are, and what is not said stays.
func TestBound(t *testing.T) {
	v2, v1 := t.TempDir(), t.TempDir()
	for _, file := range []string{v2 + "/memory.max", v2 + "/memory.swap.max", v1 + "/pids.max"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &Parent{V2: v2, V1: map[string]string{"pids": v1}, Missing: map[string]string{"cpu": "not there"}}
	if err := p.Bound(Limits{Memory: 1 << 30, Processes: 5000}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{v2 + "/memory.max": "1073741824", v1 + "/pids.max": "5000"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", file, got, err)
		}
	}
	if err := p.Bound(Limits{}); err != nil {
		t.Error(err)
	}
	if err := (&Parent{V2: t.TempDir(), Missing: map[string]string{}}).Bound(Limits{Memory: 1}); err == nil {
		t.Error("what cannot be set is not told")
	}
}

// A limit that cannot be reached is not set for a new group, and one that can be is.
func TestProcessorsOfTheMachine(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8-11": 12, "": math.MaxInt32, "x": math.MaxInt32} {
		if got := countOf(list); got != want {
			t.Errorf("%q has %d, wanted %d", list, got, want)
		}
	}
	for _, old := range []bool{false, true} {
		for cpus, set := range map[float64]bool{float64(possible()): old, float64(possible()) - 0.5: true} {
			dir := t.TempDir()
			for _, file := range []string{"memory.max", "pids.max", "cpu.max"} {
				if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := &Parent{V2: filepath.Dir(dir), Missing: map[string]string{}}
			if err := p.Set(&Group{Dirs: []string{dir}, V2: dir, old: old}, Limits{CPUs: cpus, Memory: 1 << 30, Processes: 10}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err != nil || (len(got) > 0) != set {
				t.Errorf("a group that is old (%t) has the limit %q for %v processors: %v", old, got, cpus, err)
			}
		}
	}
}
