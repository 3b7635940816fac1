// Package names decides what the containers and volumes of the docker driver are called, and which of them belong to which sandbox.
//
// Users choose the IDs of sandboxes and the images that containers are made of, and several servers can share an engine. A name alone
// proves nothing for this reason: what is found by its name is used only if its labels name the instance, the kind and the ID. A new
// container has all labels of this package, so that its image cannot add one.
package names

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"deckhand/internal/sandbox"
)

// The labels of containers and volumes.
const (
	Ours       = "deckhand"
	Instance   = "deckhand.instance"
	Generation = "deckhand.generation"
	Image      = "deckhand.image"
	Runner     = "deckhand.runner"
	Shape      = "deckhand.shape"
	Connector  = "deckhand.connector"
	// Empty marks the checkpoints of a workspace that was empty at first, and Folder names the folder of this machine that is the workspace.
	Empty  = "deckhand.empty"
	Folder = "deckhand.folder"
)

// Kind is what a container or a volume is. Its value is the label that has the ID of the sandbox.
type Kind string

const (
	// Box is the container of a sandbox, and the volume with its workspace.
	Box Kind = "deckhand.id"
	// Passing is a container that lives for one look at a workspace.
	Passing Kind = "deckhand.passing"
	// Helper is the container that keeps checkpoints, and Store the volume with them.
	Helper Kind = "deckhand.helper"
	Store  Kind = "deckhand.checkpoints"
)

var kinds = []Kind{Box, Passing, Helper, Store}

// all are the labels that a container has in any case.
var all = []string{Ours, Instance, Generation, Image, Runner, Shape, Connector, Empty, Folder, string(Box), string(Passing), string(Helper), string(Store)}

// Names are the names of one instance.
type Names struct{ Prefix, Instance string }

// name joins the parts of a name. The word for the kind comes before the ID, so that no ID makes a name of another kind.
func (n Names) name(word, id string) string {
	sum := sha256.Sum256([]byte(n.Instance))
	return n.Prefix + "-" + hex.EncodeToString(sum[:5]) + "-" + word + "-" + id
}

// Container and Workspace return the names for the container of a sandbox and for its volume, and the names that older versions gave them.
func (n Names) Container(id string) []string {
	return []string{n.name("box", id), n.Prefix + "-" + id}
}

// Workspace returns the names for the volume; see Container.
func (n Names) Workspace(id string) []string {
	return []string{n.name("ws", id), n.Prefix + "-ws-" + id}
}

// Helper and Store return the names for the container that keeps checkpoints and for the volume with them, and the older names.
func (n Names) Helper(id string) []string {
	return []string{n.name("helper", id), n.Prefix + "-helper-" + id}
}

// Store returns the names for the volume with checkpoints; see Helper.
func (n Names) Store(id string) []string {
	return []string{n.name("checkpoints", id), n.Prefix + "-checkpoints-" + id}
}

// Passing returns a new name for a container that looks at a workspace.
func (n Names) Passing(id string) string { return n.name("look-"+rand.Text(), id) }

// Labels returns the labels of a volume, or of a container without what its image could add: see Whole.
func (n Names) Labels(k Kind, id string, more map[string]string) map[string]string {
	l := maps.Clone(more)
	if l == nil {
		l = map[string]string{}
	}
	l[Ours], l[Instance], l[string(k)] = "1", n.Instance, id
	return l
}

// Whole returns the labels of a container. The labels of the driver that it does not need are empty: an engine adds the labels of the image, but for
// the ones that are set.
func Whole(labels map[string]string) map[string]string {
	l := maps.Clone(labels)
	for _, name := range all {
		l[name] = labels[name]
	}
	return l
}

// Of returns what the labels say that a container or a volume of this instance is, and of which sandbox. It is "" if it is not ours, or if
// the labels name two kinds: containers of older versions have labels of their image too.
func (n Names) Of(labels map[string]string) (k Kind, id string) {
	if labels[Ours] != "1" || labels[Instance] != n.Instance {
		return "", ""
	}
	for _, each := range kinds {
		if v := labels[string(each)]; v != "" {
			if k != "" {
				return "", ""
			}
			k, id = each, v
		}
	}
	if sandbox.CheckID(id) != nil {
		return "", ""
	}
	return k, id
}

// Is reports whether the labels are those of a kind, of this instance and of one sandbox.
func (n Names) Is(labels map[string]string, k Kind, id string) bool {
	kind, of := n.Of(labels)
	return kind == k && of == id
}
