package manifest

import (
	"bytes"
	"errors"
	"fmt"
)

// The limits of a stream and of one document. An object that etcd accepts is
// far below all of them.
const (
	maxDocuments = 20_000
	// maxDepth is how deep values lie in one another.
	maxDepth = 500
	// maxNodes bounds keys and values of one document, and so the memory that
	// parsing it takes: up to 400 bytes each.
	maxNodes = 1_000_000
	// minExpansion is how large any document may become through its aliases;
	// larger ones may grow to maxGrowth times their size.
	minExpansion = 8 << 20
	maxGrowth    = 4
)

// limitError is a document that is too much, as opposed to one that is wrong.
type limitError string

// Error implements error.
func (e limitError) Error() string { return string(e) }

func limitf(format string, args ...any) error { return limitError(fmt.Sprintf(format, args...)) }

func isLimit(err error) bool {
	_, ok := errors.AsType[limitError](err)
	return ok
}

// checkText refuses a document that could hold more values than one may have,
// before the parser spends its memory on them. Between two values there is one
// of a few characters; in texts there may be more of them, but an object of
// that size is not accepted anywhere.
func checkText(data []byte) error {
	if len(data) < maxNodes {
		return nil
	}
	n := 1
	for _, c := range []byte{',', ':', '\n', '[', '{'} {
		n += bytes.Count(data, []byte{c})
	}
	if n > maxNodes {
		return limitf("the document holds more than %d values: split it into several", maxNodes)
	}
	return nil
}

// measure counts what a document holds once its aliases are expanded.
type measure struct {
	max   int64 // the size of the document's text
	nodes int
	bytes int64
}

func (m *measure) maxBytes() int64 { return max(minExpansion, maxGrowth*m.max) }

func (m *measure) node(depth int) error {
	if m.nodes++; m.nodes > maxNodes {
		return m.tooLarge()
	}
	if depth > maxDepth {
		return limitf("values lie deeper than %d in one another: make the document flatter", maxDepth)
	}
	return nil
}

func (m *measure) tooLarge() error {
	return limitf("the document grows to more than %d values or %d MiB, aliases (*name) included: write less, or split it into several", maxNodes, m.maxBytes()>>20)
}

// value measures what JSON's reader made.
func (m *measure) value(v any, depth int) error {
	if err := m.node(depth); err != nil {
		return err
	}
	switch x := v.(type) {
	case map[string]any:
		for _, item := range x {
			if err := m.value(item, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range x {
			if err := m.value(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
