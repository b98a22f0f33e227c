package git

import (
	"strings"

	"github.com/rutterhq/rutter"
)

// held is a commit of a mirror. As long as it is referenced the mirror keeps
// the commit, whatever becomes of its branch.
type held struct {
	m      *mirror
	url    string
	commit string
	root   objectID
}

// newHeld opens a commit that is in the mirror.
func newHeld(m *mirror, url, commit string) (*held, error) {
	h := &held{m: m, url: url, commit: commit}
	id, ok := parseID(commit)
	if !ok {
		return nil, h.fail(rutter.Errorf(rutter.CodeInvalid, "it is not a commit id"))
	}
	data, err := m.object(commit, id, "commit")
	if err != nil {
		return nil, h.fail(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if h.root, ok = parseID(strings.TrimPrefix(line, "tree ")); !ok {
		return nil, h.fail(rutter.Errorf(rutter.CodeInvalid, "it has no tree"))
	}
	if _, err := m.tree(commit, h.root); err != nil {
		return nil, h.fail(err)
	}
	return h, nil
}

// Commit implements rutter.Committed.
func (h *held) Commit() ([]byte, error) {
	id, ok := parseID(h.commit)
	if !ok {
		return nil, h.fail(rutter.Errorf(rutter.CodeInvalid, "it is not a commit id"))
	}
	data, err := h.m.object(h.commit, id, "commit")
	if err != nil {
		return nil, h.fail(err)
	}
	return data, nil
}

func (h *held) fail(err error) error {
	return rutter.Errorf(rutter.CodeOf(err), "repository %q, commit %s: %w", h.url, h.commit, err)
}

func (h *held) tree(id objectID) (*tree, error) {
	t, err := h.m.tree(h.commit, id)
	if err != nil {
		return nil, h.fail(err)
	}
	return t, nil
}

// blob returns a file's content as Git has it, which must not be changed.
func (h *held) blob(id objectID) ([]byte, error) {
	data, err := h.m.blob(h.commit, id)
	if err != nil {
		return nil, h.fail(err)
	}
	return data, nil
}

func (h *held) size(id objectID) (int64, error) {
	n, err := h.m.size(h.commit, id)
	if err != nil {
		return 0, h.fail(err)
	}
	return n, nil
}
