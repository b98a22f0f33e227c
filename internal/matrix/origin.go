package matrix

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// origins finds where a declared value comes from: a setting of the Application, or a
// line of a file, that not all columns have, such as an overlay or a layer of values.
type origins struct {
	files    map[string]*source  // by path and hash
	own      map[*side][]string  // files that not all read, by side
	settings map[*side][]Setting // those that not all have
}

// source is a file, and the values in it once somebody asked for them.
type source struct {
	File

	places []place
	read   bool
}

// place is one value in a file.
type place struct {
	key, value string
	line       int
}

func newOrigins(sides []*side) *origins {
	o := &origins{files: map[string]*source{}, own: map[*side][]string{}, settings: map[*side][]Setting{}}
	readers, havers := map[string]int{}, map[[2]string]int{}
	for _, s := range sides {
		seen := map[string]bool{}
		for _, f := range s.Files {
			id := f.Path + "\x00" + f.Hash
			if !seen[id] {
				seen[id] = true
				readers[id]++
				o.own[s] = append(o.own[s], id)
			}
			if o.files[id] == nil {
				o.files[id] = &source{File: f}
			}
		}
		for _, set := range s.Settings {
			havers[set.what()]++
		}
	}
	for _, s := range sides {
		o.own[s] = slices.DeleteFunc(o.own[s], func(id string) bool { return readers[id] == len(sides) })
		o.settings[s] = slices.DeleteFunc(slices.Clone(s.Settings), func(set Setting) bool { return havers[set.what()] == len(sides) })
	}
	return o
}

// of says where the value comes from.
func (o *origins) of(s *side, d *declared, path, value string) string {
	text, name := strings.Trim(value, `"`), lastName(path)
	best, where, several := 0, "", false
	try := func(p place, at func() string) {
		score := fits(p, name, text)
		if score == 0 || score < best {
			return
		}
		found := at()
		if several = several && score == best || score == best && found != where; !several {
			best, where = score, found
		}
	}
	for _, set := range o.settings[s] {
		try(place{key: set.Field, value: set.Value}, func() string { return placeOf(set, s) })
	}
	for _, id := range o.own[s] {
		f := o.files[id]
		for _, p := range f.values() {
			try(p, func() string { return fmt.Sprintf("%s:%d", f.Path, p.line) })
		}
	}
	switch {
	case best > 0 && (several || best == exactValue):
		return where + " (likely)"
	case best > 0:
		return where
	case d.origin.File != "" && slices.ContainsFunc(o.own[s], func(id string) bool { return o.files[id].Path == d.origin.File }):
		return fmt.Sprintf("%s:%d", d.origin.File, max(1, d.origin.Line))
	}
	return o.computed(s)
}

// computed names what could have made a value that is written nowhere as it is.
func (o *origins) computed(s *side) string {
	own := o.own[s]
	if len(own) == 0 {
		return ""
	}
	text := "no line has it as it is; not all clusters read " + o.files[own[len(own)-1]].Path
	if len(own) > 1 {
		text += fmt.Sprintf(" and %d more", len(own)-1)
	}
	return text
}

// placeOf names where a setting is made.
func placeOf(set Setting, s *side) string {
	return cmp.Or(set.Where, set.Field+" of Application "+s.Application)
}

// exactValue is the score of a place with the value under another name.
const exactValue = 2

// fits is how likely a place is where a value comes from; 0 when it is not.
func fits(p place, name, text string) int {
	switch {
	case p.value == "" || text == "":
		return 0
	case p.value == text && (named(p.key, name) || related(p.key, name)):
		return 4
	case partOf(text, p.value) && related(p.key, name):
		return 3
	case p.value == text:
		return exactValue
	}
	return 0
}

// partOf reports whether a value may be a part of a text, as the tag of an image.
func partOf(text, value string) bool {
	return value != "" && (strings.HasSuffix(text, ":"+value) || len(value) > 1 && strings.Contains(text, value))
}

// related reports whether a key may give a part of a field, as a tag of an image.
func related(key, name string) bool {
	key = strings.ToLower(lastWord(key))
	return key == strings.ToLower(name) || name == "replicas" && key == "count" || name == "image" && slices.Contains([]string{"tag", "newtag", "newname", "repository", "digest", "image", "images", "version"}, key)
}

// named reports whether a key, or the last part of its path, is a name.
func named(key, name string) bool {
	key, name = strings.ToLower(key), strings.ToLower(name)
	return key == name || strings.HasSuffix(key, "."+name)
}

// lastWord is the last name of the path of a setting.
func lastWord(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// nameAtEnd matches the last field of a path, namedValue the name of a value that is
// an element of a list, as of an environment.
var (
	nameAtEnd  = regexp.MustCompile(`(?:\.([A-Za-z0-9_$-]+)|\["([^"]*)"\])(?:\[[^"\]][^\]]*\])?$`)
	namedValue = regexp.MustCompile(`\[name="([^"]+)"\]\.value$`)
)

func lastName(path string) string {
	if m := namedValue.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	m := nameAtEnd.FindStringSubmatch(path)
	if m == nil {
		return path
	}
	return cmp.Or(m[1], m[2])
}

// values lists the values of a YAML file; what is none has none.
func (f *source) values() []place {
	if f.read {
		return f.places
	}
	f.read = true
	dec := yaml.NewDecoder(bytes.NewReader(f.Data))
	for {
		var doc yaml.Node
		if dec.Decode(&doc) != nil { // the end, or what is no YAML, as a template
			return f.places
		}
		f.places = collect(f.places, &doc, "")
	}
}

func collect(all []place, n *yaml.Node, key string) []place {
	switch n.Kind {
	case yaml.ScalarNode:
		if name, value, ok := strings.Cut(n.Value, "="); ok && key == "literals" { // of a kustomization
			return append(all, place{name, value, n.Line})
		}
		return append(all, place{key, n.Value, n.Line})
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			all = collect(all, n.Content[i+1], n.Content[i].Value)
		}
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, c := range n.Content {
			all = collect(all, c, key)
		}
	case yaml.AliasNode: // what it stands for is collected where it is
	}
	return all
}
