package cluster

import "testing"

// Servers on one machine have the same host, so a message about one names its data directory, or how to find it.
func TestPlace(t *testing.T) {
	t.Parallel()
	all := []Info{{Name: "ONE.x", Machine: "ONE", Host: "box", Dir: "/data/one"}, {Name: "OLD.x", Machine: "OLD", Host: "box"}}
	for machine, want := range map[string]string{
		"ONE":  "on the machine box, in the data directory /data/one",
		"OLD":  "on the machine box, in the data directory whose file server.name contains OLD",
		"GONE": "in the data directory whose file server.name contains GONE",
	} {
		if m, _ := On(all, machine); m.Place() != want {
			t.Errorf("%s is %s, want %s", machine, m.Place(), want)
		}
	}
}
