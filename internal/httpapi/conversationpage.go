package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"deckhand/api"
)

// link leads to a pull request.
type link struct{ Name, URL string }

// serveConversation shows one conversation: where the links in pull requests
// lead, what waits for an answer, and how its tool servers are.
func serveConversation(d *Door, w http.ResponseWriter, r *http.Request, c *call) error {
	at := one{ID: r.PathValue("conversation_id")}
	row, err := d.row(r.Context(), c, at.ID)
	if err != nil {
		return err
	}
	waiting, err := getApprovals(d, r.Context(), c, at, none{})
	if err != nil {
		return err
	}
	servers, err := getMCP(d, r.Context(), c, at, none{})
	if err != nil {
		return err
	}
	type question struct {
		api.Approval
		Risk, Arguments string
	}
	var pending []question
	for _, a := range waiting.Pending {
		pending = append(pending, question{a, riskName(a.Risk), readable(a.Arguments)})
	}
	var requests []link
	for _, q := range row.Requests {
		requests = append(requests, link{q.Name(), q.URL})
	}
	return writePage(w, http.StatusOK, render("conversation.html", map[string]any{
		"Root": rootOf(r), "User": c.who.User, "Version": d.Version, "ID": row.ID, "Last": row.Last, "Title": row.Title, "Status": row.Status, "Agent": row.Agent, "Reason": row.Reason,
		"Repository": row.Repository, "Branch": row.Branch, "Updated": row.UpdatedAt.Format(time.DateTime + " MST"),
		"Requests": requests, "Pending": pending, "Servers": servers.Servers,
	}))
}

// readable is JSON as people read it.
func readable(raw json.RawMessage) string {
	var v any
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if json.Unmarshal(raw, &v) != nil || e.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// riskName is what people call a risk.
func riskName(n int) string {
	names := []string{"not known", "low", "medium", "high"}
	if n+1 < 0 || n+1 >= len(names) {
		return names[0]
	}
	return names[n+1]
}
