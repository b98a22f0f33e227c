package kustomize

import (
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// declared is an object as a file declares it, before kustomize changes it.
// Namespaces are left out: kustomize guesses them.
type declared struct{ kind, name string }

// content is what one file says, found once for each content.
type content struct {
	// objects are the objects that it declares, with the lines.
	objects map[declared][]int
	// kustomization is set for a checked kustomization; it is shared and not changed.
	kustomization *types.Kustomization
	// quiet replaces the text, where that is not nil.
	quiet []byte
	// elsewhere says that it names what has to be brought in first.
	elsewhere bool
}

// known remembers contents by the path and the hash of a file. It forgets all
// when it is full, which costs reading again.
type known struct {
	mu sync.Mutex
	by map[[2]string]*content
	// small are the hashes of files whose aliases are known to do no harm.
	small map[string]bool
}

// maxKnown bounds the files that are remembered.
const maxKnown = 2048

func newKnown() *known { return &known{by: map[[2]string]*content{}, small: map[string]bool{}} }

func (k *known) isSmall(hash string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.small[hash]
}

func (k *known) setSmall(hash string) {
	if hash == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.small) >= maxKnown {
		clear(k.small)
	}
	k.small[hash] = true
}

func (k *known) get(file, hash string) *content {
	if hash == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.by[[2]string{file, hash}]
}

func (k *known) put(file, hash string, c *content) {
	if hash == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.by) >= maxKnown {
		clear(k.by)
	}
	k.by[[2]string{file, hash}] = c
}

// originIndex finds where the objects of one render were declared. An object
// is known by its name in the result, so the index knows what the
// kustomizations put around names.
type originIndex struct {
	byKind             map[string][]candidate
	prefixes, suffixes []string
}

// candidate is one declaration of one kind, in a file that the library sees.
type candidate struct {
	name, file string
	at         rutter.Origin
	generated  bool
}

// origins indexes the resource files and the generators of a finished render.
func (f *snapshotFS) origins() originIndex {
	ix := originIndex{byKind: map[string][]candidate{}}
	for full, k := range f.kustomizations {
		at, _ := f.place(full)
		for _, g := range k.ConfigMapGenerator {
			ix.add("ConfigMap", candidate{g.Name, full, at.m.origin(at.path, generatorLine(f.texts[full], "configMapGenerator", g.Name)), true})
		}
		for _, g := range k.SecretGenerator {
			ix.add("Secret", candidate{g.Name, full, at.m.origin(at.path, generatorLine(f.texts[full], "secretGenerator", g.Name)), true})
		}
		if k.NamePrefix != "" {
			ix.prefixes = append(ix.prefixes, k.NamePrefix)
		}
		if k.NameSuffix != "" {
			ix.suffixes = append(ix.suffixes, k.NameSuffix)
		}
	}
	for full := range f.resources {
		for id, places := range f.places(full) {
			for _, at := range places {
				ix.add(id.kind, candidate{id.name, full, at, false})
			}
		}
	}
	return ix
}

// generatorLine finds the entry of a generator; 0 when it is not written as usual.
func generatorLine(text []byte, field, name string) int {
	n, inside := 0, false
	for line := range strings.Lines(string(text)) {
		n++
		if line[0] != ' ' && line[0] != '-' && line[0] != '#' && strings.TrimSpace(line) != "" {
			inside = strings.HasPrefix(line, field+":")
		}
		_, after, found := strings.Cut(line, "name: "+name)
		if inside && found && (strings.TrimSpace(after) == "" || strings.ContainsRune(" ,}#", rune(after[0]))) {
			return n
		}
	}
	return 0
}

// places returns where the objects of a resource file were written.
func (f *snapshotFS) places(full string) map[declared][]rutter.Origin {
	v := f.virtual[full]
	if v != nil && v.charts != nil {
		return v.charts
	}
	at, ok := f.place(full)
	if !ok {
		return nil
	}
	out := map[declared][]rutter.Origin{}
	for id, lines := range f.declaredIn(full, at) {
		for _, n := range lines {
			if v != nil {
				out[id] = append(out[id], v.at)
				continue
			}
			out[id] = append(out[id], at.m.origin(at.path, n))
		}
	}
	return out
}

func (ix originIndex) add(kind string, c candidate) { ix.byKind[kind] = append(ix.byKind[kind], c) }

// origin returns the place of an object, and whether there is but one it can
// be; file, when it is known, narrows the choice.
func (ix originIndex) origin(id resid.ResId, file string) (rutter.Origin, bool) {
	var found []rutter.Origin
	for _, c := range ix.byKind[id.Kind] {
		if (file == "" || c.file == file) && ix.becomes(c, id.Name) && !slices.Contains(found, c.at) {
			found = append(found, c.at)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	return rutter.Origin{}, false
}

// becomes reports whether a declaration can have got a name.
func (ix originIndex) becomes(c candidate, name string) bool {
	for at := 0; at+len(c.name) <= len(name); at++ {
		if !strings.HasPrefix(name[at:], c.name) {
			continue
		}
		tail := name[at+len(c.name):]
		if c.generated && len(tail) >= hashLen {
			if consists(name[:at], ix.prefixes) && consists(tail[:len(tail)-hashLen], ix.suffixes) {
				return true
			}
		}
		if consists(name[:at], ix.prefixes) && consists(tail, ix.suffixes) {
			return true
		}
	}
	return false
}

// hashLen is the length of what a generator puts behind a name: a dash and ten characters.
const hashLen = 11

// consists reports whether s is made of parts only. It goes over s once, because
// parts that begin alike would make trying all of them endless.
func consists(s string, parts []string) bool {
	reached := make([]bool, len(s)+1)
	reached[0] = true
	for at := range s {
		for _, p := range parts {
			if reached[at] && strings.HasPrefix(s[at:], p) {
				reached[at+len(p)] = true
			}
		}
	}
	return reached[len(s)]
}

// declaredIn returns the objects in a resource file that the render has read.
func (f *snapshotFS) declaredIn(full string, at place) map[declared][]int {
	data, read := f.read[full]
	if !read {
		return nil
	}
	file, hash := at.display(), f.hashOf(full, at)
	if c := f.known.get(file, hash); c != nil && c.objects != nil {
		return c.objects
	}
	c := &content{objects: map[declared][]int{}}
	for _, doc := range manifest.Split(data) {
		v, err := manifest.Decode(doc, file)
		if err != nil {
			continue // the library has read it, so it is in a form that only it knows
		}
		objs, err := manifest.Objects(v, rutter.Origin{})
		if err != nil {
			continue
		}
		for _, o := range objs {
			id := declared{o.GetKind(), o.GetName()}
			c.objects[id] = append(c.objects[id], doc.Line)
		}
	}
	f.known.put(file, hash, c)
	return c.objects
}
