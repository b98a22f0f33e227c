package matrix

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// origins finds where a declared value comes from: a setting of the Application, or a
// line of a file that not all columns read, such as an overlay or a layer of values.
type origins struct {
	places map[string][]place // of a file, by path and content
	own    map[*side][]string // files that not all read, by side
	data   map[string][]byte  // by the same
}

// place is one value in a file.
type place struct {
	key, value string
	line       int
}

func newOrigins(sides []*side) *origins {
	o := &origins{places: map[string][]place{}, own: map[*side][]string{}, data: map[string][]byte{}}
	readers := map[string]int{}
	for _, s := range sides {
		for _, f := range s.Files {
			id := f.Path + "\x00" + string(f.Data)
			readers[id]++
			o.data[id] = f.Data
		}
	}
	for _, s := range sides {
		for _, f := range s.Files {
			if id := f.Path + "\x00" + string(f.Data); readers[id] < len(sides) {
				o.own[s] = append(o.own[s], id)
			}
		}
	}
	return o
}

// of says where the value comes from.
func (o *origins) of(s *side, object *rutter.Object, path, value string, has bool) string {
	if !has {
		return ""
	}
	text, name := strings.Trim(value, `"`), lastName(path)
	for _, set := range s.Settings {
		if set.Value == text || partOf(text, set.Value) && related(set.Field, name) {
			return fmt.Sprintf("%s of Application %s", set.Field, s.Application)
		}
	}
	best, at := 0, ""
	for _, id := range o.own[s] {
		file, _, _ := strings.Cut(id, "\x00")
		for _, p := range o.read(id) {
			if score := fits(p, name, text); score > best {
				best, at = score, fmt.Sprintf("%s:%d", file, p.line)
			}
		}
	}
	if best > 0 {
		return at
	}
	if object.Origin.File != "" && slices.ContainsFunc(o.own[s], func(id string) bool { return strings.HasPrefix(id, object.Origin.File+"\x00") }) {
		return fmt.Sprintf("%s:%d", object.Origin.File, max(1, object.Origin.Line))
	}
	return ""
}

// fits is how likely a place is where a value comes from; 0 when it is not.
func fits(p place, name, text string) int {
	switch {
	case p.value == "" || text == "":
		return 0
	case p.value == text && p.key == name:
		return 4
	case p.value == text:
		return 3
	case partOf(text, p.value) && related(p.key, name):
		return 2
	}
	return 0
}

// partOf reports whether a value may be a part of a text, as the tag of an image.
func partOf(text, value string) bool {
	return value != "" && (strings.HasSuffix(text, ":"+value) || len(value) > 1 && strings.Contains(text, value))
}

// related reports whether a key may give a part of a field, as a tag of an image.
func related(key, name string) bool {
	key = strings.ToLower(key[strings.LastIndexAny(key, ".")+1:])
	return key == strings.ToLower(name) || name == "image" && slices.Contains([]string{"tag", "newtag", "newname", "repository", "digest", "image", "images", "version"}, key)
}

// nameAtEnd matches the last field of a path.
var nameAtEnd = regexp.MustCompile(`(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\["([^"]*)"\])(?:\[[^\]]*\])?$`)

func lastName(path string) string {
	m := nameAtEnd.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	return cmp.Or(m[1], m[2])
}

// read lists the values of a YAML file; what is none has none.
func (o *origins) read(id string) []place {
	if known, ok := o.places[id]; ok {
		return known
	}
	var all []place
	dec := yaml.NewDecoder(bytes.NewReader(o.data[id]))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) || err != nil {
			break
		}
		all = collect(all, &doc, "")
	}
	o.places[id] = all
	return all
}

func collect(all []place, n *yaml.Node, key string) []place {
	switch n.Kind {
	case yaml.ScalarNode:
		return append(all, place{key, n.Value, n.Line})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = collect(all, n.Content[i+1], n.Content[i].Value)
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, c := range n.Content {
			all = collect(all, c, key)
		}
	}
	return all
}
