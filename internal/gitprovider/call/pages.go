package call

import (
	"context"
	"net/url"
	"strconv"
	"strings"
)

// Next returns the query of the next page, or nil on the last one. Only the query of the
// link is used: a host behind a proxy may not know its own URL, and a link must never
// send a token elsewhere.
func (a Answer) Next() url.Values {
	for _, header := range a.Header.Values("Link") {
		for link := range strings.SplitSeq(header, ",") {
			address, attributes, ok := strings.Cut(link, ";")
			if !ok || !isNext(attributes) {
				continue
			}
			return QueryOf(strings.Trim(strings.TrimSpace(address), "<>"))
		}
	}
	return nil
}

// NextPage returns the number of the next page, from a link or GitLab's header; 0 on the
// last one.
func (a Answer) NextPage() int {
	text := a.Header.Get("X-Next-Page")
	if text == "" {
		text = a.Next().Get("page")
	}
	page, err := strconv.Atoi(text)
	if err != nil || page < 2 {
		return 0
	}
	return page
}

// QueryOf returns the query of a next-page URL, or nil.
func QueryOf(address string) url.Values {
	u, err := url.Parse(address)
	if err != nil || u.RawQuery == "" {
		return nil
	}
	return u.Query()
}

func isNext(attributes string) bool {
	for attribute := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(attribute), "=")
		if strings.EqualFold(name, "rel") && strings.EqualFold(strings.Trim(value, `"`), "next") {
			return true
		}
	}
	return false
}

// Each reads at most most pages, following links. It stops when take returns false.
func Each[T any](ctx context.Context, c *Caller, r Request, most int, take func(page T) bool) error {
	for range most {
		var page T
		answer, err := c.Do(ctx, r, &page)
		if err != nil {
			return err
		}
		if !take(page) {
			return nil
		}
		if r.Query = answer.Next(); r.Query == nil {
			return nil
		}
	}
	return nil
}

// PageQuery returns the query for a page by number and size, as GitHub and GitLab expect
// it.
func PageQuery(page, size int) url.Values {
	return url.Values{"page": {strconv.Itoa(max(page, 1))}, "per_page": {strconv.Itoa(PageSize(size))}}
}

// PageSize returns a page size that every provider allows; the default is 30.
func PageSize(wanted int) int {
	if wanted < 1 {
		return 30
	}
	return min(wanted, 100)
}
