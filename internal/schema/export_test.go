package schema

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"strings"
)

// Reduce joins OpenAPI v3 documents and keeps of them what makes the types of
// the kinds that they serve.
func Reduce(documents [][]byte) ([]byte, error) {
	all := map[string]*definition{}
	for _, data := range documents {
		doc, err := parseDocument(data)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, doc.Components.Schemas)
	}
	var out document
	out.Components.Schemas = map[string]*definition{}
	var keep func(d *definition)
	name := func(ref string) {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		if d := all[name]; d != nil && out.Components.Schemas[name] == nil {
			if len(d.Kinds) != 1 {
				d.Kinds = nil
			}
			out.Components.Schemas[name] = d
			keep(d)
		}
	}
	keep = func(d *definition) {
		if d == nil {
			return
		}
		if d.Ref != "" {
			name(d.Ref)
		}
		for _, a := range d.AllOf {
			keep(a)
		}
		for _, p := range d.Properties {
			keep(p)
		}
		keep(d.Items)
		keep(d.Additional.schema)
	}
	for n, d := range all {
		if len(d.Kinds) == 1 && !strings.HasSuffix(n, "List") && strings.HasPrefix(n, "io.k8s.") {
			name(n)
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// Unpack is the text of the embedded file.
func Unpack(packed []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err.Error()
	}
	var b bytes.Buffer
	_, _ = b.ReadFrom(r)
	return b.String()
}

// Embedded is the embedded file.
func Embedded() []byte { return builtin }
