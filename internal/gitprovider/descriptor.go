package gitprovider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Descriptor is everything that other packages know about a provider. Each provider
// declares its own, and package forge lists them. Other code never compares provider
// names: what depends on the provider is a field here.
type Descriptor struct {
	// Name is used in settings, requests and events; Title is for display.
	Name, Title string
	// Phrase is the name in sentences; "" for Title.
	Phrase string
	// Host is the public host, or "".
	Host string
	// Generic is set for a host of unknown kind, which is detected by requests.
	Generic bool
	// Founding is set if the first version of the API had it: those names are in the
	// enum of generated clients, newer ones are not.
	Founding bool
	// Public is set if repositories are searched there without a stored token.
	Public bool
	Terms  Terms
	// Tool is the tool that opens pull requests.
	Tool string
	// OrgRepository is the repository with an organisation's microagents; "" for
	// .openhands.
	OrgRepository string
	// ClonePath is the path of repositories on hosts other than the public one.
	ClonePath string
	// UsersByID is set if user names are not unique at the public host.
	UsersByID bool
	// Credentials returns the headers to try for git; nil sends the token as the
	// password of oauth2.
	Credentials func(token string, ownHost bool) []string
	// Webhook parses webhook requests; nil if they are not supported.
	Webhook *Webhook
	// Probe detects a host of this kind; nil if it cannot be detected.
	Probe *Probe
}

// Terms are the provider's words.
type Terms struct {
	Request, Short string // pull request, PR
	Checks         string // the checks of a commit
	// Mark precedes the number of a pull request. Ref is its git ref with %d for the
	// number, or "".
	Mark, Ref string
}

// Probe is a request that only one kind of host answers, and how to recognise the answer.
type Probe struct {
	Order  int // lower ones are sent first
	Path   string
	Fields []string // all must be in the response
	Header string   // or this header is set, even if the token is rejected
}

// Webhook parses the webhook requests of a provider.
type Webhook struct {
	// Events are the headers with the event name, and IDs those with the delivery ID, in
	// order of preference.
	Events, IDs []string
	Signed      func(h http.Header, body []byte, secret string) bool
	Read        func(name string, payload []byte) (HookEvent, error)
}

// DefaultOrgRepository is the repository with an organisation's microagents.
const DefaultOrgRepository = ".openhands"

var (
	registered []Descriptor
	// general describes an unknown provider.
	general = Descriptor{Phrase: "the git host", Generic: true, OrgRepository: DefaultOrgRepository, Tool: "create_pr",
		Terms: Terms{Request: "pull request", Short: "PR", Checks: "CI jobs", Mark: "#"}}
)

// Register adds a provider. Package forge calls it before any lookup.
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

// All returns the providers in display order.
func All() []Descriptor { return registered }

// Find returns the provider with a name.
func Find(name string) (Descriptor, bool) {
	i := slices.IndexFunc(registered, func(d Descriptor) bool { return d.Name == name })
	if i < 0 {
		return general, false
	}
	return registered[i], true
}

// Describe is Find with a general description for an unknown provider.
func Describe(name string) Descriptor {
	d, _ := Find(name)
	return d
}

// Names returns the names of all providers.
func Names() []string { return namesOf(func(Descriptor) bool { return true }) }

// FoundingNames returns the names of the providers in the first version of the API.
func FoundingNames() []string { return namesOf(func(d Descriptor) bool { return d.Founding }) }

// TriggerNames returns the names of the providers whose webhooks can start the agent.
func TriggerNames() []string { return namesOf(func(d Descriptor) bool { return d.Webhook != nil }) }

// PublicNames returns the names of the providers that are searched without a token.
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

// Default returns the provider of a repository without a provider.
func Default() string { return registered[0].Name }

// FlagVars returns variables for the help of flags.
func FlagVars() map[string]string {
	names := Names()
	last := len(names) - 1
	return map[string]string{
		"git_providers":     "," + strings.Join(names, ","),
		"git_provider_list": strings.Join(names[:last], ", ") + " or " + names[last],
	}
}

// RequestName returns the usual notation for a pull request.
func RequestName(provider, repository string, number int) string {
	t := Describe(provider).Terms
	return fmt.Sprintf("%s%s %s%d of %s", strings.ToUpper(t.Request[:1]), t.Request[1:], t.Mark, number, repository)
}
