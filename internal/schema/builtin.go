package schema

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the built-in kinds
	"io"

	"github.com/rutterhq/rutter"
)

// builtin are the OpenAPI v3 definitions of a real API server, without what
// makes no type; the package's test compares them with a server and writes them
// anew with -update.
//
//go:embed builtin.json.gz
var builtin []byte

// Builtin reads the kinds that Kubernetes itself serves. It takes some
// milliseconds: whoever needs them often keeps them.
func Builtin() (*Schemas, error) {
	r, err := gzip.NewReader(bytes.NewReader(builtin))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "the built-in schemas: %w", err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "the built-in schemas: %w", err)
	}
	return Parse(data)
}
