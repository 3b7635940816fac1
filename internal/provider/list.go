package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/secret"
	"deckhand/internal/settings"
)

// List finds models. An unreachable server is reported only if its provider is the only one asked for.
func (m *Models) List(ctx context.Context, user string, q api.ModelQuery) (api.ModelList, error) {
	s, err := m.stored(ctx, user)
	if err != nil {
		return api.ModelList{}, err
	}
	q.Provider = catalogue.Canonical(q.Provider)
	names, problem := m.names(ctx, s, q)
	favourite := func(name string) bool { return slices.Contains(s.Favourites, name) }
	names = slices.DeleteFunc(names, func(name string) bool {
		return q.Provider != "" && providerOf(name) != q.Provider || q.Favourites && !favourite(name)
	})
	usable := map[string]bool{}
	can := func(name string) bool {
		provider := providerOf(name)
		if _, asked := usable[provider]; !asked {
			usable[provider] = m.usable(s, provider)
		}
		return usable[provider] || provider == "scripted"
	}
	names = catalogue.Search(names, q.Text, func(name string) int {
		switch own := catalogue.Vendor(providerOf(name)); {
		case favourite(name):
			return 0
		case can(name) && own:
			return 1
		case can(name) && providerOf(name) != "scripted":
			return 2
		case own:
			return 3
		}
		return 4
	})
	out := api.ModelList{Models: []api.ModelInfo{}, Total: len(names), Problem: orNull(problem)}
	for _, name := range names[:min(int(q.Limit), len(names))] {
		info := m.Connector.Catalogue.Info(name)
		about := api.ModelInfo{ID: name, Provider: providerOf(name), Tools: info.Tools, Images: info.Images, Reasoning: info.Thinks, Favourite: favourite(name), Usable: can(name)}
		if info.Priced {
			about.InputPrice, about.OutputPrice = &info.Price.Input, &info.Price.Output
		}
		if info.Window > 0 {
			about.ContextWindow = &info.Window
		}
		out.Models = append(out.Models, about)
	}
	return out, nil
}

// names returns all models that can be found: those of the catalogue, the user's own, and those of servers.
func (m *Models) names(ctx context.Context, s settings.Settings, q api.ModelQuery) (names []string, problem string) {
	names = m.Connector.Catalogue.Names()
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range s.Favourites {
		add(name)
	}
	add(s.Small)
	add(s.Fallback)
	add(m.Config(s, "").Model)
	if !q.Live || m.Silent {
		return names, ""
	}
	limit := 3 * time.Second
	if q.Provider != "" {
		limit = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	for id, entry := range s.ModelProviders {
		if q.Provider != "" && id != q.Provider || !m.lists(describe(id), entry) {
			continue
		}
		asking.Go(func() {
			found, err := m.discover(ctx, m.Config(s, id+"/x"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil && q.Provider != "" {
				problem = conversation.Sentence(secret.NewMasker(s.SecretValues()...).String(err.Error()))
			}
			for _, name := range found {
				add(id + "/" + name)
			}
		})
	}
	asking.Wait()
	return names, problem
}

// Limits on a server's response.
const (
	maxListBytes = 4 << 20
	maxListed    = 1000
)

// discover asks an OpenAI-compatible server for its models. For old versions of Ollama, it uses Ollama's own API.
func (m *Models) discover(ctx context.Context, c llm.Config) ([]string, error) {
	base, chat := connect.BaseURL(c, m.Connector.Catalogue)
	if base == "" || !chat {
		return nil, errors.New("the models of this provider cannot be listed; enter the name of a model")
	}
	var list struct {
		Data   []struct{ ID string } // OpenAI
		Models []struct{ Name string }
	}
	err := m.get(ctx, c, strings.TrimRight(base, "/")+"/models", &list)
	if err != nil && c.Provider() == "ollama" {
		if u, bad := url.Parse(base); bad == nil && m.get(ctx, c, u.Scheme+"://"+u.Host+"/api/tags", &list) == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range list.Data {
		names = append(names, d.ID)
	}
	for _, d := range list.Models {
		names = append(names, d.Name)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !plausible(name) })
	return names[:min(len(names), maxListed)], nil
}

// plausible reports whether a name could be stored as a model.
func plausible(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// get reads a list. The client checks the address that it dials, and redirects are not followed: the key is for this host.
func (m *Models) get(ctx context.Context, c llm.Config, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the base URL is not valid")
	}
	if c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	client := *c.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at := req.URL.Scheme + "://" + req.URL.Host
	res, err := client.Do(req)
	if err != nil {
		var refused interface{ Forbidden() bool }
		if errors.As(err, &refused) && refused.Forbidden() {
			return fmt.Errorf("this server does not connect to %s, which is a private address; ask the operator to allow it with --allow-private", at)
		}
		return fmt.Errorf("no server responded at %s; start it or correct the base URL", at)
	}
	defer res.Body.Close()
	switch body := io.LimitReader(res.Body, maxListBytes); {
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the server at %s rejected the API key; enter a valid one", at)
	case res.StatusCode != http.StatusOK, json.NewDecoder(body).Decode(into) != nil:
		return fmt.Errorf("the server at %s has no list of models (status %d); check the base URL, which usually ends in /v1", at, res.StatusCode)
	}
	return nil
}
