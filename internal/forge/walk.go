package forge

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// page is one part of a list.
type page[T any] struct {
	items []T
	// next is where the following part is; nil for the last.
	next *question
	// total is how many the whole list has; negative when that is not said.
	total int
	// pages is how many parts there are; 0 when that is not said.
	pages int
}

// lister says how a list is read.
type lister[T any] struct {
	// read decodes a part; q is what was asked for it.
	read func(q question, r *reply) (page[T], error)
	// id tells elements apart.
	id func(T) string
	// pinned is for lists whose parts follow one another by a token of the service,
	// so that nothing slips from one to the other while they are read.
	pinned bool
	// gone is the code for a list that does not exist; it is what was asked for
	// then. What was listed itself a moment ago must not have vanished.
	gone rutter.Code
}

// walks is how often a list that moves is read before that is given up.
const walks = 3

// walk reads a list to its end. With parts that are counted from the beginning, one
// element that goes away while they are read makes another one slip through
// between two parts, unseen. So a list of several parts is looked at again, and
// read again when it has changed.
func walk[T any](ctx context.Context, s *session, first question, l lister[T]) ([]T, error) {
	var moved string
	for range walks {
		w := walked[T]{seen: map[string]bool{}, asked: map[string]bool{}, total: -1}
		err := w.read(ctx, s, first, l)
		if err != nil {
			return nil, err
		}
		if w.moved == "" && !l.pinned && len(w.parts) > 1 {
			if err := w.confirm(ctx, s, l); err != nil {
				return nil, err
			}
		}
		if w.moved == "" {
			return w.items, nil
		}
		moved = w.moved
	}
	return nil, s.fail(first.what, rutter.CodeUnavailable, "the list could not be read as a whole in %d attempts: %s", walks, moved)
}

// walked is one reading of a list.
type walked[T any] struct {
	items []T
	parts []part
	seen  map[string]bool
	asked map[string]bool
	total int
	pages int
	// moved says why this reading does not count.
	moved string
}

// part is what one request brought.
type part struct {
	question question
	ids      string
}

func (w *walked[T]) read(ctx context.Context, s *session, first question, l lister[T]) error {
	for q := &first; q != nil && w.moved == ""; {
		key := q.url.String() + string(q.body)
		switch {
		case w.asked[key]:
			return s.fail(first.what, rutter.CodeUnavailable, "page %d leads back to one that was read already", len(w.parts))
		case len(w.parts) == s.opts.MaxPages:
			return s.fail(first.what, rutter.CodeUnavailable, "the list has more than %d pages, the limit", s.opts.MaxPages)
		}
		w.asked[key] = true
		gone := l.gone
		if len(w.parts) > 0 {
			gone = rutter.CodeUnavailable // a list that begins exists
		}
		p, err := get(ctx, s, *q, l, gone)
		if err != nil {
			return err
		}
		w.add(*q, p, l)
		q = p.next
	}
	switch {
	case w.moved != "":
	case w.total >= 0 && w.total != len(w.items):
		w.moved = "it promises " + strconv.Itoa(w.total) + " elements and has " + strconv.Itoa(len(w.items))
	case w.pages > len(w.parts):
		w.moved = "it promises " + strconv.Itoa(w.pages) + " pages and has " + strconv.Itoa(len(w.parts))
	}
	return nil
}

func get[T any](ctx context.Context, s *session, q question, l lister[T], gone rutter.Code) (page[T], error) {
	r, err := s.ask(ctx, q)
	if err != nil {
		return page[T]{}, err
	}
	if r.missing() {
		if gone == rutter.CodeNotFound {
			return page[T]{}, s.fail(q.what, gone, "not found, or the login may not see it: check the name, and the login's access%s", s.said(r.body))
		}
		return page[T]{}, s.fail(q.what, rutter.CodeUnavailable, "it was listed a moment ago and cannot be read now%s", s.said(r.body))
	}
	p, err := l.read(q, r)
	if err != nil {
		return page[T]{}, s.wrap(q.what, err)
	}
	if len(p.items) == 0 && r.exhausted {
		return page[T]{}, s.fail(q.what, rutter.CodeUnavailable, "an empty answer that comes with a used-up quota does not count")
	}
	return p, nil
}

// add takes a part up. One that has elements which were there before is a sign
// of a list that moves, or of a server that repeats itself.
func (w *walked[T]) add(q question, p page[T], l lister[T]) {
	ids := make([]string, 0, len(p.items))
	for _, item := range p.items {
		id := l.id(item)
		if w.seen[id] {
			w.moved = "page " + strconv.Itoa(len(w.parts)+1) + " has elements that an earlier one had"
		}
		w.seen[id] = true
		ids = append(ids, id)
	}
	w.items = append(w.items, p.items...)
	w.parts = append(w.parts, part{q, strings.Join(ids, "\x00")})
	if p.total >= 0 {
		if len(w.parts) > 1 && p.total != w.total {
			w.moved = "its promised length changes from page to page"
		}
		w.total = p.total
	}
	w.pages = max(w.pages, p.pages)
}

// confirm asks for all parts but the last again; mostly the service only has to
// say that they have not changed.
func (w *walked[T]) confirm(ctx context.Context, s *session, l lister[T]) error {
	for _, before := range w.parts[:len(w.parts)-1] {
		p, err := get(ctx, s, before.question, l, rutter.CodeUnavailable)
		if err != nil {
			return err
		}
		ids := make([]string, 0, len(p.items))
		for _, item := range p.items {
			ids = append(ids, l.id(item))
		}
		if strings.Join(ids, "\x00") != before.ids {
			w.moved = "it changed while it was read"
			return nil
		}
	}
	return nil
}

// numbered finds the part that follows in an API that numbers its parts and
// names the next one in the Link header (RFC 8288). A proxy may lose that header, so a
// full part is never taken for the last without asking for another.
func (s *session) numbered(q question, r *reply, n, full int) (next *question, pages int, err error) {
	links, err := links(r.header)
	if err != nil {
		return nil, 0, err
	}
	if text := links["last"]; text != "" {
		if last, err := url.Parse(text); err == nil {
			pages, _ = strconv.Atoi(last.Query().Get("page")) // a service that names no number makes no promise
		}
	}
	if text, ok := links["next"]; ok {
		next, err := s.follow(q, text)
		return next, pages, err
	}
	if n < full {
		return nil, pages, nil
	}
	params := q.url.Query()
	number, err := strconv.Atoi(params.Get("page"))
	if err != nil {
		number = 1
	}
	params.Set("page", strconv.Itoa(number+1))
	u := *q.url
	u.RawQuery = params.Encode()
	q.url = &u
	return &q, pages, nil
}

// follow goes where the service says that the list goes on, within its API.
func (s *session) follow(q question, text string) (*question, error) {
	ref, err := url.Parse(text)
	if err != nil || text == "" {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the next page has an address that cannot be parsed")
	}
	u := q.url.ResolveReference(ref)
	if !s.inside(u) {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the next page is said to be at %s, outside of the API that the login is for: correct api, or the service's own idea of its address", quote(u.Scheme+"://"+u.Host))
	}
	u.Fragment = ""
	q.url = u
	return &q, nil
}

// links reads Link headers: relation to address.
func links(h http.Header) (map[string]string, error) {
	found := map[string]string{}
	broken := rutter.Errorf(rutter.CodeUnavailable, "the answer has a Link header that cannot be read")
	for _, rest := range h.Values("Link") {
		for rest = strings.Trim(rest, " \t,"); rest != ""; rest = strings.Trim(rest, " \t,") {
			if rest[0] != '<' {
				return nil, broken
			}
			target, after, ok := strings.Cut(rest[1:], ">")
			if !ok {
				return nil, broken
			}
			params := after
			if end := strings.IndexByte(after, '<'); end >= 0 {
				params, after = after[:end], after[end:]
			} else {
				after = ""
			}
			for _, rel := range relations(strings.TrimRight(params, " \t,")) {
				found[rel] = target
			}
			rest = after
		}
	}
	return found, nil
}

func relations(params string) []string {
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(key), "rel") {
			return strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`)))
		}
	}
	return nil
}

// promised reads a header with a number of elements; -1 when it is not there.
func promised(h http.Header, names ...string) int {
	i := slices.IndexFunc(names, func(n string) bool { return h.Get(n) != "" })
	if i < 0 {
		return -1
	}
	n, err := strconv.Atoi(h.Get(names[i]))
	if err != nil || n < 0 {
		return -1
	}
	return n
}
