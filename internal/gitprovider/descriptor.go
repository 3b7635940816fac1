package gitprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Descriptor is all that code outside of a provider's folder knows of it. Each
// provider declares its own there, and package forge lists them. Nobody compares
// names elsewhere: what depends on the provider is a field here.
type Descriptor struct {
	// Name is what settings, requests and events call it; Title is for people.
	Name, Title string
	// Phrase is how sentences call it, "" for Title.
	Phrase string
	// Host is its public one, "" if it has none.
	Host string
	// Generic is true for a host of any kind, which is asked what it is.
	Generic bool
	// Founding is true if the API named it from the start: clients that were generated
	// then find these names in the enum, and newer ones beside it.
	Founding bool
	// Public is true if repositories are looked for there without a stored token.
	Public bool
	Terms  Terms
	// Tool is the one that opens pull requests there.
	Tool string
	// OrgRepository is the repository of an organisation whose microagents hold for
	// all others, "" for .openhands.
	OrgRepository string
	// ClonePath is where repositories are on hosts other than the public one.
	ClonePath string
	// UsersByID is true if names of users are not unique at the public host.
	UsersByID bool
	// Credentials are the ways to show git a token, as Credentials returns them; nil
	// shows it as the password of oauth2.
	Credentials func(token string, ownHost bool) []string
	// Webhook makes sense of what it sends; nil if nothing can be started from there.
	Webhook *Webhook
	// Probe recognises a host of this kind; nil if it cannot be.
	Probe *Probe
}

// Terms are what a provider calls its things.
type Terms struct {
	Request, Short string // pull request, PR
	Checks         string // what runs on a commit
	// Mark stands before a request's number; Ref is where git finds its commits,
	// with %d for the number, "" if it does not.
	Mark, Ref string
}

// Probe is a question that only one kind of host answers, and how to see that it did.
type Probe struct {
	Order  int // when it is asked: lower ones first
	Path   string
	Fields []string // all of them are in the answer
	Header string   // or this one is set, which is so even when the token is not accepted
}

// Webhook makes sense of what a provider sends.
type Webhook struct {
	// Events are the headers that name the event, and IDs those that name a
	// delivery, best first.
	Events, IDs []string
	Signed      func(h http.Header, body []byte, secret string) bool
	Read        func(name string, payload []byte) (HookEvent, error)
}

// DefaultOrgRepository is where an organisation keeps microagents for all its repositories.
const DefaultOrgRepository = ".openhands"

var (
	registered []Descriptor
	// general holds for a provider that is not known.
	general = Descriptor{Phrase: "the git host", Generic: true, OrgRepository: DefaultOrgRepository, Tool: "create_pr",
		Terms: Terms{Request: "pull request", Short: "PR", Checks: "CI jobs", Mark: "#"}}
)

// Register adds a provider. It is called before anything is looked up, by package forge.
func Register(d Descriptor) {
	if _, taken := Find(d.Name); taken || d.Name == "" {
		panic("two git providers are called " + d.Name)
	}
	if d.Phrase == "" {
		d.Phrase = d.Title
	}
	if d.OrgRepository == "" {
		d.OrgRepository = DefaultOrgRepository
	}
	registered = append(registered, d)
}

// All are the providers, in the order in which they are listed.
func All() []Descriptor { return registered }

// Find returns the provider with a name.
func Find(name string) (Descriptor, bool) {
	i := slices.IndexFunc(registered, func(d Descriptor) bool { return d.Name == name })
	if i < 0 {
		return general, false
	}
	return registered[i], true
}

// Describe is Find with general words for a provider that is not known.
func Describe(name string) Descriptor {
	d, _ := Find(name)
	return d
}

// Names are the names of all providers.
func Names() []string { return namesOf(func(Descriptor) bool { return true }) }

// FoundingNames are the names of providers that the API named from the start.
func FoundingNames() []string { return namesOf(func(d Descriptor) bool { return d.Founding }) }

// TriggerNames are the names of providers whose webhooks can start the agent.
func TriggerNames() []string { return namesOf(func(d Descriptor) bool { return d.Webhook != nil }) }

// PublicNames are the names of providers where repositories are looked for without a token.
func PublicNames() []string { return namesOf(func(d Descriptor) bool { return d.Public }) }

func namesOf(match func(Descriptor) bool) []string {
	var names []string
	for _, d := range registered {
		if match(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// Default is the provider of a repository that is named without one.
func Default() string { return registered[0].Name }

// FlagVars are what flags that take a provider refer to.
func FlagVars() map[string]string {
	names := Names()
	last := len(names) - 1
	return map[string]string{
		"git_providers":     "," + strings.Join(names, ","),
		"git_provider_list": strings.Join(names[:last], ", ") + " or " + names[last],
	}
}

// RequestName is how people speak of a pull request where it lives.
func RequestName(provider, repository string, number int) string {
	t := Describe(provider).Terms
	return fmt.Sprintf("%s%s %s%d of %s", strings.ToUpper(t.Request[:1]), t.Request[1:], t.Mark, number, repository)
}
