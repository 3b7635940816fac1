package call

import (
	"context"
	"net/url"
	"strconv"
	"strings"
)

// Next is the query of the next page, or nil on the last one. Only the query is
// taken from the link: a host behind a proxy may not know its own address, and a
// link must never lead a token away.
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

// NextPage is the number of the next page, from a link or GitLab's header; 0 on
// the last one.
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

// QueryOf is the query of an address that an answer gave for the next page, or nil.
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

// Each reads page after page, most at most, and follows the links between them.
// It ends early when take returns false.
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

// PageQuery asks for a page by number and size, as GitHub and GitLab are asked.
func PageQuery(page, size int) url.Values {
	return url.Values{"page": {strconv.Itoa(max(page, 1))}, "per_page": {strconv.Itoa(PageSize(size))}}
}

// PageSize is a size that every provider allows; 30 if none was wanted.
func PageSize(wanted int) int {
	if wanted < 1 {
		return 30
	}
	return min(wanted, 100)
}
